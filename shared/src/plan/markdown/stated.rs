//! What a plan states about its order: sentences in tasks and phases, cells of tables, sections that list
//! dependencies, drawings and arrows.

use std::collections::HashSet;

use super::{
    Page,
    default_order::Family,
    drawings::{DrawingReader, is_mermaid},
    keywords::{Sense, Voice, keyword_at},
    lines::Kind,
    mentions::{Mentions, Name, Placed},
    node_index::{Missing, Named, NodeIndex},
    outline::Block,
    sentences::{self, ArrowClaim, Claim, Force, Said},
    tokens::{Piece, Token, Tokenizer},
    tree::{NodeKind, Role},
};
use crate::{
    name::TaskId,
    plan::{
        assemble::{DraftNeed, Found, Place},
        precedence::Precedence,
    },
};

/// More pairs than this in one sentence are a slip of the pen, not a dependency.
const MOST_PAIRS: usize = 20_000;

/// How many of ten tasks must state their dependencies, from the first that does, so that these replace the implied
/// order.
const THROUGHOUT: usize = 9;

/// The stated edges that were taken.
pub(super) struct Stated {
    /// For each node, what it says it waits for.
    pub(super) needs: Vec<Vec<usize>>,
    /// Nodes whose stated needs replace what would be implied.
    pub(super) replaced: Vec<bool>,
    /// Pairs of nodes of which the first need not wait for the second.
    pub(super) unrelated: HashSet<(usize, usize)>,
    pub(super) precedence: Precedence,
}

/// How firmly an edge is stated: where edges contradict each other, the first of these win.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// A task or its row says it.
    Task,
    /// A section about dependencies says it of tasks.
    Section,
    /// An arrow or a drawing.
    Arrow,
    /// It is said of whole phases.
    Phase,
    /// A remark in brackets.
    Remark,
}

#[derive(Debug, Clone, Copy)]
struct Edge {
    who: usize,
    on: usize,
    place: Place,
    weight: Weight,
    /// Whether "all stories" are meant: a last phase then still waits for other phases too.
    is_general: bool,
}

/// Everything that the pages of a plan state.
#[derive(Default)]
struct Statements {
    edges: Vec<Edge>,
    /// Tasks that name their dependencies, also if these are none.
    declared: HashSet<usize>,
    /// Phases that are said to wait for nothing.
    free: Vec<usize>,
    /// Nodes that are said to have nothing to do with others.
    unrelated: HashSet<(usize, usize)>,
}

/// Reads what the pages state into the drafts' `needs`.
pub(super) fn read(
    pages: &[Page<'_, '_>],
    (known, roles): (&NodeIndex, &[Role]),
    family: &Family,
    found: &mut Found,
) -> Stated {
    let mut statements = Statements::default();
    for page in pages {
        let is_id = |id: &str| known.find(id).is_some();
        let tokenizer = Tokenizer { is_id: &is_id };
        let mut reader = Reader { page, known, roles, family, found, tokenizer, statements: &mut statements };
        reader.tasks();
        reader.phases();
        reader.cells();
        reader.sections();
    }
    take(statements, (roles, family), pages, found)
}

/// Takes the statements that do not contradict each other. Tasks that wait for each other by their own words are
/// left for the check of the whole plan, which names them all.
fn take(
    mut statements: Statements,
    (roles, family): (&[Role], &Family),
    pages: &[Page<'_, '_>],
    found: &mut Found,
) -> Stated {
    let mut stated = Stated {
        needs: vec![Vec::new(); roles.len()],
        replaced: vec![false; roles.len()],
        unrelated: statements.unrelated,
        precedence: Precedence::new(&family.children, &family.roots),
    };
    statements.edges.sort_by_key(|edge| edge.weight);
    for Edge { who, on, place, weight, is_general } in statements.edges {
        let is_denied = weight == Weight::Remark && stated.unrelated.contains(&(who, on));
        if is_denied || stated.needs[who].contains(&on) {
            continue;
        }
        if !stated.precedence.try_add(who, on) && weight > Weight::Task {
            let file = pages.iter().find(|page| page.file.0 == place.file).map(|page| page.file.1);
            found.warnings.extend(file.map(|file| {
                let id = |at: usize| &found.drafts[at].task.id;
                let what = format!(
                    "'{}' cannot wait for '{}': other dependencies say the opposite",
                    id(who),
                    id(on)
                );
                file.problem(place.at, what, "correct one of them")
            }));
            continue;
        }
        stated.needs[who].push(on);
        let is_phase = |at: usize| roles[at].kind != NodeKind::Task;
        let is_added = is_general && roles[who].kind == NodeKind::Last || weight == Weight::Remark;
        stated.replaced[who] |= is_phase(who) && is_phase(on) && !is_added;
        let id = found.drafts[on].task.id.clone();
        found.drafts[who].needs.push(DraftNeed::stated((id, place)));
    }
    for at in statements.free {
        stated.replaced[at] |= roles[at].kind == NodeKind::Phase;
    }
    replace_throughout(&statements.declared, (roles, family), &mut stated);
    replace_in_phases((roles, family), &mut stated);
    stated
}

