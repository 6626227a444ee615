//! Groups of tasks: names that a plan gives them ("Program fixes (T010-T016) are sequential" lets "program fixes" stand for these
//! tasks in other sentences), and lists below a line that says that they run in parallel ("Parallel batch A:", then a line for
//! each task).

use std::collections::HashMap;

use super::{
    super::{
        Page,
        keywords::{ClauseVoice, Sense, is_parallel_token, is_parallel_word, keyword_at},
        lines::{LineKind, PlanLine},
        name_reader::{Name, NameReader, PlacedName, is_of_tasks},
        node_index::{MOST_GROUP_WORDS, NodeIndex},
        parallel_sections::kind_in_parallel,
        section::counted_label,
        sentences::{Force, OrderClaim, names_line_of_work},
        taskless_sections::has_word,
        tokens::{Piece, Token, Tokenizer, is_one_of},
    },
    Weight,
    page_reader::PageReader,
};

/// Notes the names of groups in the lines that speak of order.
pub(super) fn name_groups(pages: &[Page<'_, '_>], known: &mut NodeIndex) {
    /// More names than this are not kept.
    const MAX_NAMES: usize = 1000;
    let mut named = Vec::new();
    for page in pages {
        let is_id = |id: &str| known.find(id).is_some();
        let tokenizer = Tokenizer { is_id: &is_id };
        let name_reader = NameReader { known, reads_titles: false };
        let blocks = page.outline.dependencies.iter().flat_map(|block| &block.lines);
        let lines = blocks.chain(&page.outline.parallel_lines).filter(|line| line.kind != LineKind::Code);
        for line in lines.filter(|line| line.text.contains(['(', '（'])) {
            groups_of(line, &tokenizer, &name_reader, &mut named);
            if named.len() > MAX_NAMES {
                break;
            }
        }
    }
    named.into_iter().for_each(|(name, tasks)| known.name_group(name, tasks));
    pages.iter().filter(|page| states_order(page)).for_each(|page| name_sections(page, known));
}

fn states_order(page: &Page<'_, '_>) -> bool {
    let outline = &page.outline;
    !(outline.dependencies.is_empty() && outline.parallel_lines.is_empty())
}

/// Names the tasks below headings that count and are no phases: "#### Issue #1: Access".
fn name_sections(page: &Page<'_, '_>, known: &mut NodeIndex) {
    const NAMED_OTHERWISE: [&str; 5] = ["section", "us", "story", "p", "phase"];
    let sections = &page.outline.sections;
    let label = |at: usize| {
        let is_task = sections[at].task.is_some_and(|task| page.canonical[task].is_some());
        let is_plain = page.sections[at].is_none() && !is_task;
        let label = counted_label(&sections[at].title).filter(|_| is_plain)?;
        (!NAMED_OTHERWISE.contains(&label.0.as_str())).then_some(label)
    };
    let labels: Vec<Option<(String, String)>> = (0..sections.len()).map(label).collect();
    if labels.iter().all(Option::is_none) {
        return;
    }
    let mut tasks: HashMap<usize, Vec<usize>> = HashMap::new();
    for (entry, id) in page.outline.entries.iter().zip(&page.ids) {
        let Some(task) = id.as_ref().and_then(|id| known.position(id)) else { continue };
        if let Some(section) = entry.section.filter(|section| labels[*section].is_some()) {
            tasks.entry(section).or_default().push(task);
        }
    }
    for (at, label) in labels.into_iter().enumerate() {
        let (Some((word, label)), Some(tasks)) = (label, tasks.remove(&at)) else { continue };
        let around = std::iter::successors(sections[at].parent, |up| sections[*up].parent);
        let phase = around.filter_map(|up| page.sections[up]).next();
        known.name_section(word, label, phase, tasks);
    }
}

