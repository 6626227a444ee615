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
        plan\t'Read a plan, check it and show the order of its tasks' \
        gardener\t'Run all tasks of the plan, in order' \
        garden\t'Run one task' \
        work\t'Work on a plan together with other machines, through a remote' \
        merge\t'Test finished tasks and merge (land) them into your branch' \
        reset\t'Let a task start over' \
        demo\t'Show a whole run in a temporary repository' \
        worktree\t'Give each task its own worktree and branch' \
        workspace\t'Fetch and push the repositories, if a plan has several' \
        cleanup\t'Remove old worktrees, branches, sessions and logs' \
        state\t'Show which tasks are done, running, ready or failed' \
        logs\t'Read what agents said and what tests printed' \
        session\t'Show what agents did, turn by turn; resume, replay' \
        verify\t'Check that tasks were implemented, tested, reviewed' \
        trailers\t'Read, check and query the trailers that hold the state' \
        init\t'Write a configuration for this repository' \
        sandbox\t'Check what agents and tests can do on this machine' \
        hooks\t'Install git hooks that check task commits and pushes' \
        tools\t'Let agents edit files and run your commands over MCP' \
        install-assets\t'Install manual pages and shell completions' \
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

# plan
complete -c git-arborist -n '__git_arborist_in plan' -F
complete -c git-arborist -n '__git_arborist_in plan' -s o -l output -r -F -d 'Write the plan to this file as JSON; keys that you have added there are kept'
complete -c git-arborist -n '__git_arborist_in plan' -l check -d 'Print errors and warnings instead of the plan; exit with 1 if there are errors'
complete -c git-arborist -n '__git_arborist_in plan' -l strict -d 'Treat warnings as errors'
complete -c git-arborist -n '__git_arborist_in plan' -l waves -d 'Show the waves: groups of tasks that can run at the same time'
complete -c git-arborist -n '__git_arborist_in plan' -l explain -x -a '(__git_arborist_tasks)' -d 'Show why a task waits, with the file and line of each reason'
complete -c git-arborist -n '__git_arborist_in plan' -l format -x -a 'text json mermaid dot' -d 'How to print the plan'
complete -c git-arborist -n '__git_arborist_in plan' -l tick -d 'Tick the boxes of tasks that are complete in the history of this branch'
complete -c git-arborist -n '__git_arborist_in plan' -l assign-ids -d 'Write ids into boxes that have none'
complete -c git-arborist -n '__git_arborist_in plan' -l ai -d 'Let an agent make the plan from the spec, with up to three calls to correct it'
complete -c git-arborist -n '__git_arborist_in plan' -l runner -x -d 'The agent program that makes the plan: claude, codex, gemini or another built-in agent, or a runner of your own'
complete -c git-arborist -n '__git_arborist_in plan' -l model -x -d 'The model that the agent uses'
complete -c git-arborist -n '__git_arborist_in plan' -l yes -d 'Approve the runner that .arborist/ defines'
complete -c git-arborist -n '__git_arborist_in plan' -s h -l help -d 'Show what it does and takes'

# gardener
complete -c git-arborist -n '__git_arborist_in gardener' -f
complete -c git-arborist -n '__git_arborist_in gardener' -l tree -r -F -d 'The plan: a task list in Markdown, or a task-tree.json. The path is relative to the top of the repository, or to the current directory if it begins with ./ or ../ or exists only there'
complete -c git-arborist -n '__git_arborist_in gardener' -l runner -x -d 'The agent program: claude, codex, gemini, opencode, aider or another built-in agent; shell (runs the command that the plan gives for the task); demo (for trying out); or a runner of your own. Overrides the plan, which overrides the configuration'
complete -c git-arborist -n '__git_arborist_in gardener' -l model -x -d 'The model that the agent uses'
complete -c git-arborist -n '__git_arborist_in gardener' -l implement-runner -x -d 'The agent program that implements [default: --runner]'
complete -c git-arborist -n '__git_arborist_in gardener' -l implement-model -x -d 'The model that implements'
complete -c git-arborist -n '__git_arborist_in gardener' -l review-runner -x -d 'The agent program that reviews [default: --runner]'
complete -c git-arborist -n '__git_arborist_in gardener' -l review-model -x -d 'The model that reviews'
complete -c git-arborist -n '__git_arborist_in gardener' -l fallback -x -d 'The agent program to call if the first one is not installed, cannot log in or has reached its limit. Can be repeated: the programs are tried in order'
complete -c git-arborist -n '__git_arborist_in gardener' -l tools -d 'Give agents tools (through MCP, if they support it) that read and write the task\'s files and run commands that you name; see git-arborist-tools(1). On by default for a task that works in several repositories'
complete -c git-arborist -n '__git_arborist_in gardener' -l max-cost -x -d 'Maximum cost of the run in US dollars, as reported by the agents'
complete -c git-arborist -n '__git_arborist_in gardener' -l max-tokens -x -d 'Maximum number of tokens that the run may use'
complete -c git-arborist -n '__git_arborist_in gardener' -l max-time -x -d 'Maximum total time that agents may work in the run'
complete -c git-arborist -n '__git_arborist_in gardener' -l max-task-cost -x -d 'Maximum cost of each task in US dollars'
complete -c git-arborist -n '__git_arborist_in gardener' -l max-task-tokens -x -d 'Maximum number of tokens that each task may use'
complete -c git-arborist -n '__git_arborist_in gardener' -l max-task-time -x -d 'Maximum total time that agents may work on each task'
complete -c git-arborist -n '__git_arborist_in gardener' -l max-retries -x -d 'Number of attempts for each task: the first one and its retries [default: 5]'
complete -c git-arborist -n '__git_arborist_in gardener' -l test-command -x -d 'Test command for tasks without their own test commands; \'\' runs no tests'
complete -c git-arborist -n '__git_arborist_in gardener' -l allow-red -d 'Start although tests fail before the first task. A task then fails only if it breaks a test that passed before. If the output does not name the failed tests, each task fails until the test command succeeds'
complete -c git-arborist -n '__git_arborist_in gardener' -l allow -x -d 'Let tasks change this path although the setting \'protect\' names it. --allow fewer-tests accepts a task whose test command runs fewer tests than before'
complete -c git-arborist -n '__git_arborist_in gardener' -l diff-limit -x -d 'Maximum length of the diff in the reviewer\'s prompt, in characters; a longer diff is cut and summarized [default: 8000]'
complete -c git-arborist -n '__git_arborist_in gardener' -l sandbox -x -a 'auto landlock bwrap off' -d 'The sandbox of agents and tests. auto: on Linux, bubblewrap (bwrap) if it works, otherwise Landlock; on macOS, sandbox-exec. landlock or bwrap: use this one, and do not start if it does not work. off: no sandbox [default: auto]'
complete -c git-arborist -n '__git_arborist_in gardener' -l report-dir -x -a '(__fish_complete_directories)' -d 'The folder in the repository in which reports are committed. The path is relative to the top of the repository [default: spec/reports]'
complete -c git-arborist -n '__git_arborist_in gardener' -l log-dir -x -a '(__fish_complete_directories)' -d 'The folder in the repository for the logs of steps, which are not committed. The path is relative to the top of the repository [default: spec/logs]'
complete -c git-arborist -n '__git_arborist_in gardener' -l allow-dirty -d 'Start even if there are uncommitted changes. They stay uncommitted, except changes to the plan and the configuration. Not needed with \'--session-branch\', \'gardener --jobs\' or \'--isolate\''
complete -c git-arborist -n '__git_arborist_in gardener' -l new-run -d 'Start a new run instead of continuing the last one'
complete -c git-arborist -n '__git_arborist_in gardener' -l session-branch -d 'Run on a separate branch, in a worktree beside this checkout'
complete -c git-arborist -n '__git_arborist_in gardener' -l accept-changes -d 'Accept changes to the plan or the configuration since the run started'
complete -c git-arborist -n '__git_arborist_in gardener' -l yes -d 'Approve commands and settings that come from the plan or from .arborist/'
complete -c git-arborist -n '__git_arborist_in gardener' -l dry-run -d 'Show what would run without running it'
complete -c git-arborist -n '__git_arborist_in gardener' -s v -l verbose -d 'Also print a line for each step and each commit; with --dry-run, the prompts'
complete -c git-arborist -n '__git_arborist_in gardener' -s q -l quiet -d 'Print only failures, the summary of a run that did not succeed, and the commands that --yes approves'
complete -c git-arborist -n '__git_arborist_in gardener' -l json -d 'Print events as JSON, one object per line'
complete -c git-arborist -n '__git_arborist_in gardener' -l only -x -a '(__git_arborist_tasks)' -d 'Run only this task, or the tasks of this phase. Can be repeated'
complete -c git-arborist -n '__git_arborist_in gardener' -l until -x -a '(__git_arborist_tasks)' -d 'Run the plan up to and including this task or phase. \'git arborist plan\' shows the ids'
complete -c git-arborist -n '__git_arborist_in gardener' -l jobs -x -d 'How many tasks to run at once, each in its own worktree: a number, or auto (one per core)'
complete -c git-arborist -n '__git_arborist_in gardener' -l isolate -d 'Use worktrees even for one task at a time; your checkout changes only when a finished task lands'
complete -c git-arborist -n '__git_arborist_in gardener' -l policy -x -d 'Which parallel tasks land: keep-clean (all that pass), all-or-nothing, first (only the first that passes), or a number (at most that many)'
complete -c git-arborist -n '__git_arborist_in gardener' -l keep-going -d 'Continue with other tasks when one fails'
complete -c git-arborist -n '__git_arborist_in gardener' -l retry-failed -d 'Try failed tasks again, and continue tasks that were interrupted three times in a row'
complete -c git-arborist -n '__git_arborist_in gardener' -s h -l help -d 'Show what it does and takes'

