//! Notes: commits without files, each at a ref, whose message is a subject for people and JSON. Sessions, the merge queue and claims
//! keep what they know in them. They are listed in one call. Reads and writes git's own notes, too.

use std::{collections::HashSet, sync::Mutex};

use serde::Serialize;

use crate::{
    git::{
        GitError, RawCommit, Ref, Repository, Signing, command::checked, copy_aside,
        refs::ref_files::RefValue, report_moved,
    },
    mutex::MutexExt,
    name::{ObjectKind, Oid},
    process::RunningProgram,
    safe_files,
};

/// Refs that this process left out because their files, objects or messages are broken, with the reason. A disk that
/// was full or a machine that lost power leaves such refs, and one of them must not stop every command.
static SKIPPED: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

/// Remembers a ref that is left out. Each is reported once.
pub fn skip_ref(name: &str, why: &str) {
    let mut skipped = SKIPPED.hold();
    if skipped.iter().all(|(known, _)| known != name) {
        skipped.push((name.to_owned(), why.to_owned()));
    }
}

/// Whether a ref was left out.
#[must_use]
pub fn has_skipped_refs() -> bool {
    !SKIPPED.hold().is_empty()
}

/// The refs below a prefix that were left out so far, each with the reason.
#[must_use]
pub fn list_skipped_refs(prefix: &str) -> Vec<(String, String)> {
    let skipped = SKIPPED.hold();
    skipped.iter().filter(|(name, _)| name.starts_with(prefix)).cloned().collect()
}

/// The refs that were left out, each with the reason.
#[must_use]
pub fn take_skipped_refs() -> Vec<(String, String)> {
    std::mem::take(&mut SKIPPED.hold())
}

/// A running list of refs and messages.
#[derive(Debug)]
pub struct NoteReader(Listing);

#[derive(Debug)]
enum Listing {
    /// They were read in this process.
    Read(Vec<(Ref, String)>),
    /// git is listing them. If it fails, each is read by itself.
    Running(Box<RunningProgram>, Box<Repository>, Vec<String>),
}

impl NoteReader {
    /// Waits for the list: each ref with the body of its commit's message.
    pub fn finish(self) -> Result<Vec<(Ref, String)>, GitError> {
        let running = match self.0 {
            Listing::Read(notes) => return Ok(notes),
            Listing::Running(running, repository, prefixes) => (running, repository, prefixes),
        };
        let (running, repository, prefixes) = running;
        let Ok(printed) = checked("for-each-ref", running.finish()?) else {
            return repository.read_notes_one_by_one(&prefixes);
        };
        let text = String::from_utf8_lossy(&printed);
        let mut fields = text.split('\0');
        let mut notes = Vec::new();
        while let (Some(target), Some(name), Some(body)) = (fields.next(), fields.next(), fields.next()) {
            let target = target.trim_start_matches('\n');
            let target = target.parse().map_err(|_| GitError::unexpected("for-each-ref", target))?;
            notes.push((Ref { name: name.to_owned(), target }, body.to_owned()));
        }
        Ok(notes)
    }
}

impl Repository {
    /// The commits that have a note under `refs/notes/{name}`.
    pub fn list_noted(&self, name: &str) -> Result<HashSet<Oid>, GitError> {
        let text = self.git("notes").args(["--ref", name, "list"]).text()?;
        Ok(text.lines().filter_map(|line| line.split_once(' ')?.1.parse().ok()).collect())
    }

    /// Attaches a note to a commit that has none under `refs/notes/{name}`.
    pub fn attach_note(&self, name: &str, commit: Oid, text: &str) -> Result<(), GitError> {
        let command = self.change("notes").args(["--ref", name, "add", "-F", "-", &commit.to_string()]);
        command.stdout_with(text.as_bytes()).map(drop)
    }

    /// Writes the commit of a note, with a line of JSON for each value. The caller moves the ref, by compare-and-swap and in one
    /// transaction with the other refs that belong to the change.
    pub fn write_json_commit<T: Serialize>(
        &self,
        subject: &str,
        values: &[T],
        parents: &[Oid],
        signing: Signing,
    ) -> Result<Oid, GitError> {
        let lines: Result<Vec<String>, serde_json::Error> =
            values.iter().map(serde_json::to_string).collect();
        let lines = lines.map_err(|error| GitError::unexpected("commit-tree", error.to_string()))?;
        let message = format!("{subject}\n\n{}\n", lines.join("\n"));
        self.write_commit_with_parents(self.empty_tree()?, parents, &message, signing)
    }

    /// The note at a ref: the ref with the body of its commit's message.
    pub fn find_note(&self, name: &str) -> Result<Option<(Ref, String)>, GitError> {
        let notes = self.start_listing_notes(&[name])?.finish()?;
        Ok(notes.into_iter().find(|(found, _)| found.name == name))
    }

