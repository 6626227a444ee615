//! What every command does before and after its body: arguments, help, errors, exit codes.

use std::{ffi::OsString, path::Path, process::ExitCode};

use arborist_core::{
    failure::{Exit, Failure},
    git::{
        Config, Repository, remove_frozen_settings, take_moved_aside, take_notices, take_removed_locks,
        take_saved_files, take_skipped_refs,
    },
    message::{nearest, plain_text, visible_lines},
    name::TaskId,
    process::{
        Program,
        interrupt::{self, received_signal},
        protect_memory, shell_word,
    },
    queue::take_unreadable_tickets,
    settings::Settings,
};
use clap::{
    Arg, Command, CommandFactory, Parser,
    error::{ContextKind, ContextValue, ErrorKind},
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::ui::{Ui, wrapped};

/// How many files a run may have open at once, if the system allows it.
const WANTED_DESCRIPTORS: u64 = 8192;

/// The widest help, in columns.
const WIDEST_HELP: usize = 100;
/// How many refs that could not be read are named.
const MOST_SKIPPED_REFS: usize = 10;

/// How a command's body ends.
pub type Outcome = Result<Exit, Failure>;

/// Runs a command from the process's arguments to its exit code.
pub fn main<A: Parser>(body: fn(A, &mut Ui) -> Outcome) -> ExitCode {
    protect_memory();
    raise_descriptor_limit();
    // If it fails, a signal ends this process alone.
    let _ = interrupt::end_with_programs();
    std::panic::set_hook(Box::new(|panic| Ui::plain().panicked(panic)));
    let run = || run(body, std::env::args_os().collect());
    let exit = std::panic::catch_unwind(run).unwrap_or(Exit::Fatal);
    ExitCode::from(exit.code())
}

/// Opens the repository of the current folder and reads its configuration, from which output takes its colours.
pub(crate) fn open_repository(ui: &mut Ui) -> Result<(Repository, Config), Failure> {
    // git reads the configuration while the repository is looked for.
    let config = Config::start(Path::new("."))?;
    let repository = Repository::discover()?;
    let config = config.finish()?;
    ui.configure(&config);
    Ok((repository, config))
}

/// Like [`open_repository`], and reads the settings.
pub(crate) fn open_with_settings(ui: &mut Ui) -> Result<(Repository, Config, Settings), Failure> {
    let (repository, config) = open_repository(ui)?;
    let settings = Settings::load(&repository, &config)?;
    Ok((repository, config, settings))
}

/// Raises the soft limit of open files, which is 256 or 1,024 by default. Each lane needs about 20.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let possible = limit.maximum.map_or(WANTED_DESCRIPTORS, |maximum| maximum.min(WANTED_DESCRIPTORS));
    if limit.current.is_some_and(|current| current < possible) {
        // If it is refused, the old limit stays, and a run with many jobs reports it.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(possible), ..limit });
    }
}

fn run<A: Parser>(body: fn(A, &mut Ui) -> Outcome, args: Vec<OsString>) -> Exit {
    let mut ui = Ui::plain();
    if args.iter().skip(1).take_while(|arg| *arg != "--").any(|arg| arg == "--help") {
        return manual::<A>(&mut ui, &args);
    }
    let outcome = match parse(args, help_width(&ui)) {
        Ok(args) => body(args, &mut ui),
        Err(error) => return usage::<A>(&mut ui, &error),
    };
    conclude(ui, outcome)
}

/// Parses the arguments. A negative number after an option is its value, so that the error says what is wrong with it.
fn parse<A: Parser>(args: Vec<OsString>, width: usize) -> Result<A, clap::Error> {
    let mut command = with_negative_numbers(A::command()).term_width(width);
    let matches = command.try_get_matches_from_mut(args)?;
    A::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// How wide help is: as wide as the terminal, but not too wide to read. Clap asks the terminal too, but ignores the answer of
/// one that does not know its height.
fn help_width(ui: &Ui) -> usize {
    let from_environment = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0);
    ui.width().or_else(from_environment).unwrap_or(WIDEST_HELP).min(WIDEST_HELP)
}

fn with_negative_numbers(command: Command) -> Command {
    let takes_value = |arg: &Arg| !arg.is_positional() && arg.get_action().takes_values();
    let command =
        command.mut_args(|arg| if takes_value(&arg) { arg.allow_negative_numbers(true) } else { arg });
    command.mut_subcommands(with_negative_numbers)
}

