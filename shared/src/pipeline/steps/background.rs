//! What a prompt says about a task beside its own text: its phases, the tasks that it builds on, and the documents that
//! belong to the plan.

use std::{
    collections::{BTreeSet, HashSet},
    fmt::Write,
    path::Path,
};

use super::excerpt::cut_middle;
use crate::{
    git::{GitError, Repository},
    history::{Event, Run},
    message::{Status, visible},
    name::{Oid, TaskId},
    plan::{Plan, Task},
};

/// How many characters of a phase's description are quoted.
const LONGEST_GOAL: usize = 2000;
/// How many tasks are listed that a task builds on. The rest is counted.
const MOST_DEPENDENCIES: usize = 12;
/// How many changed files are listed for each of them. The rest is counted.
const MOST_FILES: usize = 12;

/// The documents that spec-kit, Kiro and OpenSpec keep beside a task list.
const DOCUMENTS: [&str; 8] = [
    "spec.md", "plan.md", "research.md", "data-model.md", "quickstart.md", "requirements.md", "design.md",
    "proposal.md",
];
/// Where spec-kit keeps the rules of a project.
const CONSTITUTIONS: [&str; 2] = [".specify/memory/constitution.md", "memory/constitution.md"];

/// What the plan and the history of the run say about a task beside its own text.
#[derive(Debug, Clone, Default)]
pub struct TaskBackground {
    /// The phases around the task, outermost first: name and description.
    phases: Vec<(String, String)>,
    dependencies: Vec<Dependency>,
    /// How many more tasks it builds on.
    more_dependencies: usize,
    /// The plan, and the line of the task in it.
    plan: Option<(String, Option<usize>)>,
    /// The folders in which documents of the plan may be.
    folders: Vec<String>,
}

/// A task that another one builds on.
#[derive(Debug, Clone)]
struct Dependency {
    id: TaskId,
    name: String,
    /// The commits with its changes.
    commits: Vec<Oid>,
}

impl TaskBackground {
    /// Collects it for a task of the plan at `path`.
    #[must_use]
    pub fn new(plan: &Plan, path: Option<&str>, run: &Run, task: &Task) -> Self {
        let parent = |task: &&Task| task.parent.as_ref().and_then(|parent| plan.find(parent));
        let around: Vec<&Task> = std::iter::successors(Some(task), parent).collect();
        let phases = around[1..].iter().rev().map(|phase| (phase.name.clone(), phase.description.clone()));
        let (mut needs, mut known): (Vec<&Task>, HashSet<&TaskId>) = Default::default();
        for need in around.iter().flat_map(|node| &node.depends_on) {
            let leaves = plan.leaves_of(need).filter(|leaf| leaf.id != task.id);
            needs.extend(leaves.filter(|leaf| known.insert(&leaf.id)));
        }
        let dependency = |need: &&Task| Dependency {
            id: need.id.clone(),
            name: need.name.clone(),
            commits: run.find(&need.id).map(|history| commits_with_work(&history.events)).unwrap_or_default(),
        };
        let line = |path: &str| {
            let source = task.source.as_ref().filter(|source| source.file == path);
            source.map(|source| source.line)
        };
        let files = path.into_iter().chain(plan.spec_files.iter().map(String::as_str));
        let folder = |file: &str| file.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        let folders: BTreeSet<String> = files.map(folder).collect();
        Self {
            phases: phases.collect(),
            dependencies: needs.iter().take(MOST_DEPENDENCIES).map(dependency).collect(),
            more_dependencies: needs.len().saturating_sub(MOST_DEPENDENCIES),
            plan: path.map(|path| (path.to_owned(), line(path))),
            folders: if path.is_some() { folders.into_iter().collect() } else { Vec::new() },
        }
    }

    /// The phases around the task, with their goals.
    #[must_use]
    pub fn describe_phases(&self) -> String {
        let phase = |(name, description): &(String, String)| {
            let goal = if description == name { "" } else { description.trim() };
            format!("Phase: {name}\n{}", cut_middle(goal, LONGEST_GOAL)).trim_end().to_owned()
        };
        self.phases.iter().map(phase).collect::<Vec<_>>().join("\n\n")
    }

