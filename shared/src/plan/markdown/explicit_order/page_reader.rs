//! From a page to what it states about its order: reads sentences in tasks and phases, cells of tables, sections that list dependencies,
//! diagrams and waves.

use std::collections::{HashMap, HashSet};

use super::{
    super::{
        Page,
        diagrams::{DiagramReader, is_mermaid, waves},
        keywords::{ClauseVoice, Sense, is_none_word, keyword_at},
        lines::{LineKind, PlanLine},
        name_reader::{Name, NameReader, PlacedName, is_of_tasks},
        node_index::NodeIndex,
        node_parents::NodeParents,
        outline::Block,
        sentences::{self, ArrowClaim, Force, OrderClaim, StatedOrder},
        tokens::{Piece, Token, Tokenizer},
        tree::Role,
    },
    Edge, MOST_TANGLED, Statements, Weight,
};
use crate::plan::assemble::{PlanDraft, SourcePlace};

/// Reads what one page states.
pub(super) struct PageReader<'r, 'f, 'a> {
    pub(super) page: &'r Page<'f, 'a>,
    pub(super) known: &'r NodeIndex,
    pub(super) roles: &'r [Role],
    pub(super) hierarchy: &'r NodeParents,
    pub(super) found: &'r mut PlanDraft,
    pub(super) tokenizer: Tokenizer<'r>,
    pub(super) statements: &'r mut Statements,
    /// Phases that wait only for some tasks of others, as the item says that is being read.
    pub(super) narrowed: HashSet<(usize, usize)>,
    /// The phase that a sentence is in, and those that it names.
    pub(super) near: [Vec<usize>; 2],
    /// Whether tasks or phases have sections "Dependencies" of their own.
    pub(super) has_own_lists: bool,
    /// Ids that were reported already, because they are not in the plan or belong to several tasks.
    pub(super) reported: HashSet<String>,
}

