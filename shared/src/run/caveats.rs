//! Warnings at the start of a run about things that may not be as the user expects.

use std::{collections::BTreeSet, path::Path};

use super::{OpenRun, Planned, RunListener, planned::usual_plan};
use crate::{
    agent::{AgentError, RunnerKind, limits::Chain},
    failure::Failure,
    gardener::{Lanes, Selection, find_started_in_lane, wanted},
    git::{GitError, Merge, Worktree},
    history::{Run, State},
    message::{counted, visible},
    name::TaskId,
    pipeline::{Budgets, FEWER_TESTS, Protection, find_changed_since_kill, is_blank},
    plan::{Task, Unread, Why},
    process::{is_executable, list_unused_folders, shell_word},
    progress::{PlanMarks, Progress},
    safe_files,
    session::SessionReader,
    worktree::Pool,
};

/// Warns about folders on `PATH` that agents can change.
fn warn_of_unused_folders(listener: &mut dyn RunListener) {
    let folders: Vec<String> =
        list_unused_folders().iter().map(|folder| format!("'{}'", folder.display())).collect();
    if !folders.is_empty() {
        listener.warn(&visible(&format!(
            "agents and reviewers are not started from these folders on PATH, which agents can change: {}",
            folders.join(", ")
        )));
    }
}

/// Work in a worktree that a run does not use.
enum OwnWork {
    Uncommitted,
    Committed,
}

/// The hint when there are many worktrees, or little disk space.
pub const CLEAN_UP: &str = "see what can be removed with: git arborist cleanup --dry-run";

impl OpenRun {
    /// Names hooks and settings that changed since a run was killed, because that run could not undo them. They stay,
    /// because the user may have changed them.
    pub(super) fn warn_of_changes_since_kill(&self, listener: &mut dyn RunListener) {
        let others = self.others.iter().map(|other| &other.repository);
        let changed = std::iter::once(&self.repository).chain(others).flat_map(find_changed_since_kill);
        let changed: Vec<String> = changed.map(|path| visible(&path.to_string_lossy())).collect();
        if changed.is_empty() {
            return;
        }
        let paths = changed.join(", ");
        listener.warn(&format!(
            "an earlier run was killed, and files that can change what git does were changed since: {paths}"
        ));
        let words: Vec<String> = changed.iter().map(|path| shell_word(path)).collect();
        let words = words.join(" ");
        listener.hint(&format!(
            "an agent may have written them, so look at them before you call git: less {words}"
        ));
    }

    /// Warnings for every run.
    pub(super) fn warn_of_caveats(
        &self,
        planned: &Planned,
        listener: &mut dyn RunListener,
    ) -> Result<(), Failure> {
        let words = &self.inherited.words;
        if !words.is_empty() {
            listener
                .remark(&visible(&format!("using options from an earlier command of this session:{words}")));
        }
        let kept = self.options.protection.list_beyond(&Protection::new(&self.settings, &[])).join(", ");
        if !kept.is_empty() {
            let words =
                format!("still protected in this run, although the settings no longer list it: {kept}");
            listener.remark(&visible(&words));
            listener.hint("to accept the changed settings, add --accept-changes");
        }
        let may_have_begun = self.has_no_run_commit && !self.has_session_branch && !self.request.new_run;
        if may_have_begun && self.repository.is_shallow {
            listener.warn(
                "this is a shallow clone without a run of this branch, so the run starts from the beginning",
            );
            listener.hint("if a run was started before, stop this one and fetch it: git fetch --unshallow");
        }
        warn_of_unused_folders(listener);
        self.warn_of_many_worktrees(listener);
        self.warn_of_useless_permissions(listener)?;
        if self.request.tree.is_none()
            && self.settings.general.tree.is_none()
            && let (Some(path), Some(usual)) = (planned.path(), usual_plan(&self.repository))
            && path != usual
        {
            listener.remark(&visible(&format!(
                "using the plan '{path}', with which this run began, not '{usual}'"
            )));
            listener.hint(&format!(
                "to use it instead: git arborist gardener --tree {} --accept-changes",
                shell_word(&usual)
            ));
        }
        self.warn_of_missing_tools(planned, listener)?;
        self.warn_of_unmeasured(planned, listener)
    }

    /// Warns if there are too many worktrees or too little disk space.
    fn warn_of_many_worktrees(&self, listener: &mut dyn RunListener) {
        let Ok(pool) = Pool::open(&self.repository, &self.branch, self.worktree_options()) else { return };
        let words = pool.find_warnings();
        words.iter().for_each(|words| listener.warn(words));
        if !words.is_empty() {
            listener.hint(CLEAN_UP);
        }
    }

