//! `hooks run pre-push` and `hooks run update`: what is pushed must be sound, and nothing that was recorded
//! may be lost by it.

mod fate;
mod objection;
mod ref_update;
mod unsound;

use std::io::Read;

use arborist_core::{
    failure::{Exit, Failure},
    git::{GitError, Repository},
};

pub(super) use self::ref_update::{Holding, RefUpdate};
use self::{
    fate::Fate,
    objection::{Objection, refusal},
};
use crate::{entry::Outcome, ui::Ui};

/// Who holds the refs that a push changes.
enum Receiver {
    /// A remote, known by what was last fetched from it.
    Remote(String),
    /// This repository.
    Here,
}

impl Receiver {
    /// Revisions that the receiver keeps whatever becomes of `changed`: arguments of `rev-list`, to stand
    /// behind `--not`. `HEAD` is left out, since it only repeats another ref.
    fn kept(&self, changed: &[RefUpdate]) -> Vec<String> {
        let root = self.root();
        let mut kept = vec![format!("--exclude={root}/HEAD")];
        kept.extend(changed.iter().map(|update| format!("--exclude={}", self.name_here(update))));
        kept.push(format!("--glob={root}/*"));
        kept.extend(changed.iter().filter_map(|update| update.new).map(|new| new.to_string()));
        kept
    }

    /// Revisions that the receiver has: arguments of `rev-list`, to stand behind `--not`.
    fn known(&self) -> Vec<String> {
        vec![format!("--glob={}/*", self.root())]
    }

    fn root(&self) -> String {
        match self {
            Self::Remote(name) => format!("refs/remotes/{}", name.replace(['*', '?', '['], "")),
            Self::Here => "refs".into(),
        }
    }

    fn name_here(&self, update: &RefUpdate) -> String {
        match (self, update.name.strip_prefix("refs/heads/")) {
            (Self::Remote(_), Some(branch)) => format!("{}/{branch}", self.root()),
            _ => update.name.clone(),
        }
    }
}

/// The lines that git gives to `pre-push`, on standard input.
pub(super) fn pre_push(remote: &str, ui: &mut Ui) -> Outcome {
    let mut input = Vec::new();
    let read = std::io::stdin().read_to_end(&mut input);
    read.map_err(|error| Failure::new(Exit::Fatal, format!("could not read standard input: {error}")))?;
    let updates = ref_update::parse_lines(&String::from_utf8_lossy(&input))?;
    if updates.is_empty() {
        return super::probe::answer_empty();
    }
    check(&Receiver::Remote(remote.to_owned()), &updates, ui)
}

/// One ref, as git tells it to `update`.
pub(super) fn update(update: RefUpdate, ui: &mut Ui) -> Outcome {
    check(&Receiver::Here, &[update], ui)
}

fn check(receiver: &Receiver, updates: &[RefUpdate], ui: &mut Ui) -> Outcome {
    let repository = Repository::discover()?;
    let mut objections = Vec::new();
    for update in updates.iter().filter(|update| update.is_guarded()) {
        let fate = Fate::of(update, &receiver.kept(updates), &repository)?;
        if fate == Fate::Unknown && !update.is_ours() {
            let name = &update.name;
            ui.warn(&format!("what '{name}' holds is not here, so it was not checked whether it is lost"));
        }
        objections.extend(fate.objection(update));
    }
    objections.extend(unsound_commits(receiver, updates, &repository)?);
    match refusal(&objections) {
        Some(failure) => Err(failure),
        None => Ok(Exit::Done),
    }
}

fn unsound_commits(
    receiver: &Receiver,
    updates: &[RefUpdate],
    repository: &Repository,
) -> Result<Vec<Objection>, GitError> {
    let mut revisions: Vec<String> =
        updates.iter().filter_map(|update| update.new).map(|id| id.to_string()).collect();
    if revisions.is_empty() {
        return Ok(Vec::new());
    }
    revisions.push("--not".into());
    revisions.extend(receiver.known());
    for old in updates.iter().filter_map(|update| update.old) {
        revisions.extend(repository.find_commit(&old.to_string())?.map(|id| id.to_string()));
    }
    unsound::scan(&revisions, repository)
}
