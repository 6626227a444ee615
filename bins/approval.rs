//! The user's word on what files of a repository want to be run. Nothing is approved that was not shown.

use std::collections::BTreeSet;

use arborist_core::{
    consent::{self, Consent, ConsentError},
    git::Repository,
};

use crate::ui::Ui;

/// What `--yes` says, or the environment without it.
#[must_use]
pub(crate) fn consent(yes: bool) -> Consent {
    if yes { Consent::Given } else { unasked_consent() }
}

/// What the environment says to commands that are not approved yet.
#[must_use]
pub fn unasked_consent() -> Consent {
    let is_trusted = std::env::var_os("ARBORIST_TRUST").is_some_and(|value| value == "1");
    if is_trusted { Consent::Trusted } else { Consent::None }
}

/// Refuses commands that the user has not seen in this repository. Those that `--yes` approves are shown first, whatever else is kept quiet.
pub(crate) fn require(
    repository: &Repository,
    commands: &BTreeSet<String>,
    consent: Consent,
    ui: &mut Ui,
) -> Result<(), ConsentError> {
    let unseen = consent::unseen(&repository.common_dir, commands);
    if consent == Consent::Given && !unseen.is_empty() {
        let lines = consent::shown(&unseen);
        ui.note(&format!("these come from files of the repository, and --yes approves them:\n{lines}"));
    }
    consent::require(&repository.common_dir, commands, consent)
}