/// Prints a failure, flushes the output, and returns the exit code.
pub fn conclude(mut ui: Ui, outcome: Outcome) -> Exit {
    remove_frozen_settings();
    for lock in take_removed_locks() {
        ui.warn(&format!("removed a lock that no running git process holds: '{}'", lock.display()));
    }
    for saved in take_saved_files() {
        ui.warn(&format!("saved files that an interrupted landing had written to the checkout as '{saved}'"));
    }
    for (path, kept) in take_moved_aside() {
        ui.warn(&format!(
            "moved '{}', which git could not overwrite, to '{}'",
            path.display(),
            kept.display()
        ));
    }
    // Runs and `merge` report these themselves; other commands that start programs do not.
    take_notices().iter().for_each(|words| ui.warn(&plain_text(words)));
    for (name, why) in take_unreadable_tickets() {
        ui.warn(&format!("skipped the queue entry '{name}', which could not be read: {why}"));
        ui.hint(&format!("delete it with: git update-ref -d {name}"));
    }
    let skipped = take_skipped_refs();
    for (name, why) in skipped.iter().take(MOST_SKIPPED_REFS) {
        ui.warn(&format!("'{name}' could not be read and is left out: {why}"));
    }
    if let more @ 1.. = skipped.len().saturating_sub(MOST_SKIPPED_REFS) {
        ui.warn(&format!("{more} more refs could not be read and are left out"));
    }
    let exit = match outcome {
        Ok(exit) => exit,
        Err(failure) => {
            // The user knows why it stops, and has not made a mistake.
            match (failure.exit, received_signal()) {
                (Exit::Child(_), Some(_)) => ui.stopped(&failure),
                _ => ui.fail(&failure),
            }
            failure.exit
        }
    };
    // Whatever could not be finished after a signal, the signal is the reason.
    let exit = match received_signal().and_then(|signal| u8::try_from(signal).ok()) {
        Some(signal) if exit == Exit::Fatal => Exit::Child(128 + signal),
        _ => exit,
    };
    if ui.finish().is_err() { Exit::Fatal } else { exit }
}

/// `--help` opens the manual page, as git does, or prints the same text if there is no page.
fn manual<A: CommandFactory>(ui: &mut Ui, args: &[OsString]) -> Exit {
    let width = help_width(ui);
    let mut command = A::command().term_width(width);
    let page = command.get_name().to_owned();
    let is_there = Program::new("man").args(["-w", &page]).finish().is_ok_and(|man| man.status.success());
    if is_there {
        let error = Program::new("man").arg(&page).exec();
        ui.warn(&error.to_string());
    }
    let long = match A::command().term_width(width).try_get_matches_from(args) {
        Err(error) if error.kind() == ErrorKind::DisplayHelp => error.render().to_string(),
        _ => command.render_long_help().to_string(),
    };
    ui.out(&in_gits_voice(&long, width));
    conclude(std::mem::replace(ui, Ui::plain()), Ok(Exit::Done))
}

fn usage<A: CommandFactory>(ui: &mut Ui, error: &clap::Error) -> Exit {
    // The error repeats arguments.
    let is_asked = error.kind() == ErrorKind::DisplayHelp;
    let is_help = is_asked || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    let width = help_width(ui);
    // The usage of an error is printed again below.
    let room = if is_help { width } else { usize::MAX };
    let text = visible_lines(&in_gits_voice(&error.render().to_string(), room));
    if is_help && !is_asked {
        ui.err(&text);
        return Exit::Usage;
    }
    if is_asked {
        ui.out(&text);
        return conclude(std::mem::replace(ui, Ui::plain()), Ok(Exit::Done));
    }
    let text = without_more_usages(&with_useful_hint(&with_nearest(&text)));
    // As for other errors: no blank lines, and the hints follow the error. The usage comes last.
    let (usage, text): (Vec<&str>, Vec<&str>) =
        text.lines().filter(|line| !line.trim().is_empty()).partition(|line| line.starts_with("usage: "));
    let (mut hints, error_lines): (Vec<&str>, Vec<&str>) =
        text.into_iter().partition(|line| line.starts_with("hint: "));
    let synonym = find_synonym::<A>(error).map(|verb| format!("hint: did you mean '{verb}'?"));
    if let Some(synonym) = &synonym {
        hints = vec![synonym];
    }
    error_lines.iter().chain(&hints).for_each(|line| ui.err(&format!("{line}\n")));
    let command = usage.first().map(|usage| words_of_command(usage).split_off(1).join(" "));
    if error.kind() == ErrorKind::InvalidSubcommand && hints.is_empty() {
        let command = command.as_deref().unwrap_or("git arborist");
        ui.hint(&format!("see the commands with: {command} -h"));
    }
    // Errors about values have no usage.
    let typed = || -> String {
        let own = A::command().get_bin_name().unwrap_or_default().to_owned();
        let words = std::env::args_os().skip(1).map(|word| format!(" {}", word.to_string_lossy()));
        own + &words.collect::<String>()
    };
    let definition = find_command::<A>(&command.clone().unwrap_or_else(typed));
    match (unnamed_value(error, &definition), &command) {
        (Some(hint), _) => ui.hint(&hint),
        (None, Some(command)) if error.kind() == ErrorKind::UnknownArgument && hints.is_empty() => {
            ui.hint(&format!("see the options with: {command} -h"));
        }
        _ => {}
    }
    if let Some(command) = &command {
        ui.err(&whole_usage::<A>(command, width));
    }
    Exit::Usage
}

