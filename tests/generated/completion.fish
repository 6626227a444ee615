# fish completion for git-arborist
# git-arborist asset: made from the definitions of its commands; changes are lost when it is installed again

# The words typed so far that are no options.
function __git_arborist_words
    set -l typed (commandline -opc)
    string match -v -- '-*' $typed[2..]
end

# Whether exactly these words were typed.
function __git_arborist_at
    test "$(__git_arborist_words | string join ' ')" = "$argv"
end

# Whether these words were typed, and perhaps more.
function __git_arborist_in
    string match -q -- "$argv *" "$(__git_arborist_words | string join ' ') "
end

# Whether the words of the first argument were typed, perhaps with more, but none of the other arguments after them.
function __git_arborist_without
    __git_arborist_in $argv[1]; or return 1
    for command in $argv[2..]
        __git_arborist_in "$argv[1] $command"; and return 1
    end
    return 0
end

# Whether no command was typed yet.
function __git_arborist_bare
    test -z "$(__git_arborist_words)"
end

function __git_arborist_verbs
    set -l known \
        @VERBS@
        help\t'Open the manual page of a command'
    set -l names (string split -f 1 \t -- $known)
    printf '%s\n' $known
    for verb in (git arborist --list-cmds 2>/dev/null)
        contains -- $verb $names; or echo $verb
    end
end

function __git_arborist_tasks
    git arborist state --list-ids 2>/dev/null
end

function __git_arborist_branches
    git for-each-ref '--format=%(refname:lstrip=2)' refs/heads 2>/dev/null
end

function __git_arborist_sessions
    git for-each-ref '--format=%(refname:lstrip=3)' refs/arborist/sessions 2>/dev/null
end

complete -c git-arborist -n __git_arborist_bare -f -a '(__git_arborist_verbs)'
complete -c git-arborist -n __git_arborist_bare -f -s h -l help -d 'Show the commands by topic'
complete -c git-arborist -n __git_arborist_bare -f -l version -d 'Show the version'
complete -c git-arborist -n '__git_arborist_at help' -f -a '(__git_arborist_verbs)'
@COMMANDS@
