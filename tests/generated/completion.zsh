#compdef git-arborist
#description drive AI coding agents through a tree of tasks
# git-arborist asset: made from the definitions of its commands; changes are lost when it is installed again
#
# zsh's completion of git finds this file by its name, and asks it for `git arborist`.

__git-arborist-verbs () {
  local -a known=(
    @VERBS@
  )
  local -a others=(${(f)"$(_call_program commands $git_arborist --list-cmds 2>/dev/null)"})
  local -a names=(${known%%:*})
  others=(${others:|names})
  _describe -t commands 'git arborist command' known -- others
}

__git-arborist-tasks () {
  local -a tasks=(${(f)"$(_call_program tasks $git_arborist state --list-ids 2>/dev/null)"})
  tasks=(${${tasks//:/\\:}/$'\t'/:})
  _describe -t tasks task tasks
}

__git-arborist-branches () {
  local -a branches=(${(f)"$(_call_program branches $git_itself for-each-ref "'--format=%(refname:lstrip=2)'" refs/heads 2>/dev/null)"})
  _wanted branches expl branch compadd -a branches
}

__git-arborist-sessions () {
  local -a sessions=(${(f)"$(_call_program sessions $git_itself for-each-ref "'--format=%(refname:lstrip=3)'" refs/arborist/sessions 2>/dev/null)"})
  _wanted sessions expl session compadd -a sessions
}

@FUNCTIONS@

_git-arborist () {
  # Where `git -C dir` was typed, the answers come from there.
  local -a git_itself=(git)
  [[ -n ${opt_args[-C]-} ]] && git_itself+=(-C ${(q)${(Q)${~opt_args[-C]}}})
  local -a git_arborist=($git_itself arborist)

  local curcontext=$curcontext state line ret=1
  local -A opt_args
  _arguments -C \
    '(- *)'{-h,--help}'[show the commands by topic]' \
    '(- *)--version[show the version]' \
    '(-): :->command' \
    '(-)*:: :->arguments' && ret=0
  case $state in
  (command) __git-arborist-verbs && ret=0 ;;
  (arguments)
    curcontext=${curcontext%:*:*}:git-arborist-$words[1]:
    if [[ $words[1] == help ]]; then
      _arguments ':command:__git-arborist-verbs' && ret=0
    elif ! _call_function ret __git-arborist_$words[1]; then
      _default && ret=0
    fi
    ;;
  esac
  return ret
}

_git-arborist "$@"
