//! Templates of prompts: text with placeholders such as `{task}`, which are replaced by blocks of the built-in prompt.

use crate::{message::nearest, words::words};

words! {
    /// A block of a prompt.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum PromptBlock {
        /// The whole built-in prompt.
        Prompt = "prompt",
        /// The task's id.
        Task = "task",
        /// Its name.
        Name = "name",
        /// The plan's text about it.
        Description = "description",
        /// The phases around it, with their goals.
        Phase = "phase",
        /// The tasks that it builds on, and what they changed.
        Dependencies = "dependencies",
        /// The plan and the documents beside it.
        Documents = "documents",
        /// The files of the setting `context`.
        Context = "context",
        /// What the agent may do, and how it has to reply.
        Rules = "rules",
        /// The failures of earlier attempts.
        Feedback = "feedback",
        /// The changes to review.
        Diff = "diff",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Block(PromptBlock),
}

/// A template of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptTemplate(Vec<Piece>);

/// A placeholder that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{place}' uses the unknown placeholder '{{{name}}}'")]
pub struct UnknownBlock {
    /// The file or setting with the template.
    pub place: String,
    /// The name between the braces.
    pub name: String,
}

impl UnknownBlock {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        let known = PromptBlock::ALL.iter().map(|block| block.as_str());
        let name = &self.name;
        match nearest(name, known.clone()) {
            Some(meant) => {
                format!(
                    "did you mean '{{{meant}}}'? to write '{{{name}}}' itself, double its braces: '{{{{{name}}}}}'"
                )
            }
            None => {
                let known: Vec<&str> = known.collect();
                format!(
                    "to write '{{{name}}}' itself, double its braces: '{{{{{name}}}}}'; known placeholders: {}",
                    known.join(", ")
                )
            }
        }
    }
}

impl PromptTemplate {
    /// Parses a template. Braces that hold no name are text, and `{{name}}` stands for `{name}`.
    pub fn parse(place: &str, text: &str) -> Result<Self, UnknownBlock> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            literal.push_str(&rest[..open]);
            rest = &rest[open..];
            let (is_doubled, inner) = match rest.strip_prefix("{{") {
                Some(inner) => (true, inner),
                None => (false, &rest[1..]),
            };
            let length = inner.bytes().take_while(|byte| byte.is_ascii_lowercase() || *byte == b'-').count();
            let (name, behind) = inner.split_at(length);
            let closing = if is_doubled { "}}" } else { "}" };
            match behind.strip_prefix(closing).filter(|_| length > 0) {
                Some(behind) if is_doubled => {
                    literal.push_str(&format!("{{{name}}}"));
                    rest = behind;
                }
                Some(behind) => {
                    let unknown = || UnknownBlock { place: place.to_owned(), name: name.to_owned() };
                    let block = PromptBlock::ALL.iter().find(|block| block.as_str() == name);
                    pieces.push(Piece::Text(std::mem::take(&mut literal)));
                    pieces.push(Piece::Block(*block.ok_or_else(unknown)?));
                    rest = behind;
                }
                None => {
                    literal.push('{');
                    rest = &rest[1..];
                }
            }
        }
        literal.push_str(rest);
        pieces.push(Piece::Text(literal));
        Ok(Self(pieces))
    }

    /// Whether the template places a block.
    #[must_use]
    pub fn uses(&self, block: PromptBlock) -> bool {
        self.0.contains(&Piece::Block(block))
    }

    /// Fills in the blocks. They are inserted once: braces in them stay as they are.
    #[must_use]
    pub fn fill<'v>(&self, value: impl Fn(PromptBlock) -> &'v str) -> String {
        let text = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Block(block) => value(*block).to_owned(),
        };
        self.0.iter().map(text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> String {
        let template = PromptTemplate::parse("x.md", text).unwrap();
        template.fill(|block| if block == PromptBlock::Task { "T{name}" } else { "" })
    }

    #[test]
    fn placeholders_are_replaced_once_and_other_braces_are_kept() {
        for (text, expected) in [
            ("do {task}.", "do T{name}."),
            ("{task}{name}{task}", "T{name}T{name}"),
            ("{{task}} {{id}} {{ \"a\": {} }}", "{task} {id} {{ \"a\": {} }}"),
            ("a { b } {A} {", "a { b } {A} {"),
            ("{{task}", "{T{name}"),
        ] {
            assert_eq!(filled(text), expected, "{text}");
        }
    }

    #[test]
    fn an_unknown_placeholder_is_refused() {
        let error = PromptTemplate::parse("x.md", "a {tsk}").unwrap_err();
        assert_eq!(error.to_string(), "'x.md' uses the unknown placeholder '{tsk}'");
        assert_eq!(
            error.hint(),
            "did you mean '{task}'? to write '{tsk}' itself, double its braces: '{{tsk}}'"
        );
    }
}
