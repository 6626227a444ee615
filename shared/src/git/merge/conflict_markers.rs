//! Finds files with conflict markers after a merge, and recognises the markers in them.

use crate::{
    git::{
        GitCommand, GitError, Repository,
        command::{checked, nul_ended},
    },
    name::Oid,
};

/// The length of markers, unless an attribute says otherwise.
const DEFAULT_LENGTH: usize = 7;

/// A file that git could not merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmerged {
    /// The path, as bytes of a file name.
    pub path: Vec<u8>,
    /// The length of the markers in it.
    pub mark: usize,
}

impl Unmerged {
    /// The path for display.
    #[must_use]
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.path).into_owned()
    }

    /// Whether this content has a line that begins with a conflict marker.
    #[must_use]
    pub fn is_marked(&self, content: &[u8]) -> bool {
        let is_mark = |line: &[u8], with: u8| {
            let length = line.iter().take_while(|b| **b == with).count();
            length == self.mark && line.get(length) == Some(&b' ')
        };
        content.split(|b| *b == b'\n').any(|line| b"<|>".iter().any(|with| is_mark(line, *with)))
    }
}

impl Repository {
    /// The files with conflicts in a merge of `theirs` into `ours`, by their paths in this worktree.
    pub fn list_unmerged(&self, ours: Oid, theirs: Oid) -> Result<Vec<Unmerged>, GitError> {
        let command = self
            .pin_shared(GitCommand::changing("merge-tree", &self.common_dir, &crate::git::merge::PINNED))
            .env("GIT_ATTR_SOURCE", ours.to_string())
            .args(["--write-tree", "-z", "--name-only", "--no-messages"])
            .args([ours.to_string(), theirs.to_string()]);
        let ended = command.finish()?;
        let printed = match ended.status.code() {
            Some(1) if !ended.stdout.is_empty() => ended.stdout,
            _ => checked("merge-tree", ended)?,
        };
        let paths = printed.split(|b| *b == 0).skip(1).filter(|path| !path.is_empty());
        self.with_marker_length(ours, paths.map(<[u8]>::to_vec).collect())
    }

    /// Reads the attribute `conflict-marker-size` of these paths from the commit `source`.
    fn with_marker_length(&self, source: Oid, paths: Vec<Vec<u8>>) -> Result<Vec<Unmerged>, GitError> {
        let command = self.git("check-attr").env("GIT_ATTR_SOURCE", source.to_string());
        let command = command.args(["-z", "--stdin", "conflict-marker-size"]);
        let input = nul_ended(paths.iter().map(Vec::as_slice));
        let printed = command.stdout_with(&input)?;
        let values = printed.split(|b| *b == 0).skip(2).step_by(3);
        let mark = |value: &[u8]| std::str::from_utf8(value).ok()?.parse().ok().filter(|mark| *mark > 0);
        let marks: Vec<usize> = values.map(|value| mark(value).unwrap_or(DEFAULT_LENGTH)).collect();
        if marks.len() < paths.len() {
            return Err(GitError::unexpected("check-attr", "fewer answers than paths"));
        }
        Ok(paths.into_iter().zip(marks).map(|(path, mark)| Unmerged { path, mark }).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflict_markers_have_the_length_of_the_attribute() {
        let file = |mark: usize| Unmerged { path: b"a".to_vec(), mark };
        let seven = b"a\n<<<<<<< ours\nb\n=======\nc\n>>>>>>> theirs\n";
        assert!(file(7).is_marked(seven));
        assert!(!file(32).is_marked(seven), "what the file itself speaks of");
        assert!(file(32).is_marked(format!("{} x\n", ">".repeat(32)).as_bytes()));
        assert!(file(7).is_marked(b"a\n||||||| 07778bd\nb\n"));
        assert!(!file(7).is_marked(b"| a | b |\n||||||||| x\n"));
        assert!(!file(7).is_marked(b"<<<<<<<x\n <<<<<<< x\n<<<<<<<< x\n"));
    }
}
