# >>> git-arborist: kept by 'git arborist hooks', not to be edited >>>
(
@CHECK@
) || exit
# <<< git-arborist <<<
