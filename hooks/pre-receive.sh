arborist=@BINARY@
[ -x "$arborist" ] || arborist=$(command -v git-arborist-hooks) || arborist=
[ -z "$arborist" ] || exec "$arborist" run pre-receive
grep -qE ' refs/(heads/)?arborist/'
[ $? -ne 1 ] || exit 0
echo "error: this push touches arborist's refs, and git-arborist-hooks is not there to check it" >&2
echo "hint: install git-arborist on the server again" >&2
exit 1
