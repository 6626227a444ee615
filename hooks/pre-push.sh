arborist=@BINARY@
[ -x "$arborist" ] || arborist=$(command -v git-arborist-hooks) || arborist=
[ -z "$arborist" ] || exec "$arborist" run pre-push "$@"
grep -qE ' refs/(heads/)?arborist/'
[ $? -ne 1 ] || exit 0
echo "error: this push touches arborist's refs, and git-arborist-hooks is not there to check it" >&2
echo "hint: install git-arborist again, or push with --no-verify" >&2
exit 1
