//! Task lists in Markdown: the plain form, GitHub spec-kit's `tasks.md` in the dialects that people write,
//! and numbered lists.
//!
//! The lines are scanned here and not by `pulldown-cmark`, because its events do not show what the reader needs: a
//! box is a task marker to it only with a space or an `x`, so `[-]`, `[~]` and `[!]` are plain text; `-[ ] T001`,
//! `• [ ] T001` and `[ ] T001` are paragraphs; a list item that goes on without indent, a drawing that is indented by
//! four columns and a table without its rule are other blocks than their authors mean. Every line keeps its offset, so
//! that a tick is a change of one byte. Fences, comments, headings and front matter follow CommonMark.

mod asides;
mod assign;
mod blocks;
mod boxes;
mod default_order;
mod drawings;
mod entry;
mod head;
mod ids;
mod keywords;
mod lines;
mod mentions;
mod naming;
mod node_index;
mod numbering;
mod outline;
mod parallel_words;
mod paths;
mod prose;
mod red;
mod section;
mod sentences;
mod settle;
mod stated;
mod table;
mod tokens;
mod tree;
mod waves;
mod wires;

#[cfg(test)]
mod tests;

pub use assign::plan_ids;
pub use entry::Why;

use self::{
    default_order::Family,
    lines::{Line, Unclosed},
    naming::Names,
    node_index::NodeIndex,
    outline::Outline,
    settle::Standing,
    tree::{Nodes, Role, TreeBuilder},
};
use super::{
    Problem, RedProposal,
    assemble::Found,
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
    /// How many lines it speaks of; more than one for a check list.
    pub lines: usize,
}

/// A file with all that was read from it.
struct Page<'f, 'a> {
    file: (usize, &'f SpecFile<'a>),
    lines: Vec<Line<'a>>,
    outline: Outline<'a>,
    standing: Standing,
    ids: Vec<Option<TaskId>>,
    /// For each section, its node by position.
    sections: Vec<Option<usize>>,
}

/// Reads files as parts of one plan, in their order.
pub(super) fn read(files: &[(usize, &SpecFile<'_>)]) -> (Found, Vec<Unread>, Vec<RedProposal>) {
    let mut found = Found::default();
    let mut pages: Vec<Page<'_, '_>> = files.iter().map(|file| page(*file, &mut found.warnings)).collect();
    let mut names = Names::default();
    names.reserve(pages.iter().flat_map(|page| page.outline.entries.iter().map(|entry| &entry.id)));
    let mut roles: Vec<Role> = Vec::new();
    for page in &mut pages {
        let builder = TreeBuilder { file: page.file, outline: &page.outline, standing: &page.standing };
        let Nodes { drafts, roles: own, ids, sections } = builder.build(&mut names);
        let before = found.drafts.len();
        page.ids = ids;
        page.sections = sections.into_iter().map(|node| node.map(|node| before + node)).collect();
        found.drafts.extend(drafts);
        roles.extend(own);
        found.problems.append(&mut page.outline.problems);
        found.warnings.append(&mut page.outline.warnings);
    }
    let mut known = NodeIndex::new(&found.drafts, &roles);
    let family = Family::new(&found.drafts, |id| known.position(id));
    let mut stated = stated::read(&pages, (&mut known, &roles), &family, &mut found);
    default_order::add_implied(&mut found.drafts, &roles, &family, &mut stated);
    default_order::release(&mut found.drafts, &family, &stated.any_time);
    let unread = pages.iter().flat_map(unread).collect();
    let reds = pages.iter().flat_map(red::proposals).collect();
    (found, unread, reds)
}

fn page<'f, 'a>(file: (usize, &'f SpecFile<'a>), warnings: &mut Vec<Problem>) -> Page<'f, 'a> {
    let (lines, unclosed) = lines::scan(file.1.text, file.1.content_start());
    warnings.extend(unclosed.map(|unclosed| never_closed(file.1, unclosed)));
    let mut outline = outline::outline(file.1, &lines);
    let standing = settle::settle(file.1, &mut outline);
    Page { file, lines, outline, standing, ids: Vec::new(), sections: Vec::new() }
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

fn unread<'p>(page: &'p Page<'_, '_>) -> impl Iterator<Item = Unread> + 'p {
    let lines = page.outline.unread.iter().map(|(at, _, why)| {
        let what = format!("this looks like a task and was not taken: {}", why.as_str());
        Unread { why: *why, problem: page.file.1.problem(*at, what, why.fix()), lines: 1 }
    });
    let checks = page.outline.checks.iter().map(|checks| {
        let title = checks.section.map_or("the top", |at| page.outline.sections[at].title.as_str());
        let boxes = if checks.count == 1 { "1 box".to_owned() } else { format!("{} boxes", checks.count) };
        let what = format!("{boxes} under '{title}' taken as checks");
        Unread {
            why: Why::Check,
            problem: page.file.1.problem(checks.at, what, Why::Check.fix()),
            lines: checks.count,
        }
    });
    lines.chain(checks)
}