# garden
complete -c git-arborist -n '__git_arborist_in garden' -f -a '(__git_arborist_tasks)'
complete -c git-arborist -n '__git_arborist_in garden' -s m -l message -x -d 'Run one task described in these words, without a plan'
complete -c git-arborist -n '__git_arborist_in garden' -l retry-failed -d 'Run the task even if it has failed, or was interrupted three times in a row'
complete -c git-arborist -n '__git_arborist_in garden' -l tree -r -F -d 'The plan: a task list in Markdown, or a task-tree.json. The path is relative to the top of the repository, or to the current directory if it begins with ./ or ../ or exists only there'
complete -c git-arborist -n '__git_arborist_in garden' -l runner -x -d 'The agent program: claude, codex, gemini, opencode, aider or another built-in agent; shell (runs the command that the plan gives for the task); demo (for trying out); or a runner of your own. Overrides the plan, which overrides the configuration'
complete -c git-arborist -n '__git_arborist_in garden' -l model -x -d 'The model that the agent uses'
complete -c git-arborist -n '__git_arborist_in garden' -l implement-runner -x -d 'The agent program that implements [default: --runner]'
complete -c git-arborist -n '__git_arborist_in garden' -l implement-model -x -d 'The model that implements'
complete -c git-arborist -n '__git_arborist_in garden' -l review-runner -x -d 'The agent program that reviews [default: --runner]'
complete -c git-arborist -n '__git_arborist_in garden' -l review-model -x -d 'The model that reviews'
complete -c git-arborist -n '__git_arborist_in garden' -l fallback -x -d 'The agent program to call if the first one is not installed, cannot log in or has reached its limit. Can be repeated: the programs are tried in order'
complete -c git-arborist -n '__git_arborist_in garden' -l tools -d 'Give agents tools (through MCP, if they support it) that read and write the task\'s files and run commands that you name; see git-arborist-tools(1). On by default for a task that works in several repositories'
complete -c git-arborist -n '__git_arborist_in garden' -l max-cost -x -d 'Maximum cost of the run in US dollars, as reported by the agents'
complete -c git-arborist -n '__git_arborist_in garden' -l max-tokens -x -d 'Maximum number of tokens that the run may use'
complete -c git-arborist -n '__git_arborist_in garden' -l max-time -x -d 'Maximum total time that agents may work in the run'
complete -c git-arborist -n '__git_arborist_in garden' -l max-task-cost -x -d 'Maximum cost of each task in US dollars'
complete -c git-arborist -n '__git_arborist_in garden' -l max-task-tokens -x -d 'Maximum number of tokens that each task may use'
complete -c git-arborist -n '__git_arborist_in garden' -l max-task-time -x -d 'Maximum total time that agents may work on each task'
complete -c git-arborist -n '__git_arborist_in garden' -l max-retries -x -d 'Number of attempts for each task: the first one and its retries [default: 5]'
complete -c git-arborist -n '__git_arborist_in garden' -l test-command -x -d 'Test command for tasks without their own test commands; \'\' runs no tests'
complete -c git-arborist -n '__git_arborist_in garden' -l allow-red -d 'Start although tests fail before the first task. A task then fails only if it breaks a test that passed before. If the output does not name the failed tests, each task fails until the test command succeeds'
complete -c git-arborist -n '__git_arborist_in garden' -l allow -x -d 'Let tasks change this path although the setting \'protect\' names it. --allow fewer-tests accepts a task whose test command runs fewer tests than before'
complete -c git-arborist -n '__git_arborist_in garden' -l diff-limit -x -d 'Maximum length of the diff in the reviewer\'s prompt, in characters; a longer diff is cut and summarized [default: 8000]'
complete -c git-arborist -n '__git_arborist_in garden' -l sandbox -x -a 'auto landlock bwrap off' -d 'The sandbox of agents and tests. auto: on Linux, bubblewrap (bwrap) if it works, otherwise Landlock; on macOS, sandbox-exec. landlock or bwrap: use this one, and do not start if it does not work. off: no sandbox [default: auto]'
complete -c git-arborist -n '__git_arborist_in garden' -l report-dir -x -a '(__fish_complete_directories)' -d 'The folder in the repository in which reports are committed. The path is relative to the top of the repository [default: spec/reports]'
complete -c git-arborist -n '__git_arborist_in garden' -l log-dir -x -a '(__fish_complete_directories)' -d 'The folder in the repository for the logs of steps, which are not committed. The path is relative to the top of the repository [default: spec/logs]'
complete -c git-arborist -n '__git_arborist_in garden' -l allow-dirty -d 'Start even if there are uncommitted changes. They stay uncommitted, except changes to the plan and the configuration. Not needed with \'--session-branch\', \'gardener --jobs\' or \'--isolate\''
complete -c git-arborist -n '__git_arborist_in garden' -l new-run -d 'Start a new run instead of continuing the last one'
complete -c git-arborist -n '__git_arborist_in garden' -l session-branch -d 'Run on a separate branch, in a worktree beside this checkout'
complete -c git-arborist -n '__git_arborist_in garden' -l accept-changes -d 'Accept changes to the plan or the configuration since the run started'
complete -c git-arborist -n '__git_arborist_in garden' -l yes -d 'Approve commands and settings that come from the plan or from .arborist/'
complete -c git-arborist -n '__git_arborist_in garden' -l dry-run -d 'Show what would run without running it'
complete -c git-arborist -n '__git_arborist_in garden' -s v -l verbose -d 'Also print a line for each step and each commit; with --dry-run, the prompts'
complete -c git-arborist -n '__git_arborist_in garden' -s q -l quiet -d 'Print only failures, the summary of a run that did not succeed, and the commands that --yes approves'
complete -c git-arborist -n '__git_arborist_in garden' -l json -d 'Print events as JSON, one object per line'
complete -c git-arborist -n '__git_arborist_in garden' -s h -l help -d 'Show what it does and takes'

