arborist=@BINARY@
[ -x "$arborist" ] || arborist=$(command -v git-arborist-hooks) || arborist=
[ -z "$arborist" ] || exec "$arborist" run commit-msg "$@"
LC_ALL=C grep -qE '^(task\(.*@.*@|[Aa][Rr][Bb][Oo][Rr][Ii][Ss][Tt]-)' "$1"
[ $? -ne 1 ] || exit 0
echo "error: this message claims to be a task's, and git-arborist-hooks is not there to check it" >&2
echo "hint: install git-arborist again, or commit with --no-verify" >&2
exit 1
