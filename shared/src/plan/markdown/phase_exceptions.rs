//! Tasks that do not wait for all that their phases wait for: they run at any time, or in parallel with a phase before their own, as
//! "T009 can run in parallel with Phases 3-7" says. What such a phase waits for is handed down to its other tasks.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{explicit_order::ExplicitOrder, node_parents::NodeParents};
use crate::{name::TaskId, plan::assemble::DraftNode};

/// More edges than this are not made; waiting is the safe answer.
const MAX_EDGES: usize = 50_000;

/// Lets these tasks leave their phases: what such a phase waits for, its other parts wait for instead. A task beside a phase waits for what
/// that phase waits for.
pub(super) fn apply_phase_exceptions(
    drafts: &mut [DraftNode],
    hierarchy: &NodeParents,
    stated: &ExplicitOrder,
    position: impl Fn(&TaskId) -> Option<usize>,
) {
    let mut beside: HashMap<usize, HashSet<usize>> = HashMap::new();
    for (who, on) in &stated.unrelated {
        let is_of_phase = hierarchy.children[*who].is_empty() && !hierarchy.children[*on].is_empty();
        if is_of_phase && !hierarchy.are_nested(*who, *on) {
            beside.entry(*who).or_default().insert(*on);
        }
    }
    let is_free = |who: usize, on: Option<usize>| {
        stated.any_time.contains(&who)
            || on.is_some_and(|on| beside.get(&who).is_some_and(|beside| beside.contains(&on)))
    };
    let mut phases: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let released: HashSet<usize> = beside.keys().chain(&stated.any_time).copied().collect();
    for who in &released {
        hierarchy.chain(*who).skip(1).for_each(|phase| phases.entry(phase).or_default().push(*who));
    }
    let mut made = 0;
    // Parents come before their children, so what is handed down is handed on.
    for (phase, released) in phases {
        made += hierarchy.children[phase].len().max(released.len()) * drafts[phase].needs.len();
        if made > MAX_EDGES {
            return;
        }
        let is_left = |on: Option<usize>| released.iter().any(|who| is_free(*who, on));
        let needs = std::mem::take(&mut drafts[phase].needs).into_iter();
        let (left, kept): (Vec<_>, Vec<_>) = needs.partition(|need| is_left(position(&need.on)));
        drafts[phase].needs = kept;
        for part in &hierarchy.children[phase] {
            let (free, needed): (Vec<_>, Vec<_>) =
                left.iter().cloned().partition(|need| is_free(*part, position(&need.on)));
            drafts[*part].needs.extend(needed);
            if stated.any_time.contains(part) {
                continue;
            }
            let mut open: Vec<usize> = free.iter().filter_map(|need| position(&need.on)).collect();
            let mut seen: HashSet<usize> = open.iter().copied().collect();
            while let Some(on) = open.pop() {
                for need in drafts[on].needs.clone() {
                    made += 1;
                    let Some(first) = position(&need.on).filter(|first| seen.insert(*first)) else {
                        continue;
                    };
                    if is_free(*part, Some(first)) && made <= MAX_EDGES {
                        open.push(first);
                    } else {
                        drafts[*part].needs.push(need);
                    }
                }
            }
        }
    }
}
