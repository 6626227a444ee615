//! Which numbers and letters of a file are ids: headings that are counted through, and boxes that begin with `A1`.

use std::collections::HashSet;

use super::{
    Line,
    head::{Head, checkbox},
    ids,
    lines::Kind,
};

/// The level of headings that are numbered through all sections, "### 1. …" to "### 17. …", below headings that speak of
/// tasks. Where numbers begin anew in each section, or in a text about something else, they only count its parts.
pub(super) fn counted_level(lines: &[Line<'_>]) -> Option<usize> {
    const FEWEST: usize = 3;
    let speaks_of_tasks = |title: &str| {
        let lower = title.to_lowercase();
        ["task", "step", "phase", "任务", "任務", "タスク", "阶段", "tarefa", "tarea"]
            .iter()
            .any(|word| lower.contains(word))
    };
    (3..=4).find(|level| {
        let (mut count, mut parents, mut is_about_tasks) = (0, HashSet::new(), false);
        let mut parent = 0;
        for (at, line) in lines.iter().enumerate() {
            let Kind::Heading(own) = line.kind else { continue };
            if own < *level {
                parent = at;
                is_about_tasks |= speaks_of_tasks(line.content());
            } else if own == *level {
                let number = ids::numeric(line.content()).filter(|id| is_point(&line.content()[id.len()..]));
                let Some(number) = number.and_then(|number| number.parse::<usize>().ok()) else { continue };
                if number != count + 1 {
                    return false;
                }
                count = number;
                parents.insert(parent);
            }
        }
        count >= FEWEST && parents.len() > 1 && is_about_tasks
    })
}

/// Whether at least half of the boxes of a file begin with ids such as `A1` or `DB-1`, each with another.
pub(super) fn reads_families(lines: &[Line<'_>]) -> bool {
    const FEWEST: usize = 2;
    let is_outer = |line: &&Line<'_>| matches!(line.kind, Kind::Item(_)) && line.indent == 0;
    let boxes = lines.iter().filter(is_outer).filter_map(|line| checkbox(line.content()));
    let (mut count, mut with_ids, mut ids) = (0, 0, HashSet::new());
    for (_, rest) in boxes {
        count += 1;
        if let Some(head) = Head::parse_family(rest).filter(|_| Head::parse(rest).is_none()) {
            with_ids += 1;
            ids.insert(head.id);
        }
    }
    ids.len() >= FEWEST && ids.len() == with_ids && with_ids * 2 >= count
}

/// Whether a point or a bracket parts a number from its title.
fn is_point(behind: &str) -> bool {
    behind.starts_with(['.', ')', '、'])
}
