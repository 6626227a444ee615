//! What begins a comment line in a message file, and what git itself writes with it: its template below the
//! message, and the scissors at which it cuts the file off.

use super::read::SCISSORS;

/// What begins a comment line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommentPrefix(String);

/// The characters that git chooses from when it is told to choose.
const CANDIDATES: &str = "#;@!$%^&|:";

/// How the diff of `commit -v` begins.
const DIFFS: [&str; 3] = ["diff --", "Submodule ", "* Unmerged path "];

impl CommentPrefix {
    /// From `core.commentString` or `core.commentChar`. For `auto` git chose a character: its template tells
    /// which one, and without a template the message does, since git takes the first that begins no line.
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

    /// Whether git's template stands in the file: at its end, or above or below scissors.
    pub(super) fn has_template(&self, file: &str) -> bool {
        let is_above =
            |end: usize| self.is_template(file[..end].lines().rev().skip_while(|line| line.is_empty()));
        is_above(file.len())
            || self
                .cuts(file)
                .any(|(above, below)| is_above(above) || self.is_template(file[below..].lines()))
    }

    /// Whether these lines begin with a template: at least four comments, one of them empty.
    fn is_template<'a>(&self, lines: impl Iterator<Item = &'a str>) -> bool {
        let run: Vec<&str> = lines.take_while(|line| line.starts_with(self.as_str())).collect();
        run.len() > 3 && run.contains(&self.as_str())
    }

    /// Whether there are scissors of git's own: below them it says, in two lines of comments or more, what they
    /// are for, and then comes a diff or nothing.
    pub(super) fn has_own_cut(&self, file: &str) -> bool {
        let is_comment = |line: &&str| line.starts_with(self.as_str());
        self.cuts(file).any(|(_, below)| {
            let mut lines = file[below..].lines();
            let said = lines.by_ref().take(2).filter(is_comment).count();
            let next = lines.find(|line| !is_comment(line));
            said == 2 && next.is_none_or(|line| DIFFS.iter().any(|opening| line.starts_with(opening)))
        })
    }

    /// What stands above the first scissors, whoever wrote them.
    pub(super) fn before_cut<'a>(&self, file: &'a str) -> &'a str {
        self.cuts(file).next().map_or(file, |(above, _)| &file[..above])
    }

    /// Where each scissors line begins and ends.
    fn cuts(&self, file: &str) -> impl Iterator<Item = (usize, usize)> {
        let mut end = 0;
        file.split_inclusive('\n').filter_map(move |line| {
            let start = end;
            end += line.len();
            self.is_cut(line).then_some((start, end))
        })
    }

    fn is_cut(&self, line: &str) -> bool {
        let rest = line.strip_prefix(self.as_str()).and_then(|rest| rest.strip_prefix(' '));
        rest.and_then(|rest| rest.strip_prefix(SCISSORS)) == Some("\n")
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
