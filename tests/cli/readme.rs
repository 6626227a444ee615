//! The README and the texts in `docs/` name commands that exist, with options that exist, also where they are not run.

use std::fs;

use arborist_core::agent::Preset;
use git_arborist::catalog::{VERBS, definitions};

use crate::docs::texts;

/// A command ends before these.
const REDIRECTIONS: [&str; 4] = [" || ", " | ", " > ", " < "];

/// The commands `git arborist …` in the shell blocks of a text, as words.
fn commands(text: &str) -> Vec<Vec<String>> {
    let mut language = None;
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("```") {
            language = Some(name);
        }
        let typed = match language {
            Some("sh") => line,
            Some("console") => line.strip_prefix("$ ").unwrap_or_default(),
            _ => continue,
        };
        let typed = typed.split(" #").next().unwrap_or_default();
        for part in typed.split("&&").map(str::trim) {
            let part =
                REDIRECTIONS.iter().fold(part, |part, sign| part.split(sign).next().unwrap_or_default());
            if let Some(rest) = part.strip_prefix("git arborist") {
                found.push(words(rest));
            }
        }
    }
    found
}

fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (n, part) in text.split('\'').enumerate() {
        if n % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

#[test]
fn every_command_in_the_readme_and_the_chapters_is_valid() {
    let texts = texts().into_iter().map(|path| fs::read_to_string(path).unwrap());
    let commands: Vec<_> = texts.flat_map(|text| commands(&text)).collect();
    assert!(commands.len() > 50, "{commands:?}");
    for words in commands {
        let Some((verb, args)) = words.split_first() else { continue };
        let name = format!("git-arborist-{verb}");
        let command = definitions().into_iter().find(|command| command.get_name() == name);
        let command = command.unwrap_or_else(|| panic!("no such command: {words:?}"));
        let parsed = command.try_get_matches_from(std::iter::once(&name).chain(args));
        assert!(parsed.is_ok(), "{words:?}: {}", parsed.unwrap_err());
    }
}

#[test]
fn every_command_is_listed_in_the_readme() {
    let text = fs::read_to_string("README.md").unwrap();
    for verb in VERBS {
        assert!(
            text.contains(&format!("| `git arborist {}` |", verb.name)),
            "{} is not in the table",
            verb.name
        );
    }
}

#[test]
fn the_readme_says_after_the_first_example_what_agents_may_do_in_the_checkout() {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let after = text.split_once("git arborist gardener --runner claude").unwrap().1;
    let note = after.split("```").nth(1).unwrap().trim_start();
    assert!(
        note.starts_with("> **Agents run in your checkout, with their own permission checks off**"),
        "{note}"
    );
}

/// The words in `code` of the sentence that begins with this.
fn names_after<'a>(text: &'a str, begin: &str) -> Vec<&'a str> {
    let (_, rest) = text.split_once(begin).unwrap_or_else(|| panic!("no '{begin}'"));
    let end = ["`, or ", "`. "].iter().filter_map(|end| rest.find(end)).min().expect("the end of a list");
    rest[..=end].split('`').skip(1).step_by(2).collect()
}

#[test]
fn the_built_in_runners_are_listed_and_counted() {
    let built_in: Vec<&str> = Preset::ALL.iter().map(|preset| preset.name).collect();
    let readme = fs::read_to_string("README.md").unwrap();
    // Claude Code is the one of all examples.
    let others: Vec<&str> = built_in.iter().copied().filter(|name| *name != "claude").collect();
    assert_eq!(names_after(&readme, "\nOther agents: "), others, "README.md");
    let count = format!("\n| agents | {}, or any program |", built_in.len());
    assert!(readme.contains(&count), "README.md: no '{}'", count.trim());
    let chapter = fs::read_to_string("docs/agents-and-models.md").unwrap();
    assert_eq!(names_after(&chapter, "These are built in: "), built_in, "docs/agents-and-models.md");
}
