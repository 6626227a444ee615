//! Tables: rows whose columns stand below each other.

use super::{Tone, Ui};

/// Rows whose columns stand below each other and below their headings; columns that are empty everywhere are left out. On
/// a terminal nothing is wider than it.
pub(crate) fn table<const N: usize>(
    ui: &mut Ui,
    headings: [&str; N],
    rows: &[[String; N]],
    tone: impl Fn(usize, usize) -> Option<Tone>,
) {
    let most = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let width = |column: usize| match most(column) {
        0 => 0,
        most => most.max(headings[column].len()),
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |ui: &Ui, cells: &[String; N], tone: &dyn Fn(usize) -> Option<Tone>| {
        let (mut line, mut left) = (String::new(), ui.width().unwrap_or(usize::MAX));
        for (column, cell) in cells.iter().enumerate().filter(|(column, _)| widths[*column] > 0) {
            let pad =
                (widths[column] - cell.chars().count() + 2).min(left.saturating_sub(cell.chars().count()));
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

/// Cut to so many characters, and shown to be.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    if most == 0 { kept } else { kept + "…" }
}
