//! Where a session continues: its branch, the worktree with that branch, and the run that is executed there.

use anyhow::Context;
use arborist_core::{
    failure::{Exit, Failure},
    git::{FastForward, RefMove, Repository},
    history::{CommitSource, Run, RunScope},
    name::{BranchName, Oid, SessionId},
    process::{Cancel, Program},
    record::UnfinishedAttempt,
    session::Record,
    settings::Settings,
    worktree::{Pool, SESSION_REASON, SessionWorktree, WorktreeOptions},
};

use super::{
    open::OpenSessions,
    resume::lock,
    resume_options::{ContinueArgs, ResumeOptions},
};
use crate::{approval, entry::Outcome, ui::Ui};

/// The worktree that has the branch checked out, or a new one.
pub(super) fn session_worktree(
    opened: &OpenSessions,
    branch: &BranchName,
    session: &SessionId,
    continue_args: &ContinueArgs,
    ui: &mut Ui,
) -> Result<SessionWorktree, Failure> {
    let settings = Settings::load(&opened.repository, &opened.config)?;
    let options = WorktreeOptions::new(&settings, &Cancel::new());
    let commands = options.commands_to_approve();
    let pool = Pool::open(&opened.repository, branch, options)?;
    if let Some(session_worktree) = pool.find_session_worktree()? {
        return Ok(session_worktree);
    }
    approval::require(&opened.repository, &commands, continue_args.consent(), ui)?;
    let session_worktree = pool.session_worktree(session)?;
    session_worktree.notes.iter().for_each(|note| ui.note(&note.to_string()));
    Ok(session_worktree)
}

/// Whether a branch was created for its session. Otherwise it is the user's, who may want it back.
pub(super) fn is_own_branch(opened: &OpenSessions, record: &Record) -> Result<bool, Failure> {
    let workspace = opened.workspace(&Cancel::new())?;
    Ok(workspace.main().is_session_branch(&record.context.branch, &record.session))
}

/// Executes the run that continues. If the checkout has uncommitted changes that are not from a killed run, tasks work
/// in their own worktrees.
pub(super) fn run_in_session_worktree(
    session_worktree: &SessionWorktree,
    branch: &BranchName,
    mut resume_options: ResumeOptions<'_>,
) -> Outcome {
    let is_killed = !UnfinishedAttempt::find_all(&session_worktree.repository, branch)?.is_empty();
    if !is_killed && !session_worktree.repository.is_clean()? {
        resume_options.switch("isolate");
    }
    let beside = std::env::current_exe().context("could not find the path of this program")?;
    let program = Program::new(beside.with_file_name("git-arborist-gardener"))
        .dir(&session_worktree.path)
        .args(resume_options.into_options());
    let local = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX"];
    // The session has its branch, whatever is configured for new ones.
    let program = program.env("ARBORIST_SESSION_BRANCH", "false");
    let error = local.iter().fold(program, Program::env_remove).exec();
    Err(Failure::from(error))
}

// The branch of a continued session, and its position according to the records. The position is determined without
// moving anything, because records may come from anywhere; the branch is moved only after everything in them was
// approved.

/// The move of a branch to its position in the records.
pub(super) struct Follow<'a> {
    repository: &'a Repository,
    record: &'a Record,
    from: Option<Oid>,
    to: Oid,
}

impl<'a> Follow<'a> {
    /// Determines the position: the branch may be missing, behind the records, or ahead of them; then it stays.
    pub(super) fn find(repository: &'a Repository, record: &'a Record) -> Result<Self, Failure> {
        let (branch, tip) = (&record.context.branch, record.context.tip);
        let here = repository.find_commits(&[tip])?;
        if here.first().copied().flatten().is_none() {
            let words = format!("the commit {} of session '{}' is not here", tip.short(), record.session);
            return Err(Failure::new(Exit::Fatal, words)
                .hint("fetch it: git fetch <remote> 'refs/arborist/sessions/*:refs/arborist/sessions/*'"));
        }
        let from = repository.find_branch(branch)?;
        let to = match from {
            Some(now) if repository.is_ancestor(tip, now)? => now,
            Some(now) if !repository.is_ancestor(now, tip)? => {
                let words = format!(
                    "'{branch}' was rewritten: it does not contain commit {} of the session",
                    tip.short()
                );
                return Err(Failure::new(Exit::Person, words).hint(format!(
                    "start a new session from one of its turns: git arborist session replay {} --turn <number>",
                    record.session
                )));
            }
            _ => tip,
        };
        Ok(Self { repository, record, from, to })
    }

    /// The state of the run at that position.
    pub(super) fn history(&self) -> Result<Run, Failure> {
        let scope = RunScope { branch: self.record.context.branch.clone(), tip: Some(self.to) };
        // The run itself reads it again without the cache.
        Ok(Run::scan(self.repository, scope, CommitSource::Cached)?)
    }

    /// What the user has to approve before the branch is moved, if it is the user's own: a record may come from
    /// anywhere.
    pub(super) fn required_approval(&self) -> Option<String> {
        let from = self.from.filter(|from| *from != self.to)?;
        let (branch, session) = (&self.record.context.branch, &self.record.session);
        let range = format!("{}..{}", from.short(), self.to.short());
        Some(format!("move '{branch}' forward, to the records of session '{session}' (see: git log {range})"))
    }

    /// Moves the branch. A checkout is updated only if it was created for a session; one of the user is left alone.
    pub(super) fn go(&self, ui: &mut Ui) -> Result<(), Failure> {
        let (repository, branch) = (self.repository, &self.record.context.branch);
        match self.from {
            Some(from) if from == self.to => return Ok(()),
            Some(from) => {
                let _lock = lock(repository, branch)?;
                match repository.fast_forward_branch(branch, from, self.to, SESSION_REASON)? {
                    FastForward::Done => {}
                    FastForward::Refused(why) => return Err(self.cannot(&why)),
                    FastForward::BranchChanged => return Err(self.cannot("another process is moving it")),
                }
            }
            None => {
                let name = branch.to_ref();
                let made = RefMove { name: &name, new: Some(self.to), old: None };
                repository.move_refs(&[made], "arborist: resume")?;
            }
        }
        let to = self.to.short();
        ui.note(&match self.from {
            Some(_) => format!("moved '{branch}' to {to}, as in the session's records"),
            None => format!("created '{branch}' again at {to}, as in the session's records"),
        });
        Ok(())
    }

    /// The error if the checkout is the user's, or uncommitted files are in the way.
    fn cannot(&self, why: &str) -> Failure {
        let (session, branch) = (&self.record.session, &self.record.context.branch);
        let words = format!(
            "'{branch}' is behind the records of session '{session}', and could not be updated: {why}"
        );
        let place = self.repository.checkouts_of(branch).ok().and_then(|mut places| places.pop());
        let at = place.map(|place| format!(" -C '{}'", place.display())).unwrap_or_default();
        Failure::new(Exit::Person, words)
            .hint(format!("inspect it, then update it with: git{at} merge --ff-only {}", self.to))
    }
}
