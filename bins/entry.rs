//! What every command does before and after its body: arguments, help, errors, exit codes.

use std::{ffi::OsString, path::Path, process::ExitCode};

use arborist_core::{
    failure::{Exit, Failure},
    git::{Config, Repository, remove_frozen_settings, take_notices, take_repairs, take_skipped_refs},
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
/// The last line of clap's errors.
const OFFER_OF_HELP: &str = "For more information, try '--help'.";
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
        Err(error) => return usage::<A>(&mut ui, error),
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
    take_repairs().iter().for_each(|words| ui.warn(words));
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

fn usage<A: CommandFactory>(ui: &mut Ui, error: clap::Error) -> Exit {
    let width = help_width(ui);
    let help = |error: &clap::Error| visible_lines(&in_gits_voice(&error.render().to_string(), width));
    match error.kind() {
        ErrorKind::DisplayHelp => {
            ui.out(&help(&error));
            conclude(std::mem::replace(ui, Ui::plain()), Ok(Exit::Done))
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            ui.err(&help(&error));
            Exit::Usage
        }
        _ => {
            print_wrong_arguments::<A>(ui, error, width);
            Exit::Usage
        }
    }
}

/// Prints the error about wrong arguments, hints, and the usage of the command, which comes last.
fn print_wrong_arguments<A: CommandFactory>(ui: &mut Ui, error: clap::Error, width: usize) {
    let usage = usage_line(&error);
    let command = usage.as_deref().map(words_of_command);
    let definition = find_command::<A>(&command.clone().unwrap_or_else(typed_command::<A>));
    let mut hints = match find_synonym::<A>(&error) {
        Some(verb) => vec![format!("did you mean '{verb}'?")],
        None => clap_hints(&error, usage.as_deref()),
    };
    match (unnamed_value(&error, &definition), error.kind(), &usage) {
        (Some(hint), ..) => hints.push(hint),
        (_, ErrorKind::InvalidSubcommand, Some(usage)) if hints.is_empty() => {
            hints.push(see_help("commands", usage));
        }
        (_, ErrorKind::UnknownArgument, Some(usage)) if hints.is_empty() => {
            hints.push(see_help("options", usage));
        }
        _ => {}
    }
    // The error repeats arguments.
    ui.err(&visible_lines(&error_lines(error)));
    hints.iter().for_each(|hint| ui.hint(hint));
    if let Some(command) = &command {
        ui.err(&whole_usage::<A>(command, width));
    }
}

/// The command as it was typed. Errors about values have no usage that names it.
fn typed_command<A: CommandFactory>() -> String {
    let own = A::command().get_bin_name().unwrap_or_default().to_owned();
    let words = std::env::args_os().skip(1).map(|word| format!(" {}", word.to_string_lossy()));
    own + &words.collect::<String>()
}

/// The first line of clap's usage.
fn usage_line(error: &clap::Error) -> Option<String> {
    let usage = error.get(ContextKind::Usage)?.to_string();
    Some(usage.lines().next()?.strip_prefix("Usage: ")?.to_owned())
}

/// The lines of the error, without clap's suggestions and usage.
fn error_lines(mut error: clap::Error) -> String {
    use ContextKind::{Suggested, SuggestedArg, SuggestedSubcommand, SuggestedValue, Usage};
    for kind in [Suggested, SuggestedArg, SuggestedSubcommand, SuggestedValue, Usage] {
        error.remove(kind);
    }
    let text = error.render().to_string();
    let is_kept = |line: &&str| !line.trim().is_empty() && *line != OFFER_OF_HELP;
    text.lines().filter(is_kept).map(|line| format!("{line}\n")).collect()
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
fn words_of_command(usage: &str) -> String {
    let words = usage.split_whitespace().take_while(|word| !word.starts_with(['[', '<', '-']));
    words.collect::<Vec<_>>().join(" ")
}

/// A text that belongs to the error.
fn text_of(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    }
}

/// The hint for a value that was given without its option, if the command has such an option: a plan, a task, or one of
/// the words that the option accepts.
fn unnamed_value(error: &clap::Error, command: &Command) -> Option<String> {
    let find = |name: &str| command.get_arguments().find(|argument| argument.get_long() == Some(name));
    let text = |kind: ContextKind| text_of(error, kind);
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

/// Words of git, and of our own help, for a verb that has another name.
const SYNONYMS: [(&str, &str, &str); 3] = [
    ("git-arborist-workspace", "clone", "sync"),
    ("git-arborist-workspace", "fetch", "sync"),
    ("git-arborist-workspace", "pull", "sync"),
];

/// The verb that a word stands for which is not the name of one.
fn find_synonym<A: CommandFactory>(error: &clap::Error) -> Option<&'static str> {
    let word = text_of(error, ContextKind::InvalidSubcommand)?;
    let command = A::command();
    let is_it = |(of, typed, _): &&(&str, &str, &str)| *of == command.get_name() && *typed == word;
    SYNONYMS.iter().find(is_it).map(|(_, _, verb)| *verb)
}

/// The names that clap suggests, the word that they are similar to, and what they name.
const SUGGESTIONS: [(ContextKind, ContextKind, &str); 3] = [
    (ContextKind::SuggestedSubcommand, ContextKind::InvalidSubcommand, "commands"),
    (ContextKind::SuggestedArg, ContextKind::InvalidArg, "options"),
    (ContextKind::SuggestedValue, ContextKind::InvalidValue, "values"),
];

/// The hints that follow from clap's suggestions.
fn clap_hints(error: &clap::Error, usage: Option<&str>) -> Vec<String> {
    let similar = SUGGESTIONS.iter().filter_map(|(suggested, typed, list)| {
        let name = nearest_name(error.get(*suggested)?, text_of(error, *typed)?);
        name.map(|name| format!("did you mean '{name}'?")).or_else(|| Some(see_help(list, usage?)))
    });
    let others = match error.get(ContextKind::Suggested) {
        Some(ContextValue::StyledStrs(others)) => others.as_slice(),
        _ => &[],
    };
    let usage = usage.unwrap_or_default();
    let others = others.iter().map(|words| match words.to_string() {
        words if !words.starts_with("to pass '") => words,
        _ if usage.contains("[-- ") => typed_after_dashes(error, &words_of_command(usage)),
        words if usage.contains("-- ") => words,
        _ => see_help("options", usage),
    });
    similar.chain(others).collect()
}

fn see_help(list: &str, usage: &str) -> String {
    format!("see the {list} with: {} -h", words_of_command(usage))
}

/// The nearest of the names that clap suggests.
fn nearest_name<'n>(names: &'n ContextValue, typed: &str) -> Option<&'n str> {
    let names = match names {
        ContextValue::String(name) => std::slice::from_ref(name),
        ContextValue::Strings(names) => names.as_slice(),
        _ => return None,
    };
    // Two options are not similar because both begin with dashes.
    let bare = |name: &'n String| name.trim_start_matches('-');
    let meant = nearest(typed.trim_start_matches('-'), names.iter().map(bare))?;
    names.iter().find(|name| bare(name) == meant).map(String::as_str)
}

/// The hint for an option that belongs to the run which the command continues: the whole command, as it was typed, with `--`
/// before the first option that was not expected.
fn typed_after_dashes(error: &clap::Error, command: &str) -> String {
    let unexpected = text_of(error, ContextKind::InvalidArg).unwrap_or_default();
    let is_verb = |word: &String| command.split(' ').any(|name| name == word);
    let mut typed = String::new();
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    for word in words.skip_while(is_verb) {
        if word.split('=').next() == Some(unexpected) && !typed.contains(" -- ") {
            typed.push_str(" --");
        }
        typed.push_str(&format!(" {}", shell_word(&word)));
    }
    format!("options of the run come after '--': {command}{typed}")
}

/// Replaces clap's `Usage:` by git's `usage:`. Clap does not break the usage.
fn in_gits_voice(text: &str, width: usize) -> String {
    let lines = text.lines().map(|line| match line.strip_prefix("Usage: ") {
        Some(usage) => format!("usage: {}", wrapped(usage, width.saturating_sub(7)).join("\n       ")),
        None => line.to_owned(),
    });
    lines.map(|line| line + "\n").collect()
}
