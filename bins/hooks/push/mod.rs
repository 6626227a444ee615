//! `hooks run pre-push`, `pre-receive` and `update`: what is pushed must be well-formed, and no recorded state may be lost.

mod effect;
mod objection;
mod receiver;

pub(super) use self::receiver::{PushedValue, RefUpdate};

use std::{collections::HashMap, io::Read};

use anyhow::Context;
use arborist_core::{
    failure::{Exit, Failure},
    git::{GitError, RawCommit, Ref, Repository},
    name::Oid,
};

use self::{
    effect::{Lost, PushEffect},
    objection::{Objection, refusal},
    receiver::{Receiver, distinct},
};
use crate::{entry::Outcome, ui::Ui};

/// How many commits are loaded at once.
const BATCH: usize = 1024;

/// Handles the lines that git gives to `pre-push` on standard input.
pub(super) fn pre_push(remote: &str, ui: &mut Ui) -> Outcome {
    check_lines(&Receiver::Remote(remote.to_owned()), receiver::parse_sent, ui)
}

/// Handles the lines that git gives to `pre-receive` on standard input: all refs of a push together, so that none can
/// be dropped with the ref that seemed to keep its commits.
pub(super) fn pre_receive(ui: &mut Ui) -> Outcome {
    check_lines(&Receiver::Here, receiver::parse_received, ui)
}

fn check_lines(
    receiver: &Receiver,
    parse: impl Fn(&str) -> Result<Vec<RefUpdate>, Failure>,
    ui: &mut Ui,
) -> Outcome {
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input).context("could not read standard input")?;
    let updates = parse(&String::from_utf8_lossy(&input))?;
    if updates.is_empty() {
        return super::probe::answer_empty();
    }
    check(receiver, &updates, ui)
}

/// Handles one ref, as git passes it to `update`.
pub(super) fn update(update: RefUpdate, ui: &mut Ui) -> Outcome {
    check(&Receiver::Here, &[update], ui)
}

fn check(receiver: &Receiver, updates: &[RefUpdate], ui: &mut Ui) -> Outcome {
    let repository = Repository::discover()?;
    let push = Push::load(receiver, updates, &repository)?;
    let arriving = objection::scan(&push)?;
    let lost = Lost::scan(&push)?;
    let mut objections = Vec::new();
    for update in updates.iter().filter(|update| update.is_guarded()) {
        let effect = PushEffect::of(update, &push, &lost, &arriving.slice)?;
        if effect == PushEffect::Unknown && !update.is_ours() {
            let name = &update.name;
            ui.warn(&format!("the commits of '{name}' are not in this clone, so this could not be checked"));
        }
        objections.extend(effect.objection(update));
    }
    objections.extend(arriving.objections);
    match refusal(&objections, receiver) {
        Some(failure) => Err(failure),
        None => Ok(Exit::Done),
    }
}

/// A push, and the answers of git about all of its refs.
struct Push<'a> {
    receiver: &'a Receiver,
    updates: &'a [RefUpdate],
    repository: &'a Repository,
    refs: Vec<Ref>,
    commits: HashMap<Oid, Oid>,
}

impl<'a> Push<'a> {
    fn load(
        receiver: &'a Receiver,
        updates: &'a [RefUpdate],
        repository: &'a Repository,
    ) -> Result<Self, GitError> {
        let ids = distinct(updates.iter().flat_map(|update| [update.old, update.new]).flatten());
        let found = repository.find_commits(&ids)?;
        let commits = ids.into_iter().zip(found).filter_map(|(id, commit)| Some((id, commit?))).collect();
        let refs = receiver.load_refs(repository)?;
        Ok(Self { receiver, updates, repository, refs, commits })
    }

    /// The commit that an object is or points to, if it is in this repository.
    fn commit(&self, id: Oid) -> Option<Oid> {
        self.commits.get(&id).copied()
    }

    /// The previous commits of refs, if they are in this repository.
    fn old_commits(&self, which: impl Fn(&RefUpdate) -> bool) -> Vec<Oid> {
        let updates = self.updates.iter().filter(|update| which(update));
        distinct(updates.filter_map(|update| self.commit(update.old?)))
    }

    /// The commits that the receiver has.
    fn known(&self) -> Vec<Oid> {
        let old = self.old_commits(|_| true);
        distinct(self.refs.iter().map(|found| found.target).chain(old))
    }

    /// Visits the commits that are reachable from `tips` and not from `others`, byte for byte, newest first.
    fn each_between(
        &self,
        tips: &[Oid],
        others: &[Oid],
        mut see: impl FnMut(&RawCommit),
    ) -> Result<(), GitError> {
        for batch in self.repository.list_between(tips, others)?.chunks(BATCH) {
            self.repository.load_commits(batch)?.iter().for_each(&mut see);
        }
        Ok(())
    }
}
