//! The repositories that record the sessions of a repository. A session is recorded where its plan is, and may have
//! branches and worktrees in other repositories of the workspace. Only its home can tell whether it is over.

use std::path::{Path, PathBuf};

use crate::{
    failure::Failure,
    git::{Config, Repository},
    message::visible,
    name::{BranchName, SessionId},
    process::Cancel,
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
                folder: locks_of(&home.repository.common_dir),
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

/// The directory of locks of a repository.
pub(super) fn locks_of(common_dir: &Path) -> PathBuf {
    common_dir.join("arborist/locks")
}
