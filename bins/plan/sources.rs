//! Which files a plan is made from: those that are named, a folder's task lists, or the usual places.

use std::{
    fs,
    path::{Path, PathBuf},
};

use arborist_core::{
    failure::{Exit, Failure},
    git::{Config, GitError, Repository, plain_path},
    message::visible,
    plan::{Plan, PlanError, TASK_LIST, Task, configured_plan_path, find_plans, usual_places},
    process::Cancel,
    safe_files,
    settings::Settings,
    workspace::Workspace,
};

use crate::ui::Ui;

/// A file with its content.
pub(super) struct Document {
    pub(super) path: PathBuf,
    /// How it is named in messages.
    pub(super) label: String,
    pub(super) bytes: Vec<u8>,
}

/// The files of a plan, and the repository that they belong to, if any.
pub(super) struct PlanSources {
    pub(super) documents: Vec<Document>,
    pub(super) repository: Option<Repository>,
}

impl PlanSources {
    /// Finds and loads the files. Without a repository, files must be named.
    pub(super) fn find(specs: &[PathBuf], is_for_agent: bool, ui: &mut Ui) -> Result<Self, Failure> {
        let repository = match Repository::discover() {
            Ok(repository) => Some(repository),
            Err(GitError::NoRepository { .. }) if !specs.is_empty() => None,
            Err(error) => return Err(error.into()),
        };
        let mut paths = Vec::new();
        for spec in specs {
            paths.extend(if spec.is_dir() { files_of(spec)? } else { vec![spec.clone()] });
        }
        if let Some(repository) = &repository {
            let config = Config::load(repository)?;
            ui.configure(&config);
            if specs.is_empty() {
                paths.push(usual_place(repository, &Settings::load(repository, &config)?, is_for_agent)?);
            }
        }
        let place = repository.as_ref().and_then(|found| Some((&*found.dir, found.worktree.as_deref()?)));
        let documents = paths.into_iter().map(|path| load(path, place)).collect::<Result<_, _>>()?;
        Ok(Self { documents, repository })
    }

    /// The plan that the files make.
    pub(super) fn read(&self) -> Result<Plan, PlanError> {
        Plan::read_all(&self.named())
    }

    /// The workspace that tasks name repositories of, where any does or seems to.
    pub(super) fn workspace(&self, plan: &Plan) -> Result<Option<Workspace>, Failure> {
        let names = |task: &Task| {
            let mut tests = task.test_commands.iter().map(|test| &test.command);
            !task.repos.is_empty() || task.tags.iter().chain(&mut tests).any(|text| text.contains(':'))
        };
        let repository = self.repository.as_ref().filter(|repository| repository.worktree.is_some());
        let Some(repository) = repository.filter(|_| plan.tasks.iter().any(names)) else {
            return Ok(None);
        };
        let settings = Settings::load(repository, &Config::load(repository)?)?;
        Ok(Some(Workspace::load(repository, &settings, &Cancel::new())?))
    }

    /// The files by name and content.
    pub(super) fn named(&self) -> Vec<(&str, &[u8])> {
        self.documents
            .iter()
            .map(|Document { label, bytes, .. }| (label.as_str(), bytes.as_slice()))
            .collect()
    }

    /// The names of the files, for people.
    pub(super) fn labels(&self) -> String {
        let labels: Vec<String> = self.documents.iter().map(|document| visible(&document.label)).collect();
        labels.join(", ")
    }

    /// Whether the plan was read from a spec; a tree file only names the specs that it was made from.
    pub(super) fn is_spec_of(&self, plan: &Plan) -> bool {
        self.documents.iter().any(|document| plan.spec_files.contains(&document.label))
    }

    /// The top of the worktree.
    pub(super) fn top(&self) -> Option<&Path> {
        self.repository.as_ref()?.worktree.as_deref()
    }

    /// A label of ours as a path from the top of the repository, with `/`. What leads elsewhere, and what a tree
    /// file itself names, stays as it is.
    pub(super) fn label_from_top(&self, label: &str) -> String {
        if self.documents.iter().all(|document| document.label != label) {
            return label.to_owned();
        }
        let Some(repository) = &self.repository else { return label.to_owned() };
        let Some(top) = &repository.worktree else { return label.to_owned() };
        let full = plain_path(&repository.dir.join(label));
        full.strip_prefix(plain_path(top)).ok().and_then(Path::to_str).map_or(label.to_owned(), str::to_owned)
    }
}

