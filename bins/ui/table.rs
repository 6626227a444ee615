//! Tables: rows whose columns stand below each other.

use unicode_width::UnicodeWidthStr;

use super::{Tone, Ui, cut};

/// Between two columns.
const GAP: usize = 2;

/// What becomes of the last column where a terminal is too narrow for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    /// It is cut.
    Cut,
    /// It has lines of its own, because nobody can use a part of it.
    Below,
}

/// Rows whose columns stand below each other and below their headings; columns that are empty everywhere are left out. On
/// a terminal nothing is wider than it.
pub(crate) fn table<const N: usize>(
    ui: &mut Ui,
    headings: [&str; N],
    rows: &[[String; N]],
    last: Last,
    tone: impl Fn(usize, usize) -> Option<Tone>,
) {
    let most = |column: usize| rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
    let width = |column: usize| match most(column) {
        0 => 0,
        most => most.max(headings[column].len()),
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let whole: usize = widths.iter().filter(|width| **width > 0).map(|width| width + GAP).sum();
    let room = ui.width().unwrap_or(usize::MAX);
    let is_split = last == Last::Below && whole > room.saturating_add(GAP);
    let columns = if is_split { N - 1 } else { N };
    let show = |ui: &mut Ui, cells: &[String; N], tone: &dyn Fn(usize) -> Option<Tone>| {
        let (mut line, mut left) = (String::new(), room);
        for (column, cell) in cells[..columns].iter().enumerate().filter(|(column, _)| widths[*column] > 0) {
            let pad = (widths[column] - cell.width() + GAP).min(left.saturating_sub(cell.width()));
            let shown = shortened(cell, left);
            left = left.saturating_sub(widths[column] + GAP);
            let shown = tone(column).map_or_else(|| shown.clone(), |tone| ui.paint(tone, &shown));
            line.push_str(&format!("{shown}{}", " ".repeat(pad)));
        }
        ui.line(line.trim_end());
        if let Some(below) = cells[columns..].iter().find(|cell| !cell.is_empty()) {
            let below = ui.paint(Tone::Dim, &format!("  {below}"));
            ui.line(&below);
        }
    };
    if !rows.is_empty() {
        show(ui, &headings.map(str::to_owned), &|_| Some(Tone::Dim));
    }
    for (at, row) in rows.iter().enumerate() {
        show(ui, row, &|column| tone(at, column));
    }
}

/// Cut to so many columns, and shown to be.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    match most {
        _ if text.width() <= most => text.to_owned(),
        0 => String::new(),
        most => format!("{}…", cut(text, most - 1)),
    }
}
