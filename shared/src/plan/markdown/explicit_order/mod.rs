//! The order that a plan states: which of its statements are taken, and where they replace the implied order.

mod arrow_direction;
mod dependency_cells;
mod dependency_edges;
mod page_reader;
mod parallel_groups;
mod title_references;
mod waves;

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use self::page_reader::PageReader;
use super::{
    Page,
    node_index::NodeIndex,
    node_parents::NodeParents,
    tokens::Tokenizer,
    tree::{NodeKind, Role},
};
use crate::plan::{
    Problem,
    assemble::{DraftNeed, PlanDraft, SourcePlace},
    precedence::Precedence,
};

/// More statements than this are refused: an absurd plan must not take all memory.
const MOST_EDGES: usize = 500_000;

/// More pairs than this that may run in parallel are not noted: waiting is the safe answer.
const MOST_UNRELATED: usize = 50_000;

/// More pairs than this in one sentence are a slip of the pen, not a dependency.
const MOST_PAIRS: usize = 20_000;

/// More drawings than this are not compared with what else is said; comparing each takes time.
const MOST_TANGLED: usize = 50;

/// How many of ten tasks must state their dependencies, from the first that does, so that these replace the implied
/// order.
const THROUGHOUT: usize = 9;

/// The stated edges that were taken.
pub(super) struct ExplicitOrder {
    /// For each node, what it says it waits for.
    pub(super) needs: Vec<Vec<usize>>,
    /// Nodes whose stated needs replace what would be implied.
    pub(super) replaced: Vec<bool>,
    /// Pairs of nodes of which the first need not wait for the second.
    pub(super) unrelated: HashSet<(usize, usize)>,
    /// Tasks that do not wait for what their phases wait for: they run at any time, or only after tasks of other
    /// phases.
    pub(super) any_time: HashSet<usize>,
    /// Phases that a statement calls by their own numbers.
    pub(super) numbered: HashSet<usize>,
    /// Tasks whose order within their phase is replaced only because all tasks around them say what they wait for.
    pub(super) by_others: HashSet<usize>,
    /// Whether stories follow each other as other phases do, where nothing else is stated of them.
    pub(super) is_in_order: bool,
    pub(super) precedence: Precedence,
}

/// How firmly an edge is stated: where edges contradict each other, the first of these win.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// A task or its row says it.
    Task,
    /// A section about dependencies says it of tasks.
    Section,
    /// An arrow.
    Arrow,
    /// A line in a drawing.
    Line,
    /// It is about whole phases.
    Phase,
    /// A remark in brackets.
    Remark,
}

/// How many the sentence speaks of that an edge is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Of one or two, which say so themselves.
    Few,
    /// Of a group.
    Group,
    /// Of a range such as "T007-T024", which tells nothing about the order within it.
    Range,
    /// "All stories", "everything": a last phase then still waits for other phases too.
    All,
    /// Of a phase that others are said to wait for; what else these wait for is not told.
    Blocking,
}

#[derive(Debug, Clone, Copy)]
struct Edge {
    who: usize,
    on: usize,
    place: SourcePlace,
    weight: Weight,
    scope: Scope,
    /// Whether an arrow or a drawing says it.
    is_drawn: bool,
    /// Whether a line in a drawing does.
    is_line: bool,
}

/// What is stated of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StatedNeed {
    Nothing,
    /// What a range waits for that it is in, as "T007-T024". That tells nothing about the order within the range.
    AsRange,
    /// That it waits for tasks of another phase, as a whole group may.
    Something,
    /// What it waits for itself.
    Own,
}

