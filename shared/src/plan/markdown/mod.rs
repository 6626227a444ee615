//! Task lists in Markdown: the plain form, GitHub spec-kit's `tasks.md` in the dialects that people write,
//! and numbered lists. An own line scanner, because every task must keep its exact bytes.

mod arrows;
mod assign;
mod blocks;
mod boxes;
mod clauses;
mod entry;
mod explicit;
mod head;
mod ids;
mod keywords;
mod lines;
mod lists;
mod naming;
mod needs;
mod order;
mod outline;
mod paths;
mod section;
mod settle;
mod table;
mod tree;
mod words;

#[cfg(test)]
mod tests;

pub use assign::plan_ids;
pub use entry::Why;

use self::{
    lines::{Line, Unclosed},
    naming::Names,
    needs::Known,
    outline::Outline,
    settle::Standing,
    tree::{Nodes, Role, TreeBuilder},
};
use super::{
    Problem,
    assemble::{Draft, Found},
    text::{Offset, SpecFile},
};
use crate::name::TaskId;

/// A line that looks like a task and was not taken as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// Why it was not taken.
    pub why: Why,
    /// The same as a complaint, with its place.
    pub problem: Problem,
}

/// A file with all that was read from it.
struct Page<'f, 'a> {
    file: (usize, &'f SpecFile<'a>),
    lines: Vec<Line<'a>>,
    outline: Outline<'a>,
    standing: Standing,
    ids: Vec<Option<TaskId>>,
}

/// Reads files as parts of one plan, in their order.
pub(super) fn read(files: &[(usize, &SpecFile<'_>)]) -> (Found, Vec<Unread>) {
    let mut found = Found::default();
    let mut pages: Vec<Page<'_, '_>> = files.iter().map(|file| page(*file, &mut found.warnings)).collect();
    let mut names = Names::default();
    names.reserve(pages.iter().flat_map(|page| page.outline.entries.iter().map(|entry| &entry.id)));
    let mut roles: Vec<Role> = Vec::new();
    for page in &mut pages {
        let builder = TreeBuilder { file: page.file, outline: &page.outline, standing: &page.standing };
        let Nodes { drafts, roles: own, ids } = builder.build(&mut names);
        page.ids = ids;
        found.drafts.extend(drafts);
        roles.extend(own);
        found.problems.append(&mut page.outline.problems);
    }
    let known = Known::new(&found.drafts, &roles);
    for page in &pages {
        explicit::add_needs(page, (&known, &roles), &mut found);
    }
    let late = order::add_default_needs(&mut found.drafts, &roles);
    found
        .warnings
        .extend(late.into_iter().filter_map(|at| leaves_its_phase(files, (&found.drafts, &known), at)));
    let unread = pages.iter().flat_map(unread).collect();
    (found, unread)
}

fn page<'f, 'a>(file: (usize, &'f SpecFile<'a>), warnings: &mut Vec<Problem>) -> Page<'f, 'a> {
    let (lines, unclosed) = lines::scan(file.1.text, file.1.content_start());
    warnings.extend(unclosed.map(|unclosed| never_closed(file.1, unclosed)));
    let mut outline = outline::outline(file.1, &lines);
    let standing = settle::settle(&mut outline);
    Page { file, lines, outline, standing, ids: Vec::new() }
}

fn never_closed(file: &SpecFile<'_>, Unclosed { at, what }: Unclosed) -> Problem {
    let all = file.text.trim_end().len().max(at);
    let count = file.line_of(all) - file.line_of(at);
    file.problem(
        at,
        format!("this {what} is never closed, so the {count} lines below it are not read"),
        format!("close the {what}"),
    )
}

fn leaves_its_phase(
    files: &[(usize, &SpecFile<'_>)],
    (drafts, known): (&[Draft], &Known),
    at: usize,
) -> Option<Problem> {
    let draft = &drafts[at];
    let is_below = |id: &TaskId| known.position(id).is_some_and(|on| on > at);
    let mut needs = draft.needs.iter().map(|(id, _)| id);
    let id = needs.clone().find(|id| is_below(id)).or_else(|| needs.next())?;
    let (_, file) = files.iter().find(|(number, _)| *number == draft.place.file)?;
    let what = format!(
        "'{}' waits for something further down, by '{id}': it leaves the order of its phase",
        draft.task.id
    );
    Some(file.problem(draft.place.at, what, "move it below what it waits for"))
}

fn unread<'p>(page: &'p Page<'_, '_>) -> impl Iterator<Item = Unread> + 'p {
    page.outline.unread.iter().map(|(at, _, why)| {
        let what = format!("this looks like a task and was not taken: {}", why.as_str());
        Unread { why: *why, problem: page.file.1.problem(*at, what, why.fix()) }
    })
}