/// The names in one line: some words at the start of a sentence, and tasks in brackets after them.
fn groups_of(
    line: &PlanLine<'_>,
    tokenizer: &Tokenizer<'_>,
    name_reader: &NameReader<'_>,
    named: &mut Vec<(Vec<String>, Vec<usize>)>,
) {
    let tokens = tokenizer.line(line);
    for open in (0..tokens.len()).filter(|at| tokens[*at].what == Piece::Open) {
        let words: Vec<String> = tokens[..open]
            .iter()
            .rev()
            .map_while(|token| match token.what {
                Piece::Word(word) => Some(word.to_lowercase()),
                _ => None,
            })
            .take(MOST_GROUP_WORDS + 1)
            .collect();
        let is_start = open == words.len()
            || matches!(tokens[open - words.len() - 1].what, Piece::Stop | Piece::Colon | Piece::Other);
        // "depends on the controller (T013)" gives no name.
        let says_order =
            (open - words.len()..open).any(|at| keyword_at(&tokens, at, ClauseVoice::Section).is_some());
        if says_order || !(2..=MOST_GROUP_WORDS).contains(&words.len()) || !is_start {
            continue;
        }
        let Some(list) = name_reader.list_at(&tokens, open + 1) else { continue };
        let is_task = |name: &Name<'_>| matches!(name, Name::Task(_) | Name::Range(..));
        let is_whole = tokens.get(list.end).is_some_and(|token| token.what == Piece::Close);
        if is_whole && list.members.iter().all(|(name, _)| is_task(name)) {
            named.push((words.into_iter().rev().collect(), name_reader.known.nodes(&list.members)));
        }
    }
}

/// What one line of a batch names: one task, or several that belong together, as "T008+T009".
type Group<'a> = Vec<PlacedName<'a>>;

/// What comes before the lines of a batch.
struct BatchPrerequisite<'a> {
    group: Group<'a>,
    /// Whether they wait for nothing else: "run in parallel after T003".
    is_all: bool,
}

/// What a line of a batch begins with.
struct BatchLine<'a> {
    group: Group<'a>,
    /// Whether its tasks run in parallel: commas part them, or they are a group.
    is_list: bool,
    /// Whether its tasks run one after the other, beside those of other lines: "T013 + T014: card.vue (sequential)".
    is_sequential: bool,
    /// Whether it tells what one of several workers does: "Terminal 1: T058".
    is_of_worker: bool,
}

/// The lines of a batch.
#[derive(Default)]
struct Batch<'a> {
    groups: Vec<Group<'a>>,
    /// Whether any of them runs one after the other.
    has_sequence: bool,
}

impl<'a> PageReader<'_, '_, 'a> {
    /// Notes the batches in some lines that follow each other.
    pub(super) fn batches<'l>(&mut self, lines: impl Iterator<Item = &'l PlanLine<'a>>)
    where
        'a: 'l,
    {
        let mut batch: Option<Batch<'a>> = None;
        let mut of_workers: Vec<Group<'a>> = Vec::new();
        let mut is_of_tracks = false;
        let mut first: Option<BatchPrerequisite<'a>> = None;
        for line in lines {
            if let Some(group) = self.track(line, is_of_tracks) {
                self.close_batch(batch.take());
                of_workers.push(group);
                continue;
            }
            is_of_tracks = opens_tracks(line.text)
                || kind_in_parallel(line.text).is_some()
                || is_of_tracks && of_workers.is_empty() && may_precede_list(line.text);
            let names = self.names_first(line);
            let is_first = names.is_some();
            first = names.or(first);
            if opens_batch(line.text) {
                self.close_batch(batch.replace(Batch::default()));
                continue;
            }
            let lead = self.leading_group(line);
            first = first.filter(|_| is_first || lead.is_some());
            if let (Some(first), Some(BatchLine { group: who, .. })) = (&first, &lead) {
                let claim = OrderClaim { who: who.clone(), on: first.group.clone(), force: Force::Loose };
                self.claim(&claim, None, Weight::Remark);
                if first.is_all {
                    self.only(who, &first.group);
                }
            }
            if let Some(BatchLine { group, is_of_worker: true, .. }) = lead {
                of_workers.push(group);
                continue;
            }
            self.make_groups_parallel(&std::mem::take(&mut of_workers));
            match (&mut batch, lead) {
                // "T011, T012, T013 (schemas)": these run in parallel; what other lines name may come before them.
                (Some(_), Some(BatchLine { group, is_list: true, .. })) => self.make_parallel(&group),
                (Some(batch), Some(BatchLine { group, is_sequential, .. })) => {
                    batch.groups.push(group);
                    batch.has_sequence |= is_sequential;
                }
                (Some(batch), None) if batch.groups.is_empty() && may_precede_list(line.text) => {}
                _ => self.close_batch(batch.take()),
            }
        }
        self.make_groups_parallel(&of_workers);
        self.close_batch(batch);
    }