/// Everything that the pages of a plan state.
#[derive(Default)]
struct Statements {
    edges: Vec<Edge>,
    /// Tasks that name their dependencies, also if these are none.
    declared: HashSet<usize>,
    /// Tasks with a field for dependencies that names none that can be read, as "Dependencies: all pages". They keep
    /// the implied order.
    vague: HashSet<usize>,
    /// Phases that are said to wait for nothing.
    free: Vec<usize>,
    /// Tasks that are said to run at any time: what their phases wait for does not matter to them.
    any_time: HashSet<usize>,
    /// Tasks that are said to wait only for what is stated of them.
    as_stated: HashSet<usize>,
    /// Phases of which something is said by their own numbers, as "Phase 8 depends on Phase 6".
    numbered: HashSet<usize>,
    /// Whether all phases are said to run one after the other.
    is_in_order: bool,
    /// Nodes that are said to have nothing to do with others.
    unrelated: HashSet<(usize, usize)>,
    /// Tasks that are in a list of waves, which tells all that they wait for.
    waved: HashSet<usize>,
    /// Drawings whose lines lead with the order of the file and against it: where each is, and its edges.
    tangled: Vec<(SourcePlace, Range<usize>)>,
    /// What some nodes are said to wait for and for nothing else. Neither a line that is drawn near them nor "blocks
    /// all stories" changes that.
    only: HashMap<usize, HashSet<usize>>,
    /// What some nodes are said not to wait for, or to be independent of: a line that is drawn between them does not
    /// change that.
    denied: HashMap<usize, HashSet<usize>>,
}

/// Reads what the pages state into the drafts' `needs`.
pub(super) fn read(
    pages: &[Page<'_, '_>],
    known: &mut NodeIndex,
    roles: &[Role],
    hierarchy: &NodeParents,
    found: &mut PlanDraft,
) -> ExplicitOrder {
    let mut statements = Statements::default();
    parallel_groups::name_groups(pages, known);
    let known = &*known;
    for page in pages {
        let is_id = |id: &str| known.find(id).is_some();
        let tokenizer = Tokenizer { is_id: &is_id };
        PageReader {
            page,
            known,
            roles,
            hierarchy,
            found,
            tokenizer,
            statements: &mut statements,
            narrowed: HashSet::new(),
            near: [Vec::new(), Vec::new()],
            has_own_lists: false,
            reported: HashSet::new(),
        }
        .read();
    }
    take(statements, roles, hierarchy, pages, found)
}

