//! Task lists in Markdown: the plain form, GitHub spec-kit's `tasks.md` in the dialects that people write,
//! and numbered lists.
//!
//! The lines are scanned here and not by `pulldown-cmark`, because its events do not show what the reader needs: a
//! box is a task marker to it only with a space or an `x`, so `[-]`, `[~]` and `[!]` are plain text; `-[ ] T001`,
//! `• [ ] T001` and `[ ] T001` are paragraphs; a list item that continues without indent, a drawing that is indented by
//! four columns and a table without its rule are other blocks than their authors mean. Every line keeps its offset, so
//! that a tick is a change of one byte. Fences, comments, headings and front matter follow CommonMark.

mod canonical_entries;
mod default_order;
mod diagram_connectors;
mod diagrams;
mod entry;
mod explicit_order;
mod heading_ids;
mod id_assignment;
mod ids;
mod keywords;
mod lines;
mod mixed_forms;
mod name_reader;
mod names;
mod node_index;
mod node_parents;
mod outline;
mod outline_builder;
mod parallel_sections;
mod paths;
mod phase_exceptions;
mod prose;
mod prose_titles;
mod section;
mod sentences;
mod similar_ids;
mod status;
mod table;
mod task_line;
mod taskless_sections;
mod tokens;
mod tree;

#[cfg(test)]
mod tests;

pub use entry::Why;
pub use id_assignment::plan_ids;

use self::{
    canonical_entries::CanonicalEntry,
    default_order::ImpliedRules,
    id_assignment::UniqueIds,
    lines::{LineKind, PlanLine, Unclosed},
    node_index::NodeIndex,
    node_parents::NodeParents,
    outline::Outline,
    section::HeadingSection,
    tree::{Nodes, Role, TreeBuilder},
};
use super::{
    Mark, Problem, RedProposal,
    assemble::PlanDraft,
    text::{Offset, SpecFile},
};
use crate::name::TaskId;

/// A line that looks like a task and was not taken as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// Why it was not taken.
    pub why: Why,
    /// The message about it, with its place.
    pub problem: Problem,
    /// How many lines it speaks of; more than one for a check list.
    pub lines: usize,
}

/// A file with all that was read from it.
struct Page<'f, 'a> {
    file: (usize, &'f SpecFile<'a>),
    lines: Vec<PlanLine<'a>>,
    outline: Outline<'a>,
    canonical: CanonicalEntry,
    ids: Vec<Option<TaskId>>,
    /// For each section, its node by position.
    sections: Vec<Option<usize>>,
}

