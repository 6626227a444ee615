//! Words and phrases that made texts hard to read, and must not come back into what users read: messages, help, manual pages,
//! documentation and changelog.

use std::{fs, sync::LazyLock};

use regex::Regex;

use crate::{architecture::sources, docs};

/// A pattern for each, and what to write instead.
const AVOIDED: [(&str, &str); 21] = [
    (r"anew", "again, or: from the beginning"),
    (r"mends?|mended", "fix, repair"),
    (r"(?:told|tells?|tell) of", "report, name, say that"),
    (r"goes on|went on|gone on", "continues"),
    (r"nobody|somebody|whoever", "no one, someone, or name the person or program"),
    (r"what is nowhere else|are nowhere else|is nowhere else", "exists only here"),
    (r"aloud", "say, report"),
    (r"takes? it out", "removes it"),
    (r"at once or not at all", "together"),
    (r"begun anew|began anew", "started over"),
    (r"of old|as of old", "as before"),
    (r"is left alone as it is", "is not changed"),
    (r"thereof|therein|hereby|whereof", "of it, in it"),
    (r"lest", "so that … not"),
    (r"an? \w+ of (?:its|their) own|of ours", "its own, their own, or: of git-arborist"),
    (r"while it ran", "name the program: while the agent ran"),
    (r"(?:took|taken|takes?) (?:it )?back", "undone, reverted"),
    (r"gives? it up|gave (?:it )?up", "remove it, end it, or: no longer wanted"),
    (r"puts? (?:it |them )?back|put right", "restores"),
    (r"stands twice", "occurs twice"),
    (r"so it is with|the same goes for it", "this also holds for"),
];

/// The texts between quotation marks in a source, without comments and without the tests at its end.
fn literals(source: &str) -> String {
    static TOKEN: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r#"//[^\n]*|'"'|(?s:"((?:\\.|[^"\\])*)")"#).unwrap());
    let code = source.split("\n#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let texts = TOKEN.captures_iter(code).filter_map(|token| token.get(1));
    texts.map(|text| text.as_str().replace("\\n", "\n") + "\n").collect()
}

/// Help texts of clap and descriptions of schemas are doc comments, so the generated pages are searched for them.
fn generated() -> Vec<(String, String)> {
    let folders = ["man", "schemas", "completions"].into_iter();
    let files = folders.flat_map(|folder| fs::read_dir(folder).unwrap().flatten());
    files
        .filter_map(|entry| {
            let text = fs::read_to_string(entry.path()).ok()?;
            Some((entry.path().display().to_string(), text.replace("\\-", "-")))
        })
        .collect()
}

#[test]
fn user_visible_texts_avoid_unclear_words() {
    let is_test = |path: &str| path.ends_with("tests.rs") || path.contains("/tests/");
    let code = ["shared/src", "bins"].into_iter().flat_map(sources);
    let code = code.map(|(path, text)| (path.display().to_string(), literals(&text)));
    let code = code.filter(|(path, _)| !is_test(path) && !path.contains("plan/markdown/"));
    let papers = ["SECURITY.md", "CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(Into::into);
    let papers = docs::texts().into_iter().chain(papers);
    let papers = papers.map(|path| (path.display().to_string(), fs::read_to_string(&path).unwrap()));
    let pattern = |words: &str| Regex::new(&format!(r"(?i)\b(?:{words})\b")).unwrap();
    let avoided = AVOIDED.map(|(words, instead)| (pattern(words), instead));
    let mut found = Vec::new();
    for (path, text) in code.chain(papers).chain(generated()) {
        for (pattern, instead) in &avoided {
            let lines = text.lines().filter(|line| pattern.is_match(line));
            found.extend(lines.map(|line| format!("{path}: {}\n    better: {instead}", line.trim())));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
