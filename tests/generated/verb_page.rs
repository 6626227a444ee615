//! The manual page of one command, from its definition.

use clap::Command;
use clap_mangen::Man;

use crate::{
    after::{self, Section},
    manual::{CONFIGURATION, EXAMPLES, FILES, Manual, SEE_ALSO},
    roff::{MARKER, plain, title},
    shape::{Choice, Operand, Shape},
};

/// What clap_mangen writes before every section; once is enough.
const APOSTROPHE: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";

const EXIT_STATUS: &str = "EXIT STATUS";
const COMMON_EXITS: &str = "\
.PP
Every command also exits with these codes;
.BR git\\-arborist (1)
has the whole table:
";
/// Codes of every command. A page that explains one itself does not repeat it.
const COMMON: [(&str, &str); 4] = [
    ("0", "Success."),
    ("1", "A task failed, work remains, or a check failed."),
    ("128", "An error from git or the operating system."),
    ("129", "Wrong options or arguments."),
];

/// The page of a definition, its commands among it, with what is written by hand.
pub(crate) fn page(definition: &Command, manual: &Manual) -> String {
    let mut command = without_help(definition.clone());
    command.build();
    let name = command.get_name().to_owned();
    let man = Man::new(without_after(&command));
    let mut page = format!("{MARKER}{APOSTROPHE}{}", title(&name, 1));
    page += &text(|out| man.render_name_section(out));
    page += &synopsis(definition);
    page += &text(|out| man.render_description_section(out));
    page += &text(|out| man.render_options_section(out));
    page += &commands(&command);
    let (exits, others): (Vec<Section>, Vec<Section>) =
        without_examples(&command).into_iter().partition(|section| section.heading == EXIT_STATUS);
    page += &after::top(&others);
    for heading in [EXAMPLES, CONFIGURATION] {
        page += &after::top(manual.section(heading).as_slice());
    }
    page += &exit_status(&exits);
    page += &after::top(manual.section(FILES).as_slice());
    page + &see_also(manual)
}

/// The exit codes of this command, then those that every command has.
fn exit_status(own: &[Section]) -> String {
    let own: String = own.iter().map(|section| section.body.as_str()).collect();
    let is_explained = |code: &str| own.contains(&format!("\\fB{code}\\fR\n"));
    let common = COMMON.iter().filter(|(code, _)| !is_explained(code));
    let common: String = common.map(|(code, means)| format!(".TP\n\\fB{code}\\fR\n{means}\n")).collect();
    format!(".SH \"{EXIT_STATUS}\"\n{own}{COMMON_EXITS}{common}")
}

fn see_also(manual: &Manual) -> String {
    let pages = manual.section(SEE_ALSO).map(|section| section.body).unwrap_or_default();
    format!(".SH \"{SEE_ALSO}\"\n{pages}.BR git\\-arborist (1),\n.BR git\\-arborist\\-trailers (5)\n")
}

/// The sections of a definition. Its short examples are for the help: the page has longer ones.
fn without_examples(command: &Command) -> Vec<Section> {
    after::sections(command).into_iter().filter(|section| section.heading != EXAMPLES).collect()
}

/// git's pages do not list `-h` and `--version` either; git-arborist(1) tells of them once.
fn without_help(command: Command) -> Command {
    let command = command.disable_help_flag(true).disable_help_subcommand(true).disable_version_flag(true);
    command.mut_subcommands(without_help)
}

/// clap_mangen would put it among the options.
fn without_after(command: &Command) -> Command {
    command.clone().after_help(None).after_long_help(None)
}

fn text(render: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    render(&mut out).expect("memory can be written");
    let text = String::from_utf8(out).expect("text");
    let text = text.replace(APOSTROPHE, "");
    text.lines().map(str::trim_end).filter(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect()
}

fn synopsis(definition: &Command) -> String {
    let mut lines = String::from(".SH SYNOPSIS\n.nf\n");
    for (path, shape) in Shape::of(definition).walk() {
        let has_own = shape.commands.is_empty() || definition_runs_alone(definition, &path);
        if has_own {
            lines += &form(&path, shape);
        }
    }
    lines + ".fi\n"
}

/// Whether the command at `path` does something without a further word.
fn definition_runs_alone(definition: &Command, path: &str) -> bool {
    let mut command = definition;
    for word in path.split(' ').skip(1) {
        command = command.find_subcommand(word).expect("a command of its own definition");
    }
    !command.is_subcommand_required_set()
}

fn form(path: &str, shape: &Shape) -> String {
    let options = shape.options.iter().filter(|choice| choice.long.as_deref() != Some("help")).map(option);
    let words: Vec<String> = options.chain(shape.operands.iter().map(operand)).collect();
    let mut lines = vec![String::new()];
    for word in words {
        let last = lines.last().map_or(0, |line| shown(line));
        if last + shown(&word) > 56 {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push(' ');
            line.push_str(&word);
        }
    }
    format!("\\fBgit arborist {}\\fR{}\n", plain(path), lines.join("\n       "))
}

/// How wide a piece of roff is when printed.
fn shown(text: &str) -> usize {
    text.replace("\\fB", "").replace("\\fI", "").replace("\\fR", "").replace('\\', "").chars().count()
}

fn option(choice: &Choice) -> String {
    let short = choice.short.map(|short| format!("\\fB\\-{short}\\fR"));
    let long = choice.long.as_ref().map(|long| format!("\\fB\\-\\-{}\\fR", plain(long)));
    let name = short.into_iter().chain(long).collect::<Vec<_>>().join("|");
    let value = choice.value.as_ref().map(|value| format!(" \\fI{}\\fR", plain(&value.name)));
    let more = if choice.repeats { "..." } else { "" };
    let word = format!("{name}{}", value.unwrap_or_default());
    if choice.required { format!("{word}{more}") } else { format!("[{word}]{more}") }
}

fn operand(operand: &Operand) -> String {
    let more = if operand.repeats { "..." } else { "" };
    let name = format!("\\fI{}\\fR", plain(&operand.value.name));
    let dashes = if operand.is_last { "\\-\\- " } else { "" };
    if operand.required { format!("{dashes}{name}{more}") } else { format!("[{dashes}{name}{more}]") }
}

/// A section for each command of the command.
fn commands(command: &Command) -> String {
    let mut page = String::new();
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        if page.is_empty() {
            page += ".SH COMMANDS\n";
        }
        let words = below.get_bin_name().unwrap_or_default().trim_start_matches("git arborist ");
        page += &format!(".SS {}\n", plain(words));
        let man = Man::new(without_after(below));
        page += &without_heading(&text(|out| man.render_description_section(out)));
        page += &without_heading(&text(|out| man.render_options_section(out)));
        page += &after::nested(&without_examples(below));
        page += &commands(below).replace(".SH COMMANDS\n", "");
    }
    page
}

fn without_heading(section: &str) -> String {
    section.lines().filter(|line| !line.starts_with(".SH ")).map(|line| format!("{line}\n")).collect()
}
