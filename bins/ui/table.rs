//! Tables with aligned columns, no wider than the terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{Tone, Ui, cut, wrapped};

/// The space between two columns.
const GAP: usize = 2;
/// The length of a shortened hash.
const SHORT: usize = 7;

/// How a column shrinks if the terminal is too narrow. Hashes shrink first, then the others from left to right, then ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// It does not shrink.
    Whole,
    /// It does not shrink, and is aligned to the right.
    Number,
    /// It is shortened to its first characters.
    Hash,
    /// Its end is cut, down to this width.
    End(usize),
    /// Its middle is cut, because names differ at their ends.
    Middle(usize),
    /// Its start is cut, because ends differ.
    Front(usize),
    /// An id, which users copy: its middle is cut, but only if the other columns cannot shrink any further.
    Id(usize),
    /// The last column, which moves to its own line, because a part of it would be useless.
    Below,
}

/// How rows are shown. Columns without content are left out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table<'a, const N: usize> {
    headings: Option<[&'a str; N]>,
    fits: [Fit; N],
    indent: &'a str,
}

/// A table with headings, in which only the last column is cut.
pub(crate) fn table<const N: usize>(
    ui: &mut Ui,
    headings: [&str; N],
    rows: &[[String; N]],
    tone: impl Fn(usize, usize) -> Option<Tone>,
) {
    let mut fits = [Fit::Whole; N];
    if let Some(fit) = fits.last_mut() {
        *fit = Fit::End(0);
    }
    Table::new(headings, fits).show(ui, rows, tone);
}

impl<'a, const N: usize> Table<'a, N> {
    /// With headings.
    pub(crate) fn new(headings: [&'a str; N], fits: [Fit; N]) -> Self {
        Self { headings: Some(headings), fits, indent: "" }
    }

    /// Without headings, indented by this.
    pub(crate) fn bare(fits: [Fit; N], indent: &'a str) -> Self {
        Self { headings: None, fits, indent }
    }

    /// Shows rows, with a tone for some cells.
    pub(crate) fn show(
        &self,
        ui: &mut Ui,
        rows: &[[String; N]],
        tone: impl Fn(usize, usize) -> Option<Tone>,
    ) {
        self.show_with(ui, rows, tone, |_| Vec::new());
    }

    /// Like [`Self::show`], with lines below each row.
    pub(crate) fn show_with(
        &self,
        ui: &mut Ui,
        rows: &[[String; N]],
        tone: impl Fn(usize, usize) -> Option<Tone>,
        below: impl Fn(usize) -> Vec<String>,
    ) {
        if rows.is_empty() {
            return;
        }
        let layout = self.layout(rows, ui.width().unwrap_or(usize::MAX));
        if let Some(headings) = self.headings {
            let mut headings = headings.map(str::to_owned);
            // What is shown below each row needs no heading.
            headings[layout.columns..].iter_mut().for_each(String::clear);
            layout.show(ui, &headings, &|_| Some(Tone::Dim));
        }
        for (at, row) in rows.iter().enumerate() {
            layout.show(ui, row, &|column| tone(at, column));
            below(at).iter().for_each(|line| ui.line(line));
        }
    }

    /// How wide the widest row would be if nothing were cut.
    pub(crate) fn whole_width(&self, rows: &[[String; N]]) -> usize {
        let Layout { widths, .. } = self.layout(rows, usize::MAX);
        self.width_of(&widths)
    }

    /// The width of rows with columns of these widths.
    fn width_of(&self, widths: &[usize]) -> usize {
        let used = widths.iter().filter(|width| **width > 0);
        self.indent.len() + used.map(|width| width + GAP).sum::<usize>().saturating_sub(GAP)
    }

    fn layout(&self, rows: &[[String; N]], room: usize) -> Layout<'a, N> {
        let heading = |column: usize| self.headings.map_or(0, |headings| headings[column].width());
        let most = |column: usize| rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
        let mut widths: [usize; N] = std::array::from_fn(|column| match most(column) {
            0 => 0,
            most => most.max(heading(column)),
        });
        let is_split = self.fits.last() == Some(&Fit::Below) && self.width_of(&widths) > room;
        let columns = if is_split { N - 1 } else { N };
        let excess = |widths: &[usize; N]| self.width_of(&widths[..columns]).saturating_sub(room);
        let is_narrow = excess(&widths) > 0;
        let hashes = widths.iter_mut().zip(self.fits).filter(|(_, fit)| *fit == Fit::Hash && is_narrow);
        hashes.for_each(|(width, _)| *width = SHORT.min(*width));
        let least = |column: usize, is_for_ids: bool| match self.fits[column] {
            Fit::End(least) | Fit::Middle(least) | Fit::Front(least) if !is_for_ids => Some(least),
            Fit::Id(least) if is_for_ids => Some(least),
            _ => None,
        };
        for (is_for_ids, column) in
            [false, true].into_iter().flat_map(|ids| (0..columns).map(move |at| (ids, at)))
        {
            if let Some(least) = least(column, is_for_ids) {
                let narrow = widths[column].saturating_sub(excess(&widths));
                widths[column] = narrow.max(least.min(widths[column]));
            }
        }
        Layout { fits: self.fits, indent: self.indent, widths, columns, room }
    }
}