/// Takes the statements that do not contradict each other. Tasks that wait for each other by their own words are
/// left for the check of the whole plan, which names them all.
fn take(
    mut statements: Statements,
    roles: &[Role],
    hierarchy: &NodeParents,
    pages: &[Page<'_, '_>],
    found: &mut PlanDraft,
) -> ExplicitOrder {
    drop_tangled(&mut statements, pages, found);
    narrow_stories(&mut statements.edges, roles, hierarchy);
    let is_throughout = is_declared_throughout(&statements.declared, &statements.vague, roles, hierarchy);
    if is_throughout {
        // A drawing beside tasks that all name their dependencies is a summary.
        let declared = &statements.declared;
        statements.edges.retain(|edge| !edge.is_drawn || !declared.contains(&edge.who));
    }
    let mut stated = ExplicitOrder {
        needs: vec![Vec::new(); roles.len()],
        replaced: vec![false; roles.len()],
        unrelated: statements.unrelated,
        any_time: statements.any_time,
        numbered: statements.numbered,
        by_others: HashSet::new(),
        is_in_order: statements.is_in_order,
        precedence: Precedence::new(&hierarchy.children, &hierarchy.roots),
    };
    // Where two phases are said to wait for each other, words go before drawings, and then the order of the file tells which is
    // meant.
    let is_phase = |at: usize| roles[at].kind != NodeKind::Task;
    let is_against = |edge: &Edge| is_phase(edge.who) && is_phase(edge.on) && edge.on > edge.who;
    statements.edges.sort_by_key(|edge| (edge.weight, edge.is_drawn && is_phase(edge.who), is_against(edge)));
    stated.precedence.prefer(statements.edges.iter().map(|edge| (edge.who, edge.on)));
    let is_worded = |edge: &&Edge| !edge.is_drawn && edge.weight != Weight::Remark && is_phase(edge.who);
    let mut worded: HashSet<usize> = statements.edges.iter().filter(is_worded).map(|edge| edge.who).collect();
    worded.extend(&statements.free);
    let mut taken: HashSet<(usize, usize)> = HashSet::new();
    let mut says = vec![StatedNeed::Nothing; roles.len()];
    for Edge { who, on, place, weight, scope, is_drawn, is_line } in statements.edges {
        let is_general = scope == Scope::All;
        let is_vague = is_drawn || is_general || scope == Scope::Blocking;
        if is_vague && statements.only.get(&who).is_some_and(|only| !only.contains(&on)) {
            continue;
        }
        let is_weak = weight == Weight::Remark || is_drawn && is_general;
        let is_denied = is_weak && stated.unrelated.contains(&(who, on))
            || is_drawn && statements.denied.get(&who).is_some_and(|denied| denied.contains(&on));
        if is_denied {
            continue;
        }
        // Lines are drawn carelessly: one from a later phase back to an earlier one gives way to words about the earlier.
        if is_line && is_phase(who) && is_phase(on) && on > who && worded.contains(&who) {
            found.warnings.extend(contradiction(who, on, place, pages, found));
            continue;
        }
        // A line that is drawn to "Polish" does not tell that nothing else comes before it.
        let is_added = (is_general || is_drawn) && roles[who].kind == NodeKind::Last
            || weight == Weight::Remark
            || scope == Scope::Blocking;
        let replaces = is_phase(who) && (is_phase(on) || !is_general) && !is_added;
        if !taken.insert((who, on)) {
            // It has been said already, perhaps in other words.
            stated.replaced[who] |= replaces && stated.needs[who].contains(&on);
            continue;
        }
        if !stated.precedence.try_add(who, on) && weight > Weight::Task {
            found.warnings.extend(contradiction(who, on, place, pages, found));
            continue;
        }
        stated.needs[who].push(on);
        stated.replaced[who] |= replaces;
        // That whole groups of tasks wait for an earlier phase says nothing about their order among themselves.
        if !is_general {
            let is_own = hierarchy.parents[who] == hierarchy.parents[on] && scope != Scope::Range
                || is_phase(on) && scope == Scope::Few;
            let own = match scope {
                _ if is_own => StatedNeed::Own,
                Scope::Range => StatedNeed::AsRange,
                _ => StatedNeed::Something,
            };
            says[who] = says[who].max(own);
        }
        let id = found.drafts[on].task.id.clone();
        found.drafts[who].needs.push(DraftNeed::stated((id, place)));
    }
    // "T012 depends only on T007" leaves no room for the order of the file.
    for (at, only) in statements.only.iter().filter(|(at, _)| !is_phase(**at)) {
        let is_stated = stated.needs[*at].iter().any(|on| only.contains(on));
        stated.replaced[*at] |= is_stated;
        // If T007 is in another phase, nor does it leave room for what the phase of T012 waits for.
        let is_outside =
            |on: &usize| hierarchy.parents[*at].is_some_and(|phase| !hierarchy.are_nested(phase, *on));
        if is_stated && only.iter().all(is_outside) {
            stated.any_time.insert(*at);
        }
    }
    statements.as_stated.iter().filter(|at| !is_phase(**at)).for_each(|at| stated.replaced[*at] = true);
    replace_free(&statements.free, roles, hierarchy, &mut stated);
    statements.free.iter().for_each(|at| says[*at] = StatedNeed::Own);
    replace_by_waves(&statements.waved, hierarchy, &mut stated);
    if is_throughout {
        replace_throughout(&statements.declared, hierarchy, &mut stated);
    }
    replace_in_phases(&says, roles, hierarchy, &mut stated);
    stated
}

