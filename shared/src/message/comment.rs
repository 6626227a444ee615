//! The prefix of comment lines in a message file, and what git itself writes with it: its template below the message,
//! and the scissors at which it cuts the file.

use super::{Subject, claim::is_blank, read::SCISSORS};

/// The prefix of a comment line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommentPrefix(String);

/// The characters that git chooses from if `core.commentChar` is `auto`.
const CANDIDATES: &str = "#;@!$%^&|:";

/// How the diff of `commit -v` begins.
const DIFFS: [&str; 3] = ["diff --", "Submodule ", "* Unmerged path "];

impl CommentPrefix {
    /// From `core.commentString` or `core.commentChar`. For `auto`, git's template shows which character it chose;
    /// without a template it is the first one that begins no line of the message.
    #[must_use]
    pub fn from_config(value: Option<&str>, file: &str) -> Self {
        match value {
            Some("auto") => seen_in_template(file).unwrap_or_else(|| chosen_by_git(file)),
            Some(prefix) if !prefix.is_empty() => Self(prefix.to_owned()),
            _ => Self("#".into()),
        }
    }

    /// The prefix itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the file contains git's template: at its end, or above or below scissors.
    pub(super) fn has_template(&self, file: &str) -> bool {
        let above = self.runs_above(file.lines());
        let below = self.runs_below(file);
        above.last().is_some_and(Run::is_template)
            || file.split_inclusive('\n').enumerate().any(|(at, line)| {
                self.is_cut(line)
                    && (above[at].is_template() || below.get(at + 1).is_some_and(Run::is_template))
            })
    }

    /// For each line and for the end, the last run of comments before it; empty lines may come between.
    fn runs_above<'a>(&self, lines: impl Iterator<Item = &'a str>) -> Vec<Run> {
        let mut runs = vec![Run::default()];
        let (mut run, mut is_over) = (Run::default(), false);
        for line in lines {
            if line.is_empty() {
                is_over = true;
            } else {
                let before = if std::mem::take(&mut is_over) { Run::default() } else { run };
                run = before.with(line, self);
            }
            runs.push(run);
        }
        runs
    }

    /// For each line, the run of comments that begins with it.
    fn runs_below(&self, file: &str) -> Vec<Run> {
        let mut run = Run::default();
        let mut runs: Vec<Run> = file
            .lines()
            .rev()
            .map(|line| {
                run = run.with(line, self);
                run
            })
            .collect();
        runs.reverse();
        runs
    }

    /// Whether git itself wrote the scissors: two or more comment lines below explain them, followed by a diff or
    /// nothing.
    pub(super) fn has_own_cut(&self, file: &str) -> bool {
        let lines: Vec<&str> = file.split_inclusive('\n').collect();
        let runs = self.runs_below(file);
        lines.iter().enumerate().filter(|(_, line)| self.is_cut(line)).any(|(at, _)| {
            let said = runs.get(at + 1).map_or(0, |run| run.length);
            let next = lines.get(at + 1 + said);
            said >= 2 && next.is_none_or(|line| DIFFS.iter().any(|opening| line.starts_with(opening)))
        })
    }

    /// Whether empty lines or comments precede a line that would be our subject without them.
    #[must_use]
    pub fn hides_a_subject(&self, file: &str) -> bool {
        let is_skipped = |line: &&str| is_blank(line.as_bytes()) || line.starts_with(self.as_str());
        let first = file.lines().enumerate().find(|(_, line)| !is_skipped(line));
        first.is_some_and(|(at, line)| at > 0 && Subject::is_claimed_by(line.trim_end()))
    }

    /// The text above the first scissors, whether git wrote them or not.
    pub(super) fn before_cut<'a>(&self, file: &'a str) -> &'a str {
        let above = file.split_inclusive('\n').take_while(|line| !self.is_cut(line));
        &file[..above.map(str::len).sum()]
    }

    fn is_cut(&self, line: &str) -> bool {
        let rest = line.strip_prefix(self.as_str()).and_then(|rest| rest.strip_prefix(' '));
        rest.and_then(|rest| rest.strip_prefix(SCISSORS)) == Some("\n")
    }
}

/// Consecutive comment lines.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    length: usize,
    has_empty: bool,
}

impl Run {
    /// Adds `line` to the run, or starts over if it is no comment.
    fn with(self, line: &str, prefix: &CommentPrefix) -> Self {
        if !line.starts_with(prefix.as_str()) {
            return Self::default();
        }
        Self { length: self.length + 1, has_empty: self.has_empty || line == prefix.as_str() }
    }

    /// A template has at least four comments, one of them empty.
    fn is_template(&self) -> bool {
        self.length > 3 && self.has_empty
    }
}

fn seen_in_template(file: &str) -> Option<CommentPrefix> {
    let mut prefixes = CANDIDATES.chars().map(|candidate| CommentPrefix(candidate.to_string()));
    prefixes.find(|prefix| prefix.has_template(file))
}

fn chosen_by_git(message: &str) -> CommentPrefix {
    let begins_line = |c: char| message.split(['\n', '\r']).any(|line| line.starts_with(c));
    let free = |c: &char| !message.contains('#') || !begins_line(*c);
    CommentPrefix(CANDIDATES.chars().find(free).unwrap_or('#').to_string())
}
