# bash completion for git-arborist -*- shell-script -*-
# git-arborist asset: made from the definitions of its commands; changes are lost when it is installed again
#
# git's completion loads this file for `git arborist`, bash-completion loads it for `git-arborist`.

# Sets what the command "$1" knows: its commands, its options, and what its operands are.
__git_arborist_knows ()
{
	commands="" options="" operand=""
	case "$1" in
	help)
		operand="VERB"
		;;
	@KNOWS@
	esac
}

# Says what the option "$1" (with its command before it) takes: a kind in capitals, or the words to choose from.
__git_arborist_takes ()
{
	case "$1" in
	@TAKES@
	esac
}

# Offers what "$1" stands for, given that "$2" was typed of it.
__git_arborist_offer ()
{
	case "$1" in
	VERB)
		__gitcomp_nl "$(__git arborist --list-cmds 2>/dev/null || printf '%s\n' @VERBS@)" "" "$2"
		;;
	TASK)
		__gitcomp_nl "$(__git arborist state --list-ids 2>/dev/null | cut -f 1)" "" "$2"
		;;
	BRANCH)
		__gitcomp_nl "$(__git_heads "" "$2")" "" "$2"
		;;
	SESSION)
		__gitcomp_nl "$(__git for-each-ref --format='%(refname:lstrip=3)' refs/arborist/sessions 2>/dev/null)" "" "$2"
		;;
	REVISION)
		__git_complete_revlist
		;;
	FILE | TEXT | "")
		# bash offers files by itself
		;;
	*)
		__gitcomp "$1" "" "$2"
		;;
	esac
}

_git_arborist ()
{
	local at=$((${__git_cmd_idx-1} + 1)) known commands options operand takes
	if ((cword == at)); then
		case "$cur" in
		-*) __gitcomp "--version --help" ;;
		*) __git_arborist_offer VERB "$cur" ;;
		esac
		return
	fi

	known="${words[at]}"
	__git_arborist_knows "$known"
	while ((++at < cword)); do
		case " $commands " in
		*" ${words[at]} "*)
			known="$known ${words[at]}"
			__git_arborist_knows "$known"
			;;
		esac
	done

	takes="$(__git_arborist_takes "$known $prev")"
	if [ -n "$takes" ]; then
		__git_arborist_offer "$takes" "$cur"
		return
	fi
	case "$cur" in
	--*=*) __git_arborist_offer "$(__git_arborist_takes "$known ${cur%%=*}")" "${cur#*=}" ;;
	-*) __gitcomp "$options" ;;
	*)
		__git_arborist_offer "$operand" "$cur"
		# A command of a command comes directly after it.
		if [ -n "$commands" ] && [ "$prev" = "${known##* }" ]; then
			__gitcomp_nl_append "$(printf '%s\n' $commands)" "" "$cur"
		fi
		;;
	esac
}

# Typed as one word, it is not git's completion that is asked; but what we use is defined there.
if ! declare -F __git_complete >/dev/null; then
	if declare -F _comp_load >/dev/null; then
		_comp_load git
	elif declare -F __load_completion >/dev/null; then
		__load_completion git
	fi
fi
if declare -F __git_complete >/dev/null; then
	__git_complete git-arborist _git_arborist
fi
