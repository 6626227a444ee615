//! What a page states about its order: sentences in tasks and phases, cells of tables, sections that list
//! dependencies, drawings and waves.

use std::collections::HashSet;

use super::{
    super::{
        Page,
        default_order::NodeParents,
        drawings::{DrawingReader, is_mermaid, waves},
        keywords::{ClauseVoice, Sense, keyword_at},
        lines::{LineKind, PlanLine},
        mentions::{Mentions, Name, PlacedName},
        node_index::{NamedNodes, NodeIndex, UnknownId},
        outline::Block,
        sentences::{self, ArrowClaim, Force, OrderClaim, SaidOrder},
        tokens::{Piece, Token, Tokenizer},
        tree::{NodeKind, Role},
    },
    Edge, MOST_EDGES, MOST_PAIRS, MOST_TANGLED, MOST_UNRELATED, Scope, Statements, Weight,
};
use crate::{
    name::TaskId,
    plan::assemble::{PlanDraft, SourcePlace},
};

/// Reads what one page states.
pub(super) struct Reader<'r, 'f, 'a> {
    pub(super) page: &'r Page<'f, 'a>,
    pub(super) known: &'r NodeIndex,
    pub(super) roles: &'r [Role],
    pub(super) family: &'r NodeParents,
    pub(super) found: &'r mut PlanDraft,
    pub(super) tokenizer: Tokenizer<'r>,
    pub(super) statements: &'r mut Statements,
    /// Phases that wait only for some tasks of others, as the item says that is being read.
    pub(super) narrowed: HashSet<(usize, usize)>,
}

