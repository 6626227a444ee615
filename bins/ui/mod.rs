//! The only place that writes to the terminal.

mod live;
mod screen;
mod table;

pub(crate) use live::{Live, LiveContent, StyledRow, cut};
pub use screen::leave;
pub(crate) use table::{Fit, Table, shortened, table};

use std::{
    io::{self, BufWriter, IsTerminal, Write},
    os::fd::AsFd,
    panic::PanicHookInfo,
    path::{Component, Path, PathBuf},
};

use arborist_core::{failure::Failure, git::Config, message::visible_lines};
use unicode_width::UnicodeWidthStr;

/// A colour or weight, by its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Done well.
    Good,
    /// Went wrong.
    Bad,
    /// Under way.
    Busy,
    /// Of less interest.
    Dim,
    /// Headings.
    Strong,
}

/// Whether to use colours, by the value of `color.ui` or `color.arborist`. `NO_COLOR` takes precedence over `auto`; only an
/// explicit setting takes precedence over it. The output is shown in colour on a terminal that has colours, or by git's
/// pager on one.
fn is_coloured(setting: &str, has_no_color: bool, is_shown_in_colour: bool) -> bool {
    match setting.to_ascii_lowercase().as_str() {
        "always" => true,
        "never" | "false" | "no" | "off" | "0" => false,
        _ => is_shown_in_colour && !has_no_color,
    }
}

/// How text is styled for one of the two streams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextStyle {
    is_coloured: bool,
    has_unicode: bool,
}

impl TextStyle {
    /// `text` in a tone, if colours are used.
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        if !self.is_coloured || text.is_empty() {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Busy => "33",
            Tone::Dim => "2",
            Tone::Strong => "1",
        };
        format!("\x1b[{code}m{text}\x1b[m")
    }

    /// The mark for omitted text.
    pub(crate) fn ellipsis(self) -> &'static str {
        if self.has_unicode { "…" } else { "..." }
    }

    /// Whether the locale supports more than ASCII.
    pub(crate) fn has_unicode(self) -> bool {
        self.has_unicode
    }
}

/// The output of a command: data to standard output, everything else to standard error.
#[derive(Debug)]
pub struct Ui {
    out: BufWriter<io::Stdout>,
    style: TextStyle,
    err_style: TextStyle,
    failed: Option<io::Error>,
}

impl Ui {
    /// Without colours, until the configuration is known.
    #[must_use]
    pub fn plain() -> Self {
        let style = TextStyle { is_coloured: false, has_unicode: is_unicode_locale() };
        let out = BufWriter::with_capacity(1 << 16, io::stdout());
        Self { out, style, err_style: style, failed: None }
    }

    /// Reads the colour settings: `color.arborist`, or else `color.ui`.
    pub fn configure(&mut self, config: &Config) {
        let setting = config.find_text("color.arborist").or_else(|| config.find_text("color.ui"));
        let has = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_coloured =
            |is_shown: bool| is_coloured(setting.unwrap_or("auto"), has("NO_COLOR"), !is_dumb() && is_shown);
        self.style.is_coloured = is_coloured(io::stdout().is_terminal() || has("GIT_PAGER_IN_USE"));
        self.err_style.is_coloured = is_coloured(io::stderr().is_terminal());
    }

    /// Whether standard output is a terminal.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// The width of standard output, if it is a terminal.
    #[must_use]
    pub fn width(&self) -> Option<usize> {
        width_of(io::stdout())
    }

    /// The width of standard error, if it is a terminal.
    pub(crate) fn err_width(&self) -> Option<usize> {
        width_of(io::stderr())
    }

    /// Writes a line of text after some columns to standard output. On a terminal, it is wrapped; a command stays whole,
    /// because then it can be copied.
    pub(crate) fn text_line(&mut self, before: &str, text: &str) {
        let room = self.width().map(|width| width.saturating_sub(before.width()).max(NARROWEST_TEXT));
        let lines = match room {
            Some(room) if !text.starts_with("git ") => wrapped(text, room),
            _ => vec![text.to_owned()],
        };
        let indent = " ".repeat(before.width());
        for (at, line) in lines.iter().enumerate() {
            let before = if at == 0 { before } else { indent.as_str() };
            self.line(format!("{before}{line}").trim_end());
        }
    }

