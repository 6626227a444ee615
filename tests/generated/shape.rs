//! A command as completions see it: what may follow it, without how it is parsed.

use clap::{Arg, Command};

/// A command, or a command of a command.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) options: Vec<Choice>,
    pub(crate) operands: Vec<Operand>,
    pub(crate) commands: Vec<Shape>,
}

/// An option.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) long: Option<String>,
    pub(crate) short: Option<char>,
    pub(crate) help: String,
    pub(crate) value: Option<Value>,
    pub(crate) required: bool,
    pub(crate) repeats: bool,
}

/// What stands without an option's name.
#[derive(Debug)]
pub(crate) struct Operand {
    pub(crate) value: Value,
    pub(crate) required: bool,
    pub(crate) repeats: bool,
    /// Whether it stands behind `--`.
    pub(crate) is_last: bool,
}

/// What a value is, known by the name that the definition gives it.
#[derive(Debug, Clone)]
pub(crate) struct Value {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Task,
    Branch,
    Session,
    Revision,
    File,
    Folder,
    OneOf(Vec<String>),
    /// Anything: nothing can be offered.
    Text,
}

impl Shape {
    /// The shape of a definition; its name without `git-arborist-`.
    pub(crate) fn of(definition: &Command) -> Self {
        let mut command = definition.clone();
        command.build();
        Self::read(&command)
    }

    fn read(command: &Command) -> Self {
        let args = || command.get_arguments().filter(|arg| !arg.is_hide_set());
        let is_help = |arg: &&Arg| matches!(arg.get_id().as_str(), "help" | "version");
        let commands = command.get_subcommands();
        let commands = commands.filter(|command| !command.is_hide_set() && command.get_name() != "help");
        Self {
            name: command.get_name().trim_start_matches("git-arborist-").to_owned(),
            about: command.get_about().map(ToString::to_string).unwrap_or_default(),
            options: args()
                .filter(|arg| !arg.is_positional() && !is_help(arg))
                .map(Choice::read)
                .chain([Choice::help()])
                .collect(),
            operands: args().filter(|arg| arg.is_positional()).map(Operand::read).collect(),
            commands: commands.map(Self::read).collect(),
        }
    }

    /// The first operand that something can be offered for.
    pub(crate) fn operand(&self) -> Option<&Kind> {
        self.operands.iter().map(|operand| &operand.value.kind).find(|kind| **kind != Kind::Text)
    }

    /// This command and all below it, each with the words that lead to it.
    pub(crate) fn walk(&self) -> Vec<(String, &Self)> {
        let below = self.commands.iter().flat_map(Self::walk);
        let below = below.map(|(path, shape)| (format!("{} {path}", self.name), shape));
        std::iter::once((self.name.clone(), self)).chain(below).collect()
    }
}

impl Choice {
    fn read(arg: &Arg) -> Self {
        Self {
            long: arg.get_long().map(str::to_owned),
            short: arg.get_short(),
            help: arg.get_help().map(ToString::to_string).unwrap_or_default(),
            value: arg.get_action().takes_values().then(|| Value::read(arg)),
            required: arg.is_required_set(),
            repeats: repeats(arg),
        }
    }

    fn help() -> Self {
        Self {
            long: Some("help".into()),
            short: Some('h'),
            help: "Show what it does and takes".into(),
            value: None,
            required: false,
            repeats: false,
        }
    }

    pub(crate) fn kind(&self) -> Option<&Kind> {
        self.value.as_ref().map(|value| &value.kind)
    }
}

impl Operand {
    fn read(arg: &Arg) -> Self {
        let is_last = arg.is_last_set();
        Self { value: Value::read(arg), required: arg.is_required_set(), repeats: repeats(arg), is_last }
    }
}

impl Value {
    fn read(arg: &Arg) -> Self {
        let names = arg.get_value_names().unwrap_or_default();
        let name = names.first().map_or_else(|| arg.get_id().to_string(), ToString::to_string);
        let possible = arg.get_possible_values();
        let words =
            possible.iter().filter(|value| !value.is_hide_set()).map(|value| value.get_name().to_owned());
        let words: Vec<String> = words.collect();
        let kind = match words.as_slice() {
            [] => name.split('|').map(Kind::named).find(|kind| *kind != Kind::Text).unwrap_or(Kind::Text),
            _ => Kind::OneOf(words),
        };
        Self { name, kind }
    }
}

impl Kind {
    fn named(name: &str) -> Self {
        match name {
            "TASK" => Self::Task,
            "BRANCH" => Self::Branch,
            "SESSION" => Self::Session,
            "REV" | "REVISION" | "RANGE" | "COMMIT" => Self::Revision,
            "FILE" | "SPEC" => Self::File,
            "DIR" => Self::Folder,
            _ => Self::Text,
        }
    }
}

fn repeats(arg: &Arg) -> bool {
    let many = arg.get_num_args().is_some_and(|range| range.max_values() > 1);
    many || matches!(arg.get_action(), clap::ArgAction::Append | clap::ArgAction::Count)
}