# work
complete -c git-arborist -n '__git_arborist_at work' -f -a stop -d 'Interrupt a worker, or all workers of this branch'
complete -c git-arborist -n '__git_arborist_at work' -f -a drain -d 'Let a worker, or all workers of this branch, end after their current tasks'
complete -c git-arborist -n '__git_arborist_at work' -f -a cancel -d 'End jobs of an engine, also those that have not begun'
complete -c git-arborist -n '__git_arborist_at work' -f -a logs -d 'Fetch the logs of workers that an engine has started'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -f
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l remote -x -d 'The remote through which the plan is shared'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l jobs -x -d 'How many tasks to run at once, each in its own worktree: a number, or auto'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l clone -x -d 'Clone this repository into the current folder first, unless that was done before'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l branch -x -d 'The branch to clone [default: that of the remote]'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l retry-failed -d 'Try failed tasks again'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l on -x -d 'Start workers on other machines: slurm, ssh:HOST,HOST, kubernetes, or one of engines.*'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l workers -x -d 'How many workers to start [default: 1, or one for each host]'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l tree -r -F -d 'The plan: a task list in Markdown, or a task-tree.json. The path is relative to the top of the repository, or to the current directory if it begins with ./ or ../ or exists only there'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l runner -x -d 'The agent program: claude, codex, gemini, opencode, aider or another built-in agent; shell (runs the command that the plan gives for the task); demo (for trying out); or a runner of your own. Overrides the plan, which overrides the configuration'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l model -x -d 'The model that the agent uses'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l implement-runner -x -d 'The agent program that implements [default: --runner]'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l implement-model -x -d 'The model that implements'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l review-runner -x -d 'The agent program that reviews [default: --runner]'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l review-model -x -d 'The model that reviews'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l fallback -x -d 'The agent program to call if the first one is not installed, cannot log in or has reached its limit. Can be repeated: the programs are tried in order'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l tools -d 'Give agents tools (through MCP, if they support it) that read and write the task\'s files and run commands that you name; see git-arborist-tools(1). On by default for a task that works in several repositories'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l max-cost -x -d 'Maximum cost of the run in US dollars, as reported by the agents'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l max-tokens -x -d 'Maximum number of tokens that the run may use'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l max-time -x -d 'Maximum total time that agents may work in the run'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l max-task-cost -x -d 'Maximum cost of each task in US dollars'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l max-task-tokens -x -d 'Maximum number of tokens that each task may use'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l max-task-time -x -d 'Maximum total time that agents may work on each task'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l max-retries -x -d 'Number of attempts for each task: the first one and its retries [default: 5]'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l test-command -x -d 'Test command for tasks without their own test commands; \'\' runs no tests'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l allow-red -d 'Start although tests fail before the first task. A task then fails only if it breaks a test that passed before. If the output does not name the failed tests, each task fails until the test command succeeds'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l allow -x -d 'Let tasks change this path although the setting \'protect\' names it. --allow fewer-tests accepts a task whose test command runs fewer tests than before'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l diff-limit -x -d 'Maximum length of the diff in the reviewer\'s prompt, in characters; a longer diff is cut and summarized [default: 8000]'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l sandbox -x -a 'auto landlock bwrap off' -d 'The sandbox of agents and tests. auto: on Linux, bubblewrap (bwrap) if it works, otherwise Landlock; on macOS, sandbox-exec. landlock or bwrap: use this one, and do not start if it does not work. off: no sandbox [default: auto]'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l report-dir -x -a '(__fish_complete_directories)' -d 'The folder in the repository in which reports are committed. The path is relative to the top of the repository [default: spec/reports]'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l log-dir -x -a '(__fish_complete_directories)' -d 'The folder in the repository for the logs of steps, which are not committed. The path is relative to the top of the repository [default: spec/logs]'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l allow-dirty -d 'Start even if there are uncommitted changes. They stay uncommitted, except changes to the plan and the configuration. Not needed with \'--session-branch\', \'gardener --jobs\' or \'--isolate\''
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l new-run -d 'Start a new run instead of continuing the last one'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l session-branch -d 'Run on a separate branch, in a worktree beside this checkout'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l accept-changes -d 'Accept changes to the plan or the configuration since the run started'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l yes -d 'Approve commands and settings that come from the plan or from .arborist/'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l dry-run -d 'Show what would run without running it'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -s v -l verbose -d 'Also print a line for each step and each commit; with --dry-run, the prompts'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -s q -l quiet -d 'Print only failures, the summary of a run that did not succeed, and the commands that --yes approves'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -l json -d 'Print events as JSON, one object per line'
complete -c git-arborist -n '__git_arborist_without "work" stop drain cancel logs' -s h -l help -d 'Show what it does and takes'

# work stop
complete -c git-arborist -n '__git_arborist_in work stop' -f
complete -c git-arborist -n '__git_arborist_in work stop' -l remote -x -d 'The remote through which the plan is shared'
complete -c git-arborist -n '__git_arborist_in work stop' -s h -l help -d 'Show what it does and takes'

# work drain
complete -c git-arborist -n '__git_arborist_in work drain' -f
complete -c git-arborist -n '__git_arborist_in work drain' -l remote -x -d 'The remote through which the plan is shared'
complete -c git-arborist -n '__git_arborist_in work drain' -s h -l help -d 'Show what it does and takes'

# work cancel
complete -c git-arborist -n '__git_arborist_in work cancel' -f
complete -c git-arborist -n '__git_arborist_in work cancel' -l on -x -d 'The engine, as it was given to --on'
complete -c git-arborist -n '__git_arborist_in work cancel' -l yes -d 'Approve commands and settings in files of the repository'
complete -c git-arborist -n '__git_arborist_in work cancel' -s h -l help -d 'Show what it does and takes'

# work logs
complete -c git-arborist -n '__git_arborist_in work logs' -f
complete -c git-arborist -n '__git_arborist_in work logs' -l on -x -d 'The engine, as it was given to --on'
complete -c git-arborist -n '__git_arborist_in work logs' -l remote -x -d 'The remote through which the plan is shared'
complete -c git-arborist -n '__git_arborist_in work logs' -l yes -d 'Approve commands and settings in files of the repository'
complete -c git-arborist -n '__git_arborist_in work logs' -s h -l help -d 'Show what it does and takes'

# merge
complete -c git-arborist -n '__git_arborist_at merge' -f -a add -d 'Queue the branches of finished tasks'
complete -c git-arborist -n '__git_arborist_at merge' -f -a list -d 'List queued tasks, in the order in which they will be tried'
complete -c git-arborist -n '__git_arborist_at merge' -f -a status -d 'Show the state of the queue or of one task'
complete -c git-arborist -n '__git_arborist_at merge' -f -a run -d 'Land all tasks that can land'
complete -c git-arborist -n '__git_arborist_at merge' -f -a drop -d 'Remove a task from the queue and keep its branch'
complete -c git-arborist -n '__git_arborist_at merge' -f -a retry -d 'Queue a task again, after you have fixed it on its branch'
complete -c git-arborist -n '__git_arborist_at merge' -f -a resolve -d 'Open a worktree to resolve a task\'s conflict, or land the resolution'
complete -c git-arborist -n '__git_arborist_at merge' -f -a log -d 'Show the log of the queue'
complete -c git-arborist -n '__git_arborist_without "merge" add list status run drop retry resolve log' -f -a '(__git_arborist_tasks)'
complete -c git-arborist -n '__git_arborist_without "merge" add list status run drop retry resolve log' -l into -x -a '(__git_arborist_branches)' -d 'Land on this branch, the target [default: the branch of the run]'
complete -c git-arborist -n '__git_arborist_without "merge" add list status run drop retry resolve log' -l priority -x -d 'Priority from 0 (first) to 9 (last) [default: 2]'
complete -c git-arborist -n '__git_arborist_without "merge" add list status run drop retry resolve log' -l force -d 'Accept tasks that are not complete, if they have a branch'
complete -c git-arborist -n '__git_arborist_without "merge" add list status run drop retry resolve log' -l scope -x -a '(__git_arborist_branches)' -d 'Use the run that commits to this branch [default: the current branch]'
complete -c git-arborist -n '__git_arborist_without "merge" add list status run drop retry resolve log' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_without "merge" add list status run drop retry resolve log' -l yes -d 'Approve commands and settings that come from the plan or from .arborist/. With \'merge resolve\', also land changes that you made to files that had no conflict'
complete -c git-arborist -n '__git_arborist_without "merge" add list status run drop retry resolve log' -l test-command -x -d 'Test landings with this command if no gates (checks before landing) are configured'
complete -c git-arborist -n '__git_arborist_without "merge" add list status run drop retry resolve log' -l allow -x -d 'Let agents that resolve conflicts change this path, although the setting \'protect\' names it. --allow fewer-tests accepts a landing whose gates run fewer tests than before'
complete -c git-arborist -n '__git_arborist_without "merge" add list status run drop retry resolve log' -l sandbox -x -a 'auto landlock bwrap off' -d 'The sandbox of gates, set-up commands and agents: auto, landlock, bwrap or off [default: auto]'
complete -c git-arborist -n '__git_arborist_without "merge" add list status run drop retry resolve log' -l policy -x -d 'Which tasks land: keep-clean (all that pass), all-or-nothing, first (only the first that passes), or a number (at most that many)'
complete -c git-arborist -n '__git_arborist_without "merge" add list status run drop retry resolve log' -s q -l quiet -d 'Print only the result'
complete -c git-arborist -n '__git_arborist_without "merge" add list status run drop retry resolve log' -s h -l help -d 'Show what it does and takes'

