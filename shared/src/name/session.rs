//! Session ids: short, and valid as the last part of a ref.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{NameError, task::fault};

const KIND: &str = "session id";

/// The id of a run's session, as in `Arborist-Session`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

impl SessionId {
    /// The id as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `name` is a valid id. The alphabet is that of task ids; only the type differs.
    #[must_use]
    pub fn is_valid(name: &str) -> bool {
        fault(name).is_none()
    }
}

impl FromStr for SessionId {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        match fault(name) {
            Some(why) => Err(NameError::new(name, KIND, why)),
            None => Ok(Self(name.to_owned())),
        }
    }
}

impl TryFrom<String> for SessionId {
    type Error = NameError;

    fn try_from(name: String) -> Result<Self, NameError> {
        name.parse()
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