/// Drops a tangled drawing that says the opposite of much else in the plan: its lines were not followed as they are
/// meant.
fn drop_tangled(statements: &mut Statements, pages: &[Page<'_, '_>], found: &mut PlanDraft) {
    const FEWEST: usize = 3;
    /// More edges of one drawing than this are not looked at.
    const MOST_DRAWN: usize = 200;
    let tangled = std::mem::take(&mut statements.tangled);
    if tangled.is_empty() {
        return;
    }
    let is_within = |at: usize| tangled.iter().any(|(_, edges)| edges.contains(&at));
    let mut needs: HashMap<usize, Vec<usize>> = HashMap::new();
    for (_, edge) in statements.edges.iter().enumerate().filter(|(at, _)| !is_within(*at)) {
        needs.entry(edge.who).or_default().push(edge.on);
    }
    for (place, edges) in tangled.into_iter().rev() {
        let drawn = &statements.edges[edges.clone()];
        let denied = drawn.iter().take(MOST_DRAWN).filter(|edge| waits(&needs, edge.on, edge.who)).count();
        if denied >= FEWEST && denied * 3 >= drawn.len() {
            statements.edges.drain(edges);
            let file = pages.iter().find(|page| page.file.0 == place.file).map(|page| page.file.1);
            found.warnings.extend(file.map(|file| {
                let what = "the order that this drawing shows could not be read";
                file.problem(place.at, what, "write it as 'T005 depends on T001'")
            }));
        }
    }
}

/// "US2 depends on US1" and elsewhere "US2 can start after T011": the second says more exactly which part of the story
/// is waited for, and takes the place of the first. Of other phases, such as a foundation, all is waited for.
fn narrow_stories(edges: &mut Vec<Edge>, roles: &[Role], hierarchy: &NodeParents) {
    let is_exact = |edge: &&Edge| {
        roles[edge.who].kind == NodeKind::Story
            && roles[edge.on].kind == NodeKind::Task
            && edge.weight != Weight::Remark
            && edge.scope != Scope::All
    };
    let mut narrowed: HashSet<(usize, usize)> = HashSet::new();
    for edge in edges.iter().filter(is_exact) {
        narrowed.extend(hierarchy.chain(edge.on).skip(1).map(|story| (edge.who, story)));
    }
    edges.retain(|edge| roles[edge.on].kind != NodeKind::Story || !narrowed.contains(&(edge.who, edge.on)));
}

/// Whether one node waits for another by these needs, directly or not.
fn waits(needs: &HashMap<usize, Vec<usize>>, who: usize, on: usize) -> bool {
    /// How many nodes are looked at.
    const FAR: usize = 500;
    let (mut seen, mut open) = (HashSet::from([who]), vec![who]);
    while let Some(at) = open.pop() {
        if at == on {
            return true;
        }
        if seen.len() < FAR {
            open.extend(needs.get(&at).into_iter().flatten().filter(|next| seen.insert(**next)));
        }
    }
    false
}

fn contradiction(
    who: usize,
    on: usize,
    place: SourcePlace,
    pages: &[Page<'_, '_>],
    found: &PlanDraft,
) -> Option<Problem> {
    let file = pages.iter().find(|page| page.file.0 == place.file)?.file.1;
    let id = |at: usize| &found.drafts[at].task.id;
    let what =
        format!("'{}' cannot wait for '{}', because other dependencies say the opposite", id(who), id(on));
    Some(file.problem(place.at, what, "correct one of them"))
}

/// What is said to wait for nothing does so, and so does a phase all of whose tasks do. A story still waits for the
/// foundation, unless its title only mentions it, as "Phase 5: Branch protection (US4)" does.
fn replace_free(free: &[usize], roles: &[Role], hierarchy: &NodeParents, stated: &mut ExplicitOrder) {
    let is_free: HashSet<usize> = free.iter().copied().collect();
    let phases: HashSet<usize> = free.iter().filter_map(|at| hierarchy.parents[*at]).collect();
    let is_whole = |at: &usize| hierarchy.children[*at].iter().all(|child| is_free.contains(child));
    let was_stated = |at: &usize| roles[*at].kind != NodeKind::Last;
    let meant = free.iter().copied().filter(was_stated).chain(phases.into_iter().filter(is_whole));
    for at in meant.filter(|at| roles[*at].kind != NodeKind::Story || roles[*at].is_annotated) {
        stated.replaced[at] = true;
    }
}

