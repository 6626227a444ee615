//! From the characters of a diagram to connectors between its names: `A ──► B` on one line is left to the reader of sentences; forks,
//! joints, corners and boxes that lead from line to line are followed here, in any direction.
//!
//! Names are spans of columns, and every character of a line leads to some of its four neighbours. What is connected
//! is one connector. It leads from the names above it and on its left to those below it and on its right, unless an arrow
//! head says otherwise.

use std::collections::HashMap;

/// A name, or a box that holds one: rows and columns, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) top: usize,
    pub(super) bottom: usize,
    pub(super) left: usize,
    pub(super) right: usize,
    /// Which name it is.
    pub(super) name: usize,
}

/// What a connector leads from and to, as numbers of names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Connector {
    pub(super) from: Vec<usize>,
    pub(super) to: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Up,
    Down,
    Left,
    Right,
}

use Side::{Down, Left, Right, Up};

impl Side {
    fn opposite(self) -> Self {
        match self {
            Up => Down,
            Down => Up,
            Left => Right,
            Right => Left,
        }
    }

    fn is_level(&self) -> bool {
        matches!(self, Left | Right)
    }

    /// The place next to another on this side.
    fn of(self, (row, column): Cell) -> Option<Cell> {
        Some(match self {
            Up => (row.checked_sub(1)?, column),
            Down => (row + 1, column),
            Left => (row, column.checked_sub(1)?),
            Right => (row, column + 1),
        })
    }
}

/// A row and a column.
type Cell = (usize, usize);

/// The sides that a character leads to, and the side that it points to if it is an arrow head.
fn sides(character: char) -> (&'static [Side], Option<Side>) {
    match character {
        '─' | '━' | '═' | '╌' | '┄' | '╴' | '╶' => (&[Left, Right], None),
        '│' | '┃' | '║' | '╎' | '┆' | '╵' | '╷' => (&[Up, Down], None),
        '┌' | '╭' | '┏' | '╔' => (&[Right, Down], None),
        '┐' | '╮' | '┓' | '╗' => (&[Left, Down], None),
        '└' | '╰' | '┗' | '╚' => (&[Right, Up], None),
        '┘' | '╯' | '┛' | '╝' => (&[Left, Up], None),
        '├' | '┣' | '╠' => (&[Up, Down, Right], None),
        '┤' | '┫' | '╣' => (&[Up, Down, Left], None),
        '┬' | '┳' | '╦' => (&[Left, Right, Down], None),
        '┴' | '┻' | '╩' => (&[Left, Right, Up], None),
        '┼' | '╋' | '╬' => (&[Left, Right, Up, Down], None),
        '▼' | '↓' | '⇓' => (&[Up, Down], Some(Down)),
        '▲' | '↑' | '⇑' => (&[Up, Down], Some(Up)),
        '►' | '▶' | '→' | '⇒' | '➜' => (&[Left, Right], Some(Right)),
        '◄' | '◀' | '←' | '⇐' => (&[Left, Right], Some(Left)),
        _ => (&[], None),
    }
}

/// Whether a character is part of a line.
pub(super) fn is_line(character: char) -> bool {
    !sides(character).0.is_empty()
}

/// Whether a character leads to the line above or below it.
pub(super) fn leads_up_or_down(character: char) -> bool {
    sides(character).0.iter().any(|side| !side.is_level())
}

/// A name at the end of a connector.
#[derive(Debug, Clone, Copy)]
struct End {
    name: usize,
    side: Side,
    is_headed: bool,
}

/// A drawing as characters.
pub(super) struct DiagramGrid {
    rows: Vec<Vec<char>>,
    /// For each row, what is in it from left to right.
    spans: Vec<Vec<Span>>,
    /// Borders of boxes: characters that lead nowhere but out of their box, with that side and the name in it.
    borders: HashMap<Cell, Option<(Side, usize)>>,
}

impl DiagramGrid {
    /// `names` are the names of the drawing, row by row and from left to right.
    pub(super) fn new(rows: Vec<Vec<char>>, names: &[Span]) -> Self {
        let spans = vec![Vec::new(); rows.len()];
        let mut canvas = Self { rows, spans, borders: HashMap::new() };
        names.iter().for_each(|name| canvas.spans[name.top].push(*name));
        canvas.find_boxes();
        canvas
    }

    /// All connectors that go through more than one row.
    pub(super) fn connectors(&self) -> Vec<Connector> {
        let mut seen: Vec<Vec<bool>> = self.rows.iter().map(|row| vec![false; row.len()]).collect();
        let mut connectors = Vec::new();
        for row in 0..self.rows.len() {
            for column in 0..self.rows[row].len() {
                if !seen[row][column] && !self.leads((row, column)).is_empty() {
                    connectors.extend(self.connector((row, column), &mut seen));
                }
            }
        }
        connectors
    }

    fn character(&self, (row, column): Cell) -> char {
        self.rows.get(row).and_then(|row| row.get(column)).copied().unwrap_or(' ')
    }

