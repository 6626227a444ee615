# Prints what a bash with bash-completion and git's completion offers for the command line "$1".
# Exits with 77 where these are not installed.
for file in /usr/share/bash-completion/bash_completion /opt/homebrew/share/bash-completion/bash_completion; do
	[ -r "$file" ] && . "$file" && break
done
declare -F _completion_loader >/dev/null || declare -F _comp_complete_load >/dev/null || exit 77

COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9 COMP_KEY=9
read -r -a COMP_WORDS <<<"${COMP_LINE//=/ = }"
case "$COMP_LINE" in *" ") COMP_WORDS+=("") ;; esac
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))

command=${COMP_WORDS[0]}
_completion_loader "$command" 2>/dev/null || _comp_complete_load "$command" 2>/dev/null
specification=$(complete -p "$command" 2>/dev/null)
declare -F __git_complete >/dev/null || exit 77
function=${specification#*-F }
"${function%% *}" "$command" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