/// What is in a wave waits for the wave before it and nothing else, and so does a phase most of whose tasks do.
fn replace_by_waves(waved: &HashSet<usize>, hierarchy: &NodeParents, stated: &mut ExplicitOrder) {
    if waved.is_empty() {
        return;
    }
    // For each node, how many of its leaves are in a wave, and how many there are. Children come after parents.
    let mut counts = vec![(0, 0); hierarchy.parents.len()];
    for at in (0..hierarchy.parents.len()).rev() {
        if hierarchy.children[at].is_empty() {
            counts[at] = (0, 1);
        }
        if waved.contains(&at) {
            counts[at].0 = counts[at].1;
        }
        let (within, all): (usize, usize) = counts[at];
        stated.replaced[at] |= waved.contains(&at) || !hierarchy.children[at].is_empty() && within * 2 >= all;
        if let Some(parent) = hierarchy.parents[at] {
            counts[parent] = (counts[parent].0 + within, counts[parent].1 + all);
        }
    }
}

/// Whether nearly every task names its dependencies.
fn is_declared_throughout(
    declared: &HashSet<usize>,
    vague: &HashSet<usize>,
    roles: &[Role],
    hierarchy: &NodeParents,
) -> bool {
    // A box without an id beside tasks with ids is not expected to name any.
    let is_leaf = |at: &usize| hierarchy.children[*at].is_empty() && !roles[*at].is_unnamed;
    let leaves: Vec<usize> = (0..roles.len()).filter(is_leaf).collect();
    let count = leaves.iter().filter(|at| declared.contains(at)).count();
    // Tasks before the first dependency have none, and plans do not state that. Those after the last, such as checks of
    // the whole, keep the implied order.
    let first = leaves.iter().position(|at| declared.contains(at)).unwrap_or_default();
    let last = leaves.iter().rposition(|at| declared.contains(at)).unwrap_or_default();
    let span = leaves.get(first..=last).unwrap_or_default();
    let named = span.iter().filter(|at| declared.contains(at) || vague.contains(at)).count();
    count >= 3 && count * 2 >= leaves.len() && named * 10 >= span.len() * THROUGHOUT
}

/// What tasks name throughout is all that they wait for.
fn replace_throughout(declared: &HashSet<usize>, hierarchy: &NodeParents, stated: &mut ExplicitOrder) {
    let count = hierarchy.parents.len();
    let mut is_whole = vec![true; count];
    for at in (0..count).rev() {
        is_whole[at] &= !hierarchy.children[at].is_empty() || declared.contains(&at);
        if let Some(parent) = hierarchy.parents[at] {
            is_whole[parent] &= is_whole[at];
        }
        if is_whole[at] && !std::mem::replace(&mut stated.replaced[at], true) {
            stated.by_others.insert(at);
        }
    }
}

/// In a phase whose tasks all but the first say what they wait for, that is all that they wait for.
fn replace_in_phases(
    says: &[StatedNeed],
    roles: &[Role],
    hierarchy: &NodeParents,
    stated: &mut ExplicitOrder,
) {
    let is_task = |at: usize| hierarchy.children[at].is_empty() && roles[at].kind == NodeKind::Task;
    for siblings in hierarchy.children.iter().chain([&hierarchy.roots]) {
        let is_whole = siblings.len() > 3
            && siblings.iter().all(|at| is_task(*at))
            && siblings.iter().skip(1).all(|at| says[*at] > StatedNeed::Nothing)
            && siblings.iter().skip(1).filter(|at| says[**at] == StatedNeed::Own).count() * 2
                >= siblings.len() - 1;
        if is_whole {
            // Within a range, the tasks after the first keep their order.
            let goes_on = |before: usize, at: usize| {
                [before, at].iter().all(|at| says[*at] == StatedNeed::AsRange)
                    && stated.needs[before] == stated.needs[at]
            };
            let stating: Vec<usize> =
                siblings.windows(2).filter(|pair| !goes_on(pair[0], pair[1])).map(|pair| pair[1]).collect();
            for at in stating {
                if !std::mem::replace(&mut stated.replaced[at], true) {
                    stated.by_others.insert(at);
                }
            }
        }
    }
}
