//! From cells of tables to edges: "| T002 | Add the page | T001 |" with a column "Depends on", "Blocks" or "Can parallel with".

use super::{
    super::{
        keywords::{ClauseVoice, Sense, is_denied, is_none_word, keyword_at},
        name_reader::PlacedName,
        sentences::{self, Force, OrderClaim},
        table::{Cell, CellKind},
        tokens::{Piece, Token},
    },
    Weight,
    page_reader::PageReader,
};

impl<'a> PageReader<'_, '_, 'a> {
    /// Reads the cells that name dependencies. The first cell of the row says whose.
    pub(super) fn cells(&mut self) {
        for cell in &self.page.outline.cells {
            let Some((who, own)) = self.owner_of_cell(cell) else { continue };
            let tokens = self.tokenizer.text(cell.needs, cell.at);
            let name_reader = self.name_reader(true);
            let node = own.or_else(|| match self.known.resolve_all(&who, None).0[..] {
                [(node, _)] => Some(node),
                _ => None,
            });
            if let Some(node) = node.filter(|node| cell.kind != CellKind::Beside && self.known.is_task(*node))
            {
                self.statements.declared.insert(node);
            }
            let (who, on) = match cell.kind {
                CellKind::Needs => (who, self.needs_of_cell(&tokens)),
                CellKind::Blocks if denies_order(&tokens) => continue,
                CellKind::Blocks => (name_reader.names(&tokens), who),
                CellKind::Beside => {
                    let on = name_reader.names(&tokens);
                    self.unrelated(&who, &on, own);
                    self.unrelated(&on, &who, own);
                    continue;
                }
            };
            // "Depends on: none".
            if !(who.is_empty() && on.is_empty()) {
                self.claim(&OrderClaim { who, on, force: Force::Firm }, own, Weight::Task);
            }
        }
    }

    /// Whose dependencies a cell names: a name, or the task of the heading above it.
    fn owner_of_cell(&self, cell: &Cell<'a>) -> Option<(Vec<PlacedName<'a>>, Option<usize>)> {
        if let Some(entry) = cell.entry {
            let id = self.page.ids[entry].as_ref()?;
            return Some((Vec::new(), Some(self.known.position(id)?)));
        }
        let tokens = self.tokenizer.text(cell.who, cell.who_at);
        let who: Vec<_> = self.name_reader(true).names(&tokens).into_iter().take(1).collect();
        (!who.is_empty()).then_some((who, None))
    }

    /// What a cell under "Depends on" names: it is a list, whatever is around the ids. One that says what is *not* waited
    /// for, as "Phase 2, independent of US1" or "Shares the timer with US1, independently testable", is a sentence.
    fn needs_of_cell(&self, cell: &[Token<'a>]) -> Vec<PlacedName<'a>> {
        let name_reader = self.name_reader(true);
        // "None (may also be done in Phase 5)".
        if cell.first().is_some_and(|first| matches!(first.what, Piece::Word(word) if is_none_word(word))) {
            return Vec::new();
        }
        // In a column "Sequential after", the cell "T030, then T035" names T030; T035 comes later.
        let is_then = |token: &Token<'_>| token.is_word(&["then"]);
        let cell = cell.split(is_then).next().unwrap_or_default();
        if !denies_order(cell) {
            return name_reader.names(cell);
        }
        let first = name_reader.list_at(cell, 0).map(|list| list.members);
        let stated_order = sentences::read(&name_reader, cell, ClauseVoice::Phase);
        let own = stated_order.claims.into_iter().filter(|claim| claim.who.is_empty());
        first.into_iter().chain(own.map(|claim| claim.on)).flatten().collect()
    }
}

/// Whether a cell says that something is independent, parallel to something or does not depend on it.
fn denies_order(cell: &[Token<'_>]) -> bool {
    (0..cell.len()).any(|at| {
        let keyword = keyword_at(cell, at, ClauseVoice::Section);
        keyword.is_some_and(|keyword| keyword.sense == Sense::Unrelated || is_denied(cell, at))
            || says_independent(&cell[at])
    })
}

fn says_independent(token: &Token<'_>) -> bool {
    const STEMS: [&str; 5] = ["independ", "indépend", "unabhängig", "независим", "standalone"];
    let Piece::Word(word) = token.what else { return false };
    let lower = word.to_lowercase();
    STEMS.iter().any(|stem| lower.starts_with(stem)) || lower.contains("独立") || lower.contains("獨立")
}
