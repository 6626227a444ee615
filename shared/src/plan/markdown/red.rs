//! Tasks whose tests must fail first, by the words of the plan. The mark `[red]` is proposed for them, never set.

use super::{Page, entry::Entry};
use crate::plan::{Mark, RedProposal};

/// The tasks of a page for which the plan asks for tests that fail first.
pub(super) fn proposals(page: &Page<'_, '_>) -> Vec<RedProposal> {
    let file = page.file.1;
    let mut found = Vec::new();
    for (at, entry) in page.outline.entries.iter().enumerate() {
        let is_task =
            page.standing[at] == Some(at) && !entry.mark.is_settled() && entry.mark != Mark::Blocked;
        let is_marked = entry.tags.iter().any(|tag| tag.eq_ignore_ascii_case("red"));
        if !is_task || is_marked {
            continue;
        }
        let place = if says_fail_first(&entry.text) { Some(entry.at) } else { section_asks(page, entry) };
        if let (Some(place), Some(id)) = (place, page.ids[at].clone()) {
            found.push(RedProposal { task: id, file: file.label.to_owned(), line: file.line_of(place) });
        }
    }
    found
}

/// The heading of tests that must fail first, if the task stands below one and writes tests.
fn section_asks(page: &Page<'_, '_>, entry: &Entry) -> Option<usize> {
    let section = &page.outline.sections[entry.section?];
    let writes_tests = entry.text.to_lowercase().contains("test");
    let is_about_tests = section.title.to_lowercase().contains("test");
    let asks = says_fail_first(&section.title) || says_fail_first(&section.text);
    (writes_tests && is_about_tests && asks).then_some(section.at)
}

/// "must FAIL before", "ensure they fail", "write failing tests".
pub(super) fn says_fail_first(text: &str) -> bool {
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
    WORDS.iter().any(|words| lower.contains(words))
}