impl<'r, 'a> PageReader<'r, '_, 'a> {
    pub(super) fn read(&mut self) {
        self.tasks();
        self.phases();
        self.titles();
        self.cells();
        self.wave_tables();
        self.sections();
        self.parallel_lines();
        self.order_remarks();
        self.titles_in_parallel();
    }

    pub(super) fn name_reader(&self, reads_titles: bool) -> NameReader<'r> {
        NameReader { known: self.known, reads_titles }
    }

    fn tasks(&mut self) {
        for (entry, id) in self.page.outline.entries.iter().zip(&self.page.ids) {
            let Some(own) = id.as_ref().and_then(|id| self.known.position(id)) else { continue };
            let lines = &self.page.lines[entry.lines.clone()];
            let tokens = self.tokenizer.lines(lines.iter().filter(|line| line.kind != LineKind::Code));
            let tokens = behind_id(&tokens, entry.written.as_ref().unwrap_or(&entry.id).as_str());
            let stated_order = sentences::read(&self.name_reader(false), tokens, ClauseVoice::Task);
            let field = needs_field(tokens);
            if field == Some(FieldValue::None) || stated_order.claims.iter().any(|claim| claim.who.is_empty())
            {
                self.statements.declared.insert(own);
            } else if field.is_some() {
                self.statements.vague.insert(own);
            }
            stated_order.claims.iter().for_each(|claim| self.claim(claim, Some(own), Weight::Task));
            stated_order.unrelated.iter().for_each(|(who, others)| self.unrelated(who, others, Some(own)));
            if stated_order.is_any_time {
                self.statements.free.push(own);
                self.statements.any_time.insert(own);
            }
            let title_end = lines.first().map_or(0, |title| title.at + title.text.len());
            let of_title = stated_order.ambiguous.into_iter().filter(|at| *at < title_end);
            stated_order.unread.into_iter().chain(of_title).for_each(|at| self.warn_of_unread(at));
        }
    }

    /// Headings of phases, and lines below them such as "**Depends on**: Phase 2".
    fn phases(&mut self) {
        for (section, line) in &self.page.outline.phase_lines {
            let Some(own) = self.page.sections.get(*section).copied().flatten() else { continue };
            let tokens = self.tokenizer.line(line);
            let stated_order =
                sentences::read(&self.name_reader(true), behind_label(&tokens), ClauseVoice::Phase);
            stated_order.claims.iter().for_each(|claim| self.claim(claim, Some(own), Weight::Phase));
            if stated_order.is_free {
                self.statements.free.push(own);
            }
            stated_order.unrelated.iter().for_each(|(who, others)| self.unrelated(who, others, Some(own)));
            stated_order.unread.into_iter().for_each(|at| self.warn_of_unread(at));
        }
    }

    fn sections(&mut self) {
        let blocks = &self.page.outline.dependencies;
        let has_firm = blocks.iter().any(|block| !self.is_recommended(block.section));
        // One such section after the last phase speaks of the whole plan.
        let own_lists: HashSet<usize> = blocks
            .iter()
            .filter_map(|block| block.section.filter(|at| self.owner_of(*at).is_some()))
            .collect();
        self.has_own_lists = own_lists.len() > 1;
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
            self.resolve_arrows(&arrows);
            self.batches(blocks.iter().flat_map(|block| &block.lines));
            self.drawn_groups(blocks.iter().flat_map(|block| &block.lines));
            self.marked_groups(blocks.iter().flat_map(|block| &block.lines));
        }
    }

    /// Outside of lists of dependencies, sentences about parallel work say what need not wait. What they say of tasks that wait
    /// counts so far as it follows the order of the file.
    fn parallel_lines(&mut self) {
        let name_reader = self.name_reader(true);
        for line in &self.page.outline.parallel_lines {
            let tokens = self.tokenizer.line(line);
            let stated_order = sentences::read(&name_reader, &tokens, ClauseVoice::Section);
            self.runs(&stated_order);
            stated_order.unrelated.iter().for_each(|(who, others)| self.unrelated(who, others, None));
            let only = stated_order.only.iter().filter(|(who, on)| who.iter().chain(on).all(is_of_tasks));
            only.for_each(|(who, on)| self.only(who, on));
            self.sequences_of_single_tasks(&stated_order);
            // "The build (Task 12) can be set up once Task 1 is complete" lets it begin then.
            let is_permitted = line.text.contains(" can ") && line.text.contains(" once ");
            for mut claim in stated_order.claims {
                claim.force = if is_permitted { claim.force } else { Force::Loose };
                if is_permitted || claim.who.iter().chain(&claim.on).all(is_of_tasks) {
                    self.claim(&claim, None, Weight::Section);
                }
            }
        }
        self.batches(self.page.outline.parallel_lines.iter());
        self.drawn_groups(self.page.outline.parallel_lines.iter());
        self.marked_groups(self.page.outline.parallel_lines.iter());
    }

    /// What other sections say about order is a remark: "US3 depends on US1 components", "T016 → T021, always sequentially".
    fn order_remarks(&mut self) {
        let name_reader = self.name_reader(true);
        for line in &self.page.outline.order_remarks {
            let tokens = self.tokenizer.line(line);
            let stated_order = sentences::read(&name_reader, &tokens, ClauseVoice::Section);
            self.sequences_of_single_tasks(&stated_order);
            // After the first task, it is mostly advice for one person.
            let is_ahead = self.page.outline.entries.first().is_some_and(|first| line.at < first.at);
            self.statements.is_in_order |= stated_order.is_in_order && is_ahead;
            let is_sequential = line.text.contains("sequential");
            let arrows = stated_order
                .arrows
                .into_iter()
                .filter(|arrow| is_sequential && arrow.left.iter().chain(&arrow.right).all(is_of_tasks));
            let arrows = arrows.map(|ArrowClaim { left, right }| (right, left));
            let claims = stated_order.claims.into_iter().filter(|claim| claim.force == Force::Firm);
            for (who, on) in claims.map(|claim| (claim.who, claim.on)).chain(arrows) {
                self.claim(&OrderClaim { who, on, force: Force::Loose }, None, Weight::Remark);
            }
        }
    }

    /// "`a.rs` is touched by both T006 and T010 - sequential relative to each other".
    fn sequences_of_single_tasks(&mut self, stated_order: &StatedOrder<'a>) {
        let is_single = |(name, _): &PlacedName<'_>| matches!(name, Name::Task(_));
        let chains = stated_order.sequences.iter().filter(|chain| chain.iter().all(is_single));
        chains.for_each(|chain| self.make_sequence(chain, Weight::Remark));
    }

    /// Whether a section is called "Recommended order" and the like. Beside others that say what waits for what, it says
    /// nothing.
    fn is_recommended(&self, section: Option<usize>) -> bool {
        section.is_some_and(|at| {
            let title = self.page.outline.sections[at].title.to_lowercase();
            ["recommended", "suggested", "solo ", "single developer", "one developer"]
                .iter()
                .any(|word| title.contains(word))
        })
    }

    fn heads_advice(&self, block: &Block<'a>) -> bool {
        let tokens =
            self.tokenizer.lines(block.lines.iter().filter(|line| line.kind != LineKind::Code).take(1));
        sentences::heads_advice(&tokens)
    }

    fn block(&mut self, block: &Block<'a>, arrows: &mut Vec<ArrowClaim<'a>>) {
        let name_reader = self.name_reader(true);
        let own = block.section.filter(|_| self.has_own_lists).and_then(|section| self.owner_of(section));
        let is_diagram = block.lines[0].kind == LineKind::Code;
        let drawing = DiagramReader { name_reader: &name_reader, tokenizer: &self.tokenizer };
        if is_diagram && is_mermaid(&block.lines) {
            return arrows.append(&mut drawing.mermaid(&block.lines));
        }
        if is_diagram && let Some(waves) = waves(&block.lines) {
            return self.waves(&waves);
        }
        let mut stated_order = StatedOrder::default();
        for lines in block.lines.chunk_by(|line, next| !is_diagram || continues_with_arrow(line, next)) {
            let tokens = self.tokenizer.lines(lines.iter());
            let mut more = sentences::read(&name_reader, &tokens, ClauseVoice::Section);
            stated_order.claims.append(&mut more.claims);
            if let Some(framed) =
                Some(&tokens).filter(|_| is_diagram).and_then(|tokens| without_frames(&name_reader, tokens))
            {
                more.arrows = sentences::read(&name_reader, &framed, ClauseVoice::Section).arrows;
            }
            stated_order.arrows.append(&mut more.arrows);
            stated_order.free.append(&mut more.free);
            stated_order.any_time.append(&mut more.any_time);
            stated_order.as_stated.append(&mut more.as_stated);
            stated_order.is_rest_free |= more.is_rest_free;
            self.statements.is_in_order |= more.is_in_order && !is_diagram;
            stated_order.unrelated.append(&mut more.unrelated);
            stated_order.denied.append(&mut more.denied);
            // "# Then the wrapper (depends on all pages):" explains an example.
            if !(is_diagram && lines[0].text.trim_start().starts_with(['#', '/'])) {
                stated_order.unread.append(&mut more.unread);
            }
            stated_order.sequences.append(&mut more.sequences);
            stated_order.only.append(&mut more.only);
            stated_order.parallel_lists.append(&mut more.parallel_lists);
            stated_order.parallel_marked.append(&mut more.parallel_marked);
            stated_order.parallel_phases.append(&mut more.parallel_phases);
            stated_order.parallel_with_rest.append(&mut more.parallel_with_rest);
        }
        if is_diagram {
            let tree = drawing.tree(&block.lines);
            let first = self.statements.edges.len();
            let tree = self.without_worded(tree, &stated_order);
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
        if let Some(own) = own.filter(|_| !is_diagram) {
            self.own_needs(own, block, &mut stated_order);
        }
        arrows.append(&mut stated_order.arrows);
        self.narrowed = self.narrowed_by(&stated_order.claims);
        stated_order.claims.iter().for_each(|claim| self.claim(claim, own, Weight::Section));
        self.narrowed.clear();
        stated_order.unrelated.iter().for_each(|(who, others)| self.unrelated(who, others, None));
        stated_order.sequences.iter().for_each(|chain| self.make_sequence(chain, Weight::Section));
        for (who, on) in &stated_order.denied {
            let on = self.known.nodes(on);
            for who in self.known.nodes(who) {
                self.statements.denied.entry(who).or_default().extend(&on);
            }
        }
        stated_order.only.iter().for_each(|(who, on)| self.only(who, on));
        self.runs(&stated_order);
        let (free, _) = self.known.resolve_all(&stated_order.free, None);
        self.statements.free.extend(free.into_iter().map(|(at, _)| at));
        let any_time =
            self.known.nodes(&stated_order.any_time).into_iter().filter(|at| self.known.is_task(*at));
        self.statements.any_time.extend(any_time);
        stated_order.unread.into_iter().for_each(|at| self.warn_of_unread(at));
    }

    /// Notes what runs in parallel with what, and what waits only for what is stated.
    fn runs(&mut self, stated_order: &StatedOrder<'a>) {
        stated_order.parallel_lists.iter().for_each(|list| self.make_parallel(list));
        stated_order.parallel_marked.iter().for_each(|list| self.make_marked_parallel(list));
        stated_order.parallel_phases.iter().for_each(|(phase, first)| self.make_phase_parallel(phase, first));
        stated_order
            .parallel_with_rest
            .iter()
            .for_each(|(tasks, phase)| self.make_parallel_with_rest(tasks, phase));
        self.statements.as_stated.extend(self.known.nodes(&stated_order.as_stated));
        if stated_order.is_rest_free {
            self.statements.as_stated.extend(0..self.roles.len());
        }
    }

    /// The task or phase that a section "Dependencies" right below its heading speaks of.
    fn owner_of(&self, section: usize) -> Option<usize> {
        let sections = &self.page.outline.sections;
        let around = sections[section].parent.filter(|around| !sections[*around].lists_dependencies)?;
        match sections[around].task {
            Some(task) => self.page.ids[task].as_ref().and_then(|id| self.known.position(id)),
            None => self.page.sections[around],
        }
    }

    /// "### Dependencies" and "- Task 2 (schema)" below a task or phase: a line that says nothing else names what that waits for.
    fn own_needs(&mut self, own: usize, block: &Block<'a>, stated_order: &mut StatedOrder<'a>) {
        let says_more = !(stated_order.claims.is_empty()
            && stated_order.arrows.is_empty()
            && stated_order.unrelated.is_empty());
        if self.known.is_task(own) {
            self.statements.declared.insert(own);
        }
        if says_more {
            return;
        }
        let tokens = self.tokenizer.lines(block.lines.iter());
        let on = self.name_reader(true).names(&tokens);
        if !on.is_empty() {
            stated_order.claims.push(OrderClaim { who: Vec::new(), on, force: Force::Firm });
        }
    }

    /// "Phase 7 ← can start after Phase 2": what a line of a drawing says about itself overrides the line that is drawn to it. What
    /// is below it then also waits for what is above it.
    fn without_worded(
        &self,
        mut tree: Vec<ArrowClaim<'a>>,
        stated_order: &StatedOrder<'a>,
    ) -> Vec<ArrowClaim<'a>> {
        /// How many names are passed on, so that a long drawing of such lines takes linear time.
        const MAX_PASSED_NAMES: usize = 16;
        let mut worded: HashMap<usize, Vec<PlacedName<'a>>> = HashMap::new();
        let free = self.known.nodes(&stated_order.free).into_iter().filter(|at| !self.known.is_task(*at));
        worded.extend(free.map(|at| (at, Vec::new())));
        for claim in stated_order.claims.iter().filter(|claim| claim.force == Force::Firm) {
            let (who, on) = (self.known.nodes(&claim.who), self.known.nodes(&claim.on));
            // "Phase 8: US4" only tells what the phase is.
            let says_order = on.iter().any(|on| !who.contains(on));
            let phases = who.into_iter().filter(|at| says_order && !self.known.is_task(*at));
            worded.extend(phases.map(|at| (at, Vec::new())));
        }
        if worded.is_empty() {
            return tree;
        }
        // In the order of the file, so that what is passed on is passed on again.
        tree.sort_by_cached_key(|claim| self.known.nodes(&claim.right).into_iter().min());
        let mut drawn = Vec::new();
        for mut claim in tree {
            let (above, below) = (self.known.nodes(&claim.left), self.known.nodes(&claim.right));
            let is_before = |name: &&PlacedName<'a>| {
                let nodes = self.known.nodes(std::slice::from_ref(*name));
                nodes.iter().all(|at| below.iter().all(|below| at < below))
            };
            let passed = above
                .iter()
                .filter_map(|at| worded.get(at))
                .flatten()
                .filter(is_before)
                .take(MAX_PASSED_NAMES);
            claim.left.extend(passed.cloned().collect::<Vec<_>>());
            claim.right.retain(|name| {
                let [at] = self.known.nodes(std::slice::from_ref(name))[..] else { return true };
                let Some(passed) = worded.get_mut(&at) else { return true };
                passed.extend(claim.left.iter().take(MAX_PASSED_NAMES).cloned());
                false
            });
            drawn.push(claim);
        }
        drawn
    }

    /// "US4: after US1's models (T013, T014), depends on types from US1": the second means what the first says more exactly.
    fn narrowed_by(&self, claims: &[OrderClaim<'_>]) -> HashSet<(usize, usize)> {
        let is_exact = |claim: &&OrderClaim<'_>| {
            claims.len() > 1 && !claim.who.iter().any(is_of_tasks) && claim.on.iter().any(is_of_tasks)
        };
        let mut narrowed = HashSet::new();
        for claim in claims.iter().filter(is_exact) {
            let tasks = self.known.nodes(&claim.on).into_iter().filter(|at| self.known.is_task(*at));
            let phases: HashSet<usize> = tasks.filter_map(|at| self.hierarchy.parents[at]).collect();
            for who in self.known.nodes(&claim.who) {
                narrowed.extend(phases.iter().map(|phase| (who, *phase)));
            }
        }
        narrowed
    }

    fn warn_of_unread(&mut self, at: usize) {
        let what = "this text about the order of tasks could not be understood and is ignored";
        let fix = "name tasks or phases, as 'T005 depends on T001' or 'Phase 3 depends on Phase 2'";
        self.found.warnings.push(self.page.file.1.problem(at, what, fix));
    }
}

