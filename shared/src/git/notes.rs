//! Lists refs together with the messages of their commits, in one call, and reads and writes git notes.

use std::collections::HashSet;

use super::{GitError, RawCommit, Ref, Repository, command::checked};
use crate::{
    name::{ObjectKind, Oid},
    process::RunningProgram,
};

/// A running list of refs and messages.
#[derive(Debug)]
pub struct NoteReader(Listing);

#[derive(Debug)]
enum Listing {
    /// They were read in this process.
    Read(Vec<(Ref, String)>),
    /// git is listing them.
    Running(RunningProgram),
}

impl NoteReader {
    /// Waits for the list: each ref with the body of its commit's message.
    pub fn finish(self) -> Result<Vec<(Ref, String)>, GitError> {
        let running = match self.0 {
            Listing::Read(notes) => return Ok(notes),
            Listing::Running(running) => running,
        };
        let printed = checked("for-each-ref", running.finish()?)?;
        let text = String::from_utf8_lossy(&printed);
        let mut fields = text.split('\0');
        let mut notes = Vec::new();
        while let (Some(target), Some(name), Some(body)) = (fields.next(), fields.next(), fields.next()) {
            let target = target.trim_start_matches('\n');
            let target = target.parse().map_err(|_| GitError::UnexpectedOutput {
                command: "for-each-ref".into(),
                what: target.to_owned(),
            })?;
            notes.push((Ref { name: name.to_owned(), target }, body.to_owned()));
        }
        Ok(notes)
    }
}

impl Repository {
    /// The commits that have a note under `refs/notes/{name}`.
    pub fn list_noted(&self, name: &str) -> Result<HashSet<Oid>, GitError> {
        let printed = self.git("notes").args(["--ref", name, "list"]).stdout()?;
        let text = String::from_utf8_lossy(&printed);
        Ok(text.lines().filter_map(|line| line.split_once(' ')?.1.parse().ok()).collect())
    }

    /// Attaches a note to a commit that has none under `refs/notes/{name}`.
    pub fn attach_note(&self, name: &str, commit: Oid, text: &str) -> Result<(), GitError> {
        let command = self.change("notes").args(["--ref", name, "add", "-F", "-", &commit.to_string()]);
        checked("notes", command.finish_with(text.as_bytes())?).map(drop)
    }

    /// Starts to list the refs below each of `prefixes`, with the bodies of their commits' messages.
    pub fn start_listing_notes(&self, prefixes: &[&str]) -> Result<NoteReader, GitError> {
        if let Some(notes) = self.read_notes(prefixes)? {
            return Ok(NoteReader(Listing::Read(notes)));
        }
        let format = "--format=%(objectname)%00%(refname)%00%(contents:body)%00";
        let (_, running) = self.git("for-each-ref").arg(format).args(prefixes).start()?;
        Ok(NoteReader(Listing::Running(running)))
    }

    /// The same list, read in this process; `None` if only git can tell.
    fn read_notes(&self, prefixes: &[&str]) -> Result<Option<Vec<(Ref, String)>>, GitError> {
        let Some(refs) = self.read_refs(prefixes).filter(|_| self.reads_objects_in_process()) else {
            return Ok(None);
        };
        let mut notes = Vec::new();
        for found in refs {
            let Some(content) = self.read_object(ObjectKind::Commit, found.target)? else {
                return Ok(None);
            };
            let body = body_of(RawCommit::new(found.target, content).message());
            notes.push((found, body));
        }
        Ok(Some(notes))
    }
}

/// The body of a message: everything after the first empty line.
fn body_of(message: &[u8]) -> String {
    let text = String::from_utf8_lossy(message);
    let text = text.trim_start_matches('\n');
    text.split_once("\n\n").map_or_else(String::new, |(_, body)| body.trim_start_matches('\n').to_owned())
}
