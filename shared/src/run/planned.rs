//! The plan of a run: the frozen one, the current file, or a task given as text.

use super::{OpenRun, RunRequest};
use crate::{
    failure::{Exit, Failure},
    gardener::{GardenerError, PlanFile, UnacceptedChange, events_before_reset, start, start::FrozenPlan},
    git::Repository,
    history::{Run, RunScope},
    message::PlanRef,
    name::{PipelineName, digest},
    pipeline::{PromptFiles, PromptParts, TaskBackground, feedback},
    plan::{Plan, PlanError, Task, configured_plan_path, find_plans, read_named_plan, typed_plan_path},
    process::shell_word,
    progress::{MergedRun, tasks_done_by},
    safe_files,
    settings::Settings,
};

/// The plan of a run.
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    pub(super) file: Option<PlanFile>,
    /// The plan that the run has frozen, even if the file has changed since.
    frozen: Option<PlanRef>,
    /// Whether the run has a plan now but has not frozen one.
    pub(super) is_first_use: bool,
    /// The path of the plan when the run started.
    path: Option<String>,
    /// Tasks that the runs of other branches have completed in the history from which a first run starts.
    merged: Vec<MergedRun>,
}

impl Planned {
    /// The name of the run, from its plan.
    pub(super) fn pipeline(&self) -> PipelineName {
        PipelineName::of_plan(self.path.as_deref())
    }

    /// The path of the plan's file; `None` for a task given as text.
    pub(super) fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// A plan with one task. Its id is made from the text, so that the same text continues the same task.
    fn of_words(words: &str) -> Result<Self, Failure> {
        if words.trim().is_empty() {
            let failure = Failure::new(Exit::Usage, "the text after -m is empty");
            return Err(failure.hint("describe the task: git arborist garden -m 'add a login form'"));
        }
        let id = id_of_words(words);
        let name = words.lines().next().unwrap_or(words);
        let tree = serde_json::json!({
            "nodes": { (id.as_str()): { "id": id, "name": name, "description": words } },
            "root_ids": [id],
        });
        let plan = Plan::read("the text of -m", tree.to_string().as_bytes())?;
        Ok(Self { plan, file: None, frozen: None, is_first_use: false, path: None, merged: Vec::new() })
    }

    /// The answer to a run of all tasks if sessions that were merged have completed them all.
    #[must_use]
    pub fn find_merged_answer(&self) -> Option<String> {
        let sessions: Vec<&MergedRun> = self.merged.iter().filter(|run| run.has_session_branch).collect();
        let is_done = |task: &Task| {
            task.mark.is_settled() || sessions.iter().any(|session| session.tasks.contains(&task.id))
        };
        if sessions.is_empty() || !self.plan.leaves().all(is_done) {
            return None;
        }
        let branches: Vec<String> = sessions.iter().map(|session| format!("'{}'", session.branch)).collect();
        let (runs, are) = if branches.len() == 1 { ("run", "is") } else { ("runs", "are") };
        Some(format!(
            "nothing is left to do, because the {runs} of {} completed all tasks and {are} merged here",
            branches.join(" and ")
        ))
    }

    /// The plan to freeze from now on if the user accepts changes: the file. A task given as text has none, but its run may
    /// have frozen a plan before.
    pub(super) fn accepted_plan(&self) -> FrozenPlan<'_> {
        self.file.as_ref().map_or_else(|| self.plan_in_force(), FrozenPlan::File)
    }

    /// The plan that stays in force: the frozen one, or else the file.
    pub(super) fn plan_in_force(&self) -> FrozenPlan<'_> {
        match (&self.frozen, &self.file) {
            (Some(frozen), _) => FrozenPlan::Kept(frozen),
            (None, Some(file)) => FrozenPlan::File(file),
            (None, None) => FrozenPlan::Nothing,
        }
    }
}

/// An id from a text. If the id cannot hold the whole text, it ends in a hash, so that different texts have different
/// ids.
pub(super) fn id_of_words(words: &str) -> String {
    const LONGEST: usize = 40;
    let parts = words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    let mut id = parts.collect::<Vec<_>>().join("-").to_lowercase();
    if id.len() <= LONGEST && words.is_ascii() && !id.is_empty() {
        return id;
    }
    let hash = &digest(words.as_bytes())[..8];
    id.truncate(LONGEST - hash.len() - 1);
    let start = id.trim_end_matches('-');
    format!("{}-{hash}", if start.is_empty() { "task" } else { start })
}

impl OpenRun {
    /// A plan with one task given as text. A plan that the run has frozen remains in force.
    pub fn plan_of_words(&self, run: &Run, words: &str) -> Result<Planned, Failure> {
        let frozen =
            run.start.as_ref().filter(|_| !self.request.new_run).and_then(|start| start.plan.clone());
        self.refuse_changed_settings(run)?;
        Ok(Planned { frozen, ..Planned::of_words(words)? })
    }