# merge add
complete -c git-arborist -n '__git_arborist_in merge add' -f -a '(__git_arborist_tasks)'
complete -c git-arborist -n '__git_arborist_in merge add' -l into -x -a '(__git_arborist_branches)' -d 'Land on this branch, the target [default: the branch of the run]'
complete -c git-arborist -n '__git_arborist_in merge add' -l priority -x -d 'Priority from 0 (first) to 9 (last) [default: 2]'
complete -c git-arborist -n '__git_arborist_in merge add' -l force -d 'Accept tasks that are not complete, if they have a branch'
complete -c git-arborist -n '__git_arborist_in merge add' -l scope -x -a '(__git_arborist_branches)' -d 'Use the run that commits to this branch [default: the current branch]'
complete -c git-arborist -n '__git_arborist_in merge add' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in merge add' -s h -l help -d 'Show what it does and takes'

# merge list
complete -c git-arborist -n '__git_arborist_in merge list' -f
complete -c git-arborist -n '__git_arborist_in merge list' -l scope -x -a '(__git_arborist_branches)' -d 'Use the run that commits to this branch [default: the current branch]'
complete -c git-arborist -n '__git_arborist_in merge list' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in merge list' -s h -l help -d 'Show what it does and takes'

# merge status
complete -c git-arborist -n '__git_arborist_in merge status' -f -a '(__git_arborist_tasks)'
complete -c git-arborist -n '__git_arborist_in merge status' -l scope -x -a '(__git_arborist_branches)' -d 'Use the run that commits to this branch [default: the current branch]'
complete -c git-arborist -n '__git_arborist_in merge status' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in merge status' -s h -l help -d 'Show what it does and takes'

# merge run
complete -c git-arborist -n '__git_arborist_in merge run' -f
complete -c git-arborist -n '__git_arborist_in merge run' -l into -x -a '(__git_arborist_branches)' -d 'Land tasks that were queued for this branch [default: the branch of the run]'
complete -c git-arborist -n '__git_arborist_in merge run' -l watch -x -d 'Check for more tasks at this interval, until Ctrl-C'
complete -c git-arborist -n '__git_arborist_in merge run' -l scope -x -a '(__git_arborist_branches)' -d 'Use the run that commits to this branch [default: the current branch]'
complete -c git-arborist -n '__git_arborist_in merge run' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in merge run' -l yes -d 'Approve commands and settings that come from the plan or from .arborist/. With \'merge resolve\', also land changes that you made to files that had no conflict'
complete -c git-arborist -n '__git_arborist_in merge run' -l test-command -x -d 'Test landings with this command if no gates (checks before landing) are configured'
complete -c git-arborist -n '__git_arborist_in merge run' -l allow -x -d 'Let agents that resolve conflicts change this path, although the setting \'protect\' names it. --allow fewer-tests accepts a landing whose gates run fewer tests than before'
complete -c git-arborist -n '__git_arborist_in merge run' -l sandbox -x -a 'auto landlock bwrap off' -d 'The sandbox of gates, set-up commands and agents: auto, landlock, bwrap or off [default: auto]'
complete -c git-arborist -n '__git_arborist_in merge run' -l policy -x -d 'Which tasks land: keep-clean (all that pass), all-or-nothing, first (only the first that passes), or a number (at most that many)'
complete -c git-arborist -n '__git_arborist_in merge run' -s q -l quiet -d 'Print only the result'
complete -c git-arborist -n '__git_arborist_in merge run' -s h -l help -d 'Show what it does and takes'

# merge drop
complete -c git-arborist -n '__git_arborist_in merge drop' -f -a '(__git_arborist_tasks)'
complete -c git-arborist -n '__git_arborist_in merge drop' -l scope -x -a '(__git_arborist_branches)' -d 'Use the run that commits to this branch [default: the current branch]'
complete -c git-arborist -n '__git_arborist_in merge drop' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in merge drop' -s h -l help -d 'Show what it does and takes'

# merge retry
complete -c git-arborist -n '__git_arborist_in merge retry' -f -a '(__git_arborist_tasks)'
complete -c git-arborist -n '__git_arborist_in merge retry' -l scope -x -a '(__git_arborist_branches)' -d 'Use the run that commits to this branch [default: the current branch]'
complete -c git-arborist -n '__git_arborist_in merge retry' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in merge retry' -s h -l help -d 'Show what it does and takes'

# merge resolve
complete -c git-arborist -n '__git_arborist_in merge resolve' -f -a '(__git_arborist_tasks)'
complete -c git-arborist -n '__git_arborist_in merge resolve' -l into -x -a '(__git_arborist_branches)' -d 'The branch that the task is to land on [default: the branch of its run]'
complete -c git-arborist -n '__git_arborist_in merge resolve' -l scope -x -a '(__git_arborist_branches)' -d 'Use the run that commits to this branch [default: the current branch]'
complete -c git-arborist -n '__git_arborist_in merge resolve' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in merge resolve' -l yes -d 'Approve commands and settings that come from the plan or from .arborist/. With \'merge resolve\', also land changes that you made to files that had no conflict'
complete -c git-arborist -n '__git_arborist_in merge resolve' -l test-command -x -d 'Test landings with this command if no gates (checks before landing) are configured'
complete -c git-arborist -n '__git_arborist_in merge resolve' -l allow -x -d 'Let agents that resolve conflicts change this path, although the setting \'protect\' names it. --allow fewer-tests accepts a landing whose gates run fewer tests than before'
complete -c git-arborist -n '__git_arborist_in merge resolve' -l sandbox -x -a 'auto landlock bwrap off' -d 'The sandbox of gates, set-up commands and agents: auto, landlock, bwrap or off [default: auto]'
complete -c git-arborist -n '__git_arborist_in merge resolve' -l policy -x -d 'Which tasks land: keep-clean (all that pass), all-or-nothing, first (only the first that passes), or a number (at most that many)'
complete -c git-arborist -n '__git_arborist_in merge resolve' -s q -l quiet -d 'Print only the result'
complete -c git-arborist -n '__git_arborist_in merge resolve' -s h -l help -d 'Show what it does and takes'

# merge log
complete -c git-arborist -n '__git_arborist_in merge log' -f
complete -c git-arborist -n '__git_arborist_in merge log' -s n -l max-count -x -d 'Maximum number of entries'
complete -c git-arborist -n '__git_arborist_in merge log' -l scope -x -a '(__git_arborist_branches)' -d 'Use the run that commits to this branch [default: the current branch]'
complete -c git-arborist -n '__git_arborist_in merge log' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in merge log' -s h -l help -d 'Show what it does and takes'

# reset
complete -c git-arborist -n '__git_arborist_in reset' -f -a '(__git_arborist_tasks)'
complete -c git-arborist -n '__git_arborist_in reset' -l drop -d 'Also undo the changes of the tasks; they are saved under a ref first'
complete -c git-arborist -n '__git_arborist_in reset' -l scope -x -a '(__git_arborist_branches)' -d 'Use the run that commits to this branch [default: the current branch]'
complete -c git-arborist -n '__git_arborist_in reset' -s h -l help -d 'Show what it does and takes'

# demo
complete -c git-arborist -n '__git_arborist_in demo' -f
complete -c git-arborist -n '__git_arborist_in demo' -l into -x -a '(__fish_complete_directories)' -d 'Where to create the repository [default: a new folder for temporary files]'
complete -c git-arborist -n '__git_arborist_in demo' -s h -l help -d 'Show what it does and takes'

# worktree
complete -c git-arborist -n '__git_arborist_at worktree' -f -a add -d 'Create a worktree for a task, unless it has one, and print the path'
complete -c git-arborist -n '__git_arborist_at worktree' -f -a list -d 'List the worktrees of tasks and of sessions'
complete -c git-arborist -n '__git_arborist_at worktree' -f -a show -d 'Show one worktree in detail'
complete -c git-arborist -n '__git_arborist_at worktree' -f -a path -d 'Print the path of a task\'s worktree'
complete -c git-arborist -n '__git_arborist_at worktree' -f -a run -d 'Run a program in a task\'s worktree, and save its work regularly'
complete -c git-arborist -n '__git_arborist_at worktree' -f -a restore -d 'Restore saved unfinished work'
complete -c git-arborist -n '__git_arborist_at worktree' -f -a sync -d 'Merge the run\'s branch into the branches of tasks; uncommitted changes are kept'
complete -c git-arborist -n '__git_arborist_at worktree' -f -a remove -d 'Remove a worktree and keep its branch'
complete -c git-arborist -n '__git_arborist_at worktree' -f -a recycle -d 'Free a task\'s lane (a reusable worktree) for the next task, and keep its branch'
complete -c git-arborist -n '__git_arborist_at worktree' -f -a prune -d 'Forget worktrees whose folders were deleted'
complete -c git-arborist -n '__git_arborist_at worktree' -f -a repair -d 'Repair worktrees after folders were moved or processes were killed'
complete -c git-arborist -n '__git_arborist_without "worktree" add list show path run restore sync remove recycle prune repair' -f
complete -c git-arborist -n '__git_arborist_without "worktree" add list show path run restore sync remove recycle prune repair' -s h -l help -d 'Show what it does and takes'

