# >>> git-arborist: kept by 'git arborist hooks', not to be edited >>>
lines=$(cat)
{ [ -z "$lines" ] || printf '%s\n' "$lines"; } | (
@CHECK@
) || exit
if [ -z "$lines" ]; then exec </dev/null; else exec <<END
$lines
END
fi
# <<< git-arborist <<<