    /// Whether the locale supports more than ASCII.
    #[must_use]
    pub fn has_unicode(&self) -> bool {
        self.style.has_unicode
    }

    /// `text` in a tone, if standard output uses colours.
    #[must_use]
    pub fn paint(&self, tone: Tone, text: &str) -> String {
        self.style.paint(tone, text)
    }

    /// The style for standard error.
    pub(crate) fn err_style(&self) -> TextStyle {
        self.err_style
    }

    /// Shows a live view at the bottom of standard error, if that is a capable terminal.
    pub(crate) fn watch<S: LiveContent>(&self, scene: S) -> Option<Live<S::News>> {
        let can_show = io::stderr().is_terminal() && !is_dumb() && screen::size().is_some();
        can_show.then(|| Live::open(scene, self.err_style))
    }

    /// Writes data to standard output.
    pub fn out(&mut self, text: &str) {
        if self.failed.is_none() {
            self.failed = self.out.write_all(text.as_bytes()).err();
        }
    }

    /// Writes one line of data to standard output.
    pub fn line(&mut self, text: &str) {
        self.out(text);
        self.out("\n");
    }

    /// Writes one line of data to standard output, and flushes it.
    pub fn line_now(&mut self, text: &str) {
        self.line(text);
        self.flush();
    }

    /// Flushes standard output.
    pub fn flush(&mut self) {
        if self.failed.is_none() {
            self.failed = self.out.flush().err();
        }
    }

    /// Whether standard output takes no more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.failed.is_some()
    }

    /// Writes to standard error.
    pub fn err(&mut self, text: &str) {
        let _ = self.out.flush();
        screen::write(text);
    }

    /// Prints a warning. Control characters of foreign text in it are removed.
    pub fn warn(&mut self, text: &str) {
        self.err(&format!("warning: {}\n", for_people(text)));
    }

    /// Prints a note.
    pub fn note(&mut self, text: &str) {
        self.err(&format!("note: {}\n", for_people(text)));
    }

    /// Prints a hint, unless advice is switched off.
    pub fn hint(&mut self, text: &str) {
        if std::env::var("GIT_ADVICE")
            .is_ok_and(|value| matches!(value.as_str(), "0" | "false" | "no" | "off"))
        {
            return;
        }
        let width = self.err_width();
        for line in visible_lines(text).lines() {
            // Only lists are wrapped: a command must stay whole.
            let lines = match width.filter(|_| is_list(line)) {
                Some(width) => wrapped(line, width.saturating_sub(8).max(NARROWEST_TEXT)).join("\nhint:   "),
                None => line.to_owned(),
            };
            self.err(&format!("hint: {lines}\n"));
        }
    }

    /// Asks a yes-no question; anything but yes is no. `None` without a terminal.
    pub fn ask(&mut self, question: &str) -> Option<bool> {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return None;
        }
        self.err(&format!("{question} [y/N] "));
        let mut answer = String::new();
        if io::stdin().read_line(&mut answer).unwrap_or(0) == 0 {
            // The input has ended, so no line break was typed.
            self.err("\n");
        }
        Some(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
    }

    /// Prints why a command failed.
    pub fn fail(&mut self, failure: &Failure) {
        self.err(&format!("error: {}\n", for_people(&failure.message)));
        for hint in &failure.hints {
            self.hint(hint);
        }
        for (message, hint) in &failure.others {
            self.err(&format!("error: {}\n", for_people(message)));
            hint.iter().for_each(|hint| self.hint(hint));
        }
    }

    /// Prints that a signal stopped the command.
    pub fn stopped(&mut self, failure: &Failure) {
        self.err(&format!("{}\n", for_people(&failure.message)));
        for hint in &failure.hints {
            self.hint(hint);
        }
    }

    pub(crate) fn panicked(&mut self, panic: &PanicHookInfo<'_>) {
        self.err(&format!("fatal: this is a bug in git-arborist: {panic}\nhint: please report it with the command that you ran\n"));
    }

    /// Flushes the output. A closed pipe is not an error.
    pub fn finish(&mut self) -> io::Result<()> {
        let error = self.failed.take().or_else(|| self.out.flush().err());
        match error {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                self.err(&format!("fatal: could not write to standard output: {error}\n"));
                Err(error)
            }
            _ => Ok(()),
        }
    }
}