# worktree add
complete -c git-arborist -n '__git_arborist_in worktree add' -f -a '(__git_arborist_tasks)'
complete -c git-arborist -n '__git_arborist_in worktree add' -l base -x -a '(__git_arborist_branches)' -d 'Where the branch of the task starts [default: the run\'s branch]'
complete -c git-arborist -n '__git_arborist_in worktree add' -l lane -d 'Use a lane (a reusable worktree of the run), preferably a free one'
complete -c git-arborist -n '__git_arborist_in worktree add' -l unplanned -d 'Accept a name that is not in the plan. Without a plan, any name is accepted'
complete -c git-arborist -n '__git_arborist_in worktree add' -l offline -d 'Do not fetch from the remote of the run\'s branch'
complete -c git-arborist -n '__git_arborist_in worktree add' -l allow-dirty -d 'Do not warn about uncommitted changes in the checkout'
complete -c git-arborist -n '__git_arborist_in worktree add' -l yes -d 'Approve commands and settings that come from .arborist/'
complete -c git-arborist -n '__git_arborist_in worktree add' -l scope -x -a '(__git_arborist_branches)' -d 'Use the run that commits to this branch [default: the current branch]'
complete -c git-arborist -n '__git_arborist_in worktree add' -s h -l help -d 'Show what it does and takes'

# worktree list
complete -c git-arborist -n '__git_arborist_in worktree list' -f
complete -c git-arborist -n '__git_arborist_in worktree list' -s l -l long -d 'Also count uncommitted paths and measure sizes'
complete -c git-arborist -n '__git_arborist_in worktree list' -s b -l branches -d 'Also list branches of tasks without a worktree'
complete -c git-arborist -n '__git_arborist_in worktree list' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in worktree list' -l scope -x -a '(__git_arborist_branches)' -d 'Use the run that commits to this branch [default: the current branch]'
complete -c git-arborist -n '__git_arborist_in worktree list' -s h -l help -d 'Show what it does and takes'

# worktree show
complete -c git-arborist -n '__git_arborist_in worktree show' -f -a '(__git_arborist_tasks)'
complete -c git-arborist -n '__git_arborist_in worktree show' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in worktree show' -l scope -x -a '(__git_arborist_branches)' -d 'Use the run that commits to this branch [default: the current branch]'
complete -c git-arborist -n '__git_arborist_in worktree show' -s h -l help -d 'Show what it does and takes'

# worktree path
complete -c git-arborist -n '__git_arborist_in worktree path' -f -a '(__git_arborist_tasks)'
complete -c git-arborist -n '__git_arborist_in worktree path' -l scope -x -a '(__git_arborist_branches)' -d 'Use the run that commits to this branch [default: the current branch]'
complete -c git-arborist -n '__git_arborist_in worktree path' -s h -l help -d 'Show what it does and takes'

# worktree run
complete -c git-arborist -n '__git_arborist_in worktree run' -f -a '(__git_arborist_tasks)'
complete -c git-arborist -n '__git_arborist_in worktree run' -l scope -x -a '(__git_arborist_branches)' -d 'Use the run that commits to this branch [default: the current branch]'
complete -c git-arborist -n '__git_arborist_in worktree run' -s h -l help -d 'Show what it does and takes'

# worktree restore
complete -c git-arborist -n '__git_arborist_in worktree restore' -f -a '(__git_arborist_tasks)'
complete -c git-arborist -n '__git_arborist_in worktree restore' -l scope -x -a '(__git_arborist_branches)' -d 'Use the run that commits to this branch [default: the current branch]'
complete -c git-arborist -n '__git_arborist_in worktree restore' -s h -l help -d 'Show what it does and takes'

# worktree sync
complete -c git-arborist -n '__git_arborist_in worktree sync' -f -a '(__git_arborist_tasks)'
complete -c git-arborist -n '__git_arborist_in worktree sync' -l offline -d 'Do not fetch from the remote of the run\'s branch'
complete -c git-arborist -n '__git_arborist_in worktree sync' -l now -d 'Sync even if the last sync was less than worktree.sync-cooldown seconds ago'
complete -c git-arborist -n '__git_arborist_in worktree sync' -l scope -x -a '(__git_arborist_branches)' -d 'Use the run that commits to this branch [default: the current branch]'
complete -c git-arborist -n '__git_arborist_in worktree sync' -s h -l help -d 'Show what it does and takes'

# worktree remove
complete -c git-arborist -n '__git_arborist_in worktree remove' -f -a '(__git_arborist_tasks)'
complete -c git-arborist -n '__git_arborist_in worktree remove' -s f -l force -d 'Remove it even if it has uncommitted files; they are saved under a ref first'
complete -c git-arborist -n '__git_arborist_in worktree remove' -l scope -x -a '(__git_arborist_branches)' -d 'Use the run that commits to this branch [default: the current branch]'
complete -c git-arborist -n '__git_arborist_in worktree remove' -s h -l help -d 'Show what it does and takes'

# worktree recycle
complete -c git-arborist -n '__git_arborist_in worktree recycle' -f -a '(__git_arborist_tasks)'
complete -c git-arborist -n '__git_arborist_in worktree recycle' -l scope -x -a '(__git_arborist_branches)' -d 'Use the run that commits to this branch [default: the current branch]'
complete -c git-arborist -n '__git_arborist_in worktree recycle' -s h -l help -d 'Show what it does and takes'

# worktree prune
complete -c git-arborist -n '__git_arborist_in worktree prune' -f
complete -c git-arborist -n '__git_arborist_in worktree prune' -l scope -x -a '(__git_arborist_branches)' -d 'Use the run that commits to this branch [default: the current branch]'
complete -c git-arborist -n '__git_arborist_in worktree prune' -s h -l help -d 'Show what it does and takes'

# worktree repair
complete -c git-arborist -n '__git_arborist_in worktree repair' -f
complete -c git-arborist -n '__git_arborist_in worktree repair' -l scope -x -a '(__git_arborist_branches)' -d 'Use the run that commits to this branch [default: the current branch]'
complete -c git-arborist -n '__git_arborist_in worktree repair' -s h -l help -d 'Show what it does and takes'

# workspace
complete -c git-arborist -n '__git_arborist_at workspace' -f -a status -d 'Show the state of each repository, without network access'
complete -c git-arborist -n '__git_arborist_at workspace' -f -a sync -d 'Clone repositories that are missing, and fetch the others with the branches and records of sessions'
complete -c git-arborist -n '__git_arborist_at workspace' -f -a push -d 'Push only the branches and records of sessions, by fast-forward'
complete -c git-arborist -n '__git_arborist_at workspace' -f -a foreach -d 'Run a command in each repository'
complete -c git-arborist -n '__git_arborist_without "workspace" status sync push foreach' -f
complete -c git-arborist -n '__git_arborist_without "workspace" status sync push foreach' -s h -l help -d 'Show what it does and takes'

# workspace status
complete -c git-arborist -n '__git_arborist_in workspace status' -f
complete -c git-arborist -n '__git_arborist_in workspace status' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in workspace status' -l repo -x -d 'Only these repositories'
complete -c git-arborist -n '__git_arborist_in workspace status' -s h -l help -d 'Show what it does and takes'

# workspace sync
complete -c git-arborist -n '__git_arborist_in workspace sync' -f
complete -c git-arborist -n '__git_arborist_in workspace sync' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in workspace sync' -l repo -x -d 'Only these repositories'
complete -c git-arborist -n '__git_arborist_in workspace sync' -l yes -d 'Approve the remotes and paths in files of the repository'
complete -c git-arborist -n '__git_arborist_in workspace sync' -s h -l help -d 'Show what it does and takes'

# workspace push
complete -c git-arborist -n '__git_arborist_in workspace push' -f
complete -c git-arborist -n '__git_arborist_in workspace push' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in workspace push' -l repo -x -d 'Only these repositories'
complete -c git-arborist -n '__git_arborist_in workspace push' -l yes -d 'Approve the remotes and paths in files of the repository'
complete -c git-arborist -n '__git_arborist_in workspace push' -s h -l help -d 'Show what it does and takes'

