//! Trees: what differs between two of them, and one that differs from another.

use std::{collections::BTreeMap, io::BufRead, path::Path};

use super::{Change, GitError, Repository, kept::Duty, snapshot::parse_changes};
use crate::{
    name::{ObjectKind, Oid},
    process::Running,
};

/// A folder's mode.
const FOLDER: &[u8] = b"40000";
/// Follows a question, to be given back by git as it is: the answer ends there.
const END: &[u8] = b"the end\n";

/// What stands in a tree.
struct Entry {
    mode: Vec<u8>,
    name: Vec<u8>,
    id: Oid,
}

impl Entry {
    /// Old trees have a zero before it.
    fn is_folder(&self) -> bool {
        self.mode.strip_prefix(b"0").unwrap_or(&self.mode) == FOLDER
    }

    /// Folders are ordered as if their names ended in a slash.
    fn key(&self) -> Vec<u8> {
        let end: &[u8] = if self.is_folder() { b"/" } else { b"" };
        [&self.name, end].concat()
    }
}

/// What changes at a name in a tree.
#[derive(Default)]
struct Edit<'a> {
    /// Mode and content of the file with that name, or that there is none.
    file: Option<Option<(u32, Oid)>>,
    /// What changes below it.
    below: Vec<Step<'a>>,
}

/// The rest of a path, and what is there afterwards.
type Step<'a> = (&'a [u8], Option<(u32, Oid)>);

impl Repository {
    /// The paths that differ between two trees.
    pub fn changes(&self, before: Oid, after: Oid) -> Result<Vec<Change>, GitError> {
        const OPTIONS: [&str; 5] = ["-r", "-z", "--raw", "--no-renames", "--no-abbrev"];
        let command = || self.git("diff-tree").args(OPTIONS);
        let question = format!("{before} {after}\n");
        let start = || self.converse(command().arg("--stdin"));
        let told = self.clerk(Duty::Compare).ask(start, |running| compared(running, question.as_bytes()))?;
        match told {
            Ok(printed) => parse_changes(&printed),
            Err(_) => parse_changes(&command().args([before.to_string(), after.to_string()]).stdout()?),
        }
    }

    /// Whether a tree has a file or a folder at this path.
    pub fn has_path(&self, tree: Oid, path: &Path) -> Result<bool, GitError> {
        let command = self.git("ls-tree").env("GIT_LITERAL_PATHSPECS", "1").args(["-z", "--full-tree"]);
        Ok(!command.arg(tree.to_string()).arg("--").arg(path).stdout()?.is_empty())
    }

    /// The tree `base` with these changes.
    pub fn tree_with(&self, base: Oid, changes: &[Change]) -> Result<Oid, GitError> {
        let steps = changes.iter().map(|change| (change.path.as_slice(), change.after));
        match self.edited(Some(base), steps.collect())? {
            Some(tree) => Ok(tree),
            None => self.write_object(ObjectKind::Tree, b""),
        }
    }

    /// A tree with these changes; `None` if nothing is left in it.
    fn edited(&self, tree: Option<Oid>, steps: Vec<Step<'_>>) -> Result<Option<Oid>, GitError> {
        let mut entries = match tree {
            Some(tree) => self.entries_of(tree)?,
            None => Vec::new(),
        };
        for (name, edit) in by_name(steps) {
            let old = entries.iter().position(|entry| entry.name == name).map(|at| entries.swap_remove(at));
            entries.extend(self.edited_entry(name, old, edit)?);
        }
        if entries.is_empty() {
            return Ok(None);
        }
        entries.sort_by_cached_key(Entry::key);
        let mut content = Vec::new();
        for Entry { mode, name, id } in entries {
            content.extend([&mode, b" ".as_slice(), &name, b"\0", id.as_bytes()].concat());
        }
        self.write_object(ObjectKind::Tree, &content).map(Some)
    }

    /// What stands at a name after an edit. A file and a folder of one name give way to each other.
    fn edited_entry(
        &self,
        name: &[u8],
        old: Option<Entry>,
        edit: Edit<'_>,
    ) -> Result<Option<Entry>, GitError> {
        if let Some(Some((mode, id))) = edit.file {
            return Ok(Some(Entry { mode: format!("{mode:o}").into_bytes(), name: name.to_vec(), id }));
        }
        let (folder, file) = match old {
            Some(entry) if entry.is_folder() => (Some(entry), None),
            file => (None, file.filter(|_| edit.file.is_none())),
        };
        if edit.below.is_empty() {
            return Ok(folder.or(file));
        }
        let below = self.edited(folder.map(|folder| folder.id), edit.below)?;
        Ok(below.map(|id| Entry { mode: FOLDER.to_vec(), name: name.to_vec(), id }).or(file))
    }

    /// The folders in a tree, by name.
    pub(super) fn folders_of(&self, tree: Oid) -> Result<Vec<(Vec<u8>, Oid)>, GitError> {
        let folders = self.entries_of(tree)?.into_iter().filter(Entry::is_folder);
        Ok(folders.map(|entry| (entry.name, entry.id)).collect())
    }

    fn entries_of(&self, tree: Oid) -> Result<Vec<Entry>, GitError> {
        let content = match self.ask_content(ObjectKind::Tree, tree)? {
            Some(Some(content)) => content,
            Some(None) => return Err(GitError::Unknown(tree.to_string(), "tree")),
            None => self.change("cat-file").args(["tree", &tree.to_string()]).stdout()?,
        };
        parse_tree(&content, tree.as_bytes().len())
            .ok_or_else(|| GitError::Strange { command: "cat-file".into(), what: format!("tree {tree}") })
    }
}

fn by_name(steps: Vec<Step<'_>>) -> BTreeMap<&[u8], Edit<'_>> {
    let mut edits: BTreeMap<&[u8], Edit<'_>> = BTreeMap::new();
    for (path, after) in steps {
        match memchr::memchr(b'/', path) {
            Some(at) => edits.entry(&path[..at]).or_default().below.push((&path[at + 1..], after)),
            None => edits.entry(path).or_default().file = Some(after),
        }
    }
    edits
}

/// Records `mode SP name NUL id`.
fn parse_tree(mut content: &[u8], id_len: usize) -> Option<Vec<Entry>> {
    let mut entries = Vec::new();
    while !content.is_empty() {
        let (space, end) = (memchr::memchr(b' ', content)?, memchr::memchr(0, content)?);
        let (mode, name) = (content[..space].to_vec(), content.get(space + 1..end)?.to_vec());
        let id = Oid::from_bytes(content.get(end + 1..end + 1 + id_len)?)?;
        entries.push(Entry { mode, name, id });
        content = &content[end + 1 + id_len..];
    }
    Some(entries)
}

/// The records of one comparison: a line that repeats the question, then two NUL-terminated fields for each path.
fn compared(running: &mut Running, question: &[u8]) -> Option<Vec<u8>> {
    running.tell(&[question, END].concat()).ok()?;
    let output = running.output()?;
    let mut records = Vec::new();
    // What git cannot read it passes over in silence.
    let mut is_answered = false;
    loop {
        match *output.fill_buf().ok()?.first()? {
            b':' => {
                output.read_until(0, &mut records).ok()?;
                output.read_until(0, &mut records).ok()?;
            }
            _ => {
                let mut line = Vec::new();
                output.read_until(b'\n', &mut line).ok()?;
                if line == END {
                    return is_answered.then_some(records);
                }
                is_answered |= line == question;
            }
        }
    }
}