/// The usage of the command with this name, as `-h` prints it. Clap's own line leaves out most options, and
/// calls optional arguments that were given required.
fn whole_usage<A: CommandFactory>(name: &str, width: usize) -> String {
    in_gits_voice(&format!("{}\n", find_command::<A>(name).render_usage()), width)
}

/// The definition of the command with this name.
fn find_command<A: CommandFactory>(name: &str) -> Command {
    let mut command = A::command();
    command.build();
    let own = command.get_bin_name().map_or(0, |name| name.split_whitespace().count());
    for name in name.split(' ').skip(own) {
        let Some(verb) = command.find_subcommand(name).cloned() else { break };
        command = verb;
    }
    command
}

/// The words of a usage line that name the command.
fn words_of_command(usage: &str) -> Vec<&str> {
    usage.split_whitespace().take_while(|word| !word.starts_with(['[', '<', '-'])).collect()
}

/// The hint for a value that was given without its option, if the command has such an option: a plan, a task, or one of
/// the words that the option accepts.
fn unnamed_value(error: &clap::Error, command: &Command) -> Option<String> {
    let find = |name: &str| command.get_arguments().find(|argument| argument.get_long() == Some(name));
    let text = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let word = text(ContextKind::InvalidArg).filter(|word| !word.starts_with('-'))?;
            if find("tree").is_some() && Path::new(word).exists() {
                return Some(format!("name the plan with: --tree {}", shell_word(word)));
            }
            let takes_tasks = |argument: &Arg| {
                argument.get_value_names().is_some_and(|names| names.iter().any(|name| name == "TASK"))
            };
            let task: TaskId = word.parse().ok().filter(|_| find("only").is_some_and(takes_tasks))?;
            Some(format!("name tasks with: --only {task}"))
        }
        ErrorKind::ValueValidation
            if text(ContextKind::InvalidArg).is_some_and(|arg| arg.starts_with("--only "))
                && text(ContextKind::InvalidValue).is_some_and(|value| value.contains(',')) =>
        {
            let tasks: Result<Vec<TaskId>, _> =
                text(ContextKind::InvalidValue)?.split(',').map(|task| task.trim().parse()).collect();
            let options: Vec<String> = tasks.ok()?.iter().map(|task| format!("--only {task}")).collect();
            Some(format!("give the option once for each task: {}", options.join(" ")))
        }
        ErrorKind::ValueValidation if find("message").is_some() => {
            let word = text(ContextKind::InvalidValue).filter(|word| word.contains(' '))?;
            let name = command.get_bin_name()?;
            Some(format!("to describe a new task: {name} -m {}", shell_word(word)))
        }
        ErrorKind::ArgumentConflict if find("message").is_some() => {
            let args: Vec<String> = error.context().map(|(_, value)| value.to_string()).collect();
            let is_both =
                ["[TASK]", "--message"].iter().all(|arg| args.iter().any(|named| named.contains(arg)));
            is_both.then(|| "name a task, or describe one with -m, not both".to_owned())
        }
        ErrorKind::InvalidValue => {
            let word = text(ContextKind::InvalidValue)?;
            let accepts =
                |argument: &&Arg| argument.get_possible_values().iter().any(|value| value.get_name() == word);
            let option = command.get_arguments().find(accepts)?.get_long()?;
            Some(format!("'{word}' is a value of another option: --{option} {word}"))
        }
        _ => None,
    }
}

