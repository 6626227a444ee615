//! The repository's own exclude file: what `git status` shows in no checkout of it.

use std::fs;

use super::{GitError, Repository};
use crate::process::ProcessError;

impl Repository {
    /// Adds a line to the exclude file, unless it stands there.
    pub fn exclude(&self, line: &str) -> Result<(), GitError> {
        let file = self.common_dir.join("info/exclude");
        let text = fs::read_to_string(&file).unwrap_or_default();
        if text.lines().any(|known| known == line) {
            return Ok(());
        }
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let write = || {
            fs::create_dir_all(self.common_dir.join("info"))?;
            fs::write(&file, format!("{text}{gap}{line}\n"))
        };
        write().map_err(|source| ProcessError { program: "git".into(), source }.into())
    }
}
