//! What git will make of a message file after the commit-msg hook: comments, scissors, white space; and what git itself writes
//! into it.

use super::{Subject, read::SCISSORS, recognise::is_blank};

// The prefix of comment lines in a message file, and what git itself writes with it: its template below the message,
// and the scissors at which it cuts the file.

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
    fn has_template(&self, file: &str) -> bool {
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
    fn has_own_cut(&self, file: &str) -> bool {
        let lines: Vec<&str> = file.split_inclusive('\n').collect();
        let runs = self.runs_below(file);
        lines.iter().enumerate().filter(|(_, line)| self.is_cut(line)).any(|(at, _)| {
            let stated = runs.get(at + 1).map_or(0, |run| run.length);
            let next = lines.get(at + 1 + stated);
            stated >= 2 && next.is_none_or(|line| DIFFS.iter().any(|opening| line.starts_with(opening)))
        })
    }

    /// Whether empty lines or comments precede a line that would be our subject without them.
    #[must_use]
    pub fn hides_a_subject(&self, file: &str) -> bool {
        let is_skipped = |line: &&str| is_blank(line.as_bytes()) || line.starts_with(self.as_str());
        let first = file.lines().enumerate().find(|(_, line)| !is_skipped(line));
        first.is_some_and(|(at, line)| at > 0 && Subject::has_subject_form(line.trim_end()))
    }

    /// The text above the first scissors, whether git wrote them or not.
    fn before_cut<'a>(&self, file: &'a str) -> &'a str {
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

/// Whether the message was edited. Git sets `GIT_EDITOR=:` for hooks if it was not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Editing {
    /// In an editor, with git's template below it.
    Editor,
    /// By `-m`, `-F` or a program.
    NoEditor,
}

impl Editing {
    /// Decides by the file and git's environment. If a user exports `GIT_EDITOR=:`, git still writes its template into
    /// the file.
    #[must_use]
    pub fn of_file(file: &str, git_editor: Option<&str>, comment: &CommentPrefix) -> Self {
        if git_editor != Some(":") || comment.has_template(file) { Self::Editor } else { Self::NoEditor }
    }
}

/// How git will clean the message up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleanup {
    /// Removes comments, and white space as below.
    Strip,
    /// White space at line ends, and empty lines around and between paragraphs.
    Whitespace,
    /// As [`Cleanup::Whitespace`], and everything from the scissors line on goes.
    Scissors,
    /// Nothing.
    Verbatim,
}

impl Cleanup {
    /// The effect of `commit.cleanup` for a message that was made this way.
    #[must_use]
    pub fn from_config(value: Option<&str>, editing: Editing) -> Self {
        match (value, editing) {
            (Some("strip"), _) => Self::Strip,
            (Some("verbatim"), _) => Self::Verbatim,
            (Some("whitespace"), _) => Self::Whitespace,
            (Some("scissors"), Editing::Editor) => Self::Scissors,
            (Some("scissors"), Editing::NoEditor) => Self::Whitespace,
            (_, Editing::Editor) => Self::Strip,
            (_, Editing::NoEditor) => Self::Whitespace,
        }
    }
}

/// A message as git will record it, with the positions of its lines in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The message.
    pub text: String,
    /// The line of the file for each line of the message, both from 1. Empty if they are equal.
    lines: Vec<usize>,
}

impl Recorded {
    /// The line of the file that became line `line` of the message.
    #[must_use]
    pub fn line_in_file(&self, line: usize) -> usize {
        self.lines.get(line.saturating_sub(1)).or(self.lines.last()).copied().unwrap_or(line)
    }

    fn push(&mut self, line: &str, number: usize) {
        self.text.push_str(line);
        self.text.push('\n');
        self.lines.push(number);
    }
}

