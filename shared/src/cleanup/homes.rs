//! The repositories that record the sessions of a repository, and the locks of their runs. A session is recorded where its
//! plan is, and may have branches and worktrees in other repositories of the workspace. Only its home can tell whether it is
//! over. Processes that killed runs left alive (agents, tests and gates) are recognised by the orphan locks that they inherit.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::InUse;
use crate::{
    failure::Failure,
    git::{Config, Repository},
    message::visible,
    name::{BranchName, SessionId, unescaped},
    process::{Cancel, FileLock, OrphanLock},
    session::{Driver, SessionList, SessionReader, SessionState, StoredRecord},
    settings::Settings,
    workspace::{RepoSection, Workspace, list_plan_paths},
};

/// Another repository whose sessions may have worked in the one that is cleaned up.
#[derive(Debug)]
pub(super) struct SessionHome {
    repository: Repository,
    /// The settings of that repository in its own workspace.
    main: RepoSection,
    /// The settings of the repository that is cleaned up, in that workspace.
    section: RepoSection,
    sessions: SessionList,
}

/// The homes of a repository's sessions.
#[derive(Debug, Default)]
pub(super) struct SessionHomes {
    found: Vec<SessionHome>,
    /// The remembered homes that could not be read.
    unreadable: Vec<PathBuf>,
}

/// A session that may have a branch in the repository that is cleaned up.
pub(super) struct KnownSession {
    pub(super) stored: StoredRecord,
    pub(super) state: SessionState,
    /// The branch that it works on in the repository that is cleaned up.
    pub(super) branch: BranchName,
    /// Whether that branch is named as one that is created for the session.
    pub(super) has_own_branch: bool,
    /// The name of the repository that records it, if it is another one.
    pub(super) home: Option<String>,
}

/// The directory of locks and the name of a run there.
pub(super) struct DriverLocks {
    pub(super) folder: PathBuf,
    pub(super) run: String,
}

impl KnownSession {
    pub(super) fn id(&self) -> &SessionId {
        &self.stored.record.session
    }

    /// The full name of the session's own branch, if it has one.
    pub(super) fn own_branch(&self) -> Option<String> {
        self.has_own_branch.then(|| self.branch.to_ref())
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, SessionState::Running | SessionState::Open | SessionState::Paused)
    }

    /// The sessions that are recorded in the repository that is cleaned up.
    pub(super) fn recorded_in(
        repository: &Repository,
        section: &RepoSection,
        sessions: &SessionList,
    ) -> Vec<Self> {
        let known = |stored: &StoredRecord| {
            let (context, session) = (&stored.record.context, &stored.record.session);
            Self {
                state: sessions.standing(repository, stored),
                branch: context.branch.clone(),
                has_own_branch: context.driver == Driver::Run
                    && section.is_session_branch(&context.branch, session),
                home: None,
                stored: stored.clone(),
            }
        };
        sessions.sessions.iter().map(known).collect()
    }
}

impl SessionHome {
    fn read(home: Repository, cleaned: &Repository) -> Result<Self, Failure> {
        let settings = Settings::load(&home, &Config::load(&home)?)?;
        let workspace = Workspace::load(&home, &settings, &Cancel::new())?;
        let (main, section) = (workspace.main().clone(), workspace.section_of(cleaned)?);
        let sessions = SessionReader::new(&home).list()?;
        Ok(Self { repository: home, main, section, sessions })
    }

    /// The branch of a session in the repository that is cleaned up.
    fn branch_of(&self, stored: &StoredRecord) -> Option<BranchName> {
        let (context, session) = (&stored.record.context, &stored.record.session);
        let branch = self.section.branch_of_session_in(&self.main, &context.branch, session);
        branch.filter(|_| context.driver == Driver::Run)
    }
}

impl SessionHomes {
    /// Reads the repositories that a run remembered in `repository`, and the others of its workspace.
    pub(super) fn find(repository: &Repository, others: &[(RepoSection, Repository)]) -> Self {
        let mut homes = Self::default();
        for (_, other) in others {
            homes.found.extend(SessionHome::read(other.clone(), repository));
        }
        for path in list_plan_paths(repository) {
            let Ok(home) = Repository::open_at(&path) else {
                homes.unreadable.push(path);
                continue;
            };
            let is_known = |known: &SessionHome| known.repository.common_dir == home.common_dir;
            if home.common_dir == repository.common_dir || homes.found.iter().any(is_known) {
                continue;
            }
            match SessionHome::read(home, repository) {
                Ok(home) => homes.found.push(home),
                Err(_) => homes.unreadable.push(path),
            }
        }
        homes
    }