    /// The sides that a place leads to.
    fn leads(&self, cell: Cell) -> Vec<Side> {
        match self.borders.get(&cell) {
            Some(Some((out, _))) => vec![*out],
            Some(None) => Vec::new(),
            None => sides(self.character(cell)).0.to_vec(),
        }
    }

    fn is_joined(&self, cell: Cell, side: Side) -> Option<Cell> {
        side.of(cell).filter(|next| self.leads(*next).contains(&side.opposite()))
    }

    /// Follows one connector from a place.
    fn connector(&self, first: Cell, seen: &mut [Vec<bool>]) -> Option<Connector> {
        let (mut cells, mut ends) = (vec![first], Vec::new());
        seen[first.0][first.1] = true;
        let mut at = 0;
        while at < cells.len() {
            let cell = cells[at];
            if let Some(Some((out, name))) = self.borders.get(&cell) {
                ends.push(End { name: *name, side: out.opposite(), is_headed: false });
            }
            for side in self.leads(cell) {
                match self.is_joined(cell, side) {
                    Some(next) if !seen[next.0][next.1] => {
                        seen[next.0][next.1] = true;
                        cells.push(next);
                    }
                    Some(_) => {}
                    None => {
                        let is_headed = sides(self.character(cell)).1 == Some(side);
                        ends.extend(self.name_at(cell, side).map(|name| End { name, side, is_headed }));
                    }
                }
            }
            at += 1;
        }
        // An arrow from name to name within a line is read as a sentence.
        let is_level =
            cells.iter().all(|(row, _)| *row == first.0) && self.leads(first).iter().any(Side::is_level);
        let is_straight = cells.iter().all(|(_, column)| *column == first.1);
        let is_alone = is_straight && self.is_alone(&cells);
        (!is_alone && !is_level).then(|| directed(&ends)).flatten()
    }

    /// Whether nothing but one name is above and below a straight line. Such a line leads from all that is drawn
    /// above it, which its caller knows better.
    fn is_alone(&self, cells: &[Cell]) -> bool {
        let is_lone = |row: usize, column: usize| {
            self.rows[row].iter().enumerate().all(|(at, c)| at == column || !is_line(*c))
        };
        let top = cells.iter().map(|(row, _)| *row).min().unwrap_or(0);
        let above = top.checked_sub(1).map_or(0, |above| self.spans[above].len());
        above <= 1 && cells.iter().all(|(row, column)| is_lone(*row, *column))
    }

    /// The name that a line leads to on a side. A space or two may come between, and below a name the words that explain it.
    fn name_at(&self, (row, column): Cell, side: Side) -> Option<usize> {
        const GAP: usize = 2;
        let spans = self.spans.get(match side {
            Up => self.above_words(row, column)?,
            Down => row + 1,
            Left | Right => row,
        })?;
        let next = spans.partition_point(|span| span.left <= column);
        let before = next.checked_sub(1).map(|before| spans[before]);
        let after = spans.get(next).copied();
        let span = match side {
            Right => after.filter(|span| span.left - column <= GAP + 1),
            Left => before.filter(|span| span.right < column && column - span.right <= GAP + 1),
            Up | Down => before
                .filter(|span| column <= span.right + 1)
                .or_else(|| after.filter(|span| span.left == column + 1)),
        };
        span.map(|span| span.name)
    }

    /// The row above a place, or the one above the words without a name that are there.
    fn above_words(&self, row: usize, column: usize) -> Option<usize> {
        const MOST_ROWS: usize = 3;
        let is_words = |row: &usize| {
            self.spans[*row].is_empty()
                && self.rows[*row].iter().any(|c| c.is_alphanumeric())
                && !is_line(self.character((*row, column)))
        };
        let words = (0..row).rev().take(MOST_ROWS).take_while(is_words).count();
        row.checked_sub(words + 1)
    }

    /// Names in boxes take up the whole box, and the border of a box is no connector.
    fn find_boxes(&mut self) {
        let mut boxes: Vec<Span> = Vec::new();
        for row in 0..self.rows.len() {
            for column in 0..self.rows[row].len() {
                boxes.extend(self.box_at((row, column)));
            }
        }
        for frame in boxes {
            let inside: Vec<Span> = (frame.top + 1..frame.bottom)
                .flat_map(|row| self.spans[row].iter().copied())
                .filter(|span| frame.left < span.left && span.right < frame.right)
                .collect();
            self.take_box(frame, inside.first().copied());
        }
        self.spans.iter_mut().for_each(|row| row.sort_by_key(|span| span.left));
    }

    fn take_box(&mut self, frame: Span, name: Option<Span>) {
        let cells = (frame.left..=frame.right)
            .flat_map(|column| [((frame.top, column), Up), ((frame.bottom, column), Down)])
            .chain(
                (frame.top..=frame.bottom)
                    .flat_map(|row| [((row, frame.left), Left), ((row, frame.right), Right)]),
            );
        for (cell, out) in cells.collect::<Vec<_>>() {
            let is_corner = (cell.0 == frame.top || cell.0 == frame.bottom)
                && (cell.1 == frame.left || cell.1 == frame.right);
            let leads_out = !is_corner && sides(self.character(cell)).0.contains(&out);
            let way_out = name.filter(|_| leads_out).map(|name| (out, name.name));
            self.borders.insert(cell, way_out);
        }
        let Some(name) = name else { return };
        for row in frame.top..=frame.bottom {
            self.spans[row].retain(|span| span.right < frame.left || frame.right < span.left);
            self.spans[row].push(Span { name: name.name, ..frame });
        }
    }

