//! How rows of repositories stand on a terminal: in columns below their headings, and nothing is wider than it. Where they
//! are too wide, paths have lines of their own and hashes are shorter; then branches are cut, from the front, because their
//! ends differ.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::ui::{Tone, Ui};

pub(super) const COLUMNS: usize = 8;
pub(super) const BRANCH: usize = 1;
pub(super) const HEAD: usize = 2;
pub(super) const BASE: usize = 3;
pub(super) const REMOTE: usize = 6;
pub(super) const PATH: usize = 7;

const HEADINGS: [&str; COLUMNS] = ["repo", "branch", "head", "base", "ahead", "checkout", "remote", "path"];
const GAP: usize = 2;
/// A branch keeps so much.
const LEAST: usize = 12;
/// So much of a hash is enough where it is narrow.
const SHORT: usize = 7;

/// How wide the columns are; those that are empty everywhere have no width.
pub(super) struct Layout {
    widths: [usize; COLUMNS],
    /// Whether a path stands on a line of its own.
    is_split: bool,
}

impl Layout {
    /// For so many columns of a terminal, if it is one.
    pub(super) fn new(rows: &[[String; COLUMNS]], room: Option<usize>) -> Self {
        let mut widths = [0; COLUMNS];
        for (column, width) in widths.iter_mut().enumerate() {
            let widest = rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
            *width = if widest == 0 { 0 } else { widest.max(HEADINGS[column].len()) };
        }
        let whole = |widths: &[usize]| {
            let used = widths.iter().filter(|width| **width > 0);
            used.map(|width| width + GAP).sum::<usize>().saturating_sub(GAP)
        };
        let room = room.unwrap_or(usize::MAX);
        let is_split = whole(&widths) > room;
        if is_split {
            for hash in [HEAD, BASE] {
                widths[hash] = widths[hash].min(SHORT);
            }
            let excess = whole(&widths[..PATH]).saturating_sub(room);
            let least = LEAST.min(widths[BRANCH]);
            widths[BRANCH] = widths[BRANCH].saturating_sub(excess).max(least);
        }
        Self { widths, is_split }
    }

    pub(super) fn show(&self, rows: &[[String; COLUMNS]], tones: &[Tone], ui: &mut Ui) {
        let headings = HEADINGS.map(str::to_owned);
        let (line, path) = self.line(&headings, |_, cell| cell.to_owned());
        let below = if self.is_split { format!("\n  {path}") } else { String::new() };
        let line = ui.paint(Tone::Dim, &format!("{line}{below}"));
        ui.line(&line);
        for (row, tone) in rows.iter().zip(tones) {
            let (line, path) = self.line(row, |column, cell| match column {
                REMOTE => ui.paint(*tone, cell),
                _ => cell.to_owned(),
            });
            ui.line(&line);
            if self.is_split {
                let line = ui.paint(Tone::Dim, &format!("  {path}"));
                ui.line(&line);
            }
        }
    }

    /// A row, and what of it has a line of its own.
    fn line<'a>(
        &self,
        cells: &'a [String; COLUMNS],
        paint: impl Fn(usize, &str) -> String,
    ) -> (String, &'a str) {
        let mut line = String::new();
        let last = if self.is_split { PATH } else { COLUMNS };
        for (column, cell) in cells[..last].iter().enumerate().filter(|(column, _)| self.widths[*column] > 0)
        {
            let cell = match column {
                BRANCH => end_of(cell, self.widths[column]),
                HEAD | BASE => cell.chars().take(self.widths[column]).collect(),
                _ => cell.clone(),
            };
            let pad = " ".repeat(self.widths[column].saturating_sub(cell.width()) + GAP);
            line.push_str(&format!("{}{pad}", paint(column, &cell)));
        }
        (line.trim_end().to_owned(), &cells[PATH])
    }
}

/// The end of a text that is too wide.
fn end_of(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mut used = 1;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= room
    };
    let kept: Vec<char> = text.chars().rev().take_while(fits).collect();
    format!("…{}", kept.into_iter().rev().collect::<String>())
}
