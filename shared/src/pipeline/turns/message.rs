//! The message of a turn's commit: the agent's own words if they read as an imperative, otherwise a description of the
//! change.

use crate::{
    git::TreeChange,
    message::{Body, plain_text},
};

/// The longest subject, in characters.
pub(in crate::pipeline) const MAX_SUBJECT: usize = 72;

/// How many characters of an agent's words the commit contains.
const LONGEST_WORDS: usize = 1000;

/// How many sentences are searched for one that says what was done.
const SENTENCES: usize = 6;

/// The message of a turn's commit, without its trailers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::pipeline) struct TurnMessage {
    /// The subject in the imperative mood.
    pub(in crate::pipeline) subject: String,
    /// The text of the body, and the heading over it.
    words: String,
    heading: &'static str,
}

/// The heading over the agent's words.
const AGENT_WORDS_HEADING: &str = "The agent's words (truncated to 1000 chars):";
/// The heading over the words of a model that described the change.
const DESCRIPTION_HEADING: &str = "Description:";

impl TurnMessage {
    /// Made from the agent's words and the change.
    pub(in crate::pipeline) fn of(words: &str, changes: &[TreeChange]) -> Self {
        let subject = sentences(words)
            .take(SENTENCES)
            .find_map(|sentence| imperative(&sentence))
            .unwrap_or_else(|| plain(changes));
        Self { subject, words: cut_words(words), heading: AGENT_WORDS_HEADING }
    }

    /// Made from the change alone.
    pub(in crate::pipeline) fn plain(changes: &[TreeChange]) -> Self {
        Self { subject: plain(changes), words: String::new(), heading: AGENT_WORDS_HEADING }
    }

    /// Written by a model that was shown the change.
    pub(in crate::pipeline) fn told(subject: String, words: &str) -> Self {
        Self { subject, words: cut_words(words), heading: DESCRIPTION_HEADING }
    }

    /// The message of a replayed turn.
    pub(in crate::pipeline) fn repeated(text: &str) -> Self {
        let (subject, words) = text.split_once("\n\n").unwrap_or((text, ""));
        Self::told(subject.to_owned(), words)
    }

    /// The whole text.
    pub(in crate::pipeline) fn text(&self) -> String {
        format!("{}\n\n{}", self.subject, self.words).trim_end().to_owned()
    }

    /// The body of the commit message.
    pub(in crate::pipeline) fn body(&self) -> Body {
        if self.words.trim().is_empty() {
            return Body::default();
        }
        Body::new(self.heading, &self.words)
    }
}

fn cut_words(words: &str) -> String {
    words.chars().take(LONGEST_WORDS).collect()
}

/// Describes a change in one line.
pub fn plain(changes: &[TreeChange]) -> String {
    let renamed = match changes {
        [a, b] => renaming(a, b).or_else(|| renaming(b, a)),
        _ => None,
    };
    if let Some((from, to)) = renamed {
        return cut(&format!("Rename {} to {}", from.shown(), to.shown()));
    }
    let verb = if changes.iter().all(|change| change.before.is_none()) {
        "Add"
    } else if changes.iter().all(|change| change.after.is_none()) {
        "Delete"
    } else {
        "Update"
    };
    let what = match changes {
        [one] => one.shown(),
        [one, two] => format!("{} and {}", one.shown(), two.shown()),
        many => format!("{} files", many.len()),
    };
    cut(&format!("{verb} {what}"))
}

fn renaming<'c>(from: &'c TreeChange, to: &'c TreeChange) -> Option<(&'c TreeChange, &'c TreeChange)> {
    let is_renamed = from.after.is_none() && to.before.is_none() && from.before == to.after;
    is_renamed.then_some((from, to))
}

/// The sentences of a text, without Markdown around them.
fn sentences(words: &str) -> impl Iterator<Item = String> {
    let plain = plain_text(words);
    let lines: Vec<String> = plain.lines().map(str::to_owned).collect();
    let parts = lines.into_iter().flat_map(|line| {
        let line = line.trim_start_matches(['#', '*', '-', '>', ' ']).replace("**", "");
        let mut parts = Vec::new();
        let mut rest = line.as_str();
        while let Some(end) = [". ", "! ", "? "].iter().filter_map(|mark| rest.find(mark)).min() {
            parts.push(rest[..end].to_owned());
            rest = &rest[end + 2..];
        }
        parts.push(rest.to_owned());
        parts
    });
    parts.filter(|part| !part.trim().is_empty())
}

/// Phrases before the verb.
const OPENINGS: [&str; 40] = [
    "okay", "ok", "sure", "great", "good", "perfect", "alright", "right", "now", "next", "first", "then",
    "finally", "lastly", "also", "so", "and", "i'll", "i’ll", "i will", "i'm going to", "i am going to",
    "i'm", "i am", "i've", "i have", "i need to", "i should", "i can", "i just", "i", "we'll", "we need to",
    "we", "let me", "let's", "let us", "go ahead and", "start by", "begin by",
];

/// Verbs for changes of files and their content.
const VERBS: [&str; 62] = [
    "add", "adjust", "align", "allow", "append", "apply", "bring", "build", "call", "change", "check",
    "clean", "complete", "configure", "convert", "copy", "correct", "create", "declare", "define", "delete",
    "describe", "document", "drop", "edit", "enable", "ensure", "export", "extend", "extract", "fill", "fix",
    "format", "generate", "handle", "implement", "import", "improve", "include", "insert", "introduce",
    "join", "link", "make", "mark", "merge", "move", "refactor", "register", "remove", "rename", "replace",
    "restore", "revert", "rewrite", "set", "simplify", "split", "test", "update", "use", "write",
];