    /// The plan in force: the frozen one if a run continues, otherwise the file.
    pub fn plan(&self, run: &Run) -> Result<Planned, Failure> {
        let file = self.plan_file(run)?;
        let now = file.as_ref().map(|file| Plan::read(&file.path, &file.bytes)).transpose();
        let now = now.map_err(|error| match file.as_ref().filter(|_| !self.request.new_run) {
            Some(file) => self.with_way_back(error.into(), run, &file.path),
            None => error.into(),
        })?;
        let first = match &file {
            Some(file) => start::find_first_plan(&self.repository, run, &file.path)?,
            None => None,
        };
        let is_first_use = run.start.as_ref().is_some_and(|start| start.plan.is_none()) && file.is_some();
        let kept = run.start.as_ref().and_then(|start| start.plan.clone()).or(first);
        if self.request.new_run || run.start.is_none() {
            let plan = now.ok_or_else(|| no_plan(&self.repository))?;
            let merged = if self.request.new_run { Vec::new() } else { self.find_merged(run, &plan)? };
            let path = file.as_ref().map(|file| file.path.clone());
            return Ok(Planned { plan, file, frozen: None, is_first_use: false, path, merged });
        }
        let frozen = kept.as_ref().map(|kept| self.frozen(kept)).transpose()?;
        if !self.request.accept_changes {
            if let (Some(kept), Some(file)) = (&kept, &file)
                && kept.path != file.path
            {
                self.refuse_other_plan(kept, file)?;
            }
            let before = kept.as_ref().map(|kept| kept.path.as_str()).zip(frozen.as_ref());
            start::require_unchanged(&self.repository, run, before, now.as_ref())?;
        }
        let plan = if self.request.accept_changes { now.or(frozen) } else { frozen.or(now) };
        let path = file.as_ref().map(|file| file.path.clone()).or_else(|| frozen_path(run));
        let plan = plan.ok_or_else(|| no_plan(&self.repository))?;
        Ok(Planned { plan, file, frozen: kept, is_first_use, path, merged: Vec::new() })
    }

    /// Refuses a plan file that is not the one of the run, unless the run's plan was moved there.
    fn refuse_other_plan(&self, kept: &PlanRef, file: &PlanFile) -> Result<(), Failure> {
        let is_here = safe_files::read_beneath(&self.home, &kept.path).is_ok();
        if !is_here || self.repository.find_blob(kept.blob)?.as_deref() == Some(file.bytes.as_slice()) {
            return Ok(());
        }
        Err(GardenerError::OtherPlan { frozen: kept.path.clone(), path: file.path.clone() }.into())
    }

    /// The tasks of a first run that are done in this history already, by the runs of other branches. The branch of a
    /// new session does not exist yet, so its run was not read: history is read from where the branch will start.
    fn find_merged(&self, run: &Run, plan: &Plan) -> Result<Vec<MergedRun>, Failure> {
        let scope = RunScope { branch: self.branch.clone(), tip: Some(self.head) };
        let others = match run.scope.tip {
            Some(_) => run.others.clone(),
            None => Run::scan_others(&self.repository, &scope)?,
        };
        Ok(tasks_done_by(&self.repository, self.head, &others, plan)?)
    }

    /// A task given as text has no plan to compare, but the configuration of its run is frozen as well.
    fn refuse_changed_settings(&self, run: &Run) -> Result<(), Failure> {
        if self.request.new_run || self.request.accept_changes {
            return Ok(());
        }
        Ok(start::require_unchanged(&self.repository, run, None, None)?)
    }

    /// Adds a hint if the plan changed because an agent edited it.
    fn with_way_back(&self, failure: Failure, run: &Run, path: &str) -> Failure {
        let is_frozen = frozen_path(run).as_deref() == Some(path);
        match UnacceptedChange::find(&self.repository, run, path) {
            Ok(Some(change)) if is_frozen => failure.hint(change.words()),
            _ => failure,
        }
    }

    /// The permissions and commands that an accepted plan adds to the frozen one, one line each.
    pub(super) fn list_added_powers(&self, planned: &Planned) -> Result<Vec<String>, Failure> {
        let before = planned.frozen.as_ref().map(|frozen| self.frozen(frozen)).transpose()?;
        let added = before.map(|before| start::list_added_powers(&before, &planned.plan));
        Ok(added.unwrap_or_default())
    }

    /// Reads the frozen plan. If it cannot be read, the file is no substitute: agents may have edited it.
    fn frozen(&self, frozen: &PlanRef) -> Result<Plan, Failure> {
        let plan = Plan::read_frozen(&self.repository, Some(frozen))?.transpose()?;
        plan.ok_or_else(|| {
            Failure::new(Exit::Fatal, format!("the frozen plan '{frozen}' is not in this repository"))
                .hint("fetch it: git fetch --refetch, or start a new run with --new-run")
        })
    }

