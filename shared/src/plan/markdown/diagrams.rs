//! From a code fence to dependencies: trees of ASCII or box characters (`T001` above `├── T002`), Mermaid's flowcharts (`A --> B`), and
//! waves as JSON.

use std::collections::HashMap;

use serde_json::Value;

use super::{
    Offset, PlanLine,
    diagram_connectors::{self, DiagramGrid, Span},
    keywords::{ClauseVoice, Sense, keyword_at},
    lines::LineKind,
    name_reader::{Name, NameReader, PlacedName, behind_parenthesis},
    sentences::ArrowClaim,
    tokens::{Piece, Token, Tokenizer},
};

/// Reads the lines of one fence.
pub(super) struct DiagramReader<'d> {
    pub(super) name_reader: &'d NameReader<'d>,
    pub(super) tokenizer: &'d Tokenizer<'d>,
}

/// Whether a fence holds a Mermaid flowchart.
pub(super) fn is_mermaid(lines: &[PlanLine<'_>]) -> bool {
    let is_start = |line: &PlanLine<'_>| {
        let text = line.text.trim().trim_start_matches(['`', '~']).trim_start();
        text.starts_with("mermaid") || text.starts_with("graph ") || text.starts_with("flowchart ")
    };
    lines.iter().take(2).any(is_start)
}

/// A name in a drawing.
#[derive(Clone)]
struct DiagramName<'a> {
    /// The column where it begins.
    column: usize,
    names: Vec<PlacedName<'a>>,
    /// Whether an arrow leads to it on its own line. Such chains are read as sentences.
    is_chained: bool,
    /// Whether a connector leads to it, so that its place in the tree tells nothing more.
    is_connected: bool,
}

/// What one line of a drawing holds.
struct Row<'a> {
    names: Vec<DiagramName<'a>>,
    /// The column of a `├` or `└` before the first name.
    branch: Option<usize>,
    /// Whether a line of the tree passes the first name on its left.
    is_nested: bool,
    /// The column of a line after the first name that leads up or down.
    joint: Option<usize>,
    /// The column of a corner after the first name that leads up.
    corner: Option<usize>,
    /// Whether it begins with a corner that leads down from it.
    has_upper_corner: bool,
    /// Whether there is nothing but lines that lead down.
    leads_down: bool,
    /// The column of the first character.
    start: usize,
    /// Whether there is nothing but remarks about what is above them, as "(independent)" or "blocks all stories".
    is_remark: bool,
    /// The column of a line that another leaves to the right, as in `|\`.
    fork: Option<usize>,
}

/// The way down to the current line of a tree.
#[derive(Default)]
struct Path<'a> {
    rows: Vec<Vec<DiagramName<'a>>>,
    /// Everything that was named since the tree began.
    all: Vec<Vec<PlacedName<'a>>>,
}

impl<'a> Path<'a> {
    /// The name that a branch hangs from: in the last line that begins left of it, the last name that does.
    fn parent(&mut self, branch: usize) -> Option<Vec<PlacedName<'a>>> {
        self.rows.retain(|row| row.first().is_some_and(|name| name.column <= branch));
        let name = self.rows.last()?.iter().rev().find(|name| name.column <= branch)?;
        Some(name.names.clone())
    }
}

/// Names in lines that one vertical line joins: `T1 ──┐`, `T2 ──┼──▶ T4`, `T3 ──┘`.
#[derive(Default)]
struct Joint<'a> {
    column: Option<usize>,
    left: Vec<PlacedName<'a>>,
    right: Vec<PlacedName<'a>>,
}

impl<'a> Joint<'a> {
    fn follow(&mut self, row: &Row<'a>, claims: &mut Vec<ArrowClaim<'a>>) {
        // A corner below the line leads on from all of them; an arrow out of it further up belongs to its own row.
        if let (Some(column), Some(branch), [first, ..]) = (self.column, row.branch, &row.names[..])
            && branch.abs_diff(column) <= 1
        {
            self.right.clone_from(&first.names);
            self.column = None;
            return self.close(claims);
        }
        if row.joint.is_none() || row.joint != self.column {
            self.close(claims);
        }
        self.column = row.joint;
        if let Some(joint) = row.joint {
            // Of "T1 → T2 ──┐" the last leads on.
            let behind = row.names.partition_point(|name| name.column < joint);
            let (before, behind) = row.names.split_at(behind);
            self.left.extend(before.last().into_iter().flat_map(|name| name.names.clone()));
            self.right.extend(
                behind.first().filter(|name| name.is_chained).iter().flat_map(|name| name.names.clone()),
            );
        }
    }