# workspace foreach
complete -c git-arborist -n '__git_arborist_in workspace foreach' -f
complete -c git-arborist -n '__git_arborist_in workspace foreach' -l keep-going -d 'Continue with other repositories when the command fails in one'
complete -c git-arborist -n '__git_arborist_in workspace foreach' -l repo -x -d 'Only these repositories'
complete -c git-arborist -n '__git_arborist_in workspace foreach' -l yes -d 'Approve the remotes and paths in files of the repository'
complete -c git-arborist -n '__git_arborist_in workspace foreach' -s h -l help -d 'Show what it does and takes'

# cleanup
complete -c git-arborist -n '__git_arborist_at cleanup' -f -a saved -d 'List saved work'
complete -c git-arborist -n '__git_arborist_at cleanup' -f -a restore -d 'Restore saved work: a branch, or files in a new worktree'
complete -c git-arborist -n '__git_arborist_without "cleanup" saved restore' -f -a '(__git_arborist_tasks)'
complete -c git-arborist -n '__git_arborist_without "cleanup" saved restore' -l older-than -x -d 'Remove only items older than this age, such as 12h, 7d, 2w, or 0 for all (not for records and saved work)'
complete -c git-arborist -n '__git_arborist_without "cleanup" saved restore' -s n -l dry-run -d 'Show what would be done without doing it'
complete -c git-arborist -n '__git_arborist_without "cleanup" saved restore' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_without "cleanup" saved restore' -s f -l force -d 'Also remove unmerged work; it is saved under a ref first'
complete -c git-arborist -n '__git_arborist_without "cleanup" saved restore' -l remote -d 'Also delete branches at remotes, if they have landed there'
complete -c git-arborist -n '__git_arborist_without "cleanup" saved restore' -l reclaim -d 'Also delete build output and caches in the worktrees that are kept'
complete -c git-arborist -n '__git_arborist_without "cleanup" saved restore' -l yes -d 'Approve the settings that come from .arborist/'
complete -c git-arborist -n '__git_arborist_without "cleanup" saved restore' -l only -x -a 'worktrees branches sessions logs saved caches' -d 'Only these kinds of items'
complete -c git-arborist -n '__git_arborist_without "cleanup" saved restore' -s h -l help -d 'Show what it does and takes'

# cleanup saved
complete -c git-arborist -n '__git_arborist_in cleanup saved' -f
complete -c git-arborist -n '__git_arborist_in cleanup saved' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in cleanup saved' -s h -l help -d 'Show what it does and takes'

# cleanup restore
complete -c git-arborist -n '__git_arborist_in cleanup restore' -f
complete -c git-arborist -n '__git_arborist_in cleanup restore' -l branch -x -d 'Restore it as this branch [default: its old name]'
complete -c git-arborist -n '__git_arborist_in cleanup restore' -l to -x -a '(__fish_complete_directories)' -d 'Create its worktree in this folder; also if only commits were saved'
complete -c git-arborist -n '__git_arborist_in cleanup restore' -s h -l help -d 'Show what it does and takes'

# state
complete -c git-arborist -n '__git_arborist_in state' -f -a '(__git_arborist_tasks)'
complete -c git-arborist -n '__git_arborist_in state' -l tree -r -F -d 'Read the plan from this file. The path is relative to the top of the repository, or to the current directory if it begins with ./ or ../ or exists only there [default: the frozen plan of the run]'
complete -c git-arborist -n '__git_arborist_in state' -l scope -x -a '(__git_arborist_branches)' -d 'Use the run that commits to this branch [default: the current branch]'
complete -c git-arborist -n '__git_arborist_in state' -l history -d 'Also show the commits of each task'
complete -c git-arborist -n '__git_arborist_in state' -l ready -d 'Only tasks that can start now'
complete -c git-arborist -n '__git_arborist_in state' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in state' -l exit-code -d 'Exit with 1 unless all requested tasks are complete and landed, or skipped'
complete -c git-arborist -n '__git_arborist_in state' -l short -d 'Print one line for the whole run'
complete -c git-arborist -n '__git_arborist_in state' -l remote -x -d 'Show who works on the plan that workers share through this remote [default: origin]'
complete -c git-arborist -n '__git_arborist_in state' -s h -l help -d 'Show what it does and takes'

# logs
complete -c git-arborist -n '__git_arborist_in logs' -f -a '(__git_arborist_tasks)'
complete -c git-arborist -n '__git_arborist_in logs' -l step -x -a 'implement test review' -d 'Show only this step'
complete -c git-arborist -n '__git_arborist_in logs' -l attempt -x -d 'Show this attempt; the first is 1 [default: the newest]'
complete -c git-arborist -n '__git_arborist_in logs' -l scope -x -a '(__git_arborist_branches)' -d 'Use the run that commits to this branch [default: the current branch]'
complete -c git-arborist -n '__git_arborist_in logs' -s f -l follow -d 'Print new output until the task ends'
complete -c git-arborist -n '__git_arborist_in logs' -s h -l help -d 'Show what it does and takes'

# session
complete -c git-arborist -n '__git_arborist_at session' -f -a list -d 'List sessions, newest first'
complete -c git-arborist -n '__git_arborist_at session' -f -a show -d 'Show one session, or one of its turns'
complete -c git-arborist -n '__git_arborist_at session' -f -a turns -d 'List the turns of a session'
complete -c git-arborist -n '__git_arborist_at session' -f -a diff -d 'Show what differs between the files of two turns'
complete -c git-arborist -n '__git_arborist_at session' -f -a which -d 'Show which session, task and turn made a commit'
complete -c git-arborist -n '__git_arborist_at session' -f -a export -d 'Print a whole session, also in the formats of other tools'
complete -c git-arborist -n '__git_arborist_at session' -f -a resume -d 'Continue a paused, crashed or failed session, in the checkout or worktree where it ran'
complete -c git-arborist -n '__git_arborist_at session' -f -a replay -d 'Start a new session from a turn of another one, on its own branch'
complete -c git-arborist -n '__git_arborist_at session' -f -a start -d 'Start a session of another program, and print its id'
complete -c git-arborist -n '__git_arborist_at session' -f -a turn -d 'Commit and record a turn of an agent, and print the commit'
complete -c git-arborist -n '__git_arborist_at session' -f -a checkpoint -d 'Record that a step has ended'
complete -c git-arborist -n '__git_arborist_at session' -f -a end -d 'Record that a session has ended'
complete -c git-arborist -n '__git_arborist_at session' -f -a hook -d 'Record an event of an interactive agent (called by the agent\'s hooks)'
complete -c git-arborist -n '__git_arborist_without "session" list show turns diff which export resume replay start turn checkpoint end hook' -f
complete -c git-arborist -n '__git_arborist_without "session" list show turns diff which export resume replay start turn checkpoint end hook' -s h -l help -d 'Show what it does and takes'

# session list
complete -c git-arborist -n '__git_arborist_in session list' -f
complete -c git-arborist -n '__git_arborist_in session list' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in session list' -s h -l help -d 'Show what it does and takes'

# session show
complete -c git-arborist -n '__git_arborist_in session show' -f -a '(__git_arborist_sessions)'
complete -c git-arborist -n '__git_arborist_in session show' -l worker -x -d 'The records of this worker, as \'git arborist state --remote\' names it'
complete -c git-arborist -n '__git_arborist_in session show' -l remote -x -d 'The remote through which the workers share the plan'
complete -c git-arborist -n '__git_arborist_in session show' -l turn -x -d 'Show only this turn, in detail'
complete -c git-arborist -n '__git_arborist_in session show' -l patch -d 'Also show the diff of its commits'
complete -c git-arborist -n '__git_arborist_in session show' -l transcript -d 'Also show its transcript: the prompt, the agent\'s words, tool calls and their output'
complete -c git-arborist -n '__git_arborist_in session show' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in session show' -s h -l help -d 'Show what it does and takes'

# session turns
complete -c git-arborist -n '__git_arborist_in session turns' -f -a '(__git_arborist_sessions)'
complete -c git-arborist -n '__git_arborist_in session turns' -l worker -x -d 'The records of this worker, as \'git arborist state --remote\' names it'
complete -c git-arborist -n '__git_arborist_in session turns' -l remote -x -d 'The remote through which the workers share the plan'
complete -c git-arborist -n '__git_arborist_in session turns' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in session turns' -s h -l help -d 'Show what it does and takes'