/// Where nearly every task names its dependencies, these are all that it has.
fn replace_throughout(declared: &HashSet<usize>, (roles, family): (&[Role], &Family), stated: &mut Stated) {
    let is_leaf = |at: &usize| family.children[*at].is_empty();
    let leaves: Vec<usize> = (0..roles.len()).filter(is_leaf).collect();
    let count = leaves.iter().filter(|at| declared.contains(at)).count();
    // What stands before the first dependency has none, and nobody writes that down.
    let first = leaves.iter().position(|at| declared.contains(at)).unwrap_or(leaves.len());
    if count < 3 || count * 2 < leaves.len() || count * 10 < (leaves.len() - first) * THROUGHOUT {
        return;
    }
    let mut is_whole = vec![true; roles.len()];
    for at in (0..roles.len()).rev() {
        is_whole[at] &= !is_leaf(&at) || declared.contains(&at);
        if let Some(parent) = family.parents[at] {
            is_whole[parent] &= is_whole[at];
        }
        stated.replaced[at] |= is_whole[at];
    }
}

/// The same for one phase whose tasks all but the first say what they wait for.
fn replace_in_phases((roles, family): (&[Role], &Family), stated: &mut Stated) {
    let is_task = |at: usize| family.children[at].is_empty() && roles[at].kind == NodeKind::Task;
    for siblings in family.children.iter().chain([&family.roots]) {
        let says = |at: &usize| stated.needs[*at].iter().any(|on| is_task(*on));
        let is_whole =
            siblings.len() > 3 && siblings.iter().all(|at| is_task(*at)) && siblings.iter().skip(1).all(says);
        if is_whole {
            siblings.iter().skip(1).for_each(|at| stated.replaced[*at] = true);
        }
    }
}

struct Reader<'r, 'f, 'a> {
    page: &'r Page<'f, 'a>,
    known: &'r NodeIndex,
    roles: &'r [Role],
    family: &'r Family,
    found: &'r mut Found,
    tokenizer: Tokenizer<'r>,
    statements: &'r mut Statements,
}

