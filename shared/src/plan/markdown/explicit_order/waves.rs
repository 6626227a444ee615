//! From waves to edges: each wave of a list or table, as "| Wave 2 | T003, T004 |", waits for the one before it.

use std::collections::HashMap;

use super::{
    super::{
        diagrams::Wave,
        keywords::{ClauseVoice, keyword_at},
        name_reader::Name,
        sentences::Force,
        table::WaveRow,
    },
    Scope, Weight,
    page_reader::PageReader,
};

/// Wider waves than anybody writes are closed by their last task.
const WIDEST: usize = 64;

/// The nodes of a wave, each with the place that names it.
type WaveNodes = Vec<(usize, usize)>;

impl PageReader<'_, '_, '_> {
    /// The waves of a fence: each waits for the one before it.
    pub(super) fn waves(&mut self, waves: &[Wave]) {
        let mut before: Vec<usize> = Vec::new();
        for wave in waves {
            let mut nodes: WaveNodes = Vec::new();
            for (id, at) in wave {
                self.note_near(None, [&[], &[]]);
                nodes.extend(self.nodes(&[(Name::Task(id), *at)], None, Force::Firm));
            }
            if !nodes.is_empty() {
                self.wave(&nodes, &before);
                before = nodes.into_iter().map(|(at, _)| at).collect();
            }
        }
    }

    /// Tables "| Wave | Tasks |": each row waits for the one before it, or for those that its column "Depends on" names.
    pub(super) fn wave_tables(&mut self) {
        let page = self.page;
        for table in &page.outline.wave_tables {
            let rows: Vec<WaveNodes> = table.iter().map(|row| self.wave_row(row)).collect();
            let mut all: Vec<usize> = rows.iter().flatten().map(|(at, _)| *at).collect();
            let count = all.len();
            all.sort_unstable();
            all.dedup();
            // A table that names a task twice or that cannot be read as a whole says something else.
            let states_own_order = table.iter().any(|row| self.says_when(row));
            if rows.len() < 2 || rows.iter().any(Vec::is_empty) || all.len() < count || states_own_order {
                continue;
            }
            let by_number: HashMap<&str, usize> =
                table.iter().enumerate().map(|(at, row)| (row.number, at)).collect();
            for (at, nodes) in rows.iter().enumerate() {
                let before: Vec<usize> = match table[at].needs {
                    Some(needs) => {
                        numbers(needs).filter_map(|number| by_number.get(number).copied()).collect()
                    }
                    None => at.checked_sub(1).into_iter().collect(),
                };
                let before = before.into_iter().filter(|row| *row != at);
                let before: Vec<usize> = before.flat_map(|row| rows[row].iter().map(|(at, _)| *at)).collect();
                self.wave(nodes, &before);
            }
        }
    }

    /// Whether a row says when its tasks run, as "After T003" or "US2" does: it is no wave after the row above it then.
    fn says_when(&self, row: &WaveRow<'_>) -> bool {
        let tokens = self.tokenizer.text(row.label, 0);
        let is_counted = row.label.starts_with(|c: char| c.is_ascii_digit());
        !is_counted
            && !tokens.is_empty()
            && (self.name_reader(true).list_at(&tokens, 0).is_some()
                || keyword_at(&tokens, 0, ClauseVoice::Section).is_some())
    }

    fn wave_row(&self, row: &WaveRow<'_>) -> WaveNodes {
        let tokens = self.tokenizer.text(row.names, row.at);
        let names = self.name_reader(true).names(&tokens);
        let (mut nodes, _) = self.known.resolve_all(&names, None);
        nodes.sort_unstable();
        nodes.dedup_by_key(|(at, _)| *at);
        nodes
    }

    fn wave(&mut self, nodes: &[(usize, usize)], before: &[usize]) {
        self.statements.waved.extend(nodes.iter().map(|(at, _)| *at));
        let is_wide = nodes.len() * before.len() > WIDEST * WIDEST;
        let closed = nodes.first().filter(|_| is_wide).map(|(_, at)| self.closed(before, *at));
        let before = closed.as_deref().unwrap_or(before);
        for (who, at) in nodes {
            before.iter().for_each(|on| self.edge(*who, *on, *at, Weight::Section, Scope::Few));
        }
    }

    /// The last of some tasks, made to wait for the others, so that two wide waves cost no edge for each pair.
    fn closed(&mut self, nodes: &[usize], at: usize) -> Vec<usize> {
        let Some((last, others)) = nodes.split_last() else { return Vec::new() };
        others.iter().for_each(|on| self.edge(*last, *on, at, Weight::Section, Scope::Few));
        vec![*last]
    }
}

/// The numbers in a text such as "Wave 1, 2".
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_digit()).filter(|number| !number.is_empty())
}