# session diff
complete -c git-arborist -n '__git_arborist_in session diff' -f -a '(__git_arborist_sessions)'
complete -c git-arborist -n '__git_arborist_in session diff' -l stat -d 'Only the paths, with the number of changed lines'
complete -c git-arborist -n '__git_arborist_in session diff' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in session diff' -s h -l help -d 'Show what it does and takes'

# session which
complete -c git-arborist -n '__git_arborist_in session which' -f -a '(__git_arborist_branches)'
complete -c git-arborist -n '__git_arborist_in session which' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in session which' -s h -l help -d 'Show what it does and takes'

# session export
complete -c git-arborist -n '__git_arborist_in session export' -f -a '(__git_arborist_sessions)'
complete -c git-arborist -n '__git_arborist_in session export' -l format -x -a 'json git-ai agent-trace' -d 'The format'
complete -c git-arborist -n '__git_arborist_in session export' -l write -d 'Write the git-ai notes to refs/notes/ai; commits that have a note keep it'
complete -c git-arborist -n '__git_arborist_in session export' -s h -l help -d 'Show what it does and takes'

# session resume
complete -c git-arborist -n '__git_arborist_in session resume' -f -a '(__git_arborist_sessions)'
complete -c git-arborist -n '__git_arborist_in session resume' -l turn -x -d 'Put the files back as they were after this turn, and continue from there; later turns stay in history'
complete -c git-arborist -n '__git_arborist_in session resume' -l plan-changed -d 'Continue although the plan has changed since (also --accept-changes)'
complete -c git-arborist -n '__git_arborist_in session resume' -l yes -d 'Approve commands and settings that come from the plan or from .arborist/'
complete -c git-arborist -n '__git_arborist_in session resume' -l json -d 'Print events as JSON, one object per line'
complete -c git-arborist -n '__git_arborist_in session resume' -s h -l help -d 'Show what it does and takes'

# session replay
complete -c git-arborist -n '__git_arborist_in session replay' -f -a '(__git_arborist_sessions)'
complete -c git-arborist -n '__git_arborist_in session replay' -l turn -x -d 'The turn to start from; 0 is the start of the session'
complete -c git-arborist -n '__git_arborist_in session replay' -l offline -d 'Call no agent: replay the recorded output and commits of the turns after this one'
complete -c git-arborist -n '__git_arborist_in session replay' -l yes -d 'Approve commands and settings that come from the plan or from .arborist/'
complete -c git-arborist -n '__git_arborist_in session replay' -l json -d 'Print events as JSON, one object per line'
complete -c git-arborist -n '__git_arborist_in session replay' -s h -l help -d 'Show what it does and takes'

# session start
complete -c git-arborist -n '__git_arborist_in session start' -f
complete -c git-arborist -n '__git_arborist_in session start' -l pipeline -x -d 'The name of the pipeline'
complete -c git-arborist -n '__git_arborist_in session start' -l id -x -d 'The id, instead of a new one'
complete -c git-arborist -n '__git_arborist_in session start' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in session start' -s h -l help -d 'Show what it does and takes'

# session turn
complete -c git-arborist -n '__git_arborist_in session turn' -f
complete -c git-arborist -n '__git_arborist_in session turn' -l session -x -a '(__git_arborist_sessions)' -d 'The session: its id, or a unique prefix'
complete -c git-arborist -n '__git_arborist_in session turn' -l node -x -a '(__git_arborist_tasks)' -d 'The task'
complete -c git-arborist -n '__git_arborist_in session turn' -l model -x -d 'The model'
complete -c git-arborist -n '__git_arborist_in session turn' -l provider -x -d 'The provider of the model'
complete -c git-arborist -n '__git_arborist_in session turn' -l runner -x -d 'The agent program'
complete -c git-arborist -n '__git_arborist_in session turn' -s m -l message -x -d 'What the turn did; the first line becomes the subject'
complete -c git-arborist -n '__git_arborist_in session turn' -l tokens-in -x -d 'Input tokens'
complete -c git-arborist -n '__git_arborist_in session turn' -l tokens-out -x -d 'Output tokens'
complete -c git-arborist -n '__git_arborist_in session turn' -l cost -x -d 'Cost in US dollars'
complete -c git-arborist -n '__git_arborist_in session turn' -l agent-session -x -d 'The agent\'s own session id, to continue it'
complete -c git-arborist -n '__git_arborist_in session turn' -l turn -x -d 'The expected number of the turn; another number is refused'
complete -c git-arborist -n '__git_arborist_in session turn' -l files-from -r -F -d 'Commit only these paths, from a file or - for standard input, one per line or separated by NUL'
complete -c git-arborist -n '__git_arborist_in session turn' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in session turn' -s h -l help -d 'Show what it does and takes'

# session checkpoint
complete -c git-arborist -n '__git_arborist_in session checkpoint' -f
complete -c git-arborist -n '__git_arborist_in session checkpoint' -l session -x -a '(__git_arborist_sessions)' -d 'The session: its id, or a unique prefix'
complete -c git-arborist -n '__git_arborist_in session checkpoint' -l node -x -a '(__git_arborist_tasks)' -d 'The task whose step has ended'
complete -c git-arborist -n '__git_arborist_in session checkpoint' -l step -x -a 'plan implement test review complete merge' -d 'The step'
complete -c git-arborist -n '__git_arborist_in session checkpoint' -l status -x -a 'pass fail approved rejected' -d 'How it ended'
complete -c git-arborist -n '__git_arborist_in session checkpoint' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in session checkpoint' -s h -l help -d 'Show what it does and takes'

# session end
complete -c git-arborist -n '__git_arborist_in session end' -f
complete -c git-arborist -n '__git_arborist_in session end' -l session -x -a '(__git_arborist_sessions)' -d 'The session: its id, or a unique prefix'
complete -c git-arborist -n '__git_arborist_in session end' -l result -x -a 'complete failed' -d 'How it ended [default: complete; for a paused run of git arborist: failed]'
complete -c git-arborist -n '__git_arborist_in session end' -s m -l message -x -d 'Further remarks'
complete -c git-arborist -n '__git_arborist_in session end' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in session end' -s h -l help -d 'Show what it does and takes'

# session hook
complete -c git-arborist -n '__git_arborist_in session hook' -f -a 'claude'
complete -c git-arborist -n '__git_arborist_in session hook' -s h -l help -d 'Show what it does and takes'

# verify
complete -c git-arborist -n '__git_arborist_in verify' -f -a '(__git_arborist_branches)'
complete -c git-arborist -n '__git_arborist_in verify' -l signed -d 'Require signatures of known signers'
complete -c git-arborist -n '__git_arborist_in verify' -l strict -d 'Exit with 1 also if something could not be checked'
complete -c git-arborist -n '__git_arborist_in verify' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in verify' -s h -l help -d 'Show what it does and takes'

# trailers
complete -c git-arborist -n '__git_arborist_at trailers' -f -a parse -d 'Print the trailers of a message, as \'git interpret-trailers --parse\' does with the built-in settings of git'
complete -c git-arborist -n '__git_arborist_at trailers' -f -a check -d 'Check messages that look like task commits; exit 1 if one is not valid'
complete -c git-arborist -n '__git_arborist_at trailers' -f -a log -d 'List the task commits of a history'
complete -c git-arborist -n '__git_arborist_without "trailers" parse check log' -f
complete -c git-arborist -n '__git_arborist_without "trailers" parse check log' -s h -l help -d 'Show what it does and takes'

# trailers parse
complete -c git-arborist -n '__git_arborist_in trailers parse' -f -a '(__git_arborist_branches)'
complete -c git-arborist -n '__git_arborist_in trailers parse' -l file -r -F -d 'Read the message from this file, whatever its name'
complete -c git-arborist -n '__git_arborist_in trailers parse' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in trailers parse' -s h -l help -d 'Show what it does and takes'

# trailers check
complete -c git-arborist -n '__git_arborist_in trailers check' -f -a '(__git_arborist_branches)'
complete -c git-arborist -n '__git_arborist_in trailers check' -l file -r -F -d 'Read the message from this file, whatever its name'
complete -c git-arborist -n '__git_arborist_in trailers check' -s q -l quiet -d 'Print nothing if all messages are valid'
complete -c git-arborist -n '__git_arborist_in trailers check' -s h -l help -d 'Show what it does and takes'

