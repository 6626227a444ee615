//! What git will make of a message file after the commit-msg hook has run: comments, scissors, white space.

use super::read::SCISSORS;

/// Whether the message was edited. git tells its hooks by `GIT_EDITOR=:` that it was not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Editing {
    /// In an editor, with git's template below it.
    Editor,
    /// By `-m`, `-F` or a program.
    NoEditor,
}

/// How git will clean the message up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleanup {
    /// Comments go, and white space as below.
    Strip,
    /// White space at line ends, and empty lines around and between paragraphs.
    Whitespace,
    /// As [`Cleanup::Whitespace`], and everything from the scissors line on goes.
    Scissors,
    /// Nothing.
    Verbatim,
}

impl Cleanup {
    /// What `commit.cleanup` means for a message that was made this way.
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

/// What begins a comment line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommentPrefix(String);

impl CommentPrefix {
    /// From `core.commentString` or `core.commentChar`. For `auto`, git chose a character that it wrote before
    /// every line of its template, so the file itself tells.
    #[must_use]
    pub fn from_config(value: Option<&str>, file: &str) -> Self {
        match value {
            Some("auto") => Self(chosen_by_git(file).unwrap_or('#').to_string()),
            Some(prefix) if !prefix.is_empty() => Self(prefix.to_owned()),
            _ => Self("#".into()),
        }
    }

    fn is_cut(&self, line: &str) -> bool {
        line.strip_prefix(self.0.as_str()).and_then(|rest| rest.strip_prefix(' ')) == Some(SCISSORS)
    }
}

fn chosen_by_git(file: &str) -> Option<char> {
    const CANDIDATES: &str = "#;@!$%^&|:";
    let template = |line: &&str| CANDIDATES.contains(line.chars().next().unwrap_or('\0'));
    let scissors = file.lines().find(|line| line.ends_with(SCISSORS));
    let line = scissors
        .filter(template)
        .or_else(|| file.lines().rfind(|line| !line.trim().is_empty()).filter(template))?;
    line.chars().next()
}

/// The message that git will record.
#[must_use]
pub fn final_message(file: &str, cleanup: Cleanup, editing: Editing, comment: &CommentPrefix) -> String {
    if cleanup == Cleanup::Verbatim {
        return file.to_owned();
    }
    // `commit -v` cuts whatever the mode is, and only an editor's template holds the diff.
    let cuts = cleanup == Cleanup::Scissors || editing == Editing::Editor;
    let mut message = String::new();
    let mut gap = false;
    for line in file.lines() {
        if cuts && comment.is_cut(line) {
            break;
        }
        if cleanup == Cleanup::Strip && line.starts_with(comment.0.as_str()) {
            continue;
        }
        let line = line.trim_end_matches([' ', '\t', '\r']);
        if line.is_empty() {
            gap = !message.is_empty();
            continue;
        }
        if std::mem::take(&mut gap) {
            message.push('\n');
        }
        message.push_str(line);
        message.push('\n');
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(file: &str, cleanup: Cleanup, editing: Editing, comment: Option<&str>) -> String {
        final_message(file, cleanup, editing, &CommentPrefix::from_config(comment, file))
    }

    #[test]
    fn an_editors_template_and_diff_are_gone() {
        let file = "\nsubject  \n\n\nbody\n# Please enter\n# ------------------------ >8 ------------------------\n--- a/x\n";
        assert_eq!(cleaned(file, Cleanup::Strip, Editing::Editor, None), "subject\n\nbody\n");
        assert_eq!(
            cleaned(file, Cleanup::Scissors, Editing::Editor, None),
            "subject\n\nbody\n# Please enter\n"
        );
    }

    #[test]
    fn without_an_editor_comment_lines_are_text() {
        let file = "subject\n\n# heading\n# ------------------------ >8 ------------------------\nx\n";
        let mode = Cleanup::from_config(None, Editing::NoEditor);
        assert_eq!(cleaned(file, mode, Editing::NoEditor, None), file);
        assert_eq!(Cleanup::from_config(Some("scissors"), Editing::NoEditor), Cleanup::Whitespace);
    }

    #[test]
    fn other_comment_characters_are_known_also_when_git_chose_one() {
        for comment in [";", "auto"] {
            let file = "# heading\n\ntext\n; Please enter\n;\n";
            assert_eq!(cleaned(file, Cleanup::Strip, Editing::Editor, Some(comment)), "# heading\n\ntext\n");
        }
        assert_eq!(cleaned("a\n// b\n", Cleanup::Strip, Editing::Editor, Some("//")), "a\n");
    }
}
