//! Differences between commits, as text. Nothing that the repository configures is run for them, and no attribute hides
//! anything of them.

use super::{GitCommand, GitError, Repository};
use crate::{message::visible, name::Oid};

/// How the part of a patch for one file begins. Every line of a file has a sign before it.
const HEADER: &[u8] = b"diff --git ";

/// What differs between two commits or trees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// The patch for each file.
    pub files: Vec<String>,
    /// A line for each file: how many lines were added and removed, and its name.
    pub list: Vec<String>,
}

impl Repository {
    /// The change from one commit to another, and its paths with how much of each. What is text is told by content alone:
    /// with `-diff` in `.gitattributes`, git would not show it.
    pub fn diff(&self, from: Oid, to: Oid) -> Result<(String, String), GitError> {
        let command = self.git("diff-tree").args(["-r", "-M", "--text", "--no-color"]);
        let printed = command.arg("--patch-with-stat").args([from.to_string(), to.to_string()]).stdout()?;
        // Every line of the stat begins with a space.
        let (stat, patch) = printed.split_at(next_header(&printed, 0).unwrap_or(printed.len()));
        let stat = String::from_utf8_lossy(stat).trim_end_matches('\n').to_owned();
        let stat = if stat.is_empty() { stat } else { stat + "\n" };
        Ok((files_of(patch).into_iter().map(shown).collect(), stat))
    }

    /// The same by file, with the list of all files.
    pub fn difference(&self, from: Oid, to: Oid) -> Result<Difference, GitError> {
        let command =
            self.git("diff-tree").args(["-r", "-M", "--text", "--no-color", "--numstat", "--patch"]);
        let printed = command.args([from.to_string(), to.to_string()]).stdout()?;
        let (list, patch) = printed.split_at(next_header(&printed, 0).unwrap_or(printed.len()));
        let list = String::from_utf8_lossy(list);
        let line = |line: &str| {
            let mut fields = line.splitn(3, '\t');
            let (added, removed) = (fields.next()?, fields.next()?);
            Some(format!("+{added} -{removed} {}", visible(fields.next()?)))
        };
        Ok(Difference {
            files: files_of(patch).into_iter().map(shown).collect(),
            list: list.lines().filter_map(line).collect(),
        })
    }

    /// Whether a path that these pathspecs name differs between two commits or trees. They count from the top.
    pub fn touches(&self, from: Oid, to: Oid, paths: &[&str]) -> Result<bool, GitError> {
        let command = self.pin(GitCommand::reading("diff-tree", self.top())).args(["-r", "--quiet"]);
        Ok(command.args([from.to_string(), to.to_string()]).arg("--").args(paths).answer()?.is_none())
    }
}

/// Where the next part begins, from `at`.
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

/// The part for one file. Where both sides are no text, it says that they differ, and shows the lines that are text: a
/// script can have anything behind its last command.
fn shown(file: &[u8]) -> String {
    let text = String::from_utf8_lossy(file).replace('\0', "\u{fffd}");
    if !is_binary(file, &text) {
        return text;
    }
    let head: Vec<&str> = text.lines().take_while(|line| !line.starts_with("@@ ")).collect();
    let side = |sign: &str| head.iter().find_map(|line| line.strip_prefix(sign)).unwrap_or_default();
    let differ = format!("Binary files {} and {} differ", side("--- "), side("+++ "));
    let is_side = |line: &str| line.starts_with("--- ") || line.starts_with("+++ ");
    let kept = head.iter().copied().filter(|line| !is_side(line));
    let words: String = kept.chain([differ.as_str()]).map(|line| format!("{line}\n")).collect();
    words + &text_lines(&text)
}

/// The lines of a patch that are text, if there are any. Numbers stand for the others.
fn text_lines(text: &str) -> String {
    let is_text = |line: &str| line.len() > 1 && !line.chars().any(|c| is_odd(&c));
    let lines = || text.lines().skip_while(|line| !line.starts_with("@@ "));
    if !lines().any(|line| !line.starts_with("@@ ") && is_text(line)) {
        return String::new();
    }
    let (mut shown, mut others) = (String::new(), 0);
    for line in lines().map(Some).chain([None]) {
        let Some(line) = line.filter(|line| is_text(line)) else {
            others += 1;
            continue;
        };
        if others > 0 {
            shown += &format!("[{others} lines that are no text]\n");
        }
        others = 0;
        shown += line;
        shown.push('\n');
    }
    // The end itself is counted, too.
    if others > 1 { shown + &format!("[{} lines that are no text]\n", others - 1) } else { shown }
}

/// Whether it holds a zero byte, and more than a tenth of it is no text: one such byte in a script hides nothing.
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
    fn only_what_is_mostly_no_text_is_left_out() {
        let head = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n";
        let script = format!("{head}+#!/bin/sh\n+rm -rf /\n+# \0\n");
        assert!(shown(script.as_bytes()).contains("+rm -rf /\n"));
        let picture = [head.as_bytes(), b"+", &[0, 1, 2, 255].repeat(40)].concat();
        let words = shown(&picture);
        assert_eq!(words, "diff --git a/x b/x\nindex 1..2 100644\nBinary files a/x and b/x differ\n");
        let hidden = [head.as_bytes(), b"+rm -rf /\n+", &[0, 1, 2, 255].repeat(40)].concat();
        let words = shown(&hidden);
        assert!(words.ends_with("differ\n@@ -1 +1 @@\n+rm -rf /\n[1 lines that are no text]\n"), "{words}");
    }

    #[test]
    fn the_parts_of_a_patch_are_told_by_their_first_lines() {
        let patch = b"diff --git a/x b/x\n+diff --git a/y b/y\ndiff --git a/z b/z\n";
        assert_eq!(files_of(patch).len(), 2);
    }
}
