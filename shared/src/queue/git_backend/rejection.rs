//! Why a resolution, or a parked landing, does not land.

use crate::queue::QueueError;

/// Why something is not accepted: for a reason that people read, or because an error ended the check.
pub(super) enum Rejection {
    /// For this reason.
    Because(String),
    /// It could not be checked.
    Error(QueueError),
}

impl<E: Into<QueueError>> From<E> for Rejection {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

/// A rejection for a reason.
pub(super) fn reject<T>(why: impl Into<String>) -> Result<T, Rejection> {
    Err(Rejection::Because(why.into()))
}

impl Rejection {
    /// Returns the reason; an error stays one.
    pub(super) fn reason(self) -> Result<String, QueueError> {
        match self {
            Self::Because(why) => Ok(why),
            Self::Error(error) => Err(error),
        }
    }
}