    /// Warns about work in worktrees of tasks that are about to be done in the checkout: the run does not use it.
    pub(super) fn warn_of_unused_worktrees(
        &self,
        planned: &Planned,
        selection: &Selection,
        listener: &mut dyn RunListener,
    ) -> Result<(), Failure> {
        let is_there = |found: &Worktree| found.branch.is_some() && found.path.is_dir();
        let worktrees: Vec<Worktree> =
            self.repository.list_worktrees()?.into_iter().filter(is_there).collect();
        let worktree_of = |task: &Task| {
            let branch = self.branch.task_branch(&task.id);
            worktrees.iter().find(|found| found.branch.as_ref() == Some(&branch))
        };
        let wanted = wanted(&planned.plan, selection);
        let tasks: Vec<_> = wanted.iter().filter_map(|task| Some((&task.id, worktree_of(task)?))).collect();
        if tasks.is_empty() {
            return Ok(());
        }
        let run = self.scan_recorded()?;
        if find_started_in_lane(&self.repository, &run, &wanted)?.is_some() {
            // The run refuses to start in the checkout.
            return Ok(());
        }
        let progress = Progress::new(Some(&planned.plan), &run, PlanMarks::Count);
        let is_run = |task: &TaskId| {
            let has_failed = progress.find(task).is_some_and(|found| found.state == State::Failed);
            progress.is_left(task) && (selection.retry_failed || !has_failed)
        };
        for (task, worktree) in tasks.into_iter().filter(|(task, _)| is_run(task)) {
            if let Some(work) = self.find_own_work(worktree)? {
                let path = visible(&worktree.path.display().to_string());
                listener.warn(&format!("work on {task} in '{path}' is not used by this run"));
                listener.hint(&match work {
                    OwnWork::Uncommitted => {
                        format!("it stays there; see it with: git -C {} status", shell_word(&path))
                    }
                    OwnWork::Committed => {
                        let (run, branch) = (&self.branch, self.branch.task_branch(task));
                        format!("it stays on the branch '{branch}'; see it with: git diff {run}...{branch}")
                    }
                });
            }
        }
        Ok(())
    }

    /// Finds uncommitted files in a worktree, or changes in its commits that the run does not have. Commits that 'reset'
    /// has saved do not count.
    fn find_own_work(&self, worktree: &Worktree) -> Result<Option<OwnWork>, Failure> {
        let view = self.repository.linked(worktree);
        let changed_paths = view.map(|view| view.changed_paths()).transpose()?;
        if changed_paths.is_some_and(|paths| !paths.is_empty()) {
            return Ok(Some(OwnWork::Uncommitted));
        }
        if let (Some(head), Some(branch)) = (worktree.head, &worktree.branch)
            && !self.repository.is_ancestor(head, self.head)?
            && self.repository.find_ref(&branch.saved_commit_ref(head))?.is_none()
            && self.repository.merge(self.head, head)? != Merge::Clean(self.repository.tree_of(self.head)?)
        {
            return Ok(Some(OwnWork::Committed));
        }
        Ok(None)
    }

    /// Warns about values of `--allow` that match no file: they are probably mistyped. In a workspace, they may be for another
    /// repository.
    fn warn_of_useless_permissions(&self, listener: &mut dyn RunListener) -> Result<(), GitError> {
        if self.workspace.sections.len() > 1 {
            return Ok(());
        }
        let (empty, tree) = (self.repository.empty_tree()?, self.repository.tree_of(self.head)?);
        for path in self.request.flags.allow.iter().filter(|path| *path != FEWER_TESTS) {
            if !self.repository.touches(empty, tree, &[path])? {
                listener.warn(&visible(&format!("--allow '{path}' matches no committed file")));
            }
        }
        Ok(())
    }

    /// Warns about runners that should be given tools but do not support them.
    fn warn_of_missing_tools(
        &self,
        planned: &Planned,
        listener: &mut dyn RunListener,
    ) -> Result<(), AgentError> {
        let chains = self.options.runners.chains(&planned.plan)?;
        let without: BTreeSet<&str> = chains
            .iter()
            .flat_map(Chain::iter)
            .filter(|step_runner| step_runner.misses_tools())
            .map(|step_runner| step_runner.name.as_str())
            .collect();
        for name in without {
            listener.warn(&format!("runner '{name}' has no placeholder for tools, and works without them"));
            listener.hint(&format!(
                "in runners.{name}.command, write {{tools}} or {{tools-file}} where the program takes a list of MCP servers"
            ));
        }
        Ok(())
    }

    /// Warns once in each run if nothing limits where agents can write.
    pub(super) fn warn_of_missing_sandbox(&self, run: &Run, listener: &mut dyn RunListener) {
        // A run that began with a sandbox may continue on a system that has none.
        let is_recorded =
            !self.is_new_run(run) && run.start.as_ref().is_some_and(|start| start.lacks_sandbox);
        if self.options.sandbox.is_missing() && !is_recorded {
            listener
                .warn("this system has no sandbox: agents and tests can change any file that you can change");
            listener.hint("install bubblewrap, or use Linux 5.19 or newer, which has Landlock; to run without this warning, set sandbox.mode = \"off\"");
        }
    }

    /// Says once in each run that a commit-msg hook of the user is not run.
    pub(super) fn warn_of_skipped_hook(&self, run: &Run, listener: &mut dyn RunListener) {
        if self.has_message_hook && self.is_new_run(run) {
            listener
                .remark("your commit-msg hook is not run, because the messages of a run have a fixed form");
        }
    }