    /// The tasks of a line "Track A: T003 → T004", or of one "Backend: T003 → T004" below "Two parallel tracks:". Tasks of which
    /// the line says that they wait, as "T005 (after both tracks)", are left out.
    fn track(&self, line: &PlanLine<'a>, is_of_tracks: bool) -> Option<Group<'a>> {
        const LONGEST: usize = 8;
        let tokens = self.tokenizer.content(line);
        let colon = tokens.iter().take(LONGEST).position(|token| token.what == Piece::Colon)?;
        let (label, rest) = (&tokens[..colon], &tokens[colon + 1..]);
        let names_track = |token: &Token<'_>| matches!(token.what, Piece::Word(word) if is_track(word));
        if label.iter().any(Token::is_name) || !is_of_tracks && !label.iter().any(names_track) {
            return None;
        }
        let waits = |at: usize| {
            keyword_at(rest, at, ClauseVoice::Section).is_some_and(|keyword| keyword.sense == Sense::Waits)
        };
        let mut lists = self.name_reader(false).lists(rest);
        if lists.is_empty() || !lists.iter().all(|list| list.members.iter().all(is_of_tasks)) {
            return None;
        }
        if let Some(keyword) = (0..rest.len()).find(|at| waits(*at)) {
            let before = lists.iter().filter(|list| list.last < keyword).count();
            lists.truncate(before.saturating_sub(1));
        }
        Some(lists.into_iter().flat_map(|list| list.members).collect())
    }

    /// The tasks of a line "# After T001-T003 complete:" or "# Run in parallel after T003:", which those below it wait for.
    fn names_first(&self, line: &PlanLine<'a>) -> Option<BatchPrerequisite<'a>> {
        let text = line.text.trim_start_matches(['#', ' ']);
        if !text.trim_end().ends_with([':', '：']) {
            return None;
        }
        let tokens = self.tokenizer.text(text, line.offset_of(text));
        let behind = tokens.iter().position(is_parallel_token).map_or(0, |at| at + 1);
        let is_all = behind > 0 && !tokens[..behind].iter().any(|token| matches!(token.what, Piece::Id(_)));
        let at = if is_all { behind } else { 0 };
        let keyword = tokens.get(at).and_then(|_| keyword_at(&tokens, at, ClauseVoice::Section))?;
        let list = self.name_reader(false).list_at(&tokens, keyword.end)?;
        let is_meant = keyword.sense == Sense::Waits && list.members.iter().all(is_of_tasks);
        is_meant.then_some(BatchPrerequisite { group: list.members, is_all })
    }

    /// `T004 ──┐` and `T005 ──┴── can run at once`: lines that a drawn bracket holds together, and what it says of them.
    pub(super) fn drawn_groups<'l>(&mut self, lines: impl Iterator<Item = &'l PlanLine<'a>>)
    where
        'a: 'l,
    {
        let (mut group, mut is_parallel): (Group<'a>, bool) = (Vec::new(), false);
        for line in lines {
            let is_joined =
                line.kind == LineKind::Code && line.text.contains(['┐', '┤', '├', '┘', '┼', '┴', '}']);
            let names = self.first_names(line).filter(|_| is_joined);
            if names.is_none() {
                self.close_drawn_group(&std::mem::take(&mut group), std::mem::take(&mut is_parallel));
            }
            // `T008 ─┤ (parallel after T004)` tells its own order.
            let names = names.filter(|_| !has_word(&line.text.to_lowercase(), &["after", "sequential"]));
            group.extend(names.into_iter().flatten());
            is_parallel |= is_joined && says_parallel(line.text);
        }
        self.close_drawn_group(&group, is_parallel);
    }

    fn close_drawn_group(&mut self, group: &[PlacedName<'a>], is_parallel: bool) {
        if is_parallel && group.len() > 1 {
            self.make_parallel(group);
        }
    }

    /// `Payments (T011-T015) [P]` and `Products (T016-T021) [P]` in a drawing: lines of work in parallel. Also lines `T002 — model
    /// (parallel)` and `T003 — page (parallel)`.
    pub(super) fn marked_groups<'l>(&mut self, lines: impl Iterator<Item = &'l PlanLine<'a>>)
    where
        'a: 'l,
    {
        let mut groups: Vec<Group<'a>> = Vec::new();
        for line in lines {
            let marked = self.marked_group(line).filter(|_| line.kind == LineKind::Code);
            match marked.or_else(|| self.parallel_task(line)) {
                Some(group) => groups.push(group),
                None => self.make_groups_parallel(&std::mem::take(&mut groups)),
            }
        }
        self.make_groups_parallel(&groups);
    }

    /// The tasks of a line that is a name, a range of tasks in brackets and the mark `[P]`.
    fn marked_group(&self, line: &PlanLine<'a>) -> Option<Group<'a>> {
        const MARK: [Piece<'_>; 4] = [Piece::Close, Piece::OpenSquare, Piece::Word("P"), Piece::CloseSquare];
        let mut tokens = self.tokenizer.content(line);
        tokens.retain(|token| !matches!(token.what, Piece::Other | Piece::Bars));
        let close = tokens.len().checked_sub(MARK.len())?;
        let open = tokens.iter().position(|token| token.what == Piece::Open)?;
        let list = self.name_reader(false).list_at(&tokens, open + 1)?;
        let is_name = open > 0 && tokens[..open].iter().all(|token| matches!(token.what, Piece::Word(_)));
        let is_marked = tokens[close..].iter().map(|token| token.what).eq(MARK);
        let is_range = matches!(list.members[..], [(Name::Range(..), _)]);
        (is_name && is_marked && is_range && list.end == close).then_some(list.members)
    }

    /// The task that a line begins with, if the line ends with "(parallel)" and says nothing else about order.
    fn parallel_task(&self, line: &PlanLine<'a>) -> Option<Group<'a>> {
        let tokens = self.tokenizer.content(line);
        let [Token { what: Piece::Id(id), at }, text @ .., open, word, close] = &tokens[..] else {
            return None;
        };
        let is_bracketed = open.what == Piece::Open && close.what == Piece::Close;
        let is_parallel = matches!(word.what, Piece::Word(word) if is_parallel_word(word));
        let is_plain = |at: usize| {
            !matches!(text[at].what, Piece::Id(_) | Piece::Arrow(_))
                && keyword_at(text, at, ClauseVoice::Section).is_none()
        };
        let is_meant = is_bracketed && is_parallel && (0..text.len()).all(is_plain);
        is_meant.then(|| vec![(Name::Task(id), *at)])
    }

    /// The tasks or phases that a line begins with.
    fn first_names(&self, line: &PlanLine<'a>) -> Option<Group<'a>> {
        let tokens = self.tokenizer.content(line);
        self.name_reader(true).list_at(&tokens, 0).map(|list| list.members)
    }

    fn close_batch(&mut self, batch: Option<Batch<'a>>) {
        /// Who lists more than this means a whole phase.
        const MAX_BATCH: usize = 40;
        let Batch { groups, has_sequence } = batch.unwrap_or_default();
        // "Parallel:" and one line "T016 + T017" below it.
        let starts_independently = groups.len() == 1;
        let batch: Vec<Group<'a>> = groups.into_iter().filter(|group| !group.is_empty()).collect();
        let tasks: Vec<usize> = batch.iter().flat_map(|group| self.known.nodes(group)).collect();
        if batch.len() > MAX_BATCH || self.mixes_tests(&tasks) {
            return;
        }
        // Of "T011-T012 (views)" and "T013-T018 (logic)" each is worked through in its order.
        let is_range = |group: &Group<'a>| matches!(group[..], [(Name::Range(..), _)]);
        let is_plain = |group: &Group<'a>| group.len() == 1 && (batch.len() == 1 || !is_range(group));
        if !has_sequence && (starts_independently || batch.iter().all(is_plain)) {
            return self.make_parallel(&batch.concat());
        }
        self.make_groups_parallel(&batch);
    }

    /// Groups of which none waits for a member of another. More than a few mean a whole phase.
    fn make_groups_parallel(&mut self, groups: &[Group<'a>]) {
        const MAX_GROUPS: usize = 40;
        for (at, group) in groups.iter().enumerate().filter(|_| groups.len() <= MAX_GROUPS) {
            for other in &groups[at + 1..] {
                self.unrelated(group, other, None);
                self.unrelated(other, group, None);
            }
        }
    }

    /// Whether a batch holds tests and other tasks that are not all marked `[P]`. A list "Parallel batch 1:" may also mean one line of work beside others,
    /// and no implementation may run in parallel with its own tests.
    pub(super) fn mixes_tests(&self, tasks: &[usize]) -> bool {
        let is_test = |at: &usize| {
            let name = self.found.drafts[*at].task.name.to_lowercase();
            name.split(|c: char| !c.is_alphanumeric()).any(|word| matches!(word, "test" | "tests"))
        };
        let tests = tasks.iter().filter(|at| is_test(at)).count();
        let is_marked = |at: &usize| self.found.drafts[*at].task.parallel;
        tests > 0 && tests < tasks.len() && !tasks.iter().all(is_marked)
    }

    /// The tasks that a line begins with. A line that says more about their order stays in the batch and gives none.
    fn leading_group(&self, line: &PlanLine<'a>) -> Option<BatchLine<'a>> {
        let tokens = self.tokenizer.line(line);
        let is_lead = |token: &Token<'_>| match token.what {
            Piece::Word(word) => word.eq_ignore_ascii_case("task"),
            piece => matches!(piece, Piece::Stop | Piece::Colon | Piece::Dash | Piece::Other),
        };
        let start = tokens.iter().position(|token| !is_lead(token))?;
        // "Group B: T027, T031", "Terminal 1: T058".
        let label = match tokens[start..] {
            [Token { what: Piece::Word(label), .. }, _, Token { what: Piece::Colon, .. }, ..] => label,
            _ => "",
        };
        let is_label = |labels: &[&str]| is_one_of(label, labels);
        let is_of_worker = is_label(&["terminal", "agent", "worker", "session", "thread"]);
        let is_named = is_label(&["group", "batch", "set"]);
        let start = if is_of_worker || is_named { start + 3 } else { start };
        let list = self.name_reader(false).list_at(&tokens, start)?;
        if !list.members.iter().all(is_of_tasks) {
            return None;
        }
        let names_more = tokens[list.end..].iter().any(|token| matches!(token.what, Piece::Id(_)));
        let says_more = (list.end..tokens.len()).any(|at| {
            matches!(tokens[at].what, Piece::Arrow(_)) && names_more
                || keyword_at(&tokens, at, ClauseVoice::Section).is_some()
        });
        let says_sequential = tokens[list.end..].iter().any(|token| token.is_word(&["sequential"]));
        // A single task that is sequential runs in parallel with nothing.
        let is_single = matches!(list.members[..], [(Name::Task(_), _)]);
        let says_more = says_more || says_sequential && is_single;
        // "Group A: T001-T003" runs in parallel with nothing but its own members.
        let is_list = list.is_comma_list && list.members.len() > 1 || is_named;
        let group = if says_more { Vec::new() } else { list.members };
        let is_list = is_list && !says_more && !says_sequential;
        Some(BatchLine { group, is_list, is_sequential: says_sequential, is_of_worker })
    }
}

/// "Parallel batch A (different files):", "# Launch together:", "**In parallel**:". A track or a stream is worked through
/// in its order, in parallel with others.
fn opens_batch(text: &str) -> bool {
    const LONGEST: usize = 160;
    let text = text.trim().trim_end_matches('*');
    if text.len() > LONGEST || !text.ends_with([':', '：']) {
        return false;
    }
    let lower = text.to_lowercase();
    let says_parallel =
        says_parallel(&lower) || lower.contains("together") || has_word(&lower, &["independent"]);
    says_parallel && !names_line_of_work(&lower) && !lower.contains("not ") && !lower.contains("[p]")
}

/// "Two parallel tracks:".
fn opens_tracks(text: &str) -> bool {
    const LONGEST: usize = 160;
    let text = text.trim().trim_end_matches('*');
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    text.len() <= LONGEST && text.ends_with([':', '：']) && words.any(is_track) && says_parallel(text)
}

/// Words for lines of work in parallel. What a developer or a team does is advice.
fn is_track(word: &str) -> bool {
    const WORDS: [&str; 8] =
        ["track", "tracks", "stream", "streams", "lane", "lanes", "workstream", "workstreams"];
    is_one_of(word, &WORDS)
}

/// Whether a line may come between what opens a batch and its list: an empty one, or the start of a fence.
fn may_precede_list(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || text.starts_with("```")
}

/// Whether a text has a word that says that things run at the same time.
fn says_parallel(text: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric()).any(is_parallel_word)
}