    fn plan_file(&self, run: &Run) -> Result<Option<PlanFile>, Failure> {
        let named = named_plan(&self.repository, &self.request, &self.settings);
        let is_named = named.is_some();
        let usual = || usual_plan(&self.repository);
        // A new run looks for its plan in the same order as a first run.
        let path = match named {
            None if self.request.new_run => usual().or_else(|| frozen_path(run)),
            named => named.or_else(|| frozen_path(run)).or_else(usual),
        };
        let Some(path) = path else {
            return Ok(None);
        };
        match read_named_plan(self.repository.top(), &path) {
            Ok(bytes) => Ok(Some(PlanFile { path, bytes })),
            // The user's checkout need not have the plan of a run that works in another worktree.
            Err(_) if !is_named && self.pending_move.is_some() => Ok(None),
            Err(error) => {
                let is_missing = matches!(error, PlanError::Missing { .. });
                let mut failure = Failure::from(error);
                if is_missing
                    && !is_named
                    && frozen_path(run).as_ref() == Some(&path)
                    && let Some(other) = usual()
                {
                    let words = format!("this run uses the plan '{path}', which no longer exists");
                    let hint = format!(
                        "continue it with another plan: git arborist gardener --tree {}",
                        shell_word(&other)
                    );
                    failure = Failure::new(failure.exit, words).hint(hint);
                }
                if self.request.tree.is_none()
                    && let Some(location) = self.settings.location_of("tree").filter(|_| is_named)
                {
                    failure = failure.hint(format!("correct {location}, or name the plan with --tree"));
                }
                Err(if self.request.new_run { failure } else { self.with_way_back(failure, run, &path) })
            }
        }
    }
}

/// The path of the plan for a new run, from the top of the repository; `None` for a task given as text.
#[must_use]
pub fn find_plan(repository: &Repository, request: &RunRequest, settings: &Settings) -> Option<String> {
    if request.is_unplanned() {
        return None;
    }
    named_plan(repository, request, settings).or_else(|| usual_plan(repository))
}

fn named_plan(repository: &Repository, request: &RunRequest, settings: &Settings) -> Option<String> {
    let typed = request.tree.as_ref().map(|typed| typed_plan_path(repository, typed).display().to_string());
    typed.or_else(|| configured_plan_path(repository, settings))
}

fn frozen_path(run: &Run) -> Option<String> {
    run.frozen_plan().map(|plan| plan.path.clone())
}

/// The error if there is no plan, or more than one.
fn no_plan(repository: &Repository) -> GardenerError {
    let plans = find_plans(repository.top(), repository.head.branch.as_ref());
    if plans.len() > 1 { GardenerError::SeveralPlans(plans) } else { GardenerError::NoPlan }
}

pub(super) fn usual_plan(repository: &Repository) -> Option<String> {
    let branch = repository.head.branch.as_ref();
    // With several plans, the user has to name one.
    let mut plans = find_plans(repository.top(), branch);
    if plans.len() == 1 { plans.pop() } else { None }
}

/// The prompts of a task as they would be now.
#[derive(Debug)]
pub struct PromptPreview {
    /// For the agent.
    pub implement: String,
    /// For the reviewer. The changes are not known yet.
    pub review: String,
}

impl OpenRun {
    /// Makes the prompts of a task without calling anyone.
    pub fn preview_prompts(
        &self,
        planned: &Planned,
        run: &Run,
        task: &Task,
    ) -> Result<PromptPreview, Failure> {
        let top = self.repository.top();
        let options = &self.options;
        let background = TaskBackground::new(&planned.plan, planned.path(), run, task);
        let files = PromptFiles { exists: &|path| top.join(path).exists(), top: None };
        let mut parts = PromptParts::new(task.into(), &background, &files, &options.context);
        let events = run.find(&task.id).map(|history| history.events.as_slice()).unwrap_or_default();
        let earlier = match self.request.lanes.count(&self.settings)? {
            Some(_) => events_before_reset(&self.repository, run, &task.id)?,
            None => Vec::new(),
        };
        let feedback = feedback(earlier.iter().chain(events), |log| {
            let log = self.home.join(log);
            log.is_file().then(|| log.display().to_string())
        });
        let review = parts.review("[the changes of the task]", None, options.prompts.review.as_ref());
        parts.protection = options.protection.rule(task);
        parts.dependencies = background.describe_dependencies(&self.repository, &options.report_dir);
        let implement = parts.implement(&feedback, options.prompts.implement.as_ref());
        Ok(PromptPreview { implement, review })
    }
}

impl OpenRun {
    /// Refuses a run if tasks of the plan were completed by the runs of other branches: they would be done again.
    pub fn refuse_merged(&self, planned: &Planned) -> Result<(), GardenerError> {
        let (Some(merged), Some(path)) = (planned.merged.first(), &planned.path) else { return Ok(()) };
        let MergedRun { branch, tasks, .. } = merged.clone();
        // In the worktree of a task, its run is meant.
        if self.branch.run_component() == Some(branch.component().as_str()) {
            let place = self.repository.checkouts_of(&branch)?.into_iter().next();
            return Err(GardenerError::OnTaskBranch { branch: self.branch.clone(), run: branch, place });
        }
        // Without a branch, 'plan --tick' does not know which run is meant.
        let path = self.repository.head.branch.is_some().then(|| path.clone());
        Err(GardenerError::Merged { branch, path, tasks })
    }
}
