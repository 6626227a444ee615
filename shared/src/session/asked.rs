//! The options of a session's run, by their names, as records hold them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{RecordKind, Resumed, SessionError, SessionReader, StoredRecord};
use crate::agent::redact::{Redactor, Secrets};

/// Options that are replaced together with the runner, because another program has other models.
pub const OF_RUNNER: [&str; 3] = ["model", "implement-runner", "implement-model"];

/// The options of a run. Records are pushed, so options with secrets are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Asked {
    /// The values, by name.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// The names of options that contain a secret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
}

impl Asked {
    /// Separates options that may be recorded from those that hold a secret.
    #[must_use]
    pub fn without_secrets(given: BTreeMap<String, String>, secrets: &Secrets) -> Self {
        let (options, withheld): (BTreeMap<_, _>, BTreeMap<_, _>) =
            given.into_iter().partition(|(_, value)| Redactor::redact(secrets, value) == *value);
        Self { options, withheld: withheld.into_keys().collect() }
    }
}

impl SessionReader<'_> {
    /// The options that the session of `newest` was last given.
    pub fn asked_of(&self, newest: &StoredRecord) -> Result<Asked, SessionError> {
        let record = match (&newest.record.kind, newest.record.context.asked) {
            (RecordKind::Resume(Resumed { asked: Some(_), .. }), _) => newest.clone(),
            (_, Some(commit)) => self.load(commit, &newest.record.session)?,
            (_, None) => self.start_of(newest)?,
        };
        Ok(match record.record.kind {
            RecordKind::Start(start) => Asked { options: start.options, withheld: start.withheld },
            RecordKind::Resume(resumed) => resumed.asked.unwrap_or_default(),
            _ => Asked::default(),
        })
    }
}