    /// The tasks that this one builds on, with the files that they changed.
    #[must_use]
    pub fn describe_dependencies(&self, repository: &Repository, report_dir: &str) -> String {
        let mut text = String::new();
        for Dependency { id, name, commits } in &self.dependencies {
            // A shallow clone may lack the commits. The prompt is useful without the files too.
            let files = changed_files(repository, commits, report_dir).unwrap_or_default();
            let shown: Vec<String> = files.iter().take(MOST_FILES).map(|file| visible(file)).collect();
            let more = match files.len().saturating_sub(MOST_FILES) {
                0 => String::new(),
                more => format!(" and {more} more files"),
            };
            let changed = if shown.is_empty() {
                String::new()
            } else {
                format!(" (changed {}{more})", shown.join(", "))
            };
            let _ = writeln!(text, "- {id} {name}{changed}");
        }
        if self.more_dependencies > 0 {
            let _ = writeln!(text, "- and {} more tasks", self.more_dependencies);
        }
        if text.is_empty() {
            return text;
        }
        format!("It builds on these tasks:\n{}", text.trim_end())
    }

    /// The plan, and those documents beside it that exist.
    #[must_use]
    pub fn list_documents(&self, files: &PromptFiles<'_>) -> String {
        let Some((plan, line)) = &self.plan else { return String::new() };
        let beside = self.folders.iter().flat_map(|folder| {
            DOCUMENTS.iter().map(move |name| match folder.as_str() {
                "" => (*name).to_owned(),
                folder => format!("{folder}/{name}"),
            })
        });
        let documents = beside.chain(CONSTITUTIONS.iter().map(|path| (*path).to_owned()));
        let line = line.map(|line| format!(", line {line}")).unwrap_or_default();
        let own = format!("The task is from {}{line}.", files.shown(plan));
        match files.list(documents.filter(|path| path != plan)) {
            list if list.is_empty() => own,
            list => format!("{own} These documents belong to it:\n{list}"),
        }
    }
}

/// Lists files of the plan's repository for an agent.
pub struct PromptFiles<'a> {
    /// Whether the agent will find a file there.
    pub exists: &'a dyn Fn(&str) -> bool,
    /// The top of the repository, if the agent begins to work elsewhere.
    pub top: Option<&'a Path>,
}

impl PromptFiles<'_> {
    /// Those of these files that exist, one line each.
    pub(super) fn list(&self, paths: impl Iterator<Item = String>) -> String {
        let found = paths.filter(|path| (self.exists)(path));
        found.map(|path| format!("- {}", self.shown(&path))).collect::<Vec<_>>().join("\n")
    }

    fn shown(&self, path: &str) -> String {
        visible(&self.top.map_or_else(|| path.to_owned(), |top| top.join(path).display().to_string()))
    }
}

/// The commits that contain the work of a task: its landing, or its own steps.
fn commits_with_work(events: &[Event]) -> Vec<Oid> {
    if let Some(landing) = events.iter().rfind(|event| event.status() == Status::Merge) {
        return vec![landing.commit];
    }
    let is_work = |event: &&Event| {
        matches!(event.status(), Status::Turn | Status::ImplementPass | Status::ImplementFail)
    };
    events.iter().filter(is_work).map(|event| event.commit).collect()
}

/// The paths that these commits changed, without reports.
fn changed_files(
    repository: &Repository,
    commits: &[Oid],
    report_dir: &str,
) -> Result<BTreeSet<String>, GitError> {
    let mut files = BTreeSet::new();
    for commit in repository.load_commits(commits)? {
        let Some(parent) = commit.parents().next() else { continue };
        for change in repository.changes(repository.tree_of(parent)?, repository.tree_of(commit.id)?)? {
            let path = String::from_utf8_lossy(&change.path).into_owned();
            if !Path::new(&path).starts_with(report_dir) {
                files.insert(path);
            }
        }
    }
    Ok(files)
}