    fn close(&mut self, claims: &mut Vec<ArrowClaim<'a>>) {
        let Self { left, right, .. } = std::mem::take(self);
        if !left.is_empty() && !right.is_empty() {
            claims.push(ArrowClaim { left, right });
        }
    }
}

/// Whether a line is within a box.
fn is_framed(text: &str) -> bool {
    let text = text.trim();
    let is_row = text.starts_with(['║', '│', '┃']) && text.ends_with(['║', '│', '┃']);
    text.len() > '║'.len_utf8() && is_row || is_divider(text)
}

/// Whether a line divides a box, as below its title.
fn is_divider(text: &str) -> bool {
    let text = text.trim();
    let is_rule = |c: char| matches!(c, '─' | '━' | '═');
    text.starts_with(['├', '╠', '┣', '╟'])
        && text.ends_with(['┤', '╣', '┫', '╢'])
        && text.contains(is_rule)
        && text.chars().skip(1).take(text.chars().count() - 2).all(is_rule)
}

/// Takes what the connectors of a drawing say, and marks the names that they lead to.
fn follow_connectors<'a>(lines: &[PlanLine<'a>], rows: &mut [Row<'a>], claims: &mut Vec<ArrowClaim<'a>>) {
    if !lines.iter().any(|line| line.text.contains(diagram_connectors::is_line)) {
        return;
    }
    let canvas: Vec<Vec<char>> = lines.iter().map(|line| line.text.chars().collect()).collect();
    let places: Vec<(usize, usize)> =
        (0..rows.len()).flat_map(|row| (0..rows[row].names.len()).map(move |name| (row, name))).collect();
    let span = |(name, (row, at)): (usize, &(usize, usize))| {
        let (left, right) = extent(&canvas[*row], rows[*row].names[*at].column);
        Span { top: *row, bottom: *row, left, right, name }
    };
    let spans: Vec<Span> = places.iter().enumerate().map(span).collect();
    for connector in DiagramGrid::new(canvas, &spans).connectors() {
        let names = |numbers: &[usize]| -> Vec<PlacedName<'a>> {
            numbers
                .iter()
                .flat_map(|name| rows[places[*name].0].names[places[*name].1].names.clone())
                .collect()
        };
        claims.push(ArrowClaim { left: names(&connector.from), right: names(&connector.to) });
        for name in connector.to {
            rows[places[name].0].names[places[name].1].is_connected = true;
        }
    }
}

/// Whether two lists begin with names of the same kind, as two phases.
fn are_of_one_kind<'a>(one: &[PlacedName<'a>], other: &[PlacedName<'a>]) -> bool {
    let kind = std::mem::discriminant::<Name<'a>>;
    one.first().map(|(name, _)| kind(name)) == other.first().map(|(name, _)| kind(name))
}

/// The columns of the text that a name is in, up to a line or a wide gap on both sides.
fn extent(row: &[char], column: usize) -> (usize, usize) {
    /// Nobody draws wider texts, and a line of thousands of names must not be gone through for each of them.
    const WIDEST: usize = 120;
    let is_gap = |at: usize| row[at] == ' ' && row.get(at + 1).is_none_or(|next| *next == ' ');
    let is_end = |at: usize| diagram_connectors::is_line(row[at]) || is_gap(at);
    let left = (0..column).rev().take(WIDEST).take_while(|at| !is_end(*at)).last().unwrap_or(column);
    let right = (column..row.len()).take(WIDEST).take_while(|at| !is_end(*at)).last().unwrap_or(column);
    let trimmed = (column..=right).rev().find(|at| row[*at] != ' ').unwrap_or(right);
    ((left..=column).find(|at| row[*at] != ' ').unwrap_or(column), trimmed)
}