/// The widths of columns, and which of them are in the row.
struct Layout<'a, const N: usize> {
    fits: [Fit; N],
    indent: &'a str,
    widths: [usize; N],
    columns: usize,
    room: usize,
}

impl<const N: usize> Layout<'_, N> {
    fn show(&self, ui: &mut Ui, cells: &[String; N], tone: &dyn Fn(usize) -> Option<Tone>) {
        let mark = if ui.has_unicode() { "…" } else { "..." };
        let (mut line, mut left) = (self.indent.to_owned(), self.room.saturating_sub(self.indent.len()));
        for column in (0..self.columns).filter(|column| self.widths[*column] > 0) {
            let (width, fit) = (self.widths[column], self.fits[column]);
            let shown = fitted(&cells[column], width.min(left), fit, mark);
            let pad = " ".repeat(width.saturating_sub(shown.width()).min(left));
            let shown = tone(column).map_or_else(|| shown.clone(), |tone| ui.paint(tone, &shown));
            let cell = if fit == Fit::Number { format!("{pad}{shown}") } else { format!("{shown}{pad}") };
            line.push_str(&cell);
            left = left.saturating_sub(width + GAP);
            line.push_str(&" ".repeat(GAP.min(left)));
        }
        ui.line(line.trim_end());
        if let Some(below) = cells[self.columns..].iter().find(|cell| !cell.is_empty()) {
            for below in wrapped(below, self.room.saturating_sub(self.indent.len() + 2)) {
                let below = ui.paint(Tone::Dim, &format!("{}  {below}", self.indent));
                ui.line(&below);
            }
        }
    }
}

/// A cell of this width.
fn fitted(text: &str, most: usize, fit: Fit, mark: &str) -> String {
    match fit {
        _ if text.width() <= most => text.to_owned(),
        Fit::Hash => cut(text, most).to_owned(),
        Fit::Middle(_) | Fit::Id(_) if most > mark.width() + 1 => {
            let room = most - mark.width();
            let head = room / 2;
            format!("{}{mark}{}", cut(text, head), end_of(text, room - head))
        }
        Fit::Front(_) if most > mark.width() => format!("{mark}{}", end_of(text, most - mark.width())),
        _ => marked(text, most, mark),
    }
}

/// Text cut to this width, with a mark.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    if text.width() <= most { text.to_owned() } else { marked(text, most, "…") }
}

fn marked(text: &str, most: usize, mark: &str) -> String {
    match most.checked_sub(mark.width()) {
        Some(room) => format!("{}{mark}", cut(text, room)),
        None => cut(mark, most).to_owned(),
    }
}

/// The end of a text.
fn end_of(text: &str, most: usize) -> String {
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= most
    };
    let kept: Vec<char> = text.chars().rev().take_while(fits).collect();
    kept.into_iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_cells_are_cut_and_marked_as_cut() {
        let table = [
            ("abc", 3, Fit::End(0), "…", "abc"),
            ("abcd", 3, Fit::End(0), "…", "ab…"),
            ("abcd", 3, Fit::End(0), "...", "..."),
            ("abcd", 2, Fit::End(0), "...", ".."),
            ("abcd", 0, Fit::End(0), "…", ""),
            ("main/T001/branch-1", 9, Fit::Middle(4), "…", "main…ch-1"),
            ("main/T001", 5, Fit::Front(4), "…", "…T001"),
            ("0123456789", 7, Fit::Hash, "…", "0123456"),
        ];
        for (text, most, fit, mark, shown) in table {
            assert_eq!(fitted(text, most, fit, mark), shown, "{text} in {most}");
        }
    }

    #[test]
    fn columns_shrink_in_order_and_only_as_much_as_necessary() {
        let fits = [Fit::Whole, Fit::Middle(4), Fit::End(0), Fit::Number];
        let rows = [["kind".to_owned(), "a".repeat(20), "b".repeat(20), "1".to_owned()]];
        let widths = |room| Table::bare(fits, "  ").layout(&rows, room).widths;
        assert_eq!(widths(usize::MAX), [4, 20, 20, 1]);
        assert_eq!(widths(50), [4, 17, 20, 1]);
        assert_eq!(widths(30), [4, 4, 13, 1]);
    }

    #[test]
    fn id_columns_are_shortened_last() {
        let fits = [Fit::Id(8), Fit::Front(6)];
        let rows = [["a".repeat(20), "b".repeat(20)]];
        let widths = |room| Table::bare(fits, "").layout(&rows, room).widths;
        assert_eq!(widths(40), [20, 18]);
        assert_eq!(widths(20), [12, 6]);
        assert_eq!(widths(10), [8, 6]);
    }
}
