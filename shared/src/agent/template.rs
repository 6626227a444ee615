//! Argument lists with placeholders. They are filled argument by argument and never pass through a shell.

use super::AgentError;
use crate::words::words;

words! {
    /// A placeholder.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Placeholder {
        /// The prompt itself.
        Prompt = "prompt",
        /// A file with the prompt.
        PromptFile = "prompt-file",
        /// The model.
        Model = "model",
        /// The directory to work in.
        Dir = "dir",
        /// The program's own session to resume.
        Session = "session",
        /// The MCP server, as JSON.
        Tools = "tools",
        /// A file that holds the MCP server as JSON.
        ToolsFile = "tools-file",
        /// The MCP server, as a TOML table.
        ToolsToml = "tools-toml",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Gap(Placeholder),
}

/// One argument, as pieces that are joined.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Argument(Vec<Piece>);

/// A program and its arguments, some with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    program: String,
    arguments: Vec<Argument>,
}

impl Template {
    /// Parses the words of a command. Errors name `runner`.
    pub fn parse<S: AsRef<str>>(runner: &str, words: &[S]) -> Result<Self, AgentError> {
        let no_program = || AgentError::NoProgram { runner: runner.to_owned() };
        let (program, rest) = words.split_first().ok_or_else(no_program)?;
        let program = program.as_ref();
        let unknown = |name: String| AgentError::UnknownPlaceholder { runner: runner.to_owned(), name };
        let has_gap = Argument::parse(program).map_err(unknown)?.gaps().next().is_some();
        if has_gap && program.split_whitespace().nth(1).is_some() {
            return Err(AgentError::OneWord { runner: runner.to_owned(), word: program.to_owned() });
        }
        if program.is_empty() || has_gap {
            return Err(no_program());
        }
        let arguments = rest
            .iter()
            .map(|word| Argument::parse(word.as_ref()).map_err(unknown))
            .collect::<Result<_, _>>()?;
        Ok(Self { program: program.to_owned(), arguments })
    }

    /// The program that it starts.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.program
    }

    /// The program, and the literal parts of the arguments.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let pieces = self.arguments.iter().flat_map(|argument| &argument.0);
        let texts = pieces.filter_map(|piece| match piece {
            Piece::Literal(text) => Some(text.as_str()),
            Piece::Gap(_) => None,
        });
        std::iter::once(self.program.as_str()).chain(texts)
    }

    /// The literal words, without the directory that it is called in.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.texts()
            .flat_map(|text| text.split([' ', '\t', '\n', '\'', '"', ';', '&', '|', '=']))
            .map(|word| word.trim_start_matches("./").trim_start_matches('/'))
    }

    /// Whether it contains `placeholder`.
    #[must_use]
    pub fn uses(&self, placeholder: Placeholder) -> bool {
        self.arguments.iter().flat_map(Argument::gaps).any(|gap| gap == placeholder)
    }

    /// Fills the placeholders with `value`. An argument whose placeholder has no value is left out, and so is the
    /// option directly before it, unless the argument is an option itself (`--model={model}`).
    pub fn fill<'v>(&self, value: impl Fn(Placeholder) -> Option<&'v str>) -> Vec<String> {
        let mut filled: Vec<String> = Vec::new();
        let mut before: Option<&Argument> = None;
        for argument in &self.arguments {
            match argument.fill(&value) {
                Some(word) => {
                    filled.push(word);
                    before = Some(argument);
                }
                None => {
                    if !argument.is_option() && before.take().is_some_and(Argument::is_bare_option) {
                        filled.pop();
                    }
                }
            }
        }
        filled
    }
}

impl Argument {
    /// Splits a word at its placeholders. `Err` contains the name of an unknown one.
    fn parse(word: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = word;
        while let Some((before, name, after)) = next_gap(rest) {
            let known = Placeholder::of_word(name).ok_or_else(|| name.to_owned())?;
            if !before.is_empty() {
                pieces.push(Piece::Literal(before.to_owned()));
            }
            pieces.push(Piece::Gap(known));
            rest = after;
        }
        if !rest.is_empty() || pieces.is_empty() {
            pieces.push(Piece::Literal(rest.to_owned()));
        }
        Ok(Self(pieces))
    }