/// After brackets that say something about order, as "(depends on US1)"; `at` itself if there are none.
fn behind_remark(tokens: &[Token<'_>], at: usize) -> usize {
    let end = behind_parenthesis(tokens, at);
    let says_order = (at..end).any(|at| keyword_at(&tokens[..end], at, ClauseVoice::Section).is_some());
    if says_order { end } else { at }
}

/// Whether a text says something of what is above it, as "blocks all stories" and "depends on US1" do. "After Phase 2" may
/// be above what begins then.
fn is_predicate(tokens: &[Token<'_>], at: usize) -> bool {
    let keyword = tokens.get(at).and_then(|_| keyword_at(tokens, at, ClauseVoice::Section));
    keyword.is_some_and(|keyword| {
        keyword.sense == Sense::Blocks || keyword.sense == Sense::Waits && keyword.is_certain
    })
}

/// The column of the first `┐`, `┤`, `┼`, `┬` or `┘` after a name.
fn joint_behind(text: &str, name: usize) -> Option<usize> {
    let at = text.get(name..)?.find(['┐', '┤', '┼', '┬', '┘', '╮', '╯'])?;
    Some(text[..name + at].chars().count())
}

/// The column of the first `┘` after a name.
fn corner_behind(text: &str, name: usize) -> Option<usize> {
    let at = text.get(name..)?.find(['┘', '╯'])?;
    Some(text[..name + at].chars().count())
}

impl<'d> DiagramReader<'d> {
    /// Which names are above which in a tree: the upper ones come first.
    pub(super) fn tree<'a>(&self, lines: &[PlanLine<'a>]) -> Vec<ArrowClaim<'a>> {
        let mut claims = Vec::new();
        let mut path = Path::default();
        let (mut leads_down, mut down) = (false, 0);
        let mut fork = None;
        let mut joint = Joint::default();
        let mut rows: Vec<Row<'a>> = lines.iter().map(|line| self.row(line)).collect();
        follow_connectors(lines, &mut rows, &mut claims);
        let mut was_framed = false;
        for (row, line) in rows.into_iter().zip(lines) {
            joint.follow(&row, &mut claims);
            // What is listed in one box leads on together.
            let is_same_box = was_framed && is_framed(line.text);
            was_framed = is_framed(line.text);
            if row.names.is_empty() {
                leads_down |= row.leads_down;
                down = row.start;
                fork = row.fork;
                if !row.leads_down && !row.is_remark && !is_divider(line.text) {
                    path = Path::default();
                }
                continue;
            }
            let right: Vec<PlacedName<'a>> = row
                .names
                .iter()
                .filter(|name| !name.is_chained && !name.is_connected)
                .flat_map(|name| name.names.clone())
                .collect();
            if let Some(branch) = row.branch {
                claims.extend(path.parent(branch).map(|left| ArrowClaim { left, right }));
            } else if let Some(trunk) = fork.take().filter(|_| row.is_nested) {
                claims.extend(path.parent(trunk).map(|left| ArrowClaim { left, right }));
            } else if row.is_nested && leads_down {
                let last = path.rows.last().and_then(|row| row.last()).map(|name| name.names.clone());
                claims.extend(last.map(|left| ArrowClaim { left, right }));
            } else if leads_down && row.corner.is_some_and(|corner| down + 1 >= corner) {
                // The line above leads to the corner after the name, so the row belongs to what is drawn above it.
            } else if !is_same_box || leads_down {
                let ends = std::mem::take(&mut path).all;
                if leads_down {
                    claims.extend(ends.into_iter().map(|left| ArrowClaim { left, right: right.clone() }));
                }
            }
            leads_down = false;
            if row.has_upper_corner {
                // Branches that are drawn above what they hang from are not read.
                path = Path::default();
                continue;
            }
            path.all.extend(row.names.iter().map(|name| name.names.clone()));
            path.rows.push(row.names);
        }
        joint.close(&mut claims);
        claims
    }

    fn row<'a>(&self, line: &PlanLine<'a>) -> Row<'a> {
        let text = line.text;
        let (names, is_predicate) = self.names_of(text, line);
        let start = names.first().map_or(text.chars().count(), |name| name.column);
        let byte = text.char_indices().nth(start).map_or(text.len(), |(byte, _)| byte);
        let before = &text[..byte];
        let ascii = ["|--", "+--", "`--"].iter().filter_map(|branch| before.rfind(branch)).max();
        let branch = before.rfind(['├', '└', '╰']).or(ascii);
        let is_line = |c: char| {
            matches!(
                c,
                '|' | '▼' | '↓' | '⇓' | 'v' | 'V' | '\u{2500}'
                    ..='\u{257f}' | '◄' | '►' | '▲' | '/' | '\\' | '-' | '+'
            )
        };
        Row {
            start: text.chars().take_while(|c| c.is_whitespace()).count(),
            names,
            branch: branch.map(|byte| text[..byte].chars().count()),
            joint: joint_behind(text, byte),
            corner: corner_behind(text, byte),
            has_upper_corner: before.contains(['┌', '╭']),
            is_nested: before.contains(['│', '|']),
            fork: ["|\\", "│\\"].iter().find_map(|fork| text.find(fork)).map(|at| text[..at].chars().count()),
            is_remark: is_predicate
                || text.trim().starts_with(['(', '（']) && text.trim().ends_with([')', '）']),
            leads_down: !text.trim().is_empty()
                && !is_divider(text)
                && text.chars().all(|c| c.is_whitespace() || is_line(c)),
        }
    }

    /// The names of a line, and whether it says something of what is above it instead. "Phase 3: US1 Browse" is one name;
    /// an arrow or a wide gap parts two.
    fn names_of<'a>(&self, text: &'a str, line: &PlanLine<'a>) -> (Vec<DiagramName<'a>>, bool) {
        let tokens = self.tokenizer.text(text, line.at);
        let mut found: Vec<DiagramName<'a>> = Vec::new();
        let first = tokens.iter().position(|token| token.what != Piece::Other).unwrap_or(0);
        if is_predicate(&tokens, first) {
            return (found, true);
        }
        let (mut at, mut end) = (0, 0);
        // Columns are counted from the last name on, so that a long line takes linear time.
        let (mut counted, mut column) = (0, 0);
        while at < tokens.len() {
            let remark = behind_remark(&tokens, at);
            let list = self.name_reader.list_at(&tokens, at).filter(|_| remark == at);
            let Some(list) = list else {
                at = remark.max(at + 1);
                continue;
            };
            // "Phase 2 ← BLOCKER: all stories wait": words that explain the phase.
            let explains = |at: usize| tokens[at].what == Piece::Arrow(true);
            if (end..at).find(|at| explains(*at)).is_some_and(|arrow| arrow + 1 < at) {
                break;
            }
            let byte = tokens[at].at - line.at;
            let is_chained = tokens[end..at].iter().any(|token| matches!(token.what, Piece::Arrow(_)));
            let last = tokens[..end].last().map_or(0, |token| token.at - line.at);
            // "Phase 3  Phase 4" are two, "Phase 3  US1" is one.
            let is_like = found.last().is_some_and(|name| are_of_one_kind(&name.names, &list.members));
            let is_apart = text.get(last..byte).is_some_and(|between| {
                between.contains("   ")
                    || is_like && between.contains("  ")
                    || between.contains(diagram_connectors::leads_up_or_down)
            });
            if found.is_empty() || is_chained || is_apart {
                column += text[counted..byte].chars().count();
                counted = byte;
                let is_chained = is_chained && end > 0;
                found.push(DiagramName { column, names: list.members, is_chained, is_connected: false });
            }
            (at, end) = (list.end, list.end);
        }
        (found, false)
    }

    /// The arrows of a Mermaid flowchart.
    pub(super) fn mermaid<'a>(&self, lines: &[PlanLine<'a>]) -> Vec<ArrowClaim<'a>> {
        let mut nodes: HashMap<&'a str, Vec<PlacedName<'a>>> = HashMap::new();
        let mut links: Vec<(Vec<&'a str>, Vec<&'a str>)> = Vec::new();
        for line in lines {
            let mut left: Option<Vec<&'a str>> = None;
            for part in parts(line.text) {
                let group: Vec<&'a str> =
                    part.split(" & ").filter_map(|node| self.node(node, line, &mut nodes)).collect();
                if let Some(left) = left.replace(group.clone()) {
                    links.push((left, group));
                }
            }
        }
        let names = |group: &[&'a str]| -> Vec<PlacedName<'a>> {
            group.iter().flat_map(|node| nodes.get(node).cloned().unwrap_or_default()).collect()
        };
        let claims = links.iter().map(|(left, right)| ArrowClaim { left: names(left), right: names(right) });
        claims.filter(|claim| !claim.left.is_empty() && !claim.right.is_empty()).collect()
    }

    /// `A[Phase 1: Setup]`: the label says which node it is, else its own name does.
    fn node<'a>(
        &self,
        text: &'a str,
        line: &PlanLine<'a>,
        nodes: &mut HashMap<&'a str, Vec<PlacedName<'a>>>,
    ) -> Option<&'a str> {
        let text = text.trim().trim_end_matches(';');
        let len = text.find(['[', '(', '{', ':', ' ']).unwrap_or(text.len());
        let (name, label) = text.split_at(len);
        if name.is_empty() {
            return None;
        }
        let label = label.trim_matches(['[', ']', '(', ')', '{', '}', '"', ' ']);
        let known = nodes.get(name).is_some_and(|names| !names.is_empty());
        if !label.is_empty() || !known {
            let found = [label, name].into_iter().map(|text| self.first_name(text, line));
            nodes.insert(name, found.into_iter().find(|names| !names.is_empty()).unwrap_or_default());
        }
        Some(name)
    }

    fn first_name<'a>(&self, text: &'a str, line: &PlanLine<'a>) -> Vec<PlacedName<'a>> {
        let tokens = self.tokenizer.text(text, line.offset_of(text));
        let first = (0..tokens.len()).find_map(|at| self.name_reader.list_at(&tokens, at));
        first.map(|list| list.members).unwrap_or_default()
    }
}