    /// The box whose upper left corner is at a place.
    fn box_at(&self, (top, left): Cell) -> Option<Span> {
        let is = |cell: Cell, corners: &str| corners.contains(self.character(cell));
        if !is((top, left), "┌╭┏╔") {
            return None;
        }
        let len = self.rows[top][left + 1..].iter().take_while(|c| "─━═┬┴┼╦╩▼▲↓↑".contains(**c)).count();
        let right = left + 1 + len;
        let height = (top + 1..self.rows.len())
            .take_while(|row| is((*row, left), "│┃║├┤┼╠╣►◄▶◀→←") && is((*row, right), "│┃║├┤┼╠╣►◄▶◀→←"))
            .count();
        let bottom = top + 1 + height;
        let is_closed = is((top, right), "┐╮┓╗") && is((bottom, left), "└╰┗╚") && is((bottom, right), "┘╯┛╝");
        (is_closed && height > 0 && len > 1).then_some(Span { top, bottom, left, right, name: 0 })
    }
}

/// Which ends of a connector come first.
fn directed(ends: &[End]) -> Option<Connector> {
    let has_head = |side: Side| ends.iter().any(|end| end.is_headed && end.side == side);
    let is_target = |end: &End| {
        end.is_headed
            || match end.side {
                Right => !has_head(Left),
                Down => !has_head(Up),
                Left | Up => false,
            }
    };
    let mut connector = Connector::default();
    for end in ends {
        if is_target(end) { &mut connector.to } else { &mut connector.from }.push(end.name);
    }
    if connector.from.is_empty() {
        // A tree that is drawn upside down: its branches are above what they lead to. Nothing leads from an arrow head.
        let plain = ends.iter().filter(|end| !end.is_headed || end.side == Down);
        let (below, beside): (Vec<&End>, Vec<&End>) = plain.partition(|end| end.side == Down);
        connector.from = beside.iter().map(|end| end.name).collect();
        connector.to = below.iter().map(|end| end.name).collect();
    }
    (!connector.from.is_empty() && !connector.to.is_empty()).then_some(connector)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The connectors of a drawing whose names are words of capital letters.
    fn connectors(drawing: &str) -> Vec<(String, String)> {
        let rows: Vec<Vec<char>> = drawing.lines().map(|line| line.chars().collect()).collect();
        let (mut spans, mut names) = (Vec::new(), Vec::new());
        for (top, row) in rows.iter().enumerate() {
            for left in (0..row.len()).filter(|at| row[*at].is_ascii_uppercase()) {
                spans.push(Span { top, bottom: top, left, right: left, name: names.len() });
                names.push(row[left]);
            }
        }
        let text = |connector: &[usize]| {
            let mut names: Vec<char> = connector.iter().map(|name| names[*name]).collect();
            names.sort_unstable();
            names.into_iter().collect::<String>()
        };
        let connectors = DiagramGrid::new(rows, &spans).connectors();
        connectors.iter().map(|connector| (text(&connector.from), text(&connector.to))).collect()
    }

    #[test]
    fn lines_of_a_drawing_are_followed_through_forks_joints_corners_and_boxes() {
        let connected = |from: &str, to: &str| (from.to_owned(), to.to_owned());
        for (drawing, wanted) in [
            ("A\n├── B\n└── C", vec![connected("A", "BC")]),
            ("    ┌─ B ─┐\nA ──┼─ C ─┼─► E\n    └─ D ─┘", vec![connected("A", "BCD"), connected("BCD", "E")]),
            ("A ───┐\n     │\nB ◄──┘", vec![connected("A", "B")]),
            ("A ──┐\n    │\nB ──┼──► D\n    │\nC ──┘", vec![connected("ABC", "D")]),
            ("┌── A\n├── B\nC", vec![connected("AB", "C")]),
            ("A      B\n│      │\n▼      ▼\nC      D", vec![connected("A", "C"), connected("B", "D")]),
            ("┌───┐\n│ A │\n└─┬─┘\n  ▼\n┌───┐\n│ B │\n└───┘", vec![connected("A", "B")]),
            ("┌───┐   ┌───┐\n│ A ├──►│ B │\n└─┬─┘   └───┘\n  └──► C", vec![connected("A", "C")]),
            ("A   B\n▲   │\n└───┘", vec![connected("B", "A")]),
            ("A → B", vec![]),
            ("A\n├── B ← C\n└── D", vec![connected("A", "BD")]),
            // Words below a name explain it, and nothing leads from an arrow head.
            ("A\nwords  x\n│      │\n▼      ▼\nB      C", vec![connected("A", "B")]),
            (" ┌──┴──┐\n │     │\n B     │\n C ◄───┘", vec![]),
        ] {
            assert_eq!(connectors(drawing), wanted, "{drawing}");
        }
    }
}
