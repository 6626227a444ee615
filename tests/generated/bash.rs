//! Completion for bash, as a part of git's own.

use std::fmt::Write;

use git_arborist::catalog::VERBS;

use crate::shape::{Kind, Shape};

const FRAME: &str = include_str!("completion.bash");

pub(crate) fn completion(shapes: &[Shape]) -> String {
    let mut knows = String::new();
    let mut takes = String::new();
    for (path, shape) in shapes.iter().flat_map(Shape::walk) {
        let _ = writeln!(knows, "\t\"{path}\")\n{}\t\t;;", knowledge(shape));
        for option in &shape.options {
            let Some(kind) = option.kind() else { continue };
            let long = option.long.iter().map(|long| format!("\"{path} --{long}\""));
            let short = option.short.iter().map(|short| format!("\"{path} -{short}\""));
            let spellings: Vec<String> = long.chain(short).collect();
            let _ = writeln!(takes, "\t{}) echo \"{}\" ;;", spellings.join(" | "), words(kind));
        }
    }
    let verbs: Vec<&str> = VERBS.iter().map(|verb| verb.name).collect();
    FRAME.replace("@VERBS@", &verbs.join(" ")).replace("\t@KNOWS@\n", &knows).replace("\t@TAKES@\n", &takes)
}

fn knowledge(shape: &Shape) -> String {
    let commands: Vec<&str> = shape.commands.iter().map(|command| command.name.as_str()).collect();
    let options = shape.options.iter().filter_map(|option| {
        let end = if option.value.is_some() { "=" } else { "" };
        Some(format!("--{}{end}", option.long.as_ref()?))
    });
    let options: Vec<String> = options.collect();
    let operand = shape.operand().map(words).unwrap_or_default();
    format!(
        "\t\tcommands=\"{}\"\n\t\toptions=\"{}\"\n\t\toperand=\"{operand}\"\n",
        commands.join(" "),
        options.join(" ")
    )
}

/// A kind in capitals, or the words to choose from.
fn words(kind: &Kind) -> String {
    match kind {
        Kind::Task => "TASK".into(),
        Kind::Branch => "BRANCH".into(),
        Kind::Session => "SESSION".into(),
        Kind::Revision => "REVISION".into(),
        Kind::File | Kind::Folder => "FILE".into(),
        Kind::OneOf(words) => words.join(" "),
        Kind::Text => "TEXT".into(),
    }
}