/// Reads a file. One of the worktree may have been committed by anybody, so no link leads from there to another place.
/// `place` is the current directory and the top of the worktree.
fn load(path: PathBuf, place: Option<(&Path, &Path)>) -> Result<Document, Failure> {
    let label = path.display().to_string();
    let bytes = match place {
        Some((here, top)) => safe_files::read_named(Some(top), &plain_path(&here.join(&path))),
        None => safe_files::read_users(&path),
    };
    match bytes {
        Ok(bytes) => Ok(Document { path, label, bytes }),
        Err(error) => Err(PlanError::unreadable(&label, &path, &error).into()),
    }
}

/// The task lists of a folder, sorted: every `tasks.md` in it or below, else every Markdown file right in it.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut lists = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in entries(&folder)? {
            // A link may lead anywhere, also back to a folder above.
            if entry.is_dir() && !entry.is_symlink() && !is_hidden(&entry) {
                open.push(entry);
            } else if entry.file_name().is_some_and(|name| name == TASK_LIST) {
                lists.push(entry);
            }
        }
    }
    if lists.is_empty() {
        lists = entries(folder)?
            .into_iter()
            .filter(|entry| entry.extension().is_some_and(|e| e == "md"))
            .collect();
    }
    lists.sort();
    if lists.is_empty() {
        let what = format!("there is no Markdown file in '{}'", folder.display());
        return Err(Failure::new(Exit::No, what).hint("name a file with tasks"));
    }
    Ok(lists)
}

fn is_hidden(path: &Path) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .is_none_or(|name| name.starts_with('.') || name == "node_modules")
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::from(PlanError::Unreadable { file: folder.display().to_string(), why: error.to_string() })
    };
    fs::read_dir(folder)
        .map_err(unreadable)?
        .map(|entry| entry.map(|entry| entry.path()).map_err(unreadable))
        .collect()
}

/// Where the plan of a branch is kept when nobody names it, as a path from the current directory.
fn usual_place(repository: &Repository, settings: &Settings, is_for_agent: bool) -> Result<PathBuf, Failure> {
    let top = repository.worktree.as_deref().ok_or_else(|| {
        Failure::new(Exit::Fatal, "this repository is bare, so there is no checkout to find a plan in")
            .hint("run this in a clone, or in a worktree of this repository")
    })?;
    if let Some(place) = configured_plan_path(repository, settings) {
        // The setting may come from a tracked file.
        if Path::new(&place).is_absolute() {
            let error = Failure::from(PlanError::Outside { file: place, top: top.to_owned() });
            return Err(match settings.location_of("tree") {
                Some(location) => error.hint(format!("correct {location}, or name a file")),
                None => error,
            });
        }
        return Ok(from_here(&repository.dir, top, &place));
    }
    let branch = repository.head.branch.as_ref();
    let plans = find_plans(top, branch);
    match &plans[..] {
        [place] => Ok(from_here(&repository.dir, top, place)),
        [] if is_for_agent => Err(Failure::new(Exit::No, "no plan was found")
            .hint("name the file that describes the work: git arborist plan --ai spec.md")),
        [] => Err(Failure::new(Exit::No, "no plan was found")
            .hint(format!("name a file, or create one of these: {}", usual_places(branch).join(", ")))),
        [first, ..] => {
            let list: Vec<String> = plans
                .iter()
                .map(|place| from_here(&repository.dir, top, place).display().to_string())
                .collect();
            let what = format!("{} plans were found: {}", plans.len(), list.join(", "));
            let first = from_here(&repository.dir, top, first);
            Err(Failure::new(Exit::No, what).hint(format!("git arborist plan {}", first.display())))
        }
    }
}

/// A path from the top of the worktree as one from the current directory.
fn from_here(here: &Path, top: &Path, place: &str) -> PathBuf {
    let depth = here.strip_prefix(top).map_or(0, |below| below.components().count());
    let mut path: PathBuf = std::iter::repeat_n("..", depth).collect();
    path.push(place);
    path
}