/// Forms that follow no rule.
const IRREGULAR: [(&str, &str); 8] = [
    ("wrote", "write"),
    ("written", "write"),
    ("rewrote", "rewrite"),
    ("rewritten", "rewrite"),
    ("made", "make"),
    ("built", "build"),
    ("brought", "bring"),
    ("putting", "put"),
];

/// Rewrites a sentence in the imperative: `I'll add a form` becomes `Add a form`. `None` if it describes no change.
fn imperative(sentence: &str) -> Option<String> {
    let mut rest = sentence.trim();
    while let Some(after) = OPENINGS.iter().find_map(|opening| without(rest, opening)) {
        rest = after;
    }
    let (verb, what) = rest.split_once(' ')?;
    let verb = base(&verb.to_lowercase())?;
    let what = what.trim().trim_end_matches(['.', ':', ';', ',', '!', '…']).trim_end();
    if what.is_empty() {
        return None;
    }
    let capital: String =
        verb.chars().take(1).flat_map(char::to_uppercase).chain(verb.chars().skip(1)).collect();
    Some(cut(&format!("{capital} {what}")))
}

/// The rest of `text` after an opening, if it begins with it as a whole word.
fn without<'t>(text: &'t str, opening: &str) -> Option<&'t str> {
    let head = text.get(..opening.len())?;
    let rest = &text[opening.len()..];
    let is_word = rest.starts_with([' ', ',', ':', '!', '.']);
    (head.eq_ignore_ascii_case(opening) && is_word)
        .then(|| rest.trim_start_matches([' ', ',', ':', '!', '.']))
}

/// The verb of [`VERBS`] that a word is a form of.
fn base(word: &str) -> Option<&'static str> {
    let irregular = IRREGULAR.iter().find(|(form, _)| *form == word).map(|(_, verb)| *verb);
    irregular.or_else(|| VERBS.iter().copied().find(|verb| is_form(word, verb)))
}

fn is_form(word: &str, verb: &str) -> bool {
    let Some(rest) = word.strip_prefix(verb) else {
        let stem = verb.strip_suffix('e').filter(|_| word.ends_with("ing"));
        let changed = verb.strip_suffix('y').filter(|_| word.ends_with("ied") || word.ends_with("ies"));
        let is_short = |stem: &str| word.strip_prefix(stem).is_some_and(|end| end == "ing");
        let is_changed = |stem: &str| word.strip_prefix(stem).is_some_and(|end| matches!(end, "ied" | "ies"));
        return stem.is_some_and(is_short) || changed.is_some_and(is_changed);
    };
    let last = verb.chars().last();
    let doubled = rest.chars().next().filter(|c| Some(*c) == last).map(|c| &rest[c.len_utf8()..]);
    matches!(rest, "" | "s" | "es" | "d" | "ed" | "ing") || matches!(doubled, Some("ed" | "ing"))
}

/// Cuts a line at the end of a word to the length of a subject.
fn cut(line: &str) -> String {
    if line.chars().count() <= MAX_SUBJECT {
        return line.to_owned();
    }
    let kept: String = line.chars().take(MAX_SUBJECT - 1).collect();
    let end = kept.rfind(' ').filter(|end| *end > MAX_SUBJECT / 2).unwrap_or(kept.len());
    format!("{}…", kept[..end].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_person_sentences_become_imperative_subjects() {
        let table = [
            ("I'll add a health endpoint.", "Add a health endpoint"),
            ("Great! Now let me create the schema:", "Create the schema"),
            ("Let me look around. Then I will write `a.txt`.", "Write `a.txt`"),
            ("Created the file\nand more", "Create the file"),
            ("**Splitting** the module", "Split the module"),
            ("I'm updating two tests, then I run them", "Update two tests, then I run them"),
            ("## Applied the patch", "Apply the patch"),
            ("Makes it faster", "Make it faster"),
        ];
        for (words, expected) in table {
            assert_eq!(TurnMessage::of(words, &[]).subject, expected, "{words}");
        }
        for words in ["The tests pass.", "Done.", "", "I see", "additional words", "settings are fine"] {
            assert_eq!(TurnMessage::of(words, &[]).subject, "Add 0 files", "{words}");
        }
    }

    #[test]
    fn a_turn_subject_is_never_too_long() {
        let long = format!("I'll add {}", "words ".repeat(40));
        let subject = TurnMessage::of(&long, &[]).subject;
        assert!(subject.chars().count() <= 72 && subject.ends_with("words…"), "{subject}");
        assert_eq!(cut(&"ü".repeat(100)).chars().count(), 72);
    }

    #[test]
    fn without_text_of_the_agent_the_subject_describes_the_change() {
        let id = |digit: &str| digit.repeat(40).parse().unwrap();
        let change = |path: &str, before: Option<&str>, after: Option<&str>| TreeChange {
            path: path.as_bytes().to_vec(),
            before: before.map(|digit| (0o100_644, id(digit))),
            after: after.map(|digit| (0o100_644, id(digit))),
        };
        let (new, gone) = (change("b.txt", None, Some("1")), change("a.txt", Some("1"), None));
        let changed = change("src/c.rs", Some("1"), Some("2"));
        assert_eq!(plain(std::slice::from_ref(&new)), "Add b.txt");
        assert_eq!(plain(std::slice::from_ref(&gone)), "Delete a.txt");
        assert_eq!(plain(&[gone.clone(), new.clone()]), "Rename a.txt to b.txt");
        assert_eq!(plain(&[changed.clone(), new.clone()]), "Update src/c.rs and b.txt");
        assert_eq!(plain(&[changed, new, gone]), "Update 3 files");
    }
}