/// Whether a line begins with an arrow that continues the line before it, and not with one that forks from an arrow there.
fn continues_with_arrow(line: &PlanLine<'_>, next: &PlanLine<'_>) -> bool {
    const ARROWS: [&str; 3] = ["→", "->", "⇒"];
    let column = |text: &str| {
        ARROWS.iter().filter_map(|arrow| text.find(arrow)).min().map(|at| text[..at].chars().count())
    };
    let begins = ARROWS.iter().any(|arrow| next.text.trim_start().starts_with(arrow));
    begins && column(line.text).is_some_and(|first| column(next.text).is_some_and(|own| own < first))
}

/// `[US5: Player] ──► [US6: Hands]`: in a drawing, brackets around names at both ends of an arrow are frames, not tags. Gives
/// the line without them, if it has any.
fn without_frames<'a>(name_reader: &NameReader<'_>, tokens: &[Token<'a>]) -> Option<Vec<Token<'a>>> {
    let mut kept: Vec<Token<'a>> = Vec::with_capacity(tokens.len());
    let mut is_framed = false;
    for (at, token) in tokens.iter().enumerate() {
        let opens = token.what == Piece::OpenSquare
            && !matches!(kept.last().map(|last| last.what), Some(what) if !matches!(what, Piece::Other | Piece::Stop | Piece::Arrow(_)))
            && name_reader.list_at(tokens, at + 1).is_some();
        let closes = is_framed && token.what == Piece::CloseSquare;
        is_framed = opens || is_framed && !closes;
        if !opens && !closes {
            kept.push(*token);
        }
    }
    (kept.len() < tokens.len()).then_some(kept)
}

/// Whether many lines of a drawing lead against the order of the file and many with it.
fn is_tangled(edges: &[Edge]) -> bool {
    const FEWEST: usize = 3;
    let against = edges.iter().filter(|edge| edge.on > edge.who).count();
    against >= FEWEST && against < edges.len() && against * 4 >= edges.len()
}

/// What comes after a task's own id.
fn behind_id<'t, 'a>(tokens: &'t [Token<'a>], id: &str) -> &'t [Token<'a>] {
    let own = tokens.iter().position(|token| token.what == Piece::Id(id));
    own.map_or(tokens, |own| &tokens[own + 1..])
}

