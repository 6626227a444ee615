//! A git that stops its caller at a chosen call, for tests of crashes.

use arborist_testkit::TestRepo;

/// A git that kills its caller at the n-th call, before or after it does anything, if `$ROOT/kill` contains `n before` or
/// `n after`.
const KILLER: &str = r#"#!/bin/sh
PATH=${PATH#*:}
[ "$1" = arborist ] && exec git "$@"
[ -e "$ROOT/kill" ] || exec git "$@"
echo >> "$ROOT/calls"
read -r n how < "$ROOT/kill"
if [ "$(wc -l < "$ROOT/calls")" -lt "$n" ]; then exec git "$@"; fi
# One that stays waits for words that would not come any more.
case " $* " in *" --stdin-paths "* | *" --batch"* | *" diff-tree "*" --stdin "* | *" update-ref "*" --stdin "*) how=before ;; esac
[ "$how" = after ] && git "$@" >/dev/null 2>&1
kill -9 "$PPID"
exit 1
"#;

/// Puts it first on the PATH.
pub(crate) fn plant(repo: &TestRepo) {
    repo.plant("git", &KILLER.replace("$ROOT", &repo.root().display().to_string()));
}
