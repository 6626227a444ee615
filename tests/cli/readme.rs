//! The README tells the truth: its commands exist, with these options.

use std::fs;

use git_arborist::catalog::{VERBS, definitions};

/// Lines `git arborist …` of the README's shell blocks, as words.
fn commands(text: &str) -> Vec<Vec<String>> {
    let mut is_shell = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            is_shell = line == "```sh";
        }
        let line = line.split(" #").next().unwrap().trim();
        for part in line.split("&&").map(str::trim).filter(|_| is_shell) {
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
fn every_command_of_the_readme_is_understood() {
    let text = fs::read_to_string("README.md").unwrap();
    let commands = commands(&text);
    assert!(commands.len() > 8, "{commands:?}");
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
fn every_command_stands_in_the_readme() {
    let text = fs::read_to_string("README.md").unwrap();
    for verb in VERBS {
        assert!(
            text.contains(&format!("| `git arborist {}` |", verb.name)),
            "{} is not in the table",
            verb.name
        );
    }
}
