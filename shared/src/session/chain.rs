//! Writes and reads commits whose messages are a subject and JSON.

use serde::{Serialize, de::DeserializeOwned};

use super::{SessionError, record::LONGEST};
use crate::{
    git::{GitError, RawCommit},
    name::Oid,
};

/// The message of a commit: a subject for people, and JSON.
pub(super) fn message(subject: &str, value: &impl Serialize) -> Result<String, SessionError> {
    let strange = |error: serde_json::Error| GitError::UnexpectedOutput {
        command: "commit-tree".into(),
        what: error.to_string(),
    };
    let json = serde_json::to_string(value).map_err(strange)?;
    Ok(format!("{subject}\n\n{json}\n"))
}

/// Parses a commit of the chain `name`.
pub(super) fn read<T: DeserializeOwned>(name: &str, commit: &RawCommit) -> Result<T, SessionError> {
    let message = commit.message();
    let body = memchr::memmem::find(message, b"\n\n").map_or(&message[..0], |at| &message[at + 2..]);
    parse(name, commit.id, body)
}

/// Parses the text below the subject of the commit `id`.
pub(super) fn parse<T: DeserializeOwned>(name: &str, commit: Oid, body: &[u8]) -> Result<T, SessionError> {
    let unreadable = |why: String| SessionError::Unreadable { name: name.to_owned(), commit, why };
    if body.len() > LONGEST {
        return Err(unreadable("it is too long".into()));
    }
    serde_json::from_slice(body).map_err(|error| unreadable(error.to_string()))
}
