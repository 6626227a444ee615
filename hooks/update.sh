arborist=@BINARY@
[ -x "$arborist" ] || arborist=$(command -v git-arborist-hooks) || arborist=
[ -z "$arborist" ] || exec "$arborist" run update "$@"
case $1 in refs/heads/arborist/* | refs/arborist/*) ;; *) exit 0 ;; esac
echo "error: '$1' is arborist's, and git-arborist-hooks is not there to check the push" >&2
echo "hint: install git-arborist on the server again" >&2
exit 1