/// What comes after "Phase 3" in the heading of a phase.
fn behind_label<'t, 'a>(tokens: &'t [Token<'a>]) -> &'t [Token<'a>] {
    let start =
        tokens.iter().position(|token| !matches!(token.what, Piece::Stop | Piece::Other)).unwrap_or(0);
    match &tokens[start..] {
        [_, Token { what: Piece::Phase(_), .. }, rest @ ..] => rest,
        rest => rest,
    }
}

/// What a field such as "Dependencies:" holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldValue {
    /// "none", or nothing at all.
    None,
    Words,
}

/// "Dependencies: none", "Depends on: —", "Dependencies: all pages"; `None` if a task has no such field.
fn needs_field(tokens: &[Token<'_>]) -> Option<FieldValue> {
    let says_none = |token: Option<&Token<'_>>| match token.map(|token| token.what) {
        Some(Piece::Word(word)) => is_none_word(word),
        Some(Piece::Dash | Piece::Pause) | None => true,
        _ => false,
    };
    let is_colon = |token: Option<&Token<'_>>| token.is_some_and(|token| token.what == Piece::Colon);
    if !tokens.iter().any(|token| is_colon(Some(token))) {
        return None;
    }
    let fields = (0..tokens.len()).filter_map(|at| {
        let keyword = keyword_at(tokens, at, ClauseVoice::Task)?;
        let end = keyword.end + usize::from(is_colon(tokens.get(keyword.end)));
        let is_field = keyword.sense == Sense::Waits && is_colon(tokens.get(end.saturating_sub(1)));
        let is_none = says_none(tokens.get(end));
        is_field.then_some(if is_none { FieldValue::None } else { FieldValue::Words })
    });
    fields.min_by_key(|value| *value == FieldValue::Words)
}
