//! Standard error, and the rows at its bottom while a run is watched.
//!
//! Rows are addressed relative to the cursor, which stays at the start of the last row. So we read nothing from the
//! terminal and change none of its modes, and it is in order whenever we are killed.

use std::{
    fmt::Write as _,
    io::{self, Write as _},
    sync::{Mutex, TryLockError},
    thread,
    time::Duration,
};

use arborist_core::mutex::MutexExt;

/// The rows at the bottom. A process has one standard error.
static STRIP: Mutex<Strip> = Mutex::new(Strip { rows: Vec::new(), columns: 0 });

/// A rendered row: its bytes and its width.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Painted {
    pub(super) text: String,
    pub(super) width: usize,
}

#[derive(Debug)]
struct Strip {
    rows: Vec<Painted>,
    columns: usize,
}

/// The columns and rows of the terminal; `None` if standard error is not a terminal.
pub(super) fn size() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok()?;
    Some((size.ws_col.into(), size.ws_row.into())).filter(|(columns, rows)| *columns > 0 && *rows > 0)
}

/// Writes text above the rows. Errors are ignored: there is no other place to report them.
pub(super) fn write(text: &str) {
    let mut strip = STRIP.hold();
    if strip.rows.is_empty() {
        emit(text);
    } else if !text.is_empty() {
        emit(&strip.above(text, columns()));
    }
}

/// Replaces the rows at the bottom.
pub(super) fn show(rows: Vec<Painted>) {
    let mut strip = STRIP.hold();
    let bytes = strip.replace(rows, columns());
    emit(&bytes);
}

/// Removes the rows. Does not wait for a terminal that accepts no output, because this is called before the process
/// ends.
pub fn leave() {
    for _ in 0..20 {
        match STRIP.try_lock() {
            Ok(mut strip) => return clear(&mut strip),
            Err(TryLockError::Poisoned(poisoned)) => return clear(&mut poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(10)),
        }
    }
}

fn clear(strip: &mut Strip) {
    let bytes = strip.replace(Vec::new(), columns());
    emit(&bytes);
}

fn columns() -> usize {
    size().map_or(80, |(columns, _)| columns)
}

/// Writes with one call, so that no partial change is visible.
fn emit(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

impl Strip {
    fn above(&mut self, text: &str, columns: usize) -> String {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let erased = self.erase(columns);
        self.columns = columns;
        held(&format!("{erased}{text}{end}{}", self.draw()))
    }

    fn replace(&mut self, rows: Vec<Painted>, columns: usize) -> String {
        if rows.is_empty() && self.rows.is_empty() {
            return String::new();
        }
        if rows.len() == self.rows.len() && columns == self.columns {
            let bytes = self.redraw_changes(&rows);
            self.rows = rows;
            return held(&bytes);
        }
        let erased = self.erase(columns);
        (self.rows, self.columns) = (rows, columns);
        held(&(erased + &self.draw()))
    }

    /// Erases from the first row on. Rows that no longer fit were wrapped by the terminal.
    fn erase(&self, columns: usize) -> String {
        let Some((_, before)) = self.rows.split_last() else {
            return String::new();
        };
        let height = |row: &Painted| row.width.div_ceil(columns.max(1)).max(1);
        format!("{}\x1b[J", up(before.iter().map(height).sum()))
    }

    fn draw(&self) -> String {
        let texts: Vec<&str> = self.rows.iter().map(|row| row.text.as_str()).collect();
        unbroken(&texts.join("\r\n"))
    }

    /// Writes the differences. The last row is always written, because the user's typing appears there.
    fn redraw_changes(&self, rows: &[Painted]) -> String {
        let last = rows.len().saturating_sub(1);
        let mut bytes = String::new();
        for (at, row) in rows.iter().enumerate().filter(|(at, row)| *at == last || self.rows[*at] != **row) {
            let below = last - at;
            let _ = write!(bytes, "{}{}\x1b[K{}", up(below), row.text, down(below));
        }
        unbroken(&bytes)
    }
}

fn up(rows: usize) -> String {
    if rows == 0 { "\r".into() } else { format!("\r\x1b[{rows}A") }
}

fn down(rows: usize) -> String {
    if rows == 0 { String::new() } else { format!("\x1b[{rows}B") }
}

/// Disables wrapping, in case the terminal considers a row wider than we do.
fn unbroken(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("\x1b[?7l{text}\x1b[?7h\r") }
}

/// Uses synchronised output, if the terminal supports it.
fn held(text: &str) -> String {
    format!("\x1b[?2026h{text}\x1b[?2026l")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(texts: &[&str]) -> Vec<Painted> {
        texts.iter().map(|text| Painted { text: (*text).to_owned(), width: text.len() }).collect()
    }

    fn strip(texts: &[&str]) -> Strip {
        Strip { rows: rows(texts), columns: 20 }
    }

    #[test]
    fn only_changed_rows_and_the_last_row_are_written_again() {
        let mut strip = strip(&["one", "two", "three"]);
        let bytes = strip.replace(rows(&["one", "2", "three"]), 20);
        assert_eq!(bytes, "\x1b[?2026h\x1b[?7l\r\x1b[1A2\x1b[K\x1b[1B\rthree\x1b[K\x1b[?7h\r\x1b[?2026l");
    }

    #[test]
    fn rows_wrapped_by_a_narrower_terminal_are_erased_completely() {
        let strip = strip(&["seventeen columns", "x", "the last one, also long"]);
        assert_eq!(strip.erase(20), "\r\x1b[2A\x1b[J");
        assert_eq!(strip.erase(8), "\r\x1b[4A\x1b[J", "three for the first, one for the second");
    }

    #[test]
    fn text_printed_above_the_rows_ends_its_line_and_the_rows_are_drawn_again() {
        let text = strip(&["one", "two"]).above("said", 20);
        assert_eq!(text, "\x1b[?2026h\r\x1b[1A\x1b[Jsaid\n\x1b[?7lone\r\ntwo\x1b[?7h\r\x1b[?2026l");
    }

    #[test]
    fn nothing_is_written_if_there_are_no_rows() {
        assert_eq!(strip(&[]).replace(Vec::new(), 20), "");
    }
}