/// The message that git will record.
#[must_use]
pub fn final_message(file: &str, cleanup: Cleanup, editing: Editing, comment: &CommentPrefix) -> Recorded {
    // `commit -v` cuts the message in every mode; its own scissors reveal it.
    let is_verbose = editing == Editing::Editor && comment.has_own_cut(file);
    let cuts = cleanup == Cleanup::Scissors || is_verbose;
    let file = if cuts { comment.before_cut(file) } else { file };
    if cleanup == Cleanup::Verbatim {
        return Recorded { text: file.to_owned(), lines: Vec::new() };
    }
    let mut message = Recorded { text: String::new(), lines: Vec::new() };
    let mut gap = false;
    for (number, line) in (1..).zip(file.split_terminator('\n')) {
        if cleanup == Cleanup::Strip && line.starts_with(comment.as_str()) {
            continue;
        }
        let line = line.trim_end_matches([' ', '\t', '\r']);
        if line.is_empty() {
            gap = !message.text.is_empty();
            continue;
        }
        if std::mem::take(&mut gap) {
            message.push("", number - 1);
        }
        message.push(line, number);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(file: &str, cleanup: Cleanup, editing: Editing, comment: Option<&str>) -> String {
        final_message(file, cleanup, editing, &CommentPrefix::from_config(comment, file)).text
    }

    #[test]
    fn the_editor_template_and_diff_are_removed() {
        let file = "\nsubject  \n\n\nbody\n# Please enter\n# ------------------------ >8 ------------------------\n# Do not modify\n# Everything\ndiff --git a/x b/x\n\n";
        assert_eq!(cleaned(file, Cleanup::Strip, Editing::Editor, None), "subject\n\nbody\n");
        assert_eq!(
            cleaned(file, Cleanup::Scissors, Editing::Editor, None),
            "subject\n\nbody\n# Please enter\n"
        );
        let verbatim = cleaned(file, Cleanup::Verbatim, Editing::Editor, None);
        assert_eq!(verbatim, "\nsubject  \n\n\nbody\n# Please enter\n");
    }

    #[test]
    fn scissors_that_git_did_not_write_hide_nothing() {
        let file = "subject\n# ------------------------ >8 ------------------------\nhidden\n";
        assert_eq!(cleaned(file, Cleanup::Strip, Editing::Editor, None), "subject\nhidden\n");
        assert_eq!(cleaned(file, Cleanup::Scissors, Editing::Editor, None), "subject\n");
    }

    #[test]
    fn without_an_editor_comment_lines_are_text() {
        let file = "subject\n\n# heading\n# ------------------------ >8 ------------------------\nx\n";
        let mode = Cleanup::from_config(None, Editing::NoEditor);
        assert_eq!(cleaned(file, mode, Editing::NoEditor, None), file);
        assert_eq!(Cleanup::from_config(Some("scissors"), Editing::NoEditor), Cleanup::Whitespace);
    }

    #[test]
    fn configured_and_automatic_comment_characters_are_recognised() {
        for comment in [";", "auto"] {
            let file = "# heading\n\ntext\n; Please enter\n; with\n;\n; On branch\n";
            assert_eq!(cleaned(file, Cleanup::Strip, Editing::Editor, Some(comment)), "# heading\n\ntext\n");
        }
        assert_eq!(cleaned("a\n// b\n", Cleanup::Strip, Editing::Editor, Some("//")), "a\n");
    }

    #[test]
    fn the_template_of_git_proves_that_an_editor_was_opened() {
        let hash = CommentPrefix::from_config(None, "");
        let of = |file: &str, editor: Option<&str>| Editing::of_file(file, editor, &hash);
        assert_eq!(of("a\n", None), Editing::Editor);
        assert_eq!(of("a\n", Some(":")), Editing::NoEditor);
        assert_eq!(of("a\n\n# Please enter\n#\n# On branch main\n#\n", Some(":")), Editing::Editor);
        assert_eq!(of("a\n\n# heading\n#\n", Some(":")), Editing::NoEditor);
    }

    #[test]
    fn a_line_of_the_cleaned_message_is_located_in_the_file() {
        let file = "# note\n\nsubject\n# note\n\n\nlast\n";
        let hash = CommentPrefix::from_config(None, file);
        let recorded = final_message(file, Cleanup::Strip, Editing::Editor, &hash);
        assert_eq!(recorded.text, "subject\n\nlast\n");
        assert_eq!([1, 2, 3, 9].map(|line| recorded.line_in_file(line)), [3, 6, 7, 7]);
        let verbatim = final_message(file, Cleanup::Verbatim, Editing::Editor, &hash);
        assert_eq!(verbatim.line_in_file(3), 3);
    }
}
