//! The state that follows from the branch of a ticket, its task and its run. A drain and every command that shows tickets
//! collect these facts in their own ways, and judge them by the same rules.

use super::{
    OtherBranches, QueueError, Target, Ticket, TicketState,
    reasons::{HoldReason, WithheldReason},
};
use crate::{git::Repository, history::Run};

/// What is known about a ticket whose work has not landed.
pub(super) struct TicketFacts {
    /// The state in which only a person can help, if it is in one.
    pub(super) trouble: Option<TicketState>,
    /// Why it must not land.
    pub(super) withheld: Option<WithheldReason>,
    /// Whether it failed a gate when it was landed by force. The user has to know that, and not that it is incomplete.
    pub(super) has_failed_by_force: bool,
    /// Whether it is to be tried again: its branch has grown, or what it failed is allowed now.
    pub(super) is_tried_again: bool,
}

/// The state of a ticket that was in `state`.
pub(super) fn judge(state: &TicketState, facts: TicketFacts) -> TicketState {
    if let Some(trouble) = facts.trouble {
        return trouble;
    }
    match (facts.withheld, state) {
        (Some(WithheldReason::Incomplete { .. }), state) if facts.has_failed_by_force => state.clone(),
        (Some(why), _) => TicketState::Withheld { why },
        (None, _) if facts.is_tried_again => TicketState::Waiting,
        (None, TicketState::Conflict { .. } | TicketState::Red { .. }) => state.clone(),
        (
            None,
            TicketState::Waiting
            | TicketState::Parked { .. }
            | TicketState::Withheld { .. }
            | TicketState::Lost
            | TicketState::LostElsewhere { .. }
            | TicketState::Reverted(_),
        ) => TicketState::Waiting,
    }
}

impl Ticket {
    /// Updates its state to what can be known without landing anything: whether only a person can help, or whether it
    /// must not land. `state`, `merge` and the summary of a run all use this, so that they agree.
    pub fn update_state(
        &mut self,
        repository: &Repository,
        run: &Run,
        elsewhere: Option<&OtherBranches>,
    ) -> Result<(), QueueError> {
        if let TicketState::Parked { commit } = self.state {
            let position = Target::new(repository, &self.into).find()?;
            let is_there = |tip| repository.is_ancestor(commit, tip);
            if position.map(|position| is_there(position.tip())).transpose()? != Some(false) {
                return Ok(());
            }
            self.held = Some(HoldReason::TargetMoved { into: self.into.clone() });
        }
        let facts = self.find_facts(repository, run, elsewhere)?;
        self.state = judge(&self.state, facts);
        Ok(())
    }

    fn find_facts(
        &self,
        repository: &Repository,
        run: &Run,
        elsewhere: Option<&OtherBranches>,
    ) -> Result<TicketFacts, QueueError> {
        let tip = repository.find_branch(&self.branch())?;
        let trouble = match (self.find_trouble(repository, run, tip)?, elsewhere) {
            (None, Some(elsewhere)) => elsewhere.find_lost(repository, self)?,
            (trouble, _) => trouble,
        };
        let withheld = match (&trouble, &self.state) {
            (Some(_), _) => None,
            (None, TicketState::Withheld { why }) if !why.is_seen_without_landing() => {
                Some(self.find_withheld(repository, run, tip)?.unwrap_or_else(|| why.clone()))
            }
            (None, _) => self.find_withheld(repository, run, tip)?,
        };
        let has_failed_by_force = self.has_failed_by_force(run, tip);
        Ok(TicketFacts { trouble, withheld, has_failed_by_force, is_tried_again: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> TicketFacts {
        TicketFacts { trouble: None, withheld: None, has_failed_by_force: false, is_tried_again: false }
    }

    fn red() -> TicketState {
        TicketState::Red {
            gate: "check".into(),
            commit: "1111111111111111111111111111111111111111".parse().unwrap(),
            log: String::new(),
            tail: String::new(),
            with: Vec::new(),
            ran_fewer: false,
            denied: None,
        }
    }

    #[test]
    fn a_ticket_is_judged_by_its_worst_fact() {
        let incomplete = WithheldReason::Incomplete { state: "pending".into(), forced: None };
        let withheld = TicketState::Withheld { why: incomplete.clone() };
        let lost = TicketFacts { trouble: Some(TicketState::Lost), is_tried_again: true, ..facts() };
        assert_eq!(judge(&red(), lost), TicketState::Lost);
        let known = |has_failed_by_force| TicketFacts {
            withheld: Some(incomplete.clone()),
            is_tried_again: true,
            has_failed_by_force,
            ..facts()
        };
        assert_eq!(judge(&red(), known(false)), withheld);
        assert_eq!(judge(&red(), known(true)), red());
        let rewritten = TicketFacts { withheld: Some(WithheldReason::Rewritten), ..known(true) };
        assert_eq!(judge(&red(), rewritten), TicketState::Withheld { why: WithheldReason::Rewritten });
    }

    #[test]
    fn a_ticket_waits_again_once_its_obstacle_is_gone() {
        assert_eq!(judge(&TicketState::Lost, facts()), TicketState::Waiting);
        let withheld = TicketState::Withheld { why: WithheldReason::Rewritten };
        assert_eq!(judge(&withheld, facts()), TicketState::Waiting);
        assert_eq!(judge(&red(), facts()), red());
        assert_eq!(judge(&red(), TicketFacts { is_tried_again: true, ..facts() }), TicketState::Waiting);
    }
}