    /// The sessions of all homes that may have a branch in the repository that is cleaned up.
    pub(super) fn sessions(&self) -> Vec<KnownSession> {
        let of_home = |home: &'_ SessionHome| -> Vec<KnownSession> {
            let known = |stored: &StoredRecord| {
                Some(KnownSession {
                    state: home.sessions.standing(&home.repository, stored),
                    branch: home.branch_of(stored)?,
                    has_own_branch: true,
                    home: Some(home.main.name.to_string()),
                    stored: stored.clone(),
                })
            };
            home.sessions.sessions.iter().filter_map(known).collect()
        };
        self.found.iter().flat_map(of_home).collect()
    }

    /// Where the drivers of a run hold their locks, apart from the repository that is cleaned up.
    pub(super) fn drivers_of(&self, run: &str) -> Vec<DriverLocks> {
        let of_home = |home: &'_ SessionHome| -> Vec<DriverLocks> {
            let is_it = |stored: &&StoredRecord| {
                home.branch_of(stored).is_some_and(|branch| branch.component() == run)
            };
            let driver = |stored: &StoredRecord| DriverLocks {
                folder: home.repository.lock_folder(),
                run: stored.record.context.branch.component(),
            };
            home.sessions.sessions.iter().filter(is_it).map(driver).collect()
        };
        self.found.iter().flat_map(of_home).collect()
    }

    /// Why it is not known whether a session is over that no repository within reach has recorded.
    pub(super) fn unknown_words(&self) -> String {
        let listed = |paths: Vec<&Path>| -> String {
            paths.iter().map(|path| visible(&path.to_string_lossy())).collect::<Vec<_>>().join(", ")
        };
        let place = if !self.unreadable.is_empty() {
            let paths = listed(self.unreadable.iter().map(PathBuf::as_path).collect());
            format!("it is recorded in {paths}, which cannot be read")
        } else if !self.found.is_empty() {
            let paths = listed(self.found.iter().map(|home| home.main.path.as_path()).collect());
            format!("it is recorded in another repository, and not in {paths}")
        } else {
            "it is recorded in another repository".to_owned()
        };
        format!("whether its session is over: {place}")
    }
}

/// The names of the orphan locks that are held, and of those that could not be read, without their suffix.
#[derive(Debug, Default)]
pub(super) struct LeftRunning {
    held: Vec<String>,
    unknown: Vec<String>,
    /// Why the directory of locks could not be read completely.
    unread: Option<String>,
}

/// Separates the name of a run's lock from that of a lane. No branch name can contain it.
const LANE: char = '~';

impl LeftRunning {
    /// Examines all locks in a directory. A missing directory has none.
    pub(super) fn find(locks: &Path) -> Self {
        let mut found = Self::default();
        let entries = match fs::read_dir(locks) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return found,
            Err(error) => return Self { unread: Some(error.to_string()), ..found },
        };
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => return Self { unread: Some(error.to_string()), ..found },
            };
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(name) = name.strip_suffix(OrphanLock::SUFFIX) else { continue };
            match FileLock::look(&entry.path()) {
                Ok(None) => {}
                Ok(Some(_)) => found.held.push(name.to_owned()),
                Err(_) => found.unknown.push(name.to_owned()),
            }
        }
        found
    }

    /// Whether a process of this run is alive; an error if that cannot be determined.
    pub(super) fn of_run(&self, run: &str) -> Result<Option<InUse>, String> {
        self.among(|name| run_in(name) == Some(run))
    }

    /// Whether a process of any run or gate is alive; an error if that cannot be determined.
    pub(super) fn any(&self) -> Result<Option<InUse>, String> {
        self.among(|_| true)
    }

    fn among(&self, suits: impl Fn(&str) -> bool) -> Result<Option<InUse>, String> {
        if let Some(name) = self.held.iter().find(|name| suits(name)) {
            let run = run_in(name).map(unescaped);
            return Ok(Some(InUse::LeftRunning(run.unwrap_or_else(|| name.clone()))));
        }
        match (&self.unread, self.unknown.iter().find(|name| suits(name))) {
            (Some(why), _) => Err(format!("whether a process is still working on it: {why}")),
            (None, Some(name)) => Err(format!("whether a process is still working on it: {name}")),
            (None, None) => Ok(None),
        }
    }
}

/// The component of the run that a lock belongs to.
fn run_in(name: &str) -> Option<&str> {
    let run = name.strip_prefix("run-")?;
    Some(run.split_once(LANE).map_or(run, |(run, _)| run))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_name_identifies_exactly_one_run() {
        let names = ["run-main", "run-main~lane-2", "run-v1.2", "run-v1.lane-2", "worktree-gate-1-abc"];
        assert_eq!(names.map(run_in), [Some("main"), Some("main"), Some("v1.2"), Some("v1.lane-2"), None]);
    }
}
