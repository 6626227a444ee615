//! Protected files: a task may add files, but it may change, move or delete a protected one only with permission. The
//! whole difference between the task and its base is judged, so that no order of attempts or turns avoids it.

use std::fmt;

use crate::{
    git::{GitError, Repository, TreeChange},
    history::FAILED,
    message::Body,
    name::Oid,
    pipeline::{
        PipelineError, TaskRun,
        checkout::{
            other_repo::{OtherRepo, RepoAttempt},
            place::AttemptWork,
        },
    },
    plan::Task,
    settings::{Settings, TEST_FILES},
};

/// The permission to run fewer tests, or to skip more, than before a task.
pub const FEWER_TESTS: &str = "fewer-tests";

/// The heading over protected files that a task changed with permission, in the commit of its implement step.
pub const CHANGED_WITH_PERMISSION: &str = "Protected files that were changed with permission:";

/// The word that stands for usual test files.
const TESTS: &str = "tests";
/// The same for agents.
const TESTS_IN_WORDS: &str = "test files and the configuration of test programs";
/// How many files a message names.
const MAX_NAMED: usize = 10;

/// What is protected in a run, and what the user has allowed on the command line.
#[derive(Debug, Clone, Default)]
pub struct Protection {
    /// The pathspecs as they were configured, one list for each source. Each list is matched alone, because an
    /// exclusion in one of them must take nothing from another.
    lists: Vec<Vec<String>>,
    /// The values of `--allow`.
    allowed: Vec<String>,
}

/// Protected files that a task has changed.
#[derive(Debug, Default)]
pub struct ProtectedChanges {
    /// Those without permission.
    pub refused: Vec<ProtectedChange>,
    /// Those with permission.
    pub allowed: Vec<ProtectedChange>,
}

/// A protected file that a task has changed.
#[derive(Debug)]
pub struct ProtectedChange {
    /// Its repository, unless it is the one with the plan.
    repo: Option<String>,
    path: String,
    is_deleted: bool,
}

impl Protection {
    /// Reads the settings. `allowed` are the values of `--allow`.
    #[must_use]
    pub fn new(settings: &Settings, allowed: &[String]) -> Self {
        Self { lists: settings.protected_lists(), allowed: allowed.to_vec() }
    }

    /// Returns what is wrong with a configured pathspec, or with one that is allowed for all tasks or for one of these.
    #[must_use]
    pub fn find_mistake<'t>(
        &self,
        repository: &Repository,
        tasks: impl Iterator<Item = &'t Task>,
    ) -> Option<String> {
        let configured = self.lists.iter().flatten().map(|pathspec| ("'protect'".to_owned(), pathspec));
        let given = self.allowed.iter().map(|pathspec| ("'--allow'".to_owned(), pathspec));
        let planned = tasks.flat_map(|task| {
            task.allow.iter().map(|pathspec| (format!("[allow:{pathspec}] of task '{}'", task.id), pathspec))
        });
        let all: Vec<(String, &String)> = configured.chain(given).chain(planned).collect();
        // One git answers for all of them. Only if it refuses, each is tried alone.
        let pathspecs: Vec<&str> = all.iter().map(|(_, pathspec)| pathspec.as_str()).collect();
        if pathspecs.is_empty() || find_mistake(repository, &pathspecs).is_none() {
            return None;
        }
        all.iter().find_map(|(place, pathspec)| {
            Some(format!("{place}: {}", find_mistake(repository, &[pathspec.as_str()])?))
        })
    }

    /// The protected files that differ between two trees. New files are not among them.
    pub fn find_changes(
        &self,
        repository: &Repository,
        (from, to): (Oid, Oid),
        task_allows: &[String],
    ) -> Result<ProtectedChanges, GitError> {
        let mut found = ProtectedChanges::default();
        if self.lists.is_empty() || from == to {
            return Ok(found);
        }
        let mut changed: Vec<TreeChange> = Vec::new();
        for list in &self.lists {
            let more = repository.changes_of_existing((from, to), &expanded(list))?;
            changed.extend(more);
        }
        changed.sort_by(|a, b| a.path.cmp(&b.path));
        changed.dedup_by(|a, b| a.path == b.path);
        if changed.is_empty() {
            return Ok(found);
        }
        let allowed: Vec<String> = self.allowed.iter().chain(task_allows).cloned().collect();
        let allowed = match allowed.is_empty() {
            true => Vec::new(),
            false => repository.changes_of_existing((from, to), &allowed)?,
        };
        for change in changed {
            let is_allowed = allowed.iter().any(|allowed| allowed.path == change.path);
            let list = if is_allowed { &mut found.allowed } else { &mut found.refused };
            list.push(ProtectedChange {
                repo: None,
                path: change.shown(),
                is_deleted: change.after.is_none(),
            });
        }
        Ok(found)
    }

    /// The pathspecs that this task may change.
    #[must_use]
    pub fn allowed_for(&self, task: &Task) -> Vec<String> {
        let allowed = self.allowed.iter().chain(&task.allow);
        allowed.filter(|allowed| *allowed != FEWER_TESTS).cloned().collect()
    }

    /// Whether fewer tests may run after a task.
    #[must_use]
    pub fn allows_fewer_tests(&self, task: &Task) -> bool {
        self.allowed.iter().chain(&task.allow).any(|allowed| allowed == FEWER_TESTS)
    }

    /// The rule for an agent, or an empty text if nothing is protected.
    #[must_use]
    pub fn rule(&self, task: &Task) -> String {
        let mut words: Vec<&str> = Vec::new();
        for word in self.lists.iter().flatten() {
            let word = if word == TESTS { TESTS_IN_WORDS } else { word };
            if !words.contains(&word) {
                words.push(word);
            }
        }
        if words.is_empty() {
            return String::new();
        }
        let paths = |allowed: &&String| *allowed != FEWER_TESTS;
        let allowed: Vec<&str> =
            self.allowed.iter().chain(&task.allow).filter(paths).map(String::as_str).collect();
        let except = match allowed.is_empty() {
            true => String::new(),
            false => format!(" This task may change these of them: {}.", allowed.join(", ")),
        };
        format!(
            "Protected files, which you must not change, move or delete (new files are allowed): {}.{except}\n",
            words.join(", ")
        )
    }
}

