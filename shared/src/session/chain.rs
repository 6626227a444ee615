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
    parse(name, commit.id, body_of(commit.message()))
}

fn body_of(message: &[u8]) -> &[u8] {
    memchr::memmem::find(message, b"\n\n").map_or(&message[..0], |at| &message[at + 2..])
}

/// Whether a commit with this message belongs to the record of a session or to its transcript.
#[must_use]
pub fn is_record(message: &[u8]) -> bool {
    let body = body_of(message).trim_ascii();
    let is_named = message.starts_with(b"session ") || message.starts_with(b"transcript of ");
    is_named && body.starts_with(b"{") && body.ends_with(b"}")
}

/// Parses the text below the subject of the commit `id`.
pub(super) fn parse<T: DeserializeOwned>(name: &str, commit: Oid, body: &[u8]) -> Result<T, SessionError> {
    let unreadable = |why: String| SessionError::Unreadable { name: name.to_owned(), commit, why };
    if body.len() > LONGEST {
        return Err(unreadable("it is too long".into()));
    }
    serde_json::from_slice(body).map_err(|error| unreadable(error.to_string()))
}
