//! git-arborist(1): written by hand around what the source knows.

use arborist_core::{
    failure::Exit,
    settings::{SETTINGS, Setting},
};
use git_arborist::catalog::VERBS;

use crate::roff::{MARKER, entry, plain, title};

const FRAME: &str = include_str!("git-arborist.1.in");

const EXITS: [(Exit, &str); 6] = [
    (Exit::Done, "Success."),
    (Exit::No, "A task failed, work remains, or a check failed."),
    (
        Exit::Person,
        "You must act: for example, a task has a conflict, or your changes in a checkout are in the way of a landing.",
    ),
    (Exit::Locked, "Another run holds the lock."),
    (Exit::Fatal, "An error from git or the operating system."),
    (Exit::Usage, "Wrong options or arguments."),
];

pub(crate) fn page() -> String {
    let exits: String = EXITS.iter().map(|(exit, means)| entry(&exit.code().to_string(), means)).collect();
    FRAME
        .replace("@HEAD@\n", &format!("{MARKER}{}", title("git-arborist", 1)))
        .replace("@GLOSSARY@\n", &glossary())
        .replace("@COMMANDS@\n", &commands())
        .replace("@EXITS@\n", &exits)
        .replace("@SETTINGS@\n", &SETTINGS.iter().map(setting).collect::<String>())
        .replace("@VARIABLES@\n", &SETTINGS.iter().map(variable).collect::<String>())
        .replace("@PAGES@\n", &pages())
}

/// The table in `ARCHITECTURE.md`, so that there is one glossary.
fn glossary() -> String {
    let text = std::fs::read_to_string("ARCHITECTURE.md").expect("ARCHITECTURE.md");
    let (_, table) = text.split_once("| term | meaning |\n|---|---|\n").expect("a glossary");
    let rows = table.lines().map_while(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    rows.map(|row| {
        let (term, meaning) = row.split_once(" | ").expect("two columns");
        entry(term, &format!("{}.", meaning.replace('`', "")))
    })
    .collect()
}

fn commands() -> String {
    let mut page = String::new();
    let mut topic = "";
    for verb in VERBS {
        if verb.topic != topic {
            topic = verb.topic;
            page += &format!(".SS \"{}\"\n", plain(topic));
        }
        page += &entry(verb.name, &format!("{}.", verb.about));
    }
    page
}

fn pages() -> String {
    VERBS.iter().map(|verb| format!(".BR git\\-arborist\\-{} (1),\n", plain(verb.name))).collect()
}

fn setting(setting: &Setting) -> String {
    let Setting { key, about, default, .. } = setting;
    entry(key, &format!("{about} Value: {}. Default: {default}.", setting.expected()))
}

fn variable(setting: &Setting) -> String {
    setting
        .variable
        .map(|variable| entry(variable, &format!("The setting {}.", setting.key)))
        .unwrap_or_default()
}