/// The parts of a Mermaid line between its arrows, without the texts on them.
fn parts(text: &str) -> Vec<&str> {
    const ARROWS: [&str; 5] = ["-->", "==>", "-.->", "--->", "---"];
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        let next = ARROWS.iter().filter_map(|arrow| Some((rest.find(arrow)?, arrow.len()))).min();
        let Some((at, len)) = next else {
            parts.push(rest);
            return if parts.len() > 1 { parts } else { Vec::new() };
        };
        // `A -- text --> B`: the text belongs to the arrow.
        let part = rest[..at].split(" -- ").next().unwrap_or_default();
        parts.push(part.trim_end_matches(['-', '=', '.']));
        rest = rest[at + len..].trim_start();
        if let Some((_, behind)) = rest.strip_prefix('|').and_then(|label| label.split_once('|')) {
            rest = behind;
        }
    }
}

/// The tasks of a wave, each with the line that names it.
pub(super) type Wave = Vec<(String, Offset)>;

/// The waves that a fence holds, in their order, as Kiro writes them: `{"waves": [{"id": 0, "tasks": ["1.1"]}, …]}`. `None`
/// if it holds something else.
pub(super) fn waves(lines: &[PlanLine<'_>]) -> Option<Vec<Wave>> {
    let is_body =
        |line: &&PlanLine<'_>| line.kind == LineKind::Code && !line.text.trim_start().starts_with(['`', '~']);
    let body: Vec<&PlanLine<'_>> = lines.iter().filter(is_body).collect();
    // Other code is not looked at twice.
    if !body.iter().take(3).any(|line| line.text.contains("\"waves\"")) {
        return None;
    }
    let text: Vec<&str> = body.iter().map(|line| line.text).collect();
    let document: Value = serde_json::from_str(&text.join("\n")).ok()?;
    let places = places(&body);
    let start = lines.first()?.at;
    let wave = |wave: &Value| -> Wave {
        let tasks = wave.get("tasks").unwrap_or(wave).as_array();
        let ids = tasks.into_iter().flatten().filter_map(id);
        ids.map(|id| (id.clone(), places.get(id.as_str()).copied().unwrap_or(start))).collect()
    };
    Some(document.get("waves")?.as_array()?.iter().map(wave).filter(|wave| !wave.is_empty()).collect())
}

/// An id is a text, or a number where the quotes were left out.
fn id(value: &Value) -> Option<String> {
    match value {
        Value::String(id) => Some(id.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The line of each text in quotes.
fn places<'a>(lines: &[&PlanLine<'a>]) -> HashMap<&'a str, Offset> {
    let mut places = HashMap::new();
    for line in lines {
        for text in line.text.split('"').skip(1).step_by(2) {
            places.entry(text).or_insert(line.at);
        }
    }
    places
}
