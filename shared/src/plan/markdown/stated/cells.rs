//! Tables with a column of dependencies, such as "Depends on", "Blocks" or "Can parallel with".

use super::{
    super::{
        keywords::{ClauseVoice, Sense, is_denied, keyword_at},
        mentions::PlacedName,
        sentences::{self, Force, OrderClaim},
        table::CellKind,
        tokens::{Piece, Token},
    },
    Weight,
    reader::Reader,
};

impl<'a> Reader<'_, '_, 'a> {
    /// Reads the cells that name dependencies. The first cell of the row says whose.
    pub(super) fn cells(&mut self) {
        for cell in &self.page.outline.cells {
            let (mut who, mut on) = (Vec::new(), Vec::new());
            self.tokenizer.text(cell.who, cell.who_at, &mut who);
            self.tokenizer.text(cell.needs, cell.at, &mut on);
            let mentions = self.mentions(true);
            let who: Vec<PlacedName<'_>> = mentions.names(&who).into_iter().take(1).collect();
            if cell.kind != CellKind::Beside
                && let (nodes, _) = self.known.resolve_all(&who, None)
                && let [(own, _)] = nodes[..]
                && self.known.is_task(own)
            {
                self.statements.declared.insert(own);
            }
            if !who.is_empty() {
                let (who, on) = match cell.kind {
                    CellKind::Needs => (who, self.needs_of_cell(&on)),
                    CellKind::Blocks if denies_order(&on) => continue,
                    CellKind::Blocks => (mentions.names(&on), who),
                    CellKind::Beside => {
                        let on = mentions.names(&on);
                        self.unrelated(&who, &on, None);
                        self.unrelated(&on, &who, None);
                        continue;
                    }
                };
                self.claim(&OrderClaim { who, on, force: Force::Firm }, None, Weight::Task);
            }
        }
    }

    /// What a cell under "Depends on" names: it is a list, whatever is around the ids. One that says what is *not* waited
    /// for, as "Phase 2, independent of US1" or "Shares the timer with US1, independently testable", is a sentence.
    fn needs_of_cell(&self, cell: &[Token<'a>]) -> Vec<PlacedName<'a>> {
        let mentions = self.mentions(true);
        // In a column "Sequential after", the cell "T030, then T035" names T030; T035 comes later.
        let is_then =
            |token: &Token<'_>| matches!(token.what, Piece::Word(word) if word.eq_ignore_ascii_case("then"));
        let cell = cell.split(is_then).next().unwrap_or_default();
        if !denies_order(cell) {
            return mentions.names(cell);
        }
        let first = mentions.list_at(cell, 0).map(|list| list.members);
        let said = sentences::read(&mentions, cell, ClauseVoice::Phase);
        let own = said.claims.into_iter().filter(|claim| claim.who.is_empty());
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