    /// Warns once in each run and clone about tasks without a test command, and about landings without a gate.
    pub(super) fn warn_of_missing_tests(
        &self,
        planned: &Planned,
        selection: &Selection,
        run: &Run,
        lanes: Option<&Lanes<'_>>,
        listener: &mut dyn RunListener,
    ) {
        let untested = self.find_untested(planned, selection, run).len();
        let lands_untested =
            !self.has_no_task_left && lanes.is_some_and(|lanes| lanes.queue.gates.is_empty());
        // An empty option turns off the tests of a run that had some.
        let is_emptied = self.request.flags.test_command.as_deref().is_some_and(is_blank);
        let is_first = self.is_new_run(run) || is_emptied || !self.has_session_record(run);
        let words = match (is_first, lands_untested) {
            _ if untested == 0 => return,
            (true, true) => "the test step always passes, and landings are not tested",
            (true, false) => "the test step always passes",
            (false, true) => "landings are not tested",
            (false, false) => return,
        };
        listener.warn(&format!("no test command for {}: {words}", counted(untested, "task")));
        listener.hint(match is_emptied {
            true => "--test-command is empty, so nothing is tested; name a command with it",
            false => "give one with --test-command, or set test-command in .arborist/config.toml",
        });
    }

    /// Whether an earlier command of this run was recorded here.
    fn has_session_record(&self, run: &Run) -> bool {
        let newest = SessionReader::new(&self.repository).newest(self.session(run));
        newest.is_ok_and(|record| record.is_some())
    }

    /// Warns about what is doubtful in the plan, and about lines that its author may take for tasks and that are not
    /// read as such.
    pub(super) fn warn_of_unread_lines(&self, planned: &Planned, listener: &mut dyn RunListener) {
        if let [first, more @ ..] = planned.plan.warnings.as_slice() {
            listener.warn(&first.to_string());
            if !more.is_empty() {
                let count = counted(more.len(), "more warning");
                listener.hint(&format!("to see {count}, run: {}", self.check_command()));
            }
        }
        for mistake in &planned.plan.mistakes {
            listener.warn(&mistake.to_string());
            listener.hint(&mistake.fix);
        }
        let is_check = |unread: &&Unread| unread.why == Why::Check;
        for unread in planned.plan.unread.iter().filter(is_check) {
            listener
                .warn(&format!("{}:{}: {}", unread.problem.file, unread.problem.line, unread.problem.what));
        }
        let mut unread = planned.plan.unread.iter().filter(|unread| !is_check(unread));
        let count = unread.clone().count();
        let Some(first) = unread.next() else { return };
        let place = format!("{}:{}", first.problem.file, first.problem.line);
        // Of several reasons, only the first one is named.
        listener.warn(&format!("{}, first at {place}", first.why.words(count)));
        listener.hint(&format!("see all of them: {}", self.check_command()));
    }

    /// The command that checks the plan of this run.
    fn check_command(&self) -> String {
        let file = self.request.tree.as_ref().map(|tree| format!(" {}", shell_word(&tree.to_string_lossy())));
        format!("git arborist plan --check{}", file.unwrap_or_default())
    }

    /// Warns about limits on values that a runner does not report.
    fn warn_of_unmeasured(&self, planned: &Planned, listener: &mut dyn RunListener) -> Result<(), Failure> {
        let Budgets { run, task } = &self.options.budgets;
        let (has_cost, has_tokens) = (run.cost.or(task.cost).is_some(), run.tokens.or(task.tokens).is_some());
        let mut silent: Vec<String> = Vec::new();
        for step_runner in self.options.runners.chains(&planned.plan)?.iter().flat_map(Chain::iter) {
            let RunnerKind::Program(runner) = &step_runner.runner else { continue };
            let is_told = (!has_cost || runner.events.reports_cost())
                && (!has_tokens || runner.events.reports_tokens());
            if !is_told && !silent.contains(&step_runner.name) {
                silent.push(step_runner.name.clone());
            }
        }
        if !silent.is_empty() {
            let names: Vec<String> = silent.iter().map(|name| format!("'{name}'")).collect();
            let (report, they) =
                if names.len() == 1 { ("reports", "it does") } else { ("report", "they do") };
            listener.warn(&format!(
                "it is not known whether {} {report} cost and tokens; unless {they}, limits on these have no effect",
                names.join(" and ")
            ));
            listener.hint("--max-time works with every agent");
        }
        Ok(())
    }
}

/// Whether this folder has a commit-msg hook that is not ours.
pub(super) fn has_message_hook(hooks: &Path) -> bool {
    let file = hooks.join("commit-msg");
    // The folder of husky has a script for each hook, which calls that of the user in the folder above, if there is one.
    let husky = hooks.ends_with("_").then(|| hooks.with_file_name("commit-msg"));
    let is_called = husky.is_none_or(|own| own.is_file());
    let is_ours = || safe_files::read_text(&file).is_ok_and(|text| text.contains("git-arborist"));
    is_executable(&file) && is_called && !is_ours()
}