impl<'r, 'a> Reader<'r, '_, 'a> {
    fn mentions(&self, reads_titles: bool) -> Mentions<'r> {
        Mentions { known: self.known, reads_titles }
    }

    fn tasks(&mut self) {
        let mut tokens: Vec<Token<'a>> = Vec::new();
        for (entry, id) in self.page.outline.entries.iter().zip(&self.page.ids) {
            let Some(own) = id.as_ref().and_then(|id| self.known.position(id)) else { continue };
            tokens.clear();
            let lines = &self.page.lines[entry.lines.clone()];
            self.tokenizer.lines(lines.iter().filter(|line| line.kind != Kind::Code), &mut tokens);
            let tokens = behind_id(&tokens, entry.id.as_str());
            let said = sentences::read(&self.mentions(false), tokens, Voice::Task);
            if declares_nothing(tokens) || said.claims.iter().any(|claim| claim.who.is_empty()) {
                self.statements.declared.insert(own);
            }
            said.claims.iter().for_each(|claim| self.claim(claim, Some(own), Weight::Task));
        }
    }

    /// Headings of phases, and lines below them such as "**Depends on**: Phase 2".
    fn phases(&mut self) {
        for (section, line) in &self.page.outline.phase_lines {
            let Some(own) = self.page.sections.get(*section).copied().flatten() else { continue };
            let mut tokens = Vec::new();
            self.tokenizer.lines(std::iter::once(line), &mut tokens);
            let said = sentences::read(&self.mentions(true), behind_label(&tokens), Voice::Task);
            said.claims.iter().for_each(|claim| self.claim(claim, Some(own), Weight::Phase));
        }
    }

    /// A cell under "Depends on" is a list, whatever stands around the ids.
    fn cells(&mut self) {
        for cell in &self.page.outline.cells {
            let (mut who, mut on) = (Vec::new(), Vec::new());
            self.tokenizer.text(cell.who, cell.who_at, &mut who);
            self.tokenizer.text(cell.needs, cell.at, &mut on);
            let mentions = self.mentions(true);
            let who: Vec<Placed<'_>> = mentions.names(&who).into_iter().take(1).collect();
            if let (nodes, _) = self.known.resolve_all(&who, None)
                && let [(own, _)] = nodes[..]
                && self.known.is_task(own)
            {
                self.statements.declared.insert(own);
            }
            if !who.is_empty() {
                let on = mentions.names(&on);
                let (who, on) = if cell.is_reversed { (on, who) } else { (who, on) };
                self.claim(&Claim { who, on, force: Force::Firm }, None, Weight::Task);
            }
        }
    }

    fn sections(&mut self) {
        let blocks = &self.page.outline.dependencies;
        for blocks in blocks.chunk_by(|one, other| one.section == other.section) {
            let mut arrows = Vec::new();
            for block in blocks {
                self.block(block, &mut arrows);
            }
            self.settle_arrows(&arrows);
        }
    }

    fn block(&mut self, block: &Block<'a>, arrows: &mut Vec<ArrowClaim<'a>>) {
        let mentions = self.mentions(true);
        let is_drawing = block.lines[0].kind == Kind::Code;
        let drawing = DrawingReader { mentions: &mentions, tokenizer: &self.tokenizer };
        if is_drawing && is_mermaid(&block.lines) {
            return arrows.append(&mut drawing.mermaid(&block.lines));
        }
        let mut said = Said::default();
        for lines in block.lines.chunks(if is_drawing { 1 } else { block.lines.len() }) {
            let mut tokens = Vec::new();
            self.tokenizer.lines(lines.iter(), &mut tokens);
            let mut more = sentences::read(&mentions, &tokens, Voice::Section);
            said.claims.append(&mut more.claims);
            said.arrows.append(&mut more.arrows);
            said.free.append(&mut more.free);
            said.unrelated.append(&mut more.unrelated);
            said.unread.append(&mut more.unread);
            said.chains.append(&mut more.chains);
            said.abreast.append(&mut more.abreast);
        }
        if is_drawing {
            let tree = drawing.tree(&block.lines);
            tree.iter().for_each(|claim| self.then(claim));
        }
        arrows.append(&mut said.arrows);
        said.claims.iter().for_each(|claim| self.claim(claim, None, Weight::Section));
        for (who, others) in &said.unrelated {
            let others = self.known.nodes(others);
            let pairs =
                self.known.nodes(who).into_iter().flat_map(|who| others.iter().map(move |on| (who, *on)));
            self.statements.unrelated.extend(pairs);
        }
        said.chains.iter().for_each(|chain| self.chain(chain));
        said.abreast.iter().for_each(|list| self.abreast(list));
        let (free, _) = self.known.resolve_all(&said.free, None);
        self.statements.free.extend(free.into_iter().map(|(at, _)| at));
        for at in said.unread {
            let what = "the order that this sentence states could not be read";
            let fix = "name tasks or phases, as 'T005 depends on T001' or 'Phase 3 depends on Phase 2'";
            self.found.warnings.push(self.page.file.1.problem(at, what, fix));
        }
    }

    /// Tasks that run one behind the other.
    fn chain(&mut self, names: &[Placed<'_>]) {
        let mut nodes = self.nodes(names, None, Force::Firm);
        nodes.sort_unstable();
        nodes.dedup_by_key(|(node, _)| *node);
        for pair in nodes.windows(2) {
            self.edge((pair[1].0, pair[0].0), pair[1].1, Weight::Section, false);
        }
    }

    /// Each of them need not wait for the others. Who lists more than a few means a whole phase.
    fn abreast(&mut self, names: &[Placed<'_>]) {
        const MOST: usize = 64;
        let nodes = self.known.nodes(names);
        if nodes.len() <= MOST {
            let pairs = nodes.iter().flat_map(|one| nodes.iter().map(move |other| (*one, *other)));
            self.statements.unrelated.extend(pairs.filter(|(one, other)| one != other));
        }
    }

    /// A drawn tree always leads from the earlier to the later.
    fn then(&mut self, ArrowClaim { left, right }: &ArrowClaim<'_>) {
        let claim = Claim { who: right.clone(), on: left.clone(), force: Force::Firm };
        self.claim(&claim, None, Weight::Arrow);
    }

    /// `T001 → T002` means "then" for most people and "needs" for some. In each section the direction counts in
    /// which most arrows follow the order of the file.
    fn settle_arrows(&mut self, arrows: &[ArrowClaim<'_>]) {
        let mut pairs: Vec<(usize, usize, usize)> = Vec::new();
        for ArrowClaim { left, right } in arrows {
            let left = self.nodes(left, None, Force::Firm);
            let right = self.nodes(right, left.iter().map(|(at, _)| *at).max(), Force::Firm);
            if left.len() * right.len() <= MOST_PAIRS {
                let pair = |(left, at): &(usize, usize)| {
                    right.iter().map(|(right, _)| (*left, *right, *at)).collect::<Vec<_>>()
                };
                pairs.extend(left.iter().flat_map(pair));
            }
        }
        pairs.retain(|(left, right, _)| !self.family.are_kin(*left, *right));
        pairs = self.take_mutual(pairs);
        let forward = pairs.iter().filter(|(left, right, _)| left < right).count();
        let backward = pairs.len() - forward;
        if forward == backward {
            return self.warn_of_both_readings(&pairs);
        }
        let is_then = forward > backward;
        for (left, right, at) in pairs {
            let (who, on) = if is_then { (right, left) } else { (left, right) };
            if (left < right) != is_then {
                self.warn_of_odd_arrow((left, right), (who, on), at);
            }
            self.edge((who, on), at, Weight::Arrow, false);
        }
    }

    /// Who writes "T003 → T012" and "T012 → T003" means "then" once and "needs" once: the order of the file tells.
    fn take_mutual(&mut self, pairs: Vec<(usize, usize, usize)>) -> Vec<(usize, usize, usize)> {
        let both: HashSet<(usize, usize)> = pairs.iter().map(|(left, right, _)| (*left, *right)).collect();
        let is_mutual = |(left, right, _): &(usize, usize, usize)| both.contains(&(*right, *left));
        let (mutual, others): (Vec<_>, Vec<_>) = pairs.into_iter().partition(is_mutual);
        for (left, right, at) in mutual {
            self.edge((left.max(right), left.min(right)), at, Weight::Arrow, false);
        }
        others
    }

    fn warn_of_odd_arrow(&mut self, (left, right): (usize, usize), (who, on): (usize, usize), at: usize) {
        let id = |at: usize| &self.found.drafts[at].task.id;
        let what = format!(
            "the arrow '{} → {}' points against the order of the file; as most arrows here are meant, '{}' waits for '{}'",
            id(left),
            id(right),
            id(who),
            id(on)
        );
        let fix = format!("write '{} depends on {}'", id(who), id(on));
        self.found.warnings.push(self.page.file.1.problem(at, what, fix));
    }

    fn warn_of_both_readings(&mut self, pairs: &[(usize, usize, usize)]) {
        let Some((left, right, at)) = pairs.first().copied() else { return };
        let id = |at: usize| &self.found.drafts[at].task.id;
        let what = format!(
            "arrows point both ways: read as 'then', '{0} → {1}' lets '{1}' wait for '{0}'; read as 'needs', '{0}' waits for '{1}'",
            id(left),
            id(right)
        );
        let fix = format!("let all arrows point one way, or write '{} depends on {}'", id(right), id(left));
        self.found.warnings.push(self.page.file.1.problem(at, what, fix));
    }

    fn claim(&mut self, claim: &Claim<'_>, own: Option<usize>, weight: Weight) {
        let is_all_after = |names: &[Placed<'_>]| names.iter().any(|(name, _)| *name == Name::AllAfter);
        if is_all_after(&claim.on) {
            return;
        }
        let who = match own {
            Some(own) if claim.who.is_empty() => vec![(own, usize::MAX)],
            _ => {
                let on = own.or_else(|| self.known.nodes(&claim.on).into_iter().max());
                self.nodes(&claim.who, on.filter(|_| is_all_after(&claim.who)), claim.force)
            }
        };
        let subject = who.first().map(|(at, _)| *at);
        let on = match own {
            Some(own) if claim.on.is_empty() => vec![(own, usize::MAX)],
            _ => self.nodes(&claim.on, subject, claim.force),
        };
        if who.len() * on.len() > MOST_PAIRS {
            return;
        }
        let is_general = claim.on.iter().any(|(name, _)| *name == Name::AllStories);
        for (who, who_at) in who {
            for (on, on_at) in &on {
                let at = if *on_at == usize::MAX { who_at } else { *on_at };
                let weight = if claim.force == Force::Loose { Weight::Remark } else { weight };
                self.edge((who, *on), at, weight, is_general);
            }
        }
    }

    /// Notes an edge. A node cannot wait for itself, nor for what it is part of: such a sentence means its
    /// neighbours. A remark counts only so far as it follows the order of the file.
    fn edge(&mut self, (who, on): (usize, usize), at: usize, weight: Weight, is_general: bool) {
        let is_against = weight == Weight::Remark && on > who;
        if self.family.are_kin(who, on) || is_against {
            return;
        }
        let is_phase = |at: usize| self.roles[at].kind != NodeKind::Task;
        let weight = if is_phase(who) || is_phase(on) { weight.max(Weight::Phase) } else { weight };
        let place = Place { file: self.page.file.0, at };
        self.statements.edges.push(Edge { who, on, place, weight, is_general });
    }

    /// The nodes that are named. What is not there is told.
    fn nodes(&mut self, names: &[Placed<'_>], subject: Option<usize>, force: Force) -> Named {
        let (nodes, missing) = self.known.resolve_all(names, subject);
        for (missing, at) in missing {
            let (Missing::Task(id) | Missing::EndOfRange(id)) = missing;
            if force == Force::Loose {
                continue;
            }
            let what = format!("a dependency names '{id}', which is not in the plan");
            let told = self.found.problems.len() + self.found.warnings.len();
            let problem = self.page.file.1.problem(at, what, self.known.fix_for(id, told));
            self.found.warnings.push(problem);
        }
        self.refuse_duplicates(names);
        nodes
    }
}

impl Reader<'_, '_, '_> {
    /// An id that two tasks have cannot say which of them is waited for.
    fn refuse_duplicates(&mut self, names: &[Placed<'_>]) {
        for (name, place) in names {
            let Name::Task(id) = name else { continue };
            let Ok(id) = id.parse::<TaskId>() else { continue };
            let Some(other) = self.page.outline.duplicates.get(&id) else { continue };
            let first = self.known.position(&id).map(|at| self.found.drafts[at].place.at).unwrap_or_default();
            let line = self.page.file.1.line_of(first);
            let what = format!(
                "a dependency names '{id}', which is the id of two tasks, in lines {line} and {other}"
            );
            self.found.problems.push(self.page.file.1.problem(
                *place,
                what,
                "give one of the two another id",
            ));
        }
    }
}

/// What stands behind a task's own id.
fn behind_id<'t, 'a>(tokens: &'t [Token<'a>], id: &str) -> &'t [Token<'a>] {
    let own = tokens.iter().position(|token| token.what == Piece::Id(id));
    own.map_or(tokens, |own| &tokens[own + 1..])
}

/// What stands behind "Phase 3" in the heading of a phase.
fn behind_label<'t, 'a>(tokens: &'t [Token<'a>]) -> &'t [Token<'a>] {
    let start =
        tokens.iter().position(|token| !matches!(token.what, Piece::Stop | Piece::Other)).unwrap_or(0);
    match &tokens[start..] {
        [_, Token { what: Piece::Phase(_), .. }, rest @ ..] => rest,
        rest => rest,
    }
}

/// "Dependencies: none", "depends on nothing", "Depends on: —".
fn declares_nothing(tokens: &[Token<'_>]) -> bool {
    let says_none = |token: Option<&Token<'_>>| match token.map(|token| token.what) {
        Some(Piece::Word(word)) => {
            matches!(
                word.to_ascii_lowercase().as_str(),
                "none" | "nothing" | "n" | "无" | "無" | "aucune" | "ninguna" | "brak" | "なし" | "no"
            )
        }
        Some(Piece::Dash) | None => true,
        _ => false,
    };
    let is_label = |token: Option<&Token<'_>>| token.is_some_and(|token| token.what == Piece::Colon);
    (0..tokens.len()).any(|at| {
        let Some(keyword) = keyword_at(tokens, at, Voice::Task) else { return false };
        let end = keyword.end + usize::from(is_label(tokens.get(keyword.end)));
        let is_labelled = is_label(tokens.get(end.saturating_sub(1)));
        keyword.sense == Sense::Waits && is_labelled && says_none(tokens.get(end))
    })
}
