//! Tables: rows whose columns stand below each other.

use unicode_width::UnicodeWidthStr;

use super::{Tone, Ui, cut};

/// Rows whose columns stand below each other and below their headings; columns that are empty everywhere are left out. On
/// a terminal nothing is wider than it.
pub(crate) fn table<const N: usize>(
    ui: &mut Ui,
    headings: [&str; N],
    rows: &[[String; N]],
    tone: impl Fn(usize, usize) -> Option<Tone>,
) {
    let most = |column: usize| rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
    let width = |column: usize| match most(column) {
        0 => 0,
        most => most.max(headings[column].len()),
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |ui: &Ui, cells: &[String; N], tone: &dyn Fn(usize) -> Option<Tone>| {
        let (mut line, mut left) = (String::new(), ui.width().unwrap_or(usize::MAX));
        for (column, cell) in cells.iter().enumerate().filter(|(column, _)| widths[*column] > 0) {
            let pad = (widths[column] - cell.width() + 2).min(left.saturating_sub(cell.width()));
            let shown = shortened(cell, left);
            left = left.saturating_sub(widths[column] + 2);
            let shown = tone(column).map_or_else(|| shown.clone(), |tone| ui.paint(tone, &shown));
            line.push_str(&format!("{shown}{}", " ".repeat(pad)));
        }
        line.trim_end().to_owned()
    };
    if !rows.is_empty() {
        ui.line(&line(ui, &headings.map(str::to_owned), &|_| Some(Tone::Dim)));
    }
    for (at, row) in rows.iter().enumerate() {
        ui.line(&line(ui, row, &|column| tone(at, column)));
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
