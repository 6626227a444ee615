//! Finds the line numbers that a commit added or changed.

use crate::{
    git::{GitError, Repository},
    name::Oid,
};

/// The added or changed lines of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedLines {
    /// The file.
    pub path: String,
    /// First and last line of each range, from 1, in order.
    pub ranges: Vec<(u64, u64)>,
}

impl Repository {
    /// The lines of `to` that are not in `from`. Files that only lost lines, and binary files, are left out.
    pub fn added_lines(&self, from: Oid, to: Oid) -> Result<Vec<AddedLines>, GitError> {
        let command = self.git("diff-tree").args(["-r", "-p", "-U0"]);
        let command = command.args(["--no-renames", "--no-ext-diff", "--no-textconv", "--no-color"]);
        let command = command.args(["--src-prefix=a/", "--dst-prefix=b/", "--no-relative"]);
        let printed = command.args([from.to_string(), to.to_string()]).stdout()?;
        let mut files = parse(&String::from_utf8_lossy(&printed));
        files.retain(|file| !file.ranges.is_empty());
        Ok(files)
    }
}

/// Parses a patch. The lines of a hunk are counted and skipped, so that file content cannot be taken for a header.
fn parse(patch: &str) -> Vec<AddedLines> {
    let mut files: Vec<AddedLines> = Vec::new();
    let mut left = 0;
    for line in patch.split('\n') {
        if line.starts_with('\\') {
            continue;
        }
        if left > 0 {
            left -= 1;
        } else if let Some(path) = line.strip_prefix("+++ ") {
            files.push(AddedLines { path: path_of(path), ranges: Vec::new() });
        } else if let Some((removed, added)) = line.strip_prefix("@@ -").and_then(hunk) {
            left = removed.1 + added.1;
            if let (Some(file), 1..) = (files.last_mut(), added.1) {
                file.ranges.push((added.0, added.0 + added.1 - 1));
            }
        }
    }
    files
}

/// Start and length of a hunk, before and after: from `3,2 +4 @@`.
fn hunk(header: &str) -> Option<((u64, u64), (u64, u64))> {
    let (before, rest) = header.split_once(" +")?;
    let (after, _) = rest.split_once(" @@")?;
    let stretch = |text: &str| match text.split_once(',') {
        Some((begin, count)) => Some((begin.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    };
    Some((stretch(before)?, stretch(after)?))
}

/// A path as it is in a patch: after `b/`, quoted if it has special characters, and before a tab if it has spaces.
fn path_of(text: &str) -> String {
    let text = text.trim_end_matches('\t');
    let name = match text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(quoted) => unquote(quoted),
        None => text.to_owned(),
    };
    name.strip_prefix("b/").unwrap_or(&name).to_owned()
}

fn unquote(quoted: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = quoted.bytes();
    while let Some(byte) = rest.next() {
        let escaped = if byte == b'\\' { rest.next() } else { None };
        bytes.push(match escaped {
            None => byte,
            Some(b'a') => 7,
            Some(b'b') => 8,
            Some(b't') => b'\t',
            Some(b'n') => b'\n',
            Some(b'v') => 11,
            Some(b'f') => 12,
            Some(b'r') => b'\r',
            Some(digit @ b'0'..=b'3') => {
                let octal = [digit, rest.next().unwrap_or(b'0'), rest.next().unwrap_or(b'0')];
                octal
                    .iter()
                    .fold(0, |sum: u8, digit| sum.wrapping_mul(8).wrapping_add(digit.wrapping_sub(b'0')))
            }
            Some(other) => other,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_numbers_are_parsed_and_content_is_never_taken_for_headers() {
        let patch = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1,2 @@ fn\n--- a/x\n+++ b/y\n+@@ -1 +9,9 @@\n@@ -9,0 +11 @@\n+x\n\\ No newline at end of file\n\
            diff --git a/b c b/b c\n--- a/b c\t\n+++ b/b c\t\n@@ -3,2 +2,0 @@\n-x\n-y\n\
            diff --git \"a/q\" \"b/q\"\n--- /dev/null\n+++ \"b/\\303\\274\\\"\\t\"\n@@ -0,0 +1,3 @@\n+1\n+2\n+3\n";
        let files = parse(patch);
        let found: Vec<(&str, &[(u64, u64)])> =
            files.iter().map(|file| (file.path.as_str(), file.ranges.as_slice())).collect();
        assert_eq!(found, [("a", &[(1, 2), (11, 11)][..]), ("b c", &[]), ("ü\"\t", &[(1, 3)])]);
    }
}