impl<'r, 'a> Reader<'r, '_, 'a> {
    pub(super) fn read(&mut self) {
        self.tasks();
        self.phases();
        self.titles();
        self.cells();
        self.wave_tables();
        self.sections();
        self.parallel_lines();
        self.titles_in_parallel();
    }

    pub(super) fn mentions(&self, reads_titles: bool) -> Mentions<'r> {
        Mentions { known: self.known, reads_titles }
    }

    fn tasks(&mut self) {
        let mut tokens: Vec<Token<'a>> = Vec::new();
        for (entry, id) in self.page.outline.entries.iter().zip(&self.page.ids) {
            let Some(own) = id.as_ref().and_then(|id| self.known.position(id)) else { continue };
            tokens.clear();
            let lines = &self.page.lines[entry.lines.clone()];
            self.tokenizer.lines(lines.iter().filter(|line| line.kind != LineKind::Code), &mut tokens);
            let tokens = behind_id(&tokens, entry.id.as_str());
            let said = sentences::read(&self.mentions(false), tokens, ClauseVoice::Task);
            if declares_nothing(tokens) || said.claims.iter().any(|claim| claim.who.is_empty()) {
                self.statements.declared.insert(own);
            }
            said.claims.iter().for_each(|claim| self.claim(claim, Some(own), Weight::Task));
            said.unrelated.iter().for_each(|(who, others)| self.unrelated(who, others, Some(own)));
            if said.is_any_time {
                self.statements.free.push(own);
                self.statements.any_time.insert(own);
            }
            said.unread.into_iter().for_each(|at| self.warn_of_unread(at));
        }
    }

    /// Headings of phases, and lines below them such as "**Depends on**: Phase 2".
    fn phases(&mut self) {
        for (section, line) in &self.page.outline.phase_lines {
            let Some(own) = self.page.sections.get(*section).copied().flatten() else { continue };
            let mut tokens = Vec::new();
            self.tokenizer.lines(std::iter::once(line), &mut tokens);
            let said = sentences::read(&self.mentions(true), behind_label(&tokens), ClauseVoice::Phase);
            said.claims.iter().for_each(|claim| self.claim(claim, Some(own), Weight::Phase));
            if said.is_free {
                self.statements.free.push(own);
            }
            said.unrelated.iter().for_each(|(who, others)| self.unrelated(who, others, Some(own)));
            said.unread.into_iter().for_each(|at| self.warn_of_unread(at));
        }
    }

    /// A cell under "Depends on" is a list, whatever stands around the ids.
    fn cells(&mut self) {
        for cell in &self.page.outline.cells {
            let (mut who, mut on) = (Vec::new(), Vec::new());
            self.tokenizer.text(cell.who, cell.who_at, &mut who);
            self.tokenizer.text(cell.needs, cell.at, &mut on);
            let mentions = self.mentions(true);
            let who: Vec<PlacedName<'_>> = mentions.names(&who).into_iter().take(1).collect();
            if let (nodes, _) = self.known.resolve_all(&who, None)
                && let [(own, _)] = nodes[..]
                && self.known.is_task(own)
            {
                self.statements.declared.insert(own);
            }
            if !who.is_empty() {
                let on = mentions.names(&on);
                let (who, on) = if cell.is_reversed { (on, who) } else { (who, on) };
                self.claim(&OrderClaim { who, on, force: Force::Firm }, None, Weight::Task);
            }
        }
    }

    fn sections(&mut self) {
        let blocks = &self.page.outline.dependencies;
        let has_firm = blocks.iter().any(|block| !self.is_recommended(block.section));
        for blocks in blocks.chunk_by(|one, other| one.section == other.section) {
            let mut arrows = Vec::new();
            if has_firm && self.is_recommended(blocks[0].section) {
                continue;
            }
            let mut is_advice = false;
            for block in blocks {
                // A line that recommends a way to go speaks for the list below it.
                let is_item = matches!(block.lines[0].kind, LineKind::Item(_));
                is_advice = if is_item { is_advice } else { self.heads_advice(block) };
                if !is_advice {
                    self.block(block, &mut arrows);
                }
            }
            self.settle_arrows(&arrows);
            self.batches(blocks.iter().flat_map(|block| &block.lines));
            self.drawn_groups(blocks.iter().flat_map(|block| &block.lines));
        }
    }

    /// Outside of lists of dependencies, sentences about parallel work only say what need not wait.
    fn parallel_lines(&mut self) {
        let mentions = self.mentions(true);
        for line in &self.page.outline.parallel_lines {
            let mut tokens = Vec::new();
            self.tokenizer.lines(std::iter::once(line), &mut tokens);
            let said = sentences::read(&mentions, &tokens, ClauseVoice::Section);
            said.abreast.iter().for_each(|list| self.abreast(list));
            said.within.iter().for_each(|(phase, first)| self.within(phase, first));
            said.unrelated.iter().for_each(|(who, others)| self.unrelated(who, others, None));
            // "The build (Task 12) can be set up once Task 1 is complete" lets it begin then.
            if line.text.contains(" can ") && line.text.contains(" once ") {
                said.claims.iter().for_each(|claim| self.claim(claim, None, Weight::Section));
            }
        }
        self.batches(self.page.outline.parallel_lines.iter());
        self.drawn_groups(self.page.outline.parallel_lines.iter());
    }

    /// Whether a section is called "Recommended order" and the like. Beside others that say what waits for what, it says
    /// nothing.
    fn is_recommended(&self, section: Option<usize>) -> bool {
        section.is_some_and(|at| {
            let title = self.page.outline.sections[at].title.to_lowercase();
            ["recommended", "suggested", "solo "].iter().any(|word| title.contains(word))
        })
    }

    fn heads_advice(&self, block: &Block<'a>) -> bool {
        let mut tokens = Vec::new();
        self.tokenizer
            .lines(block.lines.iter().filter(|line| line.kind != LineKind::Code).take(1), &mut tokens);
        sentences::heads_advice(&tokens)
    }

    fn block(&mut self, block: &Block<'a>, arrows: &mut Vec<ArrowClaim<'a>>) {
        let mentions = self.mentions(true);
        let is_drawing = block.lines[0].kind == LineKind::Code;
        let drawing = DrawingReader { mentions: &mentions, tokenizer: &self.tokenizer };
        if is_drawing && is_mermaid(&block.lines) {
            return arrows.append(&mut drawing.mermaid(&block.lines));
        }
        if is_drawing && let Some(waves) = waves(&block.lines) {
            return self.waves(&waves);
        }
        let mut said = SaidOrder::default();
        for lines in block.lines.chunk_by(|line, next| !is_drawing || goes_on_with_arrow(line, next)) {
            let mut tokens = Vec::new();
            self.tokenizer.lines(lines.iter(), &mut tokens);
            let mut more = sentences::read(&mentions, &tokens, ClauseVoice::Section);
            said.claims.append(&mut more.claims);
            said.arrows.append(&mut more.arrows);
            said.free.append(&mut more.free);
            said.any_time.append(&mut more.any_time);
            said.unrelated.append(&mut more.unrelated);
            said.unread.append(&mut more.unread);
            said.chains.append(&mut more.chains);
            said.only.append(&mut more.only);
            said.abreast.append(&mut more.abreast);
            said.within.append(&mut more.within);
        }
        if is_drawing {
            let tree = drawing.tree(&block.lines);
            let first = self.statements.edges.len();
            tree.iter().for_each(|claim| self.then(claim));
            let end = self.statements.edges.len();
            let is_of_tasks = |edge: &Edge| self.known.is_task(edge.who) && self.known.is_task(edge.on);
            let drawn = &self.statements.edges[first..end];
            if self.statements.tangled.len() < MOST_TANGLED
                && drawn.iter().all(is_of_tasks)
                && is_tangled(drawn)
            {
                let place = SourcePlace { file: self.page.file.0, at: block.lines[0].at };
                self.statements.tangled.push((place, first..end));
            }
        }
        arrows.append(&mut said.arrows);
        self.narrowed = self.narrowed_by(&said.claims);
        said.claims.iter().for_each(|claim| self.claim(claim, None, Weight::Section));
        self.narrowed.clear();
        said.unrelated.iter().for_each(|(who, others)| self.unrelated(who, others, None));
        said.chains.iter().for_each(|chain| self.chain(chain));
        for (who, on) in &said.only {
            let on = self.known.nodes(on);
            for who in self.known.nodes(who) {
                self.statements.only.entry(who).or_default().extend(&on);
            }
        }
        said.abreast.iter().for_each(|list| self.abreast(list));
        said.within.iter().for_each(|(phase, first)| self.within(phase, first));
        let (free, _) = self.known.resolve_all(&said.free, None);
        self.statements.free.extend(free.into_iter().map(|(at, _)| at));
        let any_time = self.known.nodes(&said.any_time).into_iter().filter(|at| self.known.is_task(*at));
        self.statements.any_time.extend(any_time);
        said.unread.into_iter().for_each(|at| self.warn_of_unread(at));
    }

    /// "US4: after US1's models (T013, T014), depends on types from US1": the second means what the first says more exactly.
    fn narrowed_by(&self, claims: &[OrderClaim<'_>]) -> HashSet<(usize, usize)> {
        let is_exact = |claim: &&OrderClaim<'_>| {
            let is_task = |(name, _): &PlacedName<'_>| matches!(name, Name::Task(_) | Name::Range(..));
            claims.len() > 1 && !claim.who.iter().any(is_task) && claim.on.iter().any(is_task)
        };
        let mut narrowed = HashSet::new();
        for claim in claims.iter().filter(is_exact) {
            let tasks = self.known.nodes(&claim.on).into_iter().filter(|at| self.known.is_task(*at));
            let phases: HashSet<usize> = tasks.filter_map(|at| self.family.parents[at]).collect();
            for who in self.known.nodes(&claim.who) {
                narrowed.extend(phases.iter().map(|phase| (who, *phase)));
            }
        }
        narrowed
    }

    fn warn_of_unread(&mut self, at: usize) {
        let what = "the order that this sentence states could not be read";
        let fix = "name tasks or phases, as 'T005 depends on T001' or 'Phase 3 depends on Phase 2'";
        self.found.warnings.push(self.page.file.1.problem(at, what, fix));
    }

    /// Two lists of which no member needs to wait for one of the other; an empty one stands for the phase itself.
    pub(super) fn unrelated(
        &mut self,
        who: &[PlacedName<'_>],
        others: &[PlacedName<'_>],
        own: Option<usize>,
    ) {
        if self.statements.unrelated.len() >= MOST_UNRELATED {
            return;
        }
        let nodes = |names: &[PlacedName<'_>], subject: Option<usize>| match own {
            Some(own) if names.is_empty() => vec![own],
            _ => self.known.resolve_all(names, subject).0.into_iter().map(|(at, _)| at).collect(),
        };
        let subject = own
            .or_else(|| nodes(who, None).first().copied())
            .or_else(|| nodes(others, None).first().copied());
        let (who, others) = (nodes(who, subject), nodes(others, subject));
        if who.len() * others.len() <= MOST_PAIRS {
            let pairs = who.iter().flat_map(|who| others.iter().map(move |on| (*who, *on)));
            self.statements.unrelated.extend(pairs.filter(|(who, on)| who != on));
        }
    }

    /// Tasks that run one behind the other.
    fn chain(&mut self, names: &[PlacedName<'_>]) {
        let mut nodes = self.nodes(names, None, Force::Firm);
        nodes.sort_unstable();
        nodes.dedup_by_key(|(node, _)| *node);
        for pair in nodes.windows(2) {
            self.edge((pair[1].0, pair[0].0), pair[1].1, Weight::Section, Scope::Few);
        }
    }

    /// Each of them need not wait for the others. Who lists more than a few means a whole phase.
    pub(super) fn abreast(&mut self, names: &[PlacedName<'_>]) {
        const MOST: usize = 64;
        let nodes = self.known.nodes(names);
        if nodes.len() <= MOST && self.statements.unrelated.len() < MOST_UNRELATED {
            let pairs = nodes.iter().flat_map(|one| nodes.iter().map(move |other| (*one, *other)));
            self.statements.unrelated.extend(pairs.filter(|(one, other)| one != other));
        }
    }

    /// All tasks of a phase run beside each other, behind those of them that are named.
    fn within(&mut self, phase: &PlacedName<'_>, first: &[PlacedName<'_>]) {
        let [node] = self.known.nodes(std::slice::from_ref(phase))[..] else { return };
        let first = self.known.nodes(first);
        let family = self.family;
        let is_leaf = |at: &usize| self.known.is_task(*at) && family.children[*at].is_empty();
        let tasks: Vec<usize> =
            family.children[node].iter().copied().filter(|at| is_leaf(at) && !first.contains(at)).collect();
        if tasks.len() * first.len() > MOST_PAIRS {
            return;
        }
        for on in first.iter().filter(|on| family.parents[**on] == Some(node)) {
            tasks.iter().for_each(|who| self.edge((*who, *on), phase.1, Weight::Section, Scope::Group));
        }
        self.beside(&tasks);
    }

    /// Tasks that run beside each other. No implementation runs beside its own tests, whatever a sentence about many says.
    pub(super) fn beside(&mut self, tasks: &[usize]) {
        const MOST: usize = 64;
        if tasks.len() <= MOST && self.statements.unrelated.len() < MOST_UNRELATED && !self.mixes_tests(tasks)
        {
            let pairs = tasks.iter().flat_map(|one| tasks.iter().map(move |other| (*one, *other)));
            self.statements.unrelated.extend(pairs.filter(|(one, other)| one != other));
        }
    }

    /// A drawn tree always leads from the earlier to the later.
    fn then(&mut self, ArrowClaim { left, right }: &ArrowClaim<'_>) {
        let claim = OrderClaim { who: right.clone(), on: left.clone(), force: Force::Firm };
        self.claim(&claim, None, Weight::Arrow);
    }

    fn claim(&mut self, claim: &OrderClaim<'_>, own: Option<usize>, weight: Weight) {
        let is_all_after = |names: &[PlacedName<'_>]| names.iter().any(|(name, _)| *name == Name::AllAfter);
        // More than enough has been stated already, and that is told: naming thousands of tasks again only takes time.
        if is_all_after(&claim.on) || self.statements.edges.len() > MOST_EDGES {
            return;
        }
        let who = match own {
            Some(own) if claim.who.is_empty() => vec![(own, usize::MAX)],
            _ => {
                let on = own.or_else(|| self.known.nodes(&claim.on).into_iter().max());
                let who = self.nodes(&claim.who, on.filter(|_| is_all_after(&claim.who)), claim.force);
                self.as_whole_phase(&claim.who, who)
            }
        };
        let subject = who.first().map(|(at, _)| *at);
        let on = match own {
            Some(own) if claim.on.is_empty() => vec![(own, usize::MAX)],
            _ => self.nodes(&claim.on, subject, claim.force),
        };
        if who.len() * on.len() > MOST_PAIRS || is_of_itself(claim, &who, &on) {
            return;
        }
        let scope = if claim.on.iter().any(|(name, _)| *name == Name::AllStories) {
            Scope::All
        } else if claim.force == Force::Blocking
            && who.iter().any(|(who, _)| self.roles[*who].kind != NodeKind::Task)
        {
            Scope::Blocking
        } else if who.len() > 2 && claim.who.iter().any(|(name, _)| matches!(name, Name::Range(..))) {
            Scope::Range
        } else if who.len() > 2 {
            Scope::Group
        } else {
            Scope::Few
        };
        for (who, who_at) in who {
            for (on, on_at) in &on {
                let at = if *on_at == usize::MAX { who_at } else { *on_at };
                let weight = if claim.force == Force::Loose { Weight::Remark } else { weight };
                self.edge((who, *on), at, weight, scope);
            }
        }
    }

    /// "T038-T045 (ML service) depend on T011": a range that is all of a phase speaks of the phase.
    fn as_whole_phase(&self, names: &[PlacedName<'_>], nodes: NamedNodes) -> NamedNodes {
        let [(Name::Range(..), _)] = names else { return nodes };
        let (Some((first, at)), Some((last, _))) = (nodes.first(), nodes.last()) else { return nodes };
        match self.family.parents[*first] {
            Some(phase)
                if self.family.parents[*last] == Some(phase)
                    && nodes.len() > 1
                    && self.family.children[phase].len() == nodes.len()
                    && nodes.iter().all(|(node, _)| self.family.parents[*node] == Some(phase)) =>
            {
                vec![(phase, *at)]
            }
            _ => nodes,
        }
    }

    /// Notes an edge. A node cannot wait for itself, nor for what it is part of: such a sentence means its
    /// neighbours. A remark counts only so far as it follows the order of the file.
    pub(super) fn edge(&mut self, (who, on): (usize, usize), at: usize, weight: Weight, scope: Scope) {
        let is_against = weight == Weight::Remark && on > who;
        if self.family.are_kin(who, on) || is_against || self.narrowed.contains(&(who, on)) {
            return;
        }
        let is_drawn = weight == Weight::Arrow;
        let is_phase = |at: usize| self.roles[at].kind != NodeKind::Task;
        let weight = if is_phase(who) || is_phase(on) { weight.max(Weight::Phase) } else { weight };
        let place = SourcePlace { file: self.page.file.0, at };
        if self.statements.edges.len() == MOST_EDGES {
            let what = format!("more than {MOST_EDGES} dependencies are stated");
            let fix = "name phases instead of their tasks";
            self.found.problems.push(self.page.file.1.problem(
                at.min(self.page.file.1.text.len()),
                what,
                fix,
            ));
        }
        if self.statements.edges.len() > MOST_EDGES {
            return;
        }
        self.statements.edges.push(Edge { who, on, place, weight, scope, is_drawn });
    }

    /// The nodes that are named. What is not there is told.
    pub(super) fn nodes(
        &mut self,
        names: &[PlacedName<'_>],
        subject: Option<usize>,
        force: Force,
    ) -> NamedNodes {
        let (nodes, missing) = self.known.resolve_all(names, subject);
        for (missing, at) in missing {
            let (UnknownId::Task(id) | UnknownId::EndOfRange(id)) = missing;
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
    fn refuse_duplicates(&mut self, names: &[PlacedName<'_>]) {
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

/// Whether a line begins with an arrow that goes on with the line before it, and not with one that forks from an arrow there.
fn goes_on_with_arrow(line: &PlanLine<'_>, next: &PlanLine<'_>) -> bool {
    const ARROWS: [&str; 3] = ["→", "->", "⇒"];
    let column = |text: &str| {
        ARROWS.iter().filter_map(|arrow| text.find(arrow)).min().map(|at| text[..at].chars().count())
    };
    let begins = ARROWS.iter().any(|arrow| next.text.trim_start().starts_with(arrow));
    begins && column(line.text).is_some_and(|first| column(next.text).is_some_and(|own| own < first))
}

/// Whether many lines of a drawing lead against the order of the file and many with it.
fn is_tangled(edges: &[Edge]) -> bool {
    const FEWEST: usize = 3;
    let against = edges.iter().filter(|edge| edge.on > edge.who).count();
    against >= FEWEST && against < edges.len() && against * 4 >= edges.len()
}

/// "US1 depends on all of Phase 3", where the tasks of Phase 3 have the tag of US1: the story that is meant is none that
/// the plan knows.
fn is_of_itself(claim: &OrderClaim<'_>, who: &NamedNodes, on: &NamedNodes) -> bool {
    let is_story = |(name, _): &PlacedName<'_>| matches!(name, Name::Story(_));
    let is_waited_for = |(who, _): &(usize, usize)| on.iter().any(|(on, _)| on == who);
    who.len() > 1 && claim.who.iter().all(is_story) && who.iter().any(is_waited_for)
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
                "none"
                    | "nothing"
                    | "n"
                    | "无"
                    | "無"
                    | "aucune"
                    | "ninguna"
                    | "nenhuma"
                    | "keine"
                    | "nessuna"
                    | "brak"
                    | "нет"
                    | "なし"
                    | "no"
            )
        }
        Some(Piece::Dash | Piece::Pause) | None => true,
        _ => false,
    };
    let is_label = |token: Option<&Token<'_>>| token.is_some_and(|token| token.what == Piece::Colon);
    (0..tokens.len()).any(|at| {
        let Some(keyword) = keyword_at(tokens, at, ClauseVoice::Task) else { return false };
        let end = keyword.end + usize::from(is_label(tokens.get(keyword.end)));
        let is_labelled = is_label(tokens.get(end.saturating_sub(1)));
        keyword.sense == Sense::Waits && is_labelled && says_none(tokens.get(end))
    })
}
