//! The dispatcher. It knows nothing about git and parses no options of the commands: it finds `git-arborist-<verb>`
//! next to itself, then on `PATH`, and executes it.

mod overview;

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    path::PathBuf,
    process::ExitCode,
};

use arborist_core::{
    failure::{Exit, Failure},
    message::nearest,
    process::{Program, find_program, is_executable},
};

use crate::{
    catalog::VERBS,
    entry::{Outcome, conclude},
    ui::Ui,
};

const PREFIX: &str = "git-arborist-";

/// Runs the dispatcher.
#[must_use]
pub fn main() -> ExitCode {
    let mut ui = Ui::plain();
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let outcome = dispatch(&mut ui, &args);
    ExitCode::from(conclude(ui, outcome).code())
}

fn dispatch(ui: &mut Ui, args: &[OsString]) -> Outcome {
    let Some((first, rest)) = args.split_first() else {
        overview::show(ui);
        return Ok(Exit::Done);
    };
    match first.to_str() {
        Some("-h" | "--help") => overview::usage(ui),
        Some("--version" | "-v" | "version") => {
            ui.line(&format!("git-arborist {}", env!("CARGO_PKG_VERSION")));
        }
        Some("--list-cmds") => verbs_on_path().iter().for_each(|verb| ui.line(verb)),
        Some("help") => return help(ui, rest.first()),
        Some(option) if option.starts_with('-') => return Err(unknown_option(option)),
        _ => return become_verb(first, rest),
    }
    Ok(Exit::Done)
}

/// `git arborist help VERB` is `git arborist VERB --help`, which opens its manual page.
fn help(ui: &mut Ui, verb: Option<&OsString>) -> Outcome {
    match verb {
        Some(verb) => become_verb(verb, &["--help".into()]),
        None => {
            overview::usage(ui);
            Ok(Exit::Done)
        }
    }
}

fn become_verb(verb: &OsStr, args: &[OsString]) -> Outcome {
    let program = find_verb(verb).ok_or_else(|| unknown_verb(verb))?;
    let error = Program::new(program).args(args).exec();
    Err(Failure::new(Exit::Fatal, error.to_string()))
}

/// The program of a verb. One next to us comes first, so that all programs are of one version.
fn find_verb(verb: &OsStr) -> Option<PathBuf> {
    let name = verb.to_str().filter(|name| !name.contains('/') && !name.is_empty())?;
    let file = format!("{PREFIX}{name}");
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join(&file)));
    beside.filter(|file| is_executable(file)).or_else(|| find_program(&file, &std::env::var_os("PATH")?))
}

fn unknown_verb(verb: &OsStr) -> Failure {
    let verb = verb.to_string_lossy();
    let failure =
        Failure::new(Exit::Usage, format!("'{}' is not a git arborist command", verb.escape_debug()));
    let known = verbs_on_path();
    match nearest(&verb, known.iter().map(String::as_str)) {
        Some(meant) => failure.hint(format!("did you mean 'git arborist {meant}'?")),
        None => failure.hint("see 'git arborist' for the list of commands"),
    }
}

fn unknown_option(option: &str) -> Failure {
    Failure::new(Exit::Usage, format!("unknown option '{}'", option.escape_debug()))
        .hint("usage: git arborist [--version] [-h] <command> [<args>]")
}

/// Our own verbs and other installed ones, sorted.
fn verbs_on_path() -> BTreeSet<String> {
    let mut verbs: BTreeSet<String> = VERBS.iter().map(|verb| verb.name.to_owned()).collect();
    let path = std::env::var_os("PATH").unwrap_or_default();
    for dir in std::env::split_paths(&path) {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        verbs.extend(entries.filter_map(|entry| {
            let name = entry.file_name().to_str()?.strip_prefix(PREFIX)?.to_owned();
            is_executable(&entry.path()).then_some(name)
        }));
    }
    verbs
}
