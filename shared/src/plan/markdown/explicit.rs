//! Explicit dependencies of one file: sentences in tasks, cells of tables, sections that list them, arrows.

use super::{
    Page,
    arrows::{self, Arrow},
    clauses::{self, Claim, Force},
    keywords::Voice,
    lines::Kind,
    lists::{Placed, names},
    needs::{Known, Missing, Named, Need},
    order,
    tree::Role,
    words::{Piece, Token, Tokenizer},
};
use crate::plan::assemble::{Found, Place};

/// More pairs than this in one sentence are a slip of the pen, not a dependency.
const MOST_PAIRS: usize = 20_000;

/// Reads what a page says about order into the drafts' `needs`.
pub(super) fn add_needs(page: &Page<'_, '_>, (known, roles): (&Known, &[Role]), found: &mut Found) {
    let is_id = |id: &str| known.find(id).is_some();
    let tokenizer = Tokenizer { is_id: &is_id };
    let mut reader = Reader { page, known, roles, found, tokenizer, arrows: Vec::new() };
    reader.tasks();
    reader.cells();
    reader.sections();
    reader.settle_arrows();
}

struct Reader<'r, 'f, 'a> {
    page: &'r Page<'f, 'a>,
    known: &'r Known,
    roles: &'r [Role],
    found: &'r mut Found,
    tokenizer: Tokenizer<'r>,
    arrows: Vec<Arrow>,
}

impl<'a> Reader<'_, '_, 'a> {
    fn tasks(&mut self) {
        let mut tokens: Vec<Token<'a>> = Vec::new();
        for (entry, id) in self.page.outline.entries.iter().zip(&self.page.ids) {
            let Some(own) = id.as_ref().and_then(|id| self.known.position(id)) else { continue };
            tokens.clear();
            let lines = &self.page.lines[entry.lines.clone()];
            self.tokenizer.lines(lines.iter().filter(|line| line.kind != Kind::Code), &mut tokens);
            let said = clauses::read(behind_id(&tokens, entry.id.as_str()), Voice::Task);
            said.claims.iter().for_each(|claim| self.claim(claim, Some(own)));
        }
    }

    /// A cell under "Depends on" is a list, whatever stands around the ids.
    fn cells(&mut self) {
        for (id, cell, at) in &self.page.outline.cells {
            let Some(own) = self.known.find(id) else { continue };
            let mut tokens = Vec::new();
            self.tokenizer.text(cell, *at, &mut tokens);
            let claim = Claim { who: Vec::new(), on: names(&tokens), force: Force::Firm };
            self.claim(&claim, Some(own));
        }
    }

    fn sections(&mut self) {
        for block in &self.page.outline.dependencies {
            let mut tokens = Vec::new();
            self.tokenizer.lines(block.iter(), &mut tokens);
            let said = clauses::read(&tokens, Voice::Section);
            said.claims.iter().for_each(|claim| self.claim(claim, None));
            for (left, right) in &said.arrows {
                self.arrow(left, right);
            }
        }
    }

    fn arrow(&mut self, left: &[Placed<'_>], right: &[Placed<'_>]) {
        let (left, right) = (self.nodes(left, Force::Firm), self.nodes(right, Force::Firm));
        if left.len() * right.len() > MOST_PAIRS {
            return;
        }
        for (left, at) in left {
            let arrow = |right: usize| Arrow { left, right, place: self.place(at) };
            let others = right.iter().map(|(right, _)| *right).filter(|right| *right != left);
            let arrows: Vec<Arrow> = others.map(arrow).collect();
            self.arrows.extend(arrows);
        }
    }

    fn settle_arrows(&mut self) {
        let arrows = std::mem::take(&mut self.arrows);
        let agrees = |needs: &[Need]| order::agrees(&self.found.drafts, self.roles, needs);
        match arrows::read(self.page.file.1, &self.found.drafts, &arrows, agrees) {
            Ok(needs) => needs.into_iter().for_each(|need| self.need(need)),
            Err(problem) => self.found.problems.push(problem),
        }
    }

    fn claim(&mut self, claim: &Claim<'_>, own: Option<usize>) {
        let side = |reader: &mut Self, names: &[Placed<'_>]| match own {
            Some(own) if names.is_empty() => vec![(own, reader.found.drafts[own].place.at)],
            _ => reader.nodes(names, claim.force),
        };
        let (who, on) = (side(self, &claim.who), side(self, &claim.on));
        if who.len() * on.len() > MOST_PAIRS {
            return;
        }
        for (who, _) in who {
            for (on, at) in &on {
                let need = Need { who, on: *on, place: self.place(*at) };
                if self.is_credible(need, claim.force) {
                    self.need(need);
                }
            }
        }
    }

    /// What is said loosely, or of whole phases, counts only so far as it follows the order of the file.
    fn is_credible(&mut self, need: Need, force: Force) -> bool {
        let is_phase = |at: usize| self.roles[at] != Role::Task;
        let is_loose = force == Force::Loose || is_phase(need.who) || is_phase(need.on);
        if !is_loose || need.on < need.who || self.known.are_kin(&self.found.drafts, need) {
            return true;
        }
        let id = |at: usize| &self.found.drafts[at].task.id;
        let what =
            format!("that '{}' waits for '{}' goes against the order of the file", id(need.who), id(need.on));
        let fix = format!("write '{} depends on {}', if that is meant", id(need.who), id(need.on));
        self.found.warnings.push(self.page.file.1.problem(need.place.at, what, fix));
        false
    }

    fn place(&self, at: usize) -> Place {
        Place { file: self.page.file.0, at }
    }

    /// The nodes that are named. What is not there is told: an id is wrong, an open end of a range or something
    /// said in general is doubtful.
    fn nodes(&mut self, names: &[Placed<'_>], force: Force) -> Named {
        let (nodes, missing) = self.known.resolve_all(names);
        for (missing, at) in missing {
            let (Missing::Task(id) | Missing::EndOfRange(id)) = missing;
            let what = format!("a dependency names '{id}', which is not in the plan");
            let told = self.found.problems.len() + self.found.warnings.len();
            let problem = self.page.file.1.problem(at, what, self.known.fix_for(id, told));
            match missing {
                Missing::Task(_) if force == Force::Firm => self.found.problems.push(problem),
                _ => self.found.warnings.push(problem),
            }
        }
        nodes
    }

    /// A node cannot wait for itself, nor for what it is part of: such a sentence means its neighbours.
    fn need(&mut self, need: Need) {
        if need.who == need.on || self.known.are_kin(&self.found.drafts, need) {
            return;
        }
        let id = self.found.drafts[need.on].task.id.clone();
        self.found.drafts[need.who].needs.push((id, need.place));
    }
}

/// What stands behind a task's own id.
fn behind_id<'t, 'a>(tokens: &'t [Token<'a>], id: &str) -> &'t [Token<'a>] {
    let own = tokens.iter().position(|token| token.what == Piece::Id(id));
    own.map_or(tokens, |own| &tokens[own + 1..])
}
