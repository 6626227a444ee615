//! The repositories with tools, their directories and their commands.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use arborist_core::{
    consent,
    failure::{Exit, Failure},
    git::{Config, DirPlace, Repository, husky_folder},
    message::visible,
    name::{BranchName, NameError, RepoName, ToolName},
    pipeline::move_planted_git,
    process::{Cancel, RunningWriter},
    safe_files::Enclosure,
    settings::{Origin, Settings},
    workspace::{RepoSection, Tool, Workspace},
};

use git_arborist::{
    approval::default_consent,
    tools::{CommandArg, RootArg},
    ui::Ui,
};

/// The commands of a repository.
type Tools = BTreeMap<ToolName, Tool>;

/// A repository with tools.
#[derive(Debug)]
pub(super) struct Root {
    /// Its name.
    pub(super) name: RepoName,
    /// The directory that tools may access.
    pub(super) path: PathBuf,
    /// That directory as an enclosure that paths cannot leave.
    pub(super) enclosure: Enclosure,
    /// What git knows of it.
    pub(super) repository: Repository,
    /// The run's branch there, if it differs from the one in the environment.
    pub(super) run: Option<BranchName>,
    /// Its commands.
    pub(super) tools: Tools,
    /// Whether the guard of a run examines what the tools do.
    is_guarded: bool,
}

/// The options of the server.
pub(super) struct ToolSite {
    pub(super) roots: Vec<Root>,
    /// The git directory of the repository whose files define commands.
    pub(super) home: PathBuf,
    /// The time limit of a command.
    pub(super) timeout: Duration,
}

/// The commands that were given as options, by repository.
pub(super) struct Commands(BTreeMap<RepoName, Tools>);

impl Commands {
    /// Commands must belong to repositories that are given too.
    pub(super) fn of(commands: &[CommandArg], roots: &[RootArg]) -> Result<Self, Failure> {
        let mut named: BTreeMap<RepoName, Tools> = BTreeMap::new();
        for CommandArg { repo, tool, command } in commands {
            if !roots.iter().any(|root| root.name == *repo) {
                let words =
                    format!("--command {repo}:{tool} is for the repository '{repo}', but no --root names it");
                return Err(Failure::new(Exit::Usage, words).hint(format!("name it with --root {repo}=DIR")));
            }
            let tool_of = Tool { command: command.clone(), origin: Origin::User };
            named.entry(repo.clone()).or_default().insert(tool.clone(), tool_of);
        }
        Ok(Self(named))
    }
}

impl ToolSite {
    /// Uses only options. Nothing is read from files that agents can edit.
    pub(super) fn named(args: &[RootArg], commands: &Commands) -> Result<Self, Failure> {
        let mut roots: Vec<Root> = Vec::new();
        for RootArg { name, path } in args {
            if roots.iter().any(|root| root.name == *name) {
                return Err(Failure::new(Exit::Usage, format!("the repository '{name}' is named twice")));
            }
            let tools = commands.0.get(name).cloned().unwrap_or_default();
            roots.push(Root::open(name.clone(), path, tools)?);
        }
        // Commands that are given as options need no approval.
        let home = roots.first().map(|root| root.repository.common_dir.clone()).unwrap_or_default();
        Ok(Self { roots, home, timeout: Settings::default().timeouts.test })
    }

    /// The current repository, and those of its workspace.
    pub(super) fn of_workspace(ui: &mut Ui, cancel: &Cancel) -> Result<Self, Failure> {
        let place = match non_empty_var("ARBORIST_WORKTREE") {
            Some(place) => PathBuf::from(place),
            None => Repository::current_dir()?,
        };
        let config = Config::start(&place)?;
        let repository = Repository::discover_from(&place)?;
        let config = config.finish()?;
        ui.configure(&config);
        let settings = Settings::load(&repository, &config)?;
        let workspace = Workspace::load(&repository, &settings, cancel)?;
        let mut roots = Vec::new();
        for section in &workspace.sections {
            let path = if section.is_main { repository.top() } else { &section.path };
            if !section.is_main && !is_approved(&repository.common_dir, section, ui) {
                continue;
            }
            if section.is_main || path.exists() {
                roots.push(Root::open(section.name.clone(), path, tools_of(section)?)?);
            }
        }
        Ok(Self { roots, home: repository.common_dir, timeout: settings.timeouts.test })
    }
}

