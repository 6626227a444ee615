//! The order of twenty real plans, drawn by hand from the text: `orders/NAME.order` beside `orders/NAME.md`.
//!
//! A line `T001 > T002, T003 > T004` says that each task on the left comes before each on its right. A phase stands
//! for its tasks, `chain T001..T005` for one task behind the other in the order of the file. What follows from other
//! lines need not be written. Nothing else may be ordered.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    path::Path,
};

use arborist_core::plan::{Plan, Task};

/// Pairs of leaves by position: the first comes before the second.
type Pairs = BTreeSet<(usize, usize)>;

struct Leaves<'p> {
    plan: &'p Plan,
    ids: Vec<&'p str>,
    at: HashMap<&'p str, usize>,
}

impl<'p> Leaves<'p> {
    fn new(plan: &'p Plan) -> Self {
        let ids: Vec<&str> = plan.leaves().map(|task| task.id.as_str()).collect();
        let at = ids.iter().enumerate().map(|(at, id)| (*id, at)).collect();
        Self { plan, ids, at }
    }

    fn named(&self, name: &str) -> Vec<usize> {
        let id = name.trim().parse().unwrap_or_else(|error| panic!("{name}: {error}"));
        let leaves: Vec<usize> =
            self.plan.leaves_of(&id).map(|task: &Task| self.at[task.id.as_str()]).collect();
        assert!(!leaves.is_empty(), "no task {name}");
        leaves
    }

    fn chain(&self, range: &str) -> Pairs {
        let (first, last) = match range.split_once("..") {
            Some((first, last)) => (self.named(first)[0], self.named(last)[0]),
            None => (0, self.ids.len() - 1),
        };
        (first..last).map(|at| (at, at + 1)).collect()
    }

    fn groups(&self, line: &str) -> Pairs {
        let groups: Vec<Vec<usize>> = line
            .split('>')
            .map(|group| group.split(',').flat_map(|name| self.named(name)).collect())
            .collect();
        let pair = |two: &[Vec<usize>]| -> Pairs {
            two[0].iter().flat_map(|one| two[1].iter().map(move |other| (*one, *other))).collect()
        };
        groups.windows(2).flat_map(pair).collect()
    }

    fn expected(&self, text: &str) -> Pairs {
        let mut pairs = Pairs::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            pairs.extend(match line.strip_prefix("chain ") {
                Some(range) => self.chain(range),
                None => self.groups(line),
            });
        }
        closed(self.ids.len(), pairs)
    }

    fn computed(&self) -> Pairs {
        let waits = self.plan.readiness(|_| false);
        let needs = |task: &'p Task| {
            let own = self.at[task.id.as_str()];
            waits.leaves_waited_for(&task.id).into_iter().map(move |on| (on, own)).collect::<Vec<_>>()
        };
        let pairs = self.plan.leaves().flat_map(needs).map(|(on, own)| (self.at[on.as_str()], own)).collect();
        closed(self.ids.len(), pairs)
    }

    fn describe_edges(&self, pairs: &Pairs, others: &Pairs) -> Vec<String> {
        pairs
            .difference(others)
            .map(|(one, other)| format!("{} > {}", self.ids[*one], self.ids[*other]))
            .collect()
    }
}

/// Everything that follows from some pairs.
fn closed(count: usize, pairs: Pairs) -> Pairs {
    let mut reach = vec![vec![false; count]; count];
    for (one, other) in pairs {
        reach[one][other] = true;
    }
    for middle in 0..count {
        let behind = reach[middle].clone();
        for row in reach.iter_mut().filter(|row| row[middle]) {
            row.iter_mut().zip(&behind).for_each(|(cell, behind)| *cell |= behind);
        }
    }
    (0..count)
        .flat_map(|one| (0..count).map(move |other| (one, other)))
        .filter(|(one, other)| reach[*one][*other])
        .collect()
}

#[test]
fn twenty_real_plans_have_the_expected_task_order() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/orders");
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut wrong = Vec::new();
    let mut count = 0;
    for file in files.filter(|file| file.extension().is_some_and(|ending| ending == "md")) {
        count += 1;
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let plan = Plan::read("tasks.md", &fs::read(&file).unwrap())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let leaves = Leaves::new(&plan);
        let expected = leaves.expected(&fs::read_to_string(file.with_extension("order")).unwrap());
        let computed = leaves.computed();
        let (missing, extra) =
            (leaves.describe_edges(&expected, &computed), leaves.describe_edges(&computed, &expected));
        if !missing.is_empty() || !extra.is_empty() {
            wrong.push(format!("{name}: missing {missing:?}, too many {extra:?}"));
        }
    }
    assert_eq!(count, 20);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