/// Removes the further lines of clap's usage, which is printed as a whole below.
fn without_more_usages(text: &str) -> String {
    let mut is_usage = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        is_usage = line.starts_with("usage: ") || (is_usage && line.starts_with("       "));
        if !is_usage || line.starts_with("usage: ") {
            lines.push(line);
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Words of git, and of our own help, for a verb that has another name.
const SYNONYMS: [(&str, &str, &str); 3] = [
    ("git-arborist-workspace", "clone", "sync"),
    ("git-arborist-workspace", "fetch", "sync"),
    ("git-arborist-workspace", "pull", "sync"),
];

/// The verb that a word stands for which is not the name of one.
fn find_synonym<A: CommandFactory>(error: &clap::Error) -> Option<&'static str> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let command = A::command();
    let is_it = |(of, typed, _): &&(&str, &str, &str)| *of == command.get_name() && *typed == word;
    SYNONYMS.iter().find(is_it).map(|(_, _, verb)| *verb)
}

/// Replaces clap's list of similar names by the nearest one, or by a hint to the help if none is near.
fn with_nearest(text: &str) -> String {
    let usage = text.lines().find_map(|line| line.strip_prefix("usage: ")).unwrap_or_default();
    let command = words_of_command(usage).join(" ");
    let quoted = |line: &str| line.split('\'').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let typed = text.lines().next().and_then(|error| quoted(error).into_iter().next()).unwrap_or_default();
    // Two options are not similar because both begin with dashes.
    let bare = |name: &str| name.trim_start_matches('-').to_owned();
    let lines = text.lines().filter_map(|line| {
        let is_list = line.starts_with("hint: some similar ") || line.starts_with("hint: a similar ");
        let names = if is_list { quoted(line) } else { Vec::new() };
        if !is_list {
            return Some(line.to_owned());
        }
        let kind = if typed.starts_with('-') { "options" } else { "commands" };
        let bare_names: Vec<String> = names.iter().map(|name| bare(name)).collect();
        let meant = nearest(&bare(&typed), bare_names.iter().map(String::as_str));
        match meant.and_then(|meant| names.iter().find(|name| bare(name) == meant)) {
            Some(meant) => Some(format!("hint: did you mean '{meant}'?")),
            // An error about a value has no usage, and lists the values.
            None if command.is_empty() => None,
            None => Some(format!("hint: see the {kind} with: {command} -h")),
        }
    });
    lines.map(|line| format!("{line}\n")).collect()
}

/// Replaces clap's proposal to pass an unknown option after `--`, unless the command passes options on to another one.
fn with_useful_hint(text: &str) -> String {
    let Some(usage) = text.lines().find_map(|line| line.strip_prefix("usage: ")) else {
        return text.to_owned();
    };
    let command = words_of_command(usage);
    let hint = match usage.contains("[-- ") {
        true => typed_after_dashes(text, &command.join(" ")),
        false if usage.contains("-- ") => return text.to_owned(),
        false => format!("hint: see the options with: {} -h", command.join(" ")),
    };
    let lines = text.lines().map(|line| match line.starts_with("hint: to pass '") {
        true => hint.as_str(),
        false => line,
    });
    lines.map(|line| format!("{line}\n")).collect()
}

/// The hint for an option that belongs to the run which the command continues: the whole command, as it was typed, with `--`
/// before the first option that was not expected.
fn typed_after_dashes(text: &str, command: &str) -> String {
    let unexpected = text.lines().next().and_then(|error| error.split('\'').nth(1)).unwrap_or_default();
    let is_verb = |word: &String| command.split(' ').any(|name| name == word);
    let mut typed = String::new();
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    for word in words.skip_while(is_verb) {
        if word.split('=').next() == Some(unexpected) && !typed.contains(" -- ") {
            typed.push_str(" --");
        }
        typed.push_str(&format!(" {}", shell_word(&word)));
    }
    format!("hint: options of the run come after '--': {command}{typed}")
}

/// Replaces clap's wording by git's `usage:` and `hint:`. Clap does not break the usage.
fn in_gits_voice(text: &str, width: usize) -> String {
    let text = text.replace("\n  tip: ", "\nhint: ").replace("For more information, try '--help'.\n", "");
    let lines = text.lines().map(|line| match line.strip_prefix("Usage: ") {
        Some(usage) => format!("usage: {}", wrapped(usage, width.saturating_sub(7)).join("\n       ")),
        None => line.to_owned(),
    });
    lines.map(|line| line + "\n").collect()
}
