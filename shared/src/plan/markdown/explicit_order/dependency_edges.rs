//! From claims of sentences to edges between nodes: "T005 depends on T001-T003" becomes three edges.

use std::collections::{BTreeSet, HashSet};

use super::{
    super::{
        name_reader::{Name, PlacedName},
        node_index::{NamedNodes, UnknownId},
        sentences::{ArrowClaim, Force, OrderClaim},
        tokens::is_phase_word,
        tree::NodeKind,
    },
    Edge, MOST_EDGES, MOST_PAIRS, MOST_UNRELATED, Scope, Weight,
    page_reader::PageReader,
};
use crate::{name::TaskId, plan::assemble::SourcePlace};

/// The place of a task that a sentence is about without naming it.
const NO_PLACE: usize = usize::MAX;

impl PageReader<'_, '_, '_> {
    /// Two lists of which no member needs to wait for one of the other; an empty one means the phase itself.
    pub(super) fn unrelated(
        &mut self,
        who: &[PlacedName<'_>],
        others: &[PlacedName<'_>],
        own: Option<usize>,
    ) {
        if self.statements.unrelated.len() >= MOST_UNRELATED {
            return;
        }
        let is_exact = who.iter().chain(others).all(names_one);
        let nodes = |names: &[PlacedName<'_>], subject: Option<usize>| match own {
            Some(own) if names.is_empty() => vec![own],
            _ => self.known.resolve_all(names, subject).0.into_iter().map(|(at, _)| at).collect(),
        };
        let subject = own
            .or_else(|| nodes(who, None).first().copied())
            .or_else(|| nodes(others, None).first().copied());
        let (mut who, mut others) = (nodes(who, subject), nodes(others, subject));
        // "T001, T002 (Setup) can run in parallel with T003": where these are all tasks of their phases, the statement is about the phases.
        let (of_who, of_others) = (self.whole_phases(&who), self.whole_phases(&others));
        if !of_who.is_empty() && !of_others.is_empty() {
            who.extend(of_who);
            others.extend(of_others);
        }
        if who.len() * others.len() <= MOST_PAIRS {
            let pairs = who.iter().flat_map(|who| others.iter().map(move |on| (*who, *on)));
            let pairs: Vec<(usize, usize)> = pairs.filter(|(who, on)| who != on).collect();
            self.statements.unrelated.extend(&pairs);
            if is_exact {
                self.deny(&pairs);
            }
        }
    }

    /// Some tasks of which none needs to wait for another task of a phase, nor such a task for them.
    pub(super) fn make_parallel_with_rest(&mut self, tasks: &[PlacedName<'_>], phase: &[PlacedName<'_>]) {
        if self.statements.unrelated.len() >= MOST_UNRELATED {
            return;
        }
        let (tasks, mut others) = (self.known.nodes(tasks), self.known.nodes(phase));
        let mut at = 0;
        while at < others.len() {
            others.extend(&self.hierarchy.children[others[at]]);
            at += 1;
        }
        others.retain(|at| !tasks.contains(at));
        if tasks.len() * others.len() <= MOST_PAIRS {
            let pairs = tasks.iter().flat_map(|task| others.iter().map(move |other| (*task, *other)));
            self.statements.unrelated.extend(pairs.flat_map(|(task, other)| [(task, other), (other, task)]));
        }
    }

    /// Ignores drawn lines between these phases: a sentence takes precedence over a drawing.
    fn deny(&mut self, pairs: &[(usize, usize)]) {
        for (who, on) in
            pairs.iter().filter(|(who, on)| !self.known.is_task(*who) && !self.known.is_task(*on))
        {
            self.statements.denied.entry(*who).or_default().insert(*on);
        }
    }

    /// Notes that some wait for others and for nothing else.
    pub(super) fn only(&mut self, who: &[PlacedName<'_>], on: &[PlacedName<'_>]) {
        let on = self.known.nodes(on);
        for who in self.known.nodes(who) {
            self.statements.only.entry(who).or_default().extend(&on);
        }
    }

    /// Tasks that run one after the other.
    pub(super) fn make_sequence(&mut self, names: &[PlacedName<'_>], weight: Weight) {
        self.note_near(None, [names, &[]]);
        let force = if weight == Weight::Remark { Force::Loose } else { Force::Firm };
        let mut nodes = self.nodes(names, None, force);
        nodes.sort_unstable();
        nodes.dedup_by_key(|(node, _)| *node);
        for pair in nodes.windows(2) {
            self.edge(pair[1].0, pair[0].0, pair[1].1, weight, Scope::Few);
        }
    }

    /// Each of them need not wait for the others. If all tasks of a phase are listed, the statement is about the phase.
    pub(super) fn make_parallel(&mut self, names: &[PlacedName<'_>]) {
        const MAX_NAMES: usize = 64;
        let mut nodes = self.known.nodes(names);
        if nodes.len() <= MAX_NAMES && self.statements.unrelated.len() < MOST_UNRELATED {
            nodes.extend(self.whole_parts(&nodes));
            let pairs = nodes.iter().flat_map(|one| nodes.iter().map(move |other| (*one, *other)));
            let pairs: Vec<(usize, usize)> = pairs.filter(|(one, other)| one != other).collect();
            self.statements.unrelated.extend(&pairs);
            if names.iter().all(names_one) {
                self.deny(&pairs);
            }
        }
    }

    /// The parts of phases all of whose tasks are among some.
    fn whole_parts(&self, tasks: &[usize]) -> Vec<usize> {
        let is_part = |at: &usize| self.hierarchy.parents[*at].is_some();
        self.whole_phases(tasks).into_iter().filter(is_part).collect()
    }

    /// The phases all of whose tasks are among some.
    fn whole_phases(&self, tasks: &[usize]) -> Vec<usize> {
        let among: HashSet<usize> = tasks.iter().copied().collect();
        let phases: BTreeSet<usize> = tasks.iter().filter_map(|at| self.hierarchy.parents[*at]).collect();
        let is_whole = |at: &usize| self.hierarchy.children[*at].iter().all(|child| among.contains(child));
        phases.into_iter().filter(|at| !self.known.is_task(*at) && is_whole(at)).collect()
    }

    /// All tasks of a phase run in parallel, after those of them that are named.
    pub(super) fn make_phase_parallel(&mut self, phase: &PlacedName<'_>, first: &[PlacedName<'_>]) {
        let [node] = self.known.nodes(std::slice::from_ref(phase))[..] else { return };
        let first = self.known.nodes(first);
        let hierarchy = self.hierarchy;
        let is_leaf = |at: &usize| self.known.is_task(*at) && hierarchy.children[*at].is_empty();
        let tasks: Vec<usize> = hierarchy.children[node]
            .iter()
            .copied()
            .filter(|at| is_leaf(at) && !first.contains(at))
            .collect();
        if tasks.len() * first.len() > MOST_PAIRS {
            return;
        }
        for on in first.iter().filter(|on| hierarchy.parents[**on] == Some(node)) {
            tasks.iter().for_each(|who| self.edge(*who, *on, phase.1, Weight::Section, Scope::Group));
        }
        // "Phase 6: Testing and documentation" holds no implementation that its tests could be for.
        if self.roles[node].is_about_checks() {
            self.make_pairs_parallel(&tasks);
        } else {
            self.make_tasks_parallel(&tasks);
        }
    }

    /// Tasks that run in parallel. No implementation runs in parallel with its own tests, even if a sentence about many tasks says so.
    pub(super) fn make_tasks_parallel(&mut self, tasks: &[usize]) {
        if !self.mixes_tests(tasks) {
            self.make_pairs_parallel(tasks);
        }
    }

    fn make_pairs_parallel(&mut self, tasks: &[usize]) {
        const MAX_TASKS: usize = 64;
        if tasks.len() <= MAX_TASKS && self.statements.unrelated.len() < MOST_UNRELATED {
            let pairs = tasks.iter().flat_map(|one| tasks.iter().map(move |other| (*one, *other)));
            self.statements.unrelated.extend(pairs.filter(|(one, other)| one != other));
        }
    }

    /// Of some tasks, those with the mark `[P]` run in parallel.
    pub(super) fn make_marked_parallel(&mut self, names: &[PlacedName<'_>]) {
        let is_marked = |at: &usize| self.found.drafts[*at].task.parallel;
        let tasks: Vec<usize> = self.known.nodes(names).into_iter().filter(is_marked).collect();
        self.make_tasks_parallel(&tasks);
    }

    /// A drawn tree always leads from the earlier to the later.
    pub(super) fn then(&mut self, ArrowClaim { left, right }: &ArrowClaim<'_>) {
        let claim = OrderClaim { who: right.clone(), on: left.clone(), force: Force::Firm };
        self.claim(&claim, None, Weight::Line);
    }

    pub(super) fn claim(&mut self, claim: &OrderClaim<'_>, own: Option<usize>, weight: Weight) {
        let is_all_after = |names: &[PlacedName<'_>]| names.iter().any(|(name, _)| *name == Name::AllAfter);
        // More than enough has been stated already, and that is reported: naming thousands of tasks again only takes time.
        if is_all_after(&claim.on) || self.statements.edges.len() > MOST_EDGES {
            return;
        }
        self.note_near(own, [&claim.who, &claim.on]);
        let who = match own {
            Some(own) if claim.who.is_empty() => vec![(own, NO_PLACE)],
            _ => {
                let on = own.or_else(|| self.known.nodes(&claim.on).into_iter().max());
                let who = self.nodes(&claim.who, on.filter(|_| is_all_after(&claim.who)), claim.force);
                self.as_whole_phase(&claim.who, who)
            }
        };
        let by_number = claim.who.iter().filter(|(name, _)| matches!(name, Name::Phase(_))).cloned();
        self.statements.numbered.extend(self.known.nodes(&by_number.collect::<Vec<_>>()));
        let subject = who.first().map(|(at, _)| *at);
        let on = match own {
            Some(own) if claim.on.is_empty() => vec![(own, NO_PLACE)],
            _ => self.nodes(&claim.on, subject, claim.force),
        };
        self.warn_of_self(claim, &who, &on);
        if own.is_some() && claim.force != Force::Loose {
            self.warn_of_missing_phases(&claim.on);
        }
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
        // In "Tests (T046-T047)" above "T046" and in "…, T075–T079, T080 depends on T073–T079" a task that would wait for itself is
        // not what the statement is about.
        let all: HashSet<usize> = on.iter().map(|(on, _)| *on).collect();
        let is_named = |who: usize| self.known.is_task(who) && all.contains(&who);
        let who: NamedNodes = who.into_iter().filter(|(who, _)| !is_named(*who)).collect();
        for (who, who_at) in who {
            for (on, on_at) in &on {
                let at = if *on_at == NO_PLACE { who_at } else { *on_at };
                let weight = if claim.force == Force::Loose { Weight::Remark } else { weight };
                self.edge(who, *on, at, weight, scope);
            }
        }
    }

    /// "(depends on Phase 9)" of a plan that has no such phase.
    fn warn_of_missing_phases(&mut self, names: &[PlacedName<'_>]) {
        for name in names {
            let (Name::Phase(label), at) = name else { continue };
            let text = self.page.file.1.text;
            let before = text[..*at].trim_end_matches([' ', '-']);
            let word = before.rsplit(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
            // In "after #189 merges", the number is of something else.
            let is_known = !self.known.nodes(std::slice::from_ref(name)).is_empty();
            if is_known || !is_phase_word(word) {
                continue;
            }
            let written = &text[before.len() - word.len()..at + label.len()];
            if !self.reported.insert(written.to_lowercase()) {
                continue;
            }
            let what = format!("a dependency names '{written}', which is not in the plan; it is ignored");
            let fix = "write the number or the id of a phase of the plan, or remove the dependency";
            self.found.warnings.push(self.page.file.1.problem(*at, what, fix));
        }
    }

    /// "T008 ... (depends on T008)" has no effect, and is probably a wrong number.
    fn warn_of_self(&mut self, claim: &OrderClaim<'_>, who: &NamedNodes, on: &NamedNodes) {
        let [(who, _)] = who[..] else { return };
        let is_it = |(name, at): &&PlacedName<'_>| matches!(name, Name::Task(_)) && on.contains(&(who, *at));
        let Some((_, at)) = claim.on.iter().find(is_it).filter(|_| claim.force != Force::Loose) else {
            return;
        };
        let what = format!("'{}' depends on itself; this is ignored", self.found.drafts[who].task.id);
        let fix = "remove this dependency, or name another task";
        self.found.warnings.push(self.page.file.1.problem(*at, what, fix));
    }

    /// "T038-T045 (ML service) depend on T011": a range that is all of a phase speaks of the phase.
    fn as_whole_phase(&self, names: &[PlacedName<'_>], nodes: NamedNodes) -> NamedNodes {
        let [(Name::Range(..), _)] = names else { return nodes };
        let (Some((first, at)), Some((last, _))) = (nodes.first(), nodes.last()) else { return nodes };
        match self.hierarchy.parents[*first] {
            Some(phase)
                if self.hierarchy.parents[*last] == Some(phase)
                    && nodes.len() > 1
                    && self.hierarchy.children[phase].len() == nodes.len()
                    && nodes.iter().all(|(node, _)| self.hierarchy.parents[*node] == Some(phase)) =>
            {
                vec![(phase, *at)]
            }
            _ => nodes,
        }
    }

    /// Notes an edge. A node cannot wait for itself, nor for what it is part of: such a sentence means its
    /// neighbours. A remark counts only so far as it follows the order of the file.
    pub(super) fn edge(&mut self, who: usize, on: usize, at: usize, weight: Weight, scope: Scope) {
        let is_against = weight == Weight::Remark && on > who;
        if self.hierarchy.are_nested(who, on) || is_against || self.narrowed.contains(&(who, on)) {
            return;
        }
        let is_line = weight == Weight::Line;
        let is_drawn = is_line || weight == Weight::Arrow;
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
        self.statements.edges.push(Edge { who, on, place, weight, scope, is_drawn, is_line });
    }

    /// The nodes that are named. What is not there is reported.
    pub(super) fn nodes(
        &mut self,
        names: &[PlacedName<'_>],
        subject: Option<usize>,
        force: Force,
    ) -> NamedNodes {
        let (mut nodes, missing) = self.known.resolve_all(names, subject);
        for (missing, at) in missing {
            let (UnknownId::Task(id) | UnknownId::EndOfRange(id)) = missing;
            if force == Force::Loose || !self.reported.insert(id.to_owned()) {
                continue;
            }
            let what = format!("a dependency names '{id}', which is not in the plan; it is ignored");
            let problems_before = self.found.problems.len() + self.found.warnings.len();
            let problem = self.page.file.1.problem(at, what, self.known.fix_for(id, problems_before));
            self.found.warnings.push(problem);
        }
        self.resolve_duplicates(names, &mut nodes);
        nodes
    }

    /// Notes the phases that a sentence speaks of: they tell which of two tasks with one id it means.
    pub(super) fn note_near(&mut self, own: Option<usize>, names: [&[PlacedName<'_>]; 2]) {
        let duplicates = &self.page.outline.duplicates;
        if duplicates.is_empty() {
            return;
        }
        let phase = |at: usize| if self.known.is_task(at) { self.hierarchy.parents[at] } else { Some(at) };
        let is_clear = |name: &&PlacedName<'_>| match &name.0 {
            Name::Task(id) => id.parse::<TaskId>().is_ok_and(|id| !duplicates.contains_key(&id)),
            name => matches!(name, Name::Phase(_) | Name::Story(_) | Name::Node(_)),
        };
        let clear: Vec<PlacedName<'_>> = names.into_iter().flatten().filter(is_clear).cloned().collect();
        let others = self.known.nodes(&clear).into_iter().filter_map(phase).collect();
        self.near = [own.and_then(phase).into_iter().collect(), others];
    }

    /// An id that several tasks have means the one in the phase that the sentence is in or speaks of. Where that does not
    /// tell, it cannot say which of them is waited for.
    fn resolve_duplicates(&mut self, names: &[PlacedName<'_>], nodes: &mut NamedNodes) {
        if self.page.outline.duplicates.is_empty() {
            return;
        }
        for (name, place) in names {
            let Name::Task(id) = name else { continue };
            let Ok(id) = id.parse::<TaskId>() else { continue };
            let Some(others) = self.page.outline.duplicates.get(&id) else { continue };
            let Some(first) = self.known.position(&id) else { continue };
            let line = self.page.file.1.line_of(self.found.drafts[first].place.at);
            let of_others = others.iter().filter_map(|(id, line)| Some((self.known.position(id)?, *line)));
            let all: Vec<(usize, usize)> = std::iter::once((first, line)).chain(of_others).collect();
            let meant = self.near.iter().find_map(|near| {
                let is_near = |(at, _): &&(usize, usize)| {
                    self.hierarchy.parents[*at].is_some_and(|phase| near.contains(&phase))
                };
                let mut found = all.iter().filter(is_near);
                found.next().filter(|_| found.next().is_none()).copied()
            });
            let what = format!("a dependency names '{id}', which is the id of {}", in_lines(&all));
            let fix = "give one of the two another id";
            let Some((meant, line)) = meant else {
                if self.reported.insert(id.to_string()) {
                    self.found.problems.push(self.page.file.1.problem(*place, what, fix));
                }
                continue;
            };
            nodes.iter_mut().filter(|(at, own)| *at == first && own == place).for_each(|(at, _)| *at = meant);
            let what = format!("{what}; the one in line {line} is used, because it is in the same phase");
            self.found.warnings.push(self.page.file.1.problem(*place, what, fix));
        }
    }
}

/// "two tasks, in lines 3 and 5": the first lines of tasks that have the same id.
fn in_lines(tasks: &[(usize, usize)]) -> String {
    const MAX_LINES: usize = 3;
    let count = if tasks.len() == 2 { "two".to_owned() } else { tasks.len().to_string() };
    let mut lines: Vec<String> = tasks.iter().take(MAX_LINES).map(|(_, line)| line.to_string()).collect();
    if tasks.len() > MAX_LINES {
        lines.push(format!("{} more", tasks.len() - MAX_LINES));
    }
    format!("{count} tasks, in lines {}", lines.join(" and "))
}

/// Whether a name stands for one phase, story or task. "Different stories can be worked on in parallel" says little of any two.
fn names_one((name, _): &PlacedName<'_>) -> bool {
    matches!(name, Name::Phase(_) | Name::Story(_) | Name::Node(_) | Name::Task(_))
}

/// "US1 depends on all of Phase 3", where the tasks of Phase 3 have the tag of US1: the story that is meant is none that
/// the plan knows. "US2 is validated once US1 and US2 land" says nothing about when US2 begins.
fn is_of_itself(claim: &OrderClaim<'_>, who: &NamedNodes, on: &NamedNodes) -> bool {
    let is_story = |(name, _): &PlacedName<'_>| matches!(name, Name::Story(_));
    let is_waited_for = |(who, _): &(usize, usize)| on.iter().any(|(on, _)| on == who);
    let is_named_again = |(name, _): &PlacedName<'_>| claim.who.iter().any(|(who, _)| who == name);
    let is_of_both = claim.on.len() > 1 && claim.on.iter().any(is_named_again);
    claim.who.iter().all(is_story) && (is_of_both || who.len() > 1 && who.iter().any(is_waited_for))
}