    /// Starts to list the refs below each of `prefixes`, with the bodies of their commits' messages.
    pub fn start_listing_notes(&self, prefixes: &[&str]) -> Result<NoteReader, GitError> {
        if let Some(notes) = self.read_notes(prefixes)? {
            return Ok(NoteReader(Listing::Read(notes)));
        }
        self.skip_broken_files(prefixes);
        let format = "--format=%(objectname)%00%(refname)%00%(contents:body)%00";
        let (_, running) = self.git("for-each-ref").arg(format).args(prefixes).start()?;
        let prefixes = prefixes.iter().map(|prefix| (*prefix).to_owned()).collect();
        Ok(NoteReader(Listing::Running(Box::new(running), Box::new(self.clone()), prefixes)))
    }

    /// Lists the refs below `prefixes` with their messages, without those whose objects cannot be read. git fails for all refs
    /// if it cannot read one of them.
    fn read_notes_one_by_one(&self, prefixes: &[String]) -> Result<Vec<(Ref, String)>, GitError> {
        let prefixes: Vec<&str> = prefixes.iter().map(String::as_str).collect();
        let mut notes = Vec::new();
        for found in self.list_refs(&prefixes)? {
            match self.read_object(ObjectKind::Commit, found.target) {
                Ok(Some(content)) => {
                    let body = body_of(RawCommit::new(found.target, content).message());
                    notes.push((found, body));
                }
                Ok(None) => {
                    skip_ref(
                        &found.name,
                        &format!("the object {} is missing or is not a commit", found.target),
                    );
                }
                Err(error) => {
                    skip_ref(&found.name, &format!("the object {} cannot be read: {error}", found.target));
                }
            }
        }
        Ok(notes)
    }

    /// All refs but those that cannot be read, which are remembered.
    pub(in crate::git) fn list_readable_refs(&self) -> Result<Vec<Ref>, GitError> {
        self.skip_broken_files(&["refs"]);
        let mut refs = self.list_refs(&["refs/"])?;
        refs.retain(|found| match self.find_object(found.target, "object") {
            Ok(Some(_)) => true,
            Ok(None) => {
                skip_ref(&found.name, &format!("the object {} is missing", found.target));
                false
            }
            Err(error) => {
                skip_ref(&found.name, &format!("the object {} cannot be read: {error}", found.target));
                false
            }
        });
        Ok(refs)
    }

    /// Remembers the refs whose files hold neither an id nor the name of another ref. git leaves them out.
    pub(in crate::git) fn skip_broken_files(&self, prefixes: &[&str]) {
        if !self.has_files_backend {
            return;
        }
        for (name, _) in prefixes.iter().flat_map(|prefix| self.find_broken_files(prefix)) {
            skip_ref(&name, "its file does not hold the id of a commit");
        }
    }

    /// The loose refs at or below a name whose files are damaged.
    fn find_broken_files(&self, prefix: &str) -> Vec<(String, RefValue)> {
        let loose = self.read_loose(prefix.trim_end_matches('/'));
        let is_broken = |(name, value): &(String, RefValue)| match value {
            RefValue::Id(id) => id.is_zero(),
            RefValue::Other => self.is_broken_file(name),
        };
        loose.into_iter().filter(is_broken).collect()
    }

    /// Whether the file of a ref that holds no id is damaged, and not that of a symbolic ref.
    pub(in crate::git) fn is_broken_file(&self, name: &str) -> bool {
        let content = safe_files::read(&self.common_dir.join(name));
        content.is_ok_and(|content| !content.starts_with(b"ref:"))
    }

    /// Removes a ref whose file is damaged, so that it can be written again. A copy of the file is kept, and named at the
    /// end of the command. Returns whether there was one.
    pub fn remove_broken_ref(&self, name: &str) -> Result<bool, GitError> {
        if !self.has_files_backend || self.find_broken_files(name).is_empty() {
            return Ok(false);
        }
        let file = self.common_dir.join(name);
        if let Ok(copy) = copy_aside(&self.common_dir, &file) {
            report_moved(&file, &copy);
        }
        self.remove_invalid_ref(name).map(|()| true)
    }

    /// Lists the refs below `prefixes` with their messages in this process; `None` if only git can tell.
    fn read_notes(&self, prefixes: &[&str]) -> Result<Option<Vec<(Ref, String)>>, GitError> {
        let Some(refs) = self.read_refs(prefixes).filter(|_| self.reads_objects_in_process()) else {
            return Ok(None);
        };
        let mut notes = Vec::new();
        for found in refs {
            let Ok(Some(content)) = self.read_object(ObjectKind::Commit, found.target) else {
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
