# fish completion for git-arborist, the part that is needed when fish starts
# git-arborist asset: changes are lost when it is installed again
#
# fish hands `git arborist` on to the completions of `git-arborist`. Only 3.6.0 forgot to.
if test "$version" = 3.6.0
    complete -c git -f -n '__fish_git_using_command arborist' -a '(__fish_git_complete_custom_command arborist)'
end