/// The narrowest column for texts.
const NARROWEST_TEXT: usize = 20;

/// The width of a stream, if it is a terminal.
fn width_of(stream: impl IsTerminal + AsFd) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let from_environment = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    from_environment
        .or_else(|| rustix::termios::tcgetwinsize(stream).ok().map(|size| usize::from(size.ws_col)))
        .filter(|columns| *columns > 0)
}

/// Whether a line names several words, such as "known runners: claude, codex".
fn is_list(line: &str) -> bool {
    line.split_once(": ")
        .is_some_and(|(_, list)| list.contains(", ") && list.split(", ").all(|word| !word.contains(' ')))
}

/// How many columns a text needs, without the codes of its colours.
fn shown_width(text: &str) -> usize {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().width();
    first + parts.map(|part| part.split_once('m').map_or(part, |(_, rest)| rest).width()).sum::<usize>()
}

/// Whether the terminal supports nothing but printing.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term == "dumb")
}

fn is_unicode_locale() -> bool {
    let named = |name: &&str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(named).unwrap_or_default().to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// A message without control characters of foreign text, and without the numbers that Rust adds to the errors of the system:
/// "No such file or directory (os error 2)".
fn for_people(text: &str) -> String {
    const NUMBER: &str = " (os error ";
    let text = visible_lines(text);
    let mut parts = text.split(NUMBER);
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')').filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit())) {
            Some((_, rest)) => plain.push_str(rest),
            None => plain.extend([NUMBER, part]),
        }
    }
    plain
}

/// A text in lines of at most `room` columns, unless a word is longer.
pub(crate) fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut words = text.split(' ');
    while let Some(word) = words.next() {
        // A quoted command stays on one line.
        let mut word = word.to_owned();
        while word.starts_with("'git") && !word[1..].contains('\'') {
            let Some(next) = words.next() else { break };
            word += &format!(" {next}");
        }
        match lines.last_mut().filter(|line| shown_width(line) + 1 + shown_width(&word) <= room) {
            Some(line) => *line += &format!(" {word}"),
            None => lines.push(word),
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

/// The path relative to the current directory, if that is shorter.
pub(crate) fn seen_from_here(path: &Path) -> PathBuf {
    let Some(here) = std::env::current_dir().ok().and_then(|here| here.canonicalize().ok()) else {
        return path.to_owned();
    };
    let shared = here.components().zip(path.components()).take_while(|(a, b)| a == b).count();
    let up = here.components().skip(shared).map(|_| Component::ParentDir);
    let seen: PathBuf = up.chain(path.components().skip(shared)).collect();
    let seen = if seen.as_os_str().is_empty() { PathBuf::from(".") } else { seen };
    if seen.as_os_str().len() < path.as_os_str().len() { seen } else { path.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_color_overrides_auto_but_not_always() {
        for (setting, wants_none, shows_colour, expected) in [
            ("always", true, false, true),
            ("always", false, false, true),
            ("auto", false, true, true),
            ("auto", true, true, false),
            ("true", true, true, false),
            ("auto", false, false, false),
            ("never", false, true, false),
        ] {
            let found = is_coloured(setting, wants_none, shows_colour);
            assert_eq!(found, expected, "{setting} {wants_none} {shows_colour}");
        }
    }
}
