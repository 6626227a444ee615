//! Completion for fish, which hands `git arborist` on to `git-arborist` by itself.

use std::fmt::Write;

use git_arborist::catalog::VERBS;

use crate::shape::{Choice, Kind, Shape};

const FRAME: &str = include_str!("completion.fish");

/// What fish reads when it starts.
pub(crate) const START: &str = include_str!("start.fish");

pub(crate) fn completion(shapes: &[Shape]) -> String {
    let mut lines = String::new();
    for (path, shape) in shapes.iter().flat_map(Shape::walk) {
        let _ = writeln!(lines, "\n# {path}");
        let at = format!("complete -c git-arborist -n '__git_arborist_at {path}'");
        for Shape { name, about, .. } in &shape.commands {
            let _ = writeln!(lines, "{at} -f -a {name} -d {}", quoted(about));
        }
        // Operands and options follow each other, but not a command of this command, which has its own.
        let names: String = shape.commands.iter().map(|command| format!(" {}", command.name)).collect();
        let when = match names.as_str() {
            "" => format!("in {path}"),
            names => format!("without \"{path}\"{names}"),
        };
        let start = format!("complete -c git-arborist -n '__git_arborist_{when}'");
        let _ = writeln!(lines, "{start}{}", shape.operand().map_or(" -f".into(), offer));
        for choice in &shape.options {
            let _ = writeln!(lines, "{start}{}", option(choice));
        }
    }
    FRAME.replace("@COMMANDS@\n", &lines).replace("        @VERBS@\n", &verbs())
}

fn verbs() -> String {
    VERBS.iter().map(|verb| format!("        {}\\t{} \\\n", verb.name, quoted(verb.about))).collect()
}

fn option(choice: &Choice) -> String {
    let mut text = String::new();
    if let Some(short) = choice.short {
        let _ = write!(text, " -s {short}");
    }
    if let Some(long) = &choice.long {
        let _ = write!(text, " -l {long}");
    }
    match choice.kind() {
        Some(Kind::File) => text.push_str(" -r -F"),
        Some(kind) => {
            let _ = write!(text, " -x{}", offer(kind).replacen(" -f", "", 1));
        }
        None => {}
    }
    format!("{text} -d {}", quoted(&choice.help))
}

/// What is offered for a value of this kind, files only where they are meant.
fn offer(kind: &Kind) -> String {
    match kind {
        Kind::Task => " -f -a '(__git_arborist_tasks)'".into(),
        Kind::Branch | Kind::Revision => " -f -a '(__git_arborist_branches)'".into(),
        Kind::Session => " -f -a '(__git_arborist_sessions)'".into(),
        Kind::File => " -F".into(),
        Kind::Folder => " -f -a '(__fish_complete_directories)'".into(),
        Kind::OneOf(words) => format!(" -f -a {}", quoted(&words.join(" "))),
        Kind::Text => " -f".into(),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
