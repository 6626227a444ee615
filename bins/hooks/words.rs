//! The output of `git arborist hooks`.

use arborist_core::message::visible;

use super::{HookState, HookStatus, HooksStatus, fault::shown, probe::ProbeResult, status::AgentStatus};
use crate::ui::{Tone, Ui};

pub(super) const LONG_ABOUT: &str = "\
Install git hooks that check task commits and pushes.

The state of tasks is in commits, so a malformed or a lost commit would change
the state. commit-msg refuses a message that looks like that of a task commit
but is not valid; it does not touch other messages. pre-push, and pre-receive on
the server, refuse pushes that publish such commits, delete or rewind a branch
of git arborist, or drop commits that record the state of a task. pre-receive
sees all refs of a push together. Installing it removes the update hook of
earlier versions.

Existing hooks are kept. With git 2.54 or newer, the new hooks are added to the
repository's configuration (hook.arborist-<hook>.command). With older versions,
an existing hook file is renamed to <hook>.pre-arborist and called first, with
the same arguments and input; if it refuses, the new hook does not run. If
core.hooksPath is a folder inside the repository, hooks are installed there. If
it is a folder outside the repository, nothing is written to it; the line to add
by hand is printed. husky's files get a marked block. Hooks of lefthook and
pre-commit are called first, and the lines to add to their own configuration are
printed.

A hook calls git-arborist-hooks at the path where the program was when the hook
was installed, or else the one on PATH. If the program is missing, the hook
refuses only messages that may be those of a task, and pushes to refs of git
arborist.

Hooks can be skipped by --no-verify, by cherry-pick and by other programs.
'git arborist trailers check' checks the history itself.";

pub(super) const EXAMPLES: &str = "\
EXAMPLES
   Show what would be done, then do it
       git arborist hooks install --dry-run
       git arborist hooks install

   Check that the hooks run in this worktree
       git arborist hooks test

   See which hooks are installed, and why one does not run
       git arborist hooks status

   Restore the files as they were, byte for byte
       git arborist hooks uninstall";

pub(super) const INSTALL_EXAMPLES: &str = "\
EXAMPLES
   Check messages and pushes; in a bare repository, what is pushed to it
       git arborist hooks install

   Check messages only
       git arborist hooks install commit-msg

   Check pushes to a repository that has a checkout
       git arborist hooks install pre-receive

   Let Claude Code record its turns as 'git arborist session' shows them
       git arborist hooks install --agent claude

EXIT STATUS
   2  git reads hooks from outside the repository, or an installed hook was
      edited; nothing was changed.";

pub(super) const UNINSTALL_EXAMPLES: &str = "\
EXAMPLES
   Remove all hooks of git arborist
       git arborist hooks uninstall

   Remove one hook
       git arborist hooks uninstall pre-push

   Remove the hooks from Claude Code's settings
       git arborist hooks uninstall --agent claude

EXIT STATUS
   2  A hook was edited, and was therefore kept.";

pub(super) const STATUS_EXAMPLES: &str = "\
EXAMPLES
   See which hooks are installed
       git arborist hooks status

   The state of each hook, for a script
       git arborist hooks status --json | jq -r '.hooks[] | .event, .state'";

pub(super) const TEST_EXAMPLES: &str = "\
EXAMPLES
   Run commit-msg and pre-push through git; in a bare repository, pre-receive
       git arborist hooks test

   Run one hook
       git arborist hooks test commit-msg

EXIT STATUS
   1  git does not run a hook.

   Other hooks of the same name run as well.";

pub(super) const RUN_EXAMPLES: &str = "\
EXAMPLES
   The line for your own hook file
       git-arborist-hooks run commit-msg \"$@\" || exit
       git-arborist-hooks run pre-push \"$@\" || exit
       git-arborist-hooks run pre-receive || exit";

/// The status for people.
pub(super) fn status(status: &HooksStatus, ui: &mut Ui) {
    let scope = status.hooks_path_scope.as_ref().map(|scope| format!(" (core.hooksPath, {scope})"));
    let (git, dir) = (&status.git, &status.hooks_dir);
    ui.line(&format!("git {git} reads hooks from '{}'{}", visible(dir), visible(&scope.unwrap_or_default())));
    for hook in &status.hooks {
        let (tone, word) = tone_and_word(hook.state);
        let place = hook.place.as_ref().map(|place| format!(": {}", visible(place))).unwrap_or_default();
        let manager = hook.manager.map(|manager| format!(" (this repository uses {})", manager.as_str()));
        let (name, word) = (hook.event.as_str(), ui.paint(tone, word));
        ui.line(&format!("  {name:<11}  {word}{place}{}", manager.unwrap_or_default()));
        let chained = hook.chained.as_ref().map(|path| format!("calls '{path}' first"));
        for line in chained.iter().chain(&hook.note) {
            ui.line(&format!("{:15}{}", "", visible(line)));
        }
    }
    for AgentStatus { agent, state, place, note } in &status.agents {
        let (tone, word) = tone_and_word(*state);
        let place = place.as_ref().map(|place| format!(": {}", visible(place))).unwrap_or_default();
        let how = match state {
            HookState::Missing => format!(": git arborist hooks install --agent {agent}"),
            _ => String::new(),
        };
        let word = format!("hooks {word}");
        ui.line(&format!("  {agent:<11}  {}{place}{how}", ui.paint(tone, &word)));
        note.iter().for_each(|note| ui.line(&format!("{:15}{}", "", shown(note))));
    }
}

fn tone_and_word(state: HookState) -> (Tone, &'static str) {
    match state {
        HookState::Installed => (Tone::Good, "installed"),
        HookState::Missing => (Tone::Dim, "not installed"),
        HookState::Shadowed => (Tone::Bad, "does not run"),
        HookState::Edited => (Tone::Busy, "edited"),
    }
}

/// The result of one firing.
pub(super) fn tested(fired: &ProbeResult, status: &HookStatus, ui: &mut Ui) {
    let name = status.event.as_str();
    match fired {
        ProbeResult::Ours => ui.line(&format!("{name}: git runs it")),
        ProbeResult::Nothing => {
            ui.line(&format!("{name}: git does not run it"));
            match (&status.note, status.state) {
                (Some(note), _) => ui.hint(note),
                (None, HookState::Missing) => {
                    ui.hint(&format!("install it: git arborist hooks install {name}"));
                }
                (None, _) => ui.hint("it is installed, but an earlier hook ended without calling it"),
            }
        }
        ProbeResult::Other(said) => {
            ui.line(&format!("{name}: another hook refused before the hook of git arborist ran"));
            said.lines()
                .rev()
                .take(3)
                .collect::<Vec<_>>()
                .iter()
                .rev()
                .for_each(|line| ui.hint(&shown(line)));
        }
    }
}