/// Reads files as parts of one plan, in their order.
pub(super) fn read(files: &[(usize, &SpecFile<'_>)]) -> (PlanDraft, Vec<Unread>, Vec<RedProposal>) {
    let mut found = PlanDraft::default();
    let mut pages: Vec<Page<'_, '_>> = files.iter().map(|file| page(*file, &mut found.warnings)).collect();
    let mut names = UniqueIds::with_taken(
        pages.iter().flat_map(|page| page.outline.entries.iter().map(|entry| &entry.id)),
    );
    let mut roles: Vec<Role> = Vec::new();
    for page in &mut pages {
        let builder = TreeBuilder { file: page.file, outline: &page.outline, canonical: &page.canonical };
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
    for page in &pages {
        let written = page.outline.entries.iter().zip(&page.ids);
        written.for_each(|(entry, id)| known.add_written(entry.written.as_ref(), id.as_ref()));
    }
    let hierarchy = NodeParents::new(&found.drafts, |id| known.position(id));
    let mut stated = explicit_order::read(&pages, &mut known, &roles, &hierarchy, &mut found);
    let tests_first = roles.iter().any(|role| role.section.is_tests) && pages.iter().any(asks_tests_first);
    let skips_optional = roles.iter().any(|role| role.is_optional)
        && pages
            .iter()
            .flat_map(|page| &page.lines)
            .any(|line| taskless_sections::lets_optional_wait(line.text));
    let rules = ImpliedRules { tests_first, skips_optional };
    default_order::add_implied(&mut found.drafts, &roles, &hierarchy, &mut stated, rules);
    phase_exceptions::apply_phase_exceptions(&mut found.drafts, &hierarchy, &stated, |id| known.position(id));
    let unread = pages.iter().flat_map(unread).collect();
    let reds = pages.iter().flat_map(red_proposals).collect();
    (found, unread, reds)
}

fn page<'f, 'a>(file: (usize, &'f SpecFile<'a>), warnings: &mut Vec<Problem>) -> Page<'f, 'a> {
    let (mut lines, unclosed) = lines::scan(file.1.text, file.1.content_start());
    let mut outline = outline::outline(file.1, &lines);
    if let Some((inner, found)) = inside_fence(file.1, &lines, outline.entries.len()) {
        let what = "the whole plan is in a code fence; it is read as if the fence were not there";
        warnings.push(file.1.problem(lines[0].at, what, "remove the fence"));
        (lines, outline) = (inner, found);
    } else {
        warnings.extend(unclosed.map(|unclosed| never_closed(file.1, unclosed)));
    }
    let canonical = canonical_entries::find_canonical(file.1, &mut outline);
    similar_ids::note_similar_ids(&lines, &canonical, &mut outline);
    Page { file, lines, outline, canonical, ids: Vec::new(), sections: Vec::new() }
}

/// The lines inside a fence that the file begins with, and their outline, if there are more tasks than outside of it.
fn inside_fence<'a>(
    file: &SpecFile<'a>,
    lines: &[PlanLine<'a>],
    outside: usize,
) -> Option<(Vec<PlanLine<'a>>, Outline<'a>)> {
    let first = lines.iter().position(|line| line.kind != LineKind::Blank)?;
    let start = lines.get(first + 1).filter(|_| lines[first].kind == LineKind::Code)?.at;
    let (inner, _) = lines::scan(file.text, start);
    let outline = outline::outline(file, &inner);
    (outline.entries.len() > outside).then_some((inner, outline))
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
        let what = format!("this looks like a task but was not read as a task: {}", why.as_str());
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

/// The tasks of a page for which the plan asks for tests that fail first. The mark `[red]` is proposed for them, never set.
fn red_proposals(page: &Page<'_, '_>) -> Vec<RedProposal> {
    let file = page.file.1;
    let asking: Vec<bool> = page.outline.sections.iter().map(asks_for_failing_tests).collect();
    let mut found = Vec::new();
    for (at, entry) in page.outline.entries.iter().enumerate() {
        let is_task =
            page.canonical[at] == Some(at) && !entry.mark.is_settled() && entry.mark != Mark::Blocked;
        let is_marked = entry.tags.iter().any(|tag| tag.eq_ignore_ascii_case("red"));
        if !is_task || is_marked {
            continue;
        }
        let writes_tests = || entry.text.to_lowercase().contains("test");
        let section = entry.section.filter(|section| asking[*section] && writes_tests());
        let place = match section {
            _ if says_fail_first(&entry.text) => Some(entry.at),
            section => section.map(|section| page.outline.sections[section].at),
        };
        if let (Some(place), Some(id)) = (place, page.ids[at].clone()) {
            found.push(RedProposal { task: id, file: file.label.to_owned(), line: file.line_of(place) });
        }
    }
    found
}

/// Whether a section is about tests and says that they must fail first.
fn asks_for_failing_tests(section: &HeadingSection) -> bool {
    section.title.to_lowercase().contains("test")
        && (says_fail_first(&section.title) || says_fail_first(&section.text))
}

/// Whether a plan says that its tests are written before the code: "Write tests FIRST", "TDD", "Tests → models → services".
fn asks_tests_first(page: &Page<'_, '_>) -> bool {
    const WORDS: [&str; 32] = [
        "must fail",
        "fail before",
        "fails before",
        "fail first",
        "fails first",
        "they fail",
        "tests first",
        "test first",
        "test-first",
        "write first",
        "written first",
        "written before",
        "tests before",
        "tests precede",
        "tests →",
        "tests ->",
        "red-green",
        "red → green",
        "tdd",
        "test-driven",
        "primero",
        "primeiro",
        "d'abord",
        "zuerst",
        "测试优先",
        "测试先行",
        "先写测试",
        "先寫測試",
        "必须失败",
        "先失败",
        "テストファースト",
        "테스트 먼저",
    ];
    const TESTS: [&str; 7] = ["test", "tdd", "prueba", "测试", "測試", "テスト", "테스트"];
    const DENIALS: [&str; 8] =
        ["not ", "no ", "n't ", "without", "optional", "if requested", "alongside", "after implementation"];
    page.lines.iter().filter(|line| line.kind != LineKind::Code).any(|line| {
        let lower = line.text.to_lowercase();
        TESTS.iter().any(|word| lower.contains(word))
            && WORDS.iter().any(|word| lower.contains(word))
            && !DENIALS.iter().any(|word| lower.contains(word))
    })
}

/// "must FAIL before", "ensure they fail", "write failing tests".
fn says_fail_first(text: &str) -> bool {
    const WORDS: [&str; 14] = [
        "must fail",
        "should fail",
        "ensure they fail",
        "ensure it fails",
        "verify they fail",
        "verify it fails",
        "confirm they fail",
        "fail before implementation",
        "failing test",
        "fails first",
        "fail first",
        "expected to fail",
        "必须失败",
        "先失败",
    ];
    let lower = text.to_lowercase();
    // Few texts have the word that all of these share, and a plan may have 10,000 texts.
    (lower.contains("fail") || lower.contains("失败")) && WORDS.iter().any(|words| lower.contains(words))
}
