//! Asks the user to approve commands that come from files of a repository. Nothing is approved that was not shown.

use std::collections::BTreeSet;

use arborist_core::{
    consent::{self, Consent, ConsentError, ConsentOrigin},
    git::Repository,
};

use crate::ui::Ui;

/// The consent given by `--yes`, or else by the environment.
#[must_use]
pub(crate) fn consent(yes: bool) -> Consent {
    if yes { Consent::Given } else { default_consent() }
}

/// The consent that the environment gives for commands that are not approved yet.
#[must_use]
pub fn default_consent() -> Consent {
    let is_trusted = std::env::var_os("ARBORIST_TRUST").is_some_and(|value| value == "1");
    if is_trusted { Consent::Trusted } else { Consent::None }
}

/// Refuses commands that the user has not approved in this repository. Those that `--yes` approves are shown first,
/// even with `--quiet`.
pub(crate) fn require(
    repository: &Repository,
    commands: &BTreeSet<String>,
    consent: Consent,
    ui: &mut Ui,
) -> Result<(), ConsentError> {
    let unseen = consent::unseen(&repository.common_dir, commands);
    if consent == Consent::Given && !unseen.is_empty() {
        let lines = consent::shown(&unseen);
        let origin = ConsentOrigin::of(&unseen);
        ui.note(&format!("--yes approves these {} from {}:\n{lines}", origin.what(), origin.place()));
        if consent::was_approved_before(&unseen) {
            ui.note(consent::OLD_APPROVALS);
        }
    }
    consent::require(&repository.common_dir, commands, consent)
}