/// Why a run cannot use these pathspecs. Attributes are refused: a task could change them.
fn find_mistake(repository: &Repository, pathspecs: &[&str]) -> Option<String> {
    let depends_on_attributes = |pathspec: &&&str| {
        let magic = pathspec.strip_prefix(":(").and_then(|rest| rest.split(')').next()).unwrap_or_default();
        magic.split(',').any(|word| word.starts_with("attr"))
    };
    if let Some(pathspec) = pathspecs.iter().find(depends_on_attributes) {
        return Some(format!("'{pathspec}' depends on attributes, which a task can change"));
    }
    let empty = repository.empty_tree().ok()?;
    let checked = repository.touches(empty, empty, pathspecs);
    checked.err().map(|_| format!("'{}' is not a pathspec inside the repository", pathspecs.join("', '")))
}

fn expanded(list: &[String]) -> Vec<String> {
    let expand = |word: &String| match word == TESTS {
        true => TEST_FILES.iter().map(|pathspec| (*pathspec).to_owned()).collect(),
        false => vec![word.clone()],
    };
    list.iter().flat_map(expand).collect()
}

impl fmt::Display for ProtectedChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(repo) = &self.repo {
            write!(f, "{repo}: ")?;
        }
        let deleted = if self.is_deleted { " (deleted)" } else { "" };
        write!(f, "{}{deleted}", self.path)
    }
}

impl ProtectedChanges {
    fn add(&mut self, repo: &str, more: Self) {
        let of_repo = |change: ProtectedChange| ProtectedChange { repo: Some(repo.to_owned()), ..change };
        self.refused.extend(more.refused.into_iter().map(of_repo));
        self.allowed.extend(more.allowed.into_iter().map(of_repo));
    }

    /// Why the step fails, if it does, in one line.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        let first = self.refused.first()?;
        let mut names: Vec<String> = self.refused.iter().take(MAX_NAMED).map(ToString::to_string).collect();
        let more = self.refused.len().saturating_sub(MAX_NAMED);
        names.extend((more > 0).then(|| format!("and {more} more")));
        let path = &first.path;
        Some(format!(
            "protected files were changed: {}; to allow it, add [allow:{path}] to the task in the plan, or use --allow {path}",
            names.join(", ")
        ))
    }

    /// The section of a commit about changes with permission.
    pub(in crate::pipeline) fn describe_allowed(&self) -> Option<Body> {
        let lines: Vec<String> = self.allowed.iter().map(ToString::to_string).collect();
        (!lines.is_empty()).then(|| Body::new(CHANGED_WITH_PERMISSION, &lines.join("\n")))
    }

    /// The part of a reviewer's prompt about changes with permission.
    pub(in crate::pipeline) fn review_words(&self) -> String {
        let lines: Vec<String> = self.allowed.iter().map(|change| format!("- {change}")).collect();
        match lines.is_empty() {
            true => String::new(),
            false => format!(
                "\n\nThe task changed protected files, and has permission to do so. Check that it weakens no test:\n{}",
                lines.join("\n")
            ),
        }
    }
}

impl TaskRun<'_, '_, '_> {
    /// The protected files that the task has changed in all its repositories, after an attempt.
    pub(in crate::pipeline) fn find_protected(
        &self,
        work: &AttemptWork,
        beside: &[(RepoAttempt<'_>, AttemptWork)],
    ) -> Result<ProtectedChanges, PipelineError> {
        let (protection, allow) = (&self.context.run.options.protection, &self.task.allow);
        let repository = self.recorder.repository();
        let mut found = protection.find_changes(repository, (self.base.tree, work.tree), allow)?;
        for (repo_attempt, work) in beside {
            let (name, repository, base) = repo_attempt.compared();
            found.add(name, protection.find_changes(repository, (base, work.tree), allow)?);
        }
        Ok(found)
    }

    /// The same for the commits under review.
    pub(in crate::pipeline) fn find_protected_in_review(&self) -> Result<ProtectedChanges, PipelineError> {
        let (protection, allow) = (&self.context.run.options.protection, &self.task.allow);
        let trees = (self.base.tree, self.recorder.tree());
        let mut found = protection.find_changes(self.recorder.repository(), trees, allow)?;
        for OtherRepo { name, repository, base, tip, .. } in &self.context.other_repos {
            found.add(name.as_str(), protection.find_changes(repository, (base.tree, tip.tree), allow)?);
        }
        Ok(found)
    }

    /// What the commit of a failed step says about protected files, with the command that restores them.
    pub(in crate::pipeline) fn describe_refusal(&self, refusal: &str) -> Body {
        let restore = format!(
            "Restore them: 'git show {}:PATH' prints the file as it was. New files may stay.",
            self.base.tree
        );
        // In one line: `state` shows the last line of a reason.
        Body::new(FAILED, &format!("{refusal}. {restore}"))
    }
}