    fn gaps(&self) -> impl Iterator<Item = Placeholder> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Gap(gap) => Some(*gap),
            Piece::Literal(_) => None,
        })
    }

    /// Values are inserted once, so that braces in a prompt stay. A NUL cannot be passed and becomes a space.
    fn fill<'v>(&self, value: impl Fn(Placeholder) -> Option<&'v str>) -> Option<String> {
        let mut word = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Literal(text) => word.push_str(text),
                Piece::Gap(gap) => word.push_str(value(*gap)?),
            }
        }
        Some(word.replace('\0', " "))
    }

    fn is_option(&self) -> bool {
        matches!(self.0.first(), Some(Piece::Literal(text)) if text.starts_with('-'))
    }

    /// An option that takes its value from the next argument.
    fn is_bare_option(&self) -> bool {
        match self.0.as_slice() {
            [Piece::Literal(text)] => {
                text.starts_with('-') && !matches!(text.as_str(), "-" | "--") && !text.contains('=')
            }
            _ => false,
        }
    }
}

/// The text before the next `{name}`, the name, and the text after it. Other braces, as in JSON, are text.
fn next_gap(text: &str) -> Option<(&str, &str, &str)> {
    text.match_indices('{').find_map(|(open, _)| {
        let inner = &text[open + 1..];
        let close = inner.find('}')?;
        let name = &inner[..close];
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        is_name.then(|| (&text[..open], name, &inner[close + 1..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(words: &[&str], model: Option<&str>) -> Vec<String> {
        Template::parse("robot", words).unwrap().fill(|gap| match gap {
            Placeholder::Model => model,
            Placeholder::Prompt => Some("do {model} \0now"),
            _ => None,
        })
    }

    #[test]
    fn a_placeholder_without_a_value_is_left_out_with_its_option() {
        let table: [(&[&str], Option<&str>, &[&str]); 9] = [
            (&["r", "--model", "{model}", "x"], Some("m"), &["--model", "m", "x"]),
            (&["r", "--model", "{model}", "x"], None, &["x"]),
            (&["r", "--model={model}", "x"], None, &["x"]),
            (&["r", "--yes", "--model={model}"], None, &["--yes"]),
            (&["r", "exec", "{model}", "-"], None, &["exec", "-"]),
            (&["r", "-", "{model}"], None, &["-"]),
            (&["r", "--a=b", "{model}", "{session}"], None, &["--a=b"]),
            (&["r", "-m", "{model}", "{session}", "x"], None, &["x"]),
            (&["r", "{prompt}"], Some("m"), &["do {model}  now"]),
        ];
        for (words, model, expected) in table {
            assert_eq!(filled(words, model), expected, "{words:?}");
        }
    }

    #[test]
    fn braces_without_a_placeholder_name_are_literal_text() {
        for word in ["{\"a\":1}", "{}", "{A}", "{", "}", "a{ b}", "{{\"x\":{}}}", ""] {
            assert_eq!(filled(&["r", word], None), [word], "{word}");
        }
        assert_eq!(filled(&["r", "{\"m\":\"{model}\"}"], Some("x")), ["{\"m\":\"x\"}"]);
    }

    #[test]
    fn a_command_template_without_a_program_or_with_an_unknown_placeholder_is_refused() {
        let error = |words: &[&str]| Template::parse("robot", words).unwrap_err();
        assert_eq!(error(&[]), AgentError::NoProgram { runner: "robot".into() });
        assert_eq!(error(&[""]), AgentError::NoProgram { runner: "robot".into() });
        assert_eq!(error(&["{model}"]), AgentError::NoProgram { runner: "robot".into() });
        let unknown = error(&["r", "{modle}"]);
        assert_eq!(unknown.to_string(), "runner 'robot' uses the unknown placeholder '{modle}'");
        assert_eq!(crate::failure::Explain::hint(&unknown).unwrap(), "did you mean 'model'?");
    }
}