/// Whether the user has approved the location of another repository that a file of the repository names.
fn is_approved(home: &Path, section: &RepoSection, ui: &mut Ui) -> bool {
    let refused =
        consent::require(home, &section.required_approval().into_iter().collect(), default_consent())
            .is_err();
    if refused {
        ui.warn(&format!(
            "'{}' is left out: a tracked file says that it is at '{}', and you have not approved that",
            section.name,
            visible(&section.path.display().to_string())
        ));
        ui.hint("to approve it, run: git arborist workspace sync --yes");
    }
    !refused
}

/// An environment variable that is set and not empty.
fn non_empty_var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The commands that are configured for a repository.
fn tools_of(section: &RepoSection) -> Result<Tools, Failure> {
    let wrong = |name: &str, error: NameError| {
        Failure::new(Exit::No, format!("'workspace.repos.{}.tools.{name}': {error}", section.name))
    };
    let own = section.tools.iter();
    own.map(|(name, tool)| Ok((name.parse().map_err(|error| wrong(name, error))?, tool.clone()))).collect()
}

impl Root {
    fn open(name: RepoName, path: &Path, tools: Tools) -> Result<Self, Failure> {
        let could_not_open = || format!("could not open '{}'", path.display());
        let path = path.canonicalize().with_context(could_not_open)?;
        let repository = Repository::discover_from(&path)?;
        let top = repository.worktree.as_ref().and_then(|top| top.canonicalize().ok());
        let Some(inner) = top.as_ref().and_then(|top| path.strip_prefix(top).ok()) else {
            let words = format!("'{}' is not in a worktree of a repository", path.display());
            return Err(Failure::new(Exit::Fatal, words).hint("tools are bound to a worktree"));
        };
        if inner.components().any(|part| part.as_os_str() == ".git") {
            return Err(Failure::new(Exit::Fatal, format!("'{}' belongs to git itself", path.display())));
        }
        let mut enclosure = Enclosure::open(&path).with_context(could_not_open)?;
        let hooks = repository.hooks_dir(&Config::start(&path)?.finish()?)?;
        let husky = husky_folder(&hooks.path).map(Path::to_owned);
        for folder in [Some(hooks.path), husky].into_iter().flatten() {
            let folder = folder.canonicalize().unwrap_or(folder);
            if let (DirPlace::Worktree, Ok(inner)) = (hooks.reach, folder.strip_prefix(&path))
                && let Some(Ok(folder)) = inner.to_str().map(str::parse)
            {
                enclosure = enclosure.without(folder);
            }
        }
        // A temporary file of a killed server must not become part of the work. A failure to exclude it does not
        // matter.
        let _ = repository.exclude(Enclosure::DRAFTS);
        let is_guarded = non_empty_var("ARBORIST_TASK").is_some();
        if !is_guarded {
            // Repositories that are there now are the user's.
            drop(repository.find_inner_git_dirs());
        }
        Ok(Self { name, path, enclosure, repository, run: None, tools, is_guarded })
    }

    /// Takes repositories apart that a command made in a folder of the checkout, and returns a message about them. git would
    /// obey their settings as soon as the user calls it there.
    pub(super) fn take_planted(&self) -> Option<String> {
        if self.is_guarded {
            return None;
        }
        // What was known about the files may not be true any more.
        drop(RunningWriter::begin(&[self.repository.top()]));
        move_planted_git(&self.repository)
    }

    /// Like [`Self::take_planted`], after a file was written: only if the file made its folder a bare repository.
    pub(super) fn take_planted_around(&self, path: &str) -> Option<String> {
        let inner = self.repository.top().canonicalize().ok();
        let inner = inner.and_then(|top| Some(self.path.strip_prefix(top).ok()?.join(path)))?;
        self.repository.is_in_bare(&inner).then(|| self.take_planted()).flatten()
    }
}