# trailers log
complete -c git-arborist -n '__git_arborist_in trailers log' -f -a '(__git_arborist_branches)'
complete -c git-arborist -n '__git_arborist_in trailers log' -l task -x -a '(__git_arborist_tasks)' -d 'Only this task'
complete -c git-arborist -n '__git_arborist_in trailers log' -l step -x -a 'run-start plan implement test review complete merge reset' -d 'Only this step'
complete -c git-arborist -n '__git_arborist_in trailers log' -l result -x -a 'pass fail approved rejected' -d 'Only this result'
complete -c git-arborist -n '__git_arborist_in trailers log' -l since -x -d 'Only commits after this date, as git understands dates'
complete -c git-arborist -n '__git_arborist_in trailers log' -l session -x -a '(__git_arborist_sessions)' -d 'Only this session'
complete -c git-arborist -n '__git_arborist_in trailers log' -s n -l max-count -x -d 'The largest number of commits'
complete -c git-arborist -n '__git_arborist_in trailers log' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in trailers log' -s h -l help -d 'Show what it does and takes'

# init
complete -c git-arborist -n '__git_arborist_in init' -f
complete -c git-arborist -n '__git_arborist_in init' -l dry-run -d 'Print the file instead of writing it'
complete -c git-arborist -n '__git_arborist_in init' -l hooks -d 'Install the hooks without asking'
complete -c git-arborist -n '__git_arborist_in init' -l no-hooks -d 'Install no hooks, and do not ask'
complete -c git-arborist -n '__git_arborist_in init' -s h -l help -d 'Show what it does and takes'

# sandbox
complete -c git-arborist -n '__git_arborist_at sandbox' -f -a check -d 'Test each rule of the sandbox'
complete -c git-arborist -n '__git_arborist_without "sandbox" check' -f
complete -c git-arborist -n '__git_arborist_without "sandbox" check' -s h -l help -d 'Show what it does and takes'

# sandbox check
complete -c git-arborist -n '__git_arborist_in sandbox check' -f
complete -c git-arborist -n '__git_arborist_in sandbox check' -l runner -x -d 'Check the sandbox of this runner instead of that of tests'
complete -c git-arborist -n '__git_arborist_in sandbox check' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in sandbox check' -s h -l help -d 'Show what it does and takes'

# hooks
complete -c git-arborist -n '__git_arborist_at hooks' -f -a install -d 'Install hooks; existing ones are kept'
complete -c git-arborist -n '__git_arborist_at hooks' -f -a uninstall -d 'Remove the hooks of git arborist, and restore the earlier hooks byte for byte'
complete -c git-arborist -n '__git_arborist_at hooks' -f -a status -d 'Show which hooks are installed, and why one does not run'
complete -c git-arborist -n '__git_arborist_at hooks' -f -a test -d 'Check that git runs the hooks in this worktree'
complete -c git-arborist -n '__git_arborist_at hooks' -f -a run -d 'Run the check of a hook; the installed hooks call this'
complete -c git-arborist -n '__git_arborist_without "hooks" install uninstall status test run' -f
complete -c git-arborist -n '__git_arborist_without "hooks" install uninstall status test run' -s h -l help -d 'Show what it does and takes'

# hooks install
complete -c git-arborist -n '__git_arborist_in hooks install' -f -a 'commit-msg pre-push pre-receive update'
complete -c git-arborist -n '__git_arborist_in hooks install' -s n -l dry-run -d 'Show what would be done without doing it'
complete -c git-arborist -n '__git_arborist_in hooks install' -s q -l quiet -d 'Print only errors'
complete -c git-arborist -n '__git_arborist_in hooks install' -l agent -x -a 'claude' -d 'Record the turns of an interactive agent; this installs hooks in .claude/settings.local.json instead of git hooks'
complete -c git-arborist -n '__git_arborist_in hooks install' -s h -l help -d 'Show what it does and takes'

# hooks uninstall
complete -c git-arborist -n '__git_arborist_in hooks uninstall' -f -a 'commit-msg pre-push pre-receive update'
complete -c git-arborist -n '__git_arborist_in hooks uninstall' -s n -l dry-run -d 'Show what would be done without doing it'
complete -c git-arborist -n '__git_arborist_in hooks uninstall' -s q -l quiet -d 'Print only errors'
complete -c git-arborist -n '__git_arborist_in hooks uninstall' -l agent -x -a 'claude' -d 'Remove the hooks from the settings of an interactive agent, instead of git hooks'
complete -c git-arborist -n '__git_arborist_in hooks uninstall' -s h -l help -d 'Show what it does and takes'

# hooks status
complete -c git-arborist -n '__git_arborist_in hooks status' -f
complete -c git-arborist -n '__git_arborist_in hooks status' -l json -d 'Print one JSON document'
complete -c git-arborist -n '__git_arborist_in hooks status' -s h -l help -d 'Show what it does and takes'

# hooks test
complete -c git-arborist -n '__git_arborist_in hooks test' -f -a 'commit-msg pre-push pre-receive update'
complete -c git-arborist -n '__git_arborist_in hooks test' -s h -l help -d 'Show what it does and takes'

# hooks run
complete -c git-arborist -n '__git_arborist_at hooks run' -f -a commit-msg -d 'Refuse a task commit whose message is not valid'
complete -c git-arborist -n '__git_arborist_at hooks run' -f -a pre-push -d 'Refuse pushes of invalid task commits and pushes that lose records; reads git\'s lines on standard input'
complete -c git-arborist -n '__git_arborist_at hooks run' -f -a pre-receive -d 'Check a push in the repository that receives it; reads git\'s lines on standard input'
complete -c git-arborist -n '__git_arborist_at hooks run' -f -a update -d 'Check one ref of a push; the update hook of earlier versions calls this'
complete -c git-arborist -n '__git_arborist_without "hooks run" commit-msg pre-push pre-receive update' -f
complete -c git-arborist -n '__git_arborist_without "hooks run" commit-msg pre-push pre-receive update' -s h -l help -d 'Show what it does and takes'

# hooks run commit-msg
complete -c git-arborist -n '__git_arborist_in hooks run commit-msg' -F
complete -c git-arborist -n '__git_arborist_in hooks run commit-msg' -s h -l help -d 'Show what it does and takes'

# hooks run pre-push
complete -c git-arborist -n '__git_arborist_in hooks run pre-push' -f
complete -c git-arborist -n '__git_arborist_in hooks run pre-push' -s h -l help -d 'Show what it does and takes'

# hooks run pre-receive
complete -c git-arborist -n '__git_arborist_in hooks run pre-receive' -f
complete -c git-arborist -n '__git_arborist_in hooks run pre-receive' -s h -l help -d 'Show what it does and takes'

# hooks run update
complete -c git-arborist -n '__git_arborist_in hooks run update' -f
complete -c git-arborist -n '__git_arborist_in hooks run update' -s h -l help -d 'Show what it does and takes'

# tools
complete -c git-arborist -n '__git_arborist_in tools' -f
complete -c git-arborist -n '__git_arborist_in tools' -l root -x -d 'Offer the tools of the repository NAME in the folder DIR; can be given several times'
complete -c git-arborist -n '__git_arborist_in tools' -l command -x -d 'Offer a command as a tool of a repository instead of the configured ones; can be given several times'
complete -c git-arborist -n '__git_arborist_in tools' -l timeout -x -d 'Time limit of a command in seconds'
complete -c git-arborist -n '__git_arborist_in tools' -s h -l help -d 'Show what it does and takes'

# install-assets
complete -c git-arborist -n '__git_arborist_in install-assets' -f
complete -c git-arborist -n '__git_arborist_in install-assets' -l prefix -x -a '(__fish_complete_directories)' -d 'Install below DIR/share, with the layout of distributions'
complete -c git-arborist -n '__git_arborist_in install-assets' -l only -x -a 'man bash zsh fish' -d 'Install only this; can be given several times'
complete -c git-arborist -n '__git_arborist_in install-assets' -s n -l dry-run -d 'Show what would be done without doing it'
complete -c git-arborist -n '__git_arborist_in install-assets' -l uninstall -d 'Remove installed files that are unchanged'
complete -c git-arborist -n '__git_arborist_in install-assets' -s f -l force -d 'Overwrite files that git-arborist did not install; with --uninstall, also remove files that were changed'
complete -c git-arborist -n '__git_arborist_in install-assets' -s q -l quiet -d 'Print only errors'
complete -c git-arborist -n '__git_arborist_in install-assets' -s h -l help -d 'Show what it does and takes'
