//! From canonical entries to nodes: which sections are phases, what belongs where, and what everything is called.

use std::collections::{HashMap, HashSet};

use super::{
    PlanLine,
    canonical_entries::CanonicalEntry,
    entry::{Form, TaskEntry},
    id_assignment::{UniqueIds, name_of, slug_label},
    lines::LineKind,
    outline::Outline,
    paths::changed_paths,
    section::{
        HeadingSection, Purpose, begins_with, begins_with_story, counted_label, counted_part,
        is_declared_independent, is_step, phase_label, priority, purpose, slug, spoken_names, states_needs,
        story_numbers, story_numbers_of_line, title_words, without_brackets,
    },
    task_line::ALLOW,
    taskless_sections::{has_word, is_tracking},
};
use crate::{
    name::TaskId,
    plan::{
        Task, TaskSource,
        assemble::{DraftNode, SourcePlace},
        text::SpecFile,
    },
};

/// What a node is, for the rules of order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum NodeKind {
    #[default]
    Task,
    Phase,
    /// A phase for one or more user stories.
    Story,
    /// A phase that comes last, such as "Polish".
    Last,
}

/// What the rules of order need to know about a node.
#[derive(Debug, Clone, Default)]
pub(super) struct Role {
    pub(super) kind: NodeKind,
    /// How sentences name a phase: `3` of "Phase 3".
    pub(super) label: Option<String>,
    /// The word and the number that a heading other than "Phase 3" counts with: "Group 3", "3. Auth".
    pub(super) counted: Option<(String, String)>,
    /// The word and the number that a title counts with after "Phase 3": "Module" and `2` of "Phase 3: Module 2 - Physics".
    pub(super) part: Option<(String, String)>,
    /// The priority in its title, such as `P1`.
    pub(super) priority: Option<String>,
    /// The words of its title in lower case.
    pub(super) words: Vec<String>,
    /// The numbers of its stories.
    pub(super) stories: Vec<String>,
    /// Whether its title names them only in brackets.
    pub(super) is_annotated: bool,
    /// Whether only the tags of its tasks tell its story.
    pub(super) is_tagged: bool,
    /// Whether its title says that others build upon it.
    pub(super) is_first: bool,
    /// Its title as sentences speak of it, in lower-case words.
    pub(super) titles: Vec<Vec<String>>,
    /// What sentences call it if no other phase is called so.
    pub(super) aliases: Vec<Vec<String>>,
    /// Whether it is a box without an id.
    pub(super) is_unnamed: bool,
    /// Whether a star after its box marks it as optional.
    pub(super) is_optional: bool,
    /// The subsection of its phase that a task is in.
    pub(super) section: Subsection,
}

impl Role {
    /// Whether a phase only tests, documents or finishes what others made.
    pub(super) fn is_about_checks(&self) -> bool {
        const WORDS: [&str; 13] = [
            "test", "tests", "testing", "validation", "verification", "documentation", "docs", "qa",
            "polish", "测试", "測試", "テスト", "테스트",
        ];
        let is_check = |word: &String| {
            WORDS.iter().any(|known| word == known || !known.is_ascii() && word.contains(known))
        };
        self.kind == NodeKind::Last || self.words.iter().any(is_check)
    }
}

/// A subsection of a phase.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Subsection {
    /// Which one; `None` for tasks right below the heading of the phase.
    pub(super) number: Option<usize>,
    pub(super) is_tests: bool,
    pub(super) is_implementation: bool,
    /// Whether it says that it need not wait for the one before it.
    pub(super) is_apart: bool,
}

/// The nodes of one file, in its order, and for each entry the node that it is.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    pub(super) drafts: Vec<DraftNode>,
    pub(super) roles: Vec<Role>,
    /// For each entry, the id of its task.
    pub(super) ids: Vec<Option<TaskId>>,
    /// For each section, its node by position among the drafts.
    pub(super) sections: Vec<Option<usize>>,
}

/// "Phase 1: Cleanup (US2)", "Phase 3: Verify (US1 + US2)": where such remarks name a story twice, the phases cut
/// across the stories and run in order.
fn keep_one_phase_per_story(nodes: &mut Nodes) {
    let mut count: HashMap<String, usize> = HashMap::new();
    let is_story = |role: &&Role| role.kind == NodeKind::Story;
    for story in nodes.roles.iter().filter(is_story).flat_map(|role| &role.stories) {
        *count.entry(story.clone()).or_default() += 1;
    }
    // Stories run side by side upon a foundation. Without one, and without a tag at any task, a story in brackets
    // only tells what a step is for.
    let is_bare = !nodes.roles.iter().any(|role| role.is_first)
        && nodes.roles.iter().filter(is_story).all(|role| role.is_annotated)
        && nodes.drafts.iter().all(|draft| !draft.task.tags.iter().any(|tag| tag.starts_with("US")));
    for role in nodes.roles.iter_mut().filter(|role| role.is_annotated && role.kind == NodeKind::Story) {
        if is_bare || role.stories.iter().any(|story| count.get(story).is_some_and(|count| *count > 1)) {
            role.kind = NodeKind::Phase;
        }
    }
}

fn is_about_tests(section: &HeadingSection) -> bool {
    begins_with(&section.title, &["tests", "测试", "測試", "テスト"])
}

fn is_about_implementation(section: &HeadingSection) -> bool {
    begins_with(&section.title, &["implementation", "实现", "實現", "実装"])
}

/// Builds the nodes of one file.
pub(super) struct TreeBuilder<'t, 'a> {
    pub(super) file: (usize, &'t SpecFile<'a>),
    pub(super) outline: &'t Outline<'a>,
    pub(super) canonical: &'t CanonicalEntry,
}

impl TreeBuilder<'_, '_> {
    pub(super) fn build(&self, names: &mut UniqueIds) -> Nodes {
        let phases = self.phases();
        let tagged = self.tagged_stories();
        let section_ids = self.name_sections(&phases, names);
        let sections = vec![None; self.outline.sections.len()];
        // Nodes are large, and moving them as the lists grow takes time.
        let most = self.outline.entries.len() + self.outline.sections.len();
        let (drafts, roles) = (Vec::with_capacity(most), Vec::with_capacity(most));
        let mut nodes = Nodes { drafts, roles, ids: self.entry_ids(), sections };
        let named = section_ids.iter().enumerate().filter_map(|(at, id)| Some((at, id.as_ref()?)));
        let named: Vec<(usize, &TaskId)> = named.collect();
        let mut seen = HashSet::new();
        let continued: HashSet<usize> =
            named.iter().filter(|(_, id)| !seen.insert(*id)).map(|(at, _)| *at).collect();
        let mut sections = named.into_iter().filter(|(at, _)| !continued.contains(at)).peekable();
        let numbers = self.numbers();
        let apart = self.independent_sections(&section_ids);
        for (at, entry) in self.tasks() {
            let is_before = |(section, _): &(usize, &TaskId)| self.outline.sections[*section].at < entry.at;
            while let Some((section, id)) = sections.next_if(is_before) {
                nodes.sections[section] = Some(nodes.drafts.len());
                nodes.drafts.push(self.section(section, id, &section_ids));
                nodes.roles.push(self.role(section, &tagged, &section_ids));
            }
            let parent = self.container(entry.parent, entry.section, at, &section_ids, Some(&numbers));
            nodes.drafts.push(self.task(entry, parent));
            let (is_unnamed, is_optional) = (entry.form == Form::Plain, entry.is_optional);
            let section = self.subsection(at, entry, &section_ids, &apart);
            let label = entry.phase_label.clone();
            nodes.roles.push(Role { section, label, is_unnamed, is_optional, ..Role::default() });
        }
        keep_one_phase_per_story(&mut nodes);
        nodes
    }

    /// The entries that are tasks, in the order of the file.
    fn tasks(&self) -> impl Iterator<Item = (usize, &TaskEntry)> {
        let stands = |at: &usize| self.canonical[*at] == Some(*at);
        (0..self.outline.entries.len()).filter(stands).map(|at| (at, &self.outline.entries[at]))
    }

    fn entry_ids(&self) -> Vec<Option<TaskId>> {
        let id = |found: usize| self.outline.entries[found].id.clone();
        self.canonical.iter().map(|found| found.map(id)).collect()
    }

    /// Which sections are nodes: phases that own a task, and plain sections where there is more than one.
    fn phases(&self) -> Vec<bool> {
        let sections = &self.outline.sections;
        let (direct, all) = self.task_counts();
        let is_phase = |at: usize| {
            let section = &sections[at];
            let is_title = section.level == 1 && direct[at] == 0;
            section.task.is_none() && all[at] > 0 && !is_title && phase_label(&section.title).is_some()
        };
        let mut is_node: Vec<bool> = (0..sections.len()).map(is_phase).collect();
        for at in (0..sections.len()).filter(|at| is_step(&sections[*at].title)) {
            is_node[at] &=
                !self.chain(sections[at].parent).any(|up| is_node[up] && !is_step(&sections[up].title));
        }
        for at in (0..sections.len()).filter(|at| all[*at] > 0 && sections[*at].task.is_none()) {
            // Below the phase of a story, "US1 tests" is a subsection, not the story again.
            let has_story = |up: usize| is_node[up] && !story_numbers(&sections[up].title).is_empty();
            is_node[at] |= begins_with_story(&sections[at].title)
                && sections[at].level > 1
                && !self.chain(sections[at].parent).any(has_story);
        }
        let mut is_plain = vec![false; sections.len()];
        for at in (0..sections.len()).filter(|at| direct[*at] > 0 && sections[*at].level > 1) {
            let covers = |up: usize| is_node[up] || is_plain[up] || sections[up].task.is_some();
            is_plain[at] = !self.chain(Some(at)).any(covers);
        }
        if is_node.contains(&true) || is_plain.iter().filter(|is_plain| **is_plain).count() > 1 {
            is_node.iter_mut().zip(is_plain).for_each(|(is_node, is_plain)| *is_node |= is_plain);
        }
        self.add_stating_parts(&all, &mut is_node);
        is_node
    }

    /// Where a part of a phase says what it waits for, as "### Group B (depends on 3.1)", all parts of that phase are nodes.
    fn add_stating_parts(&self, all: &[usize], is_node: &mut [bool]) {
        let sections = &self.outline.sections;
        let is_part = |at: usize| {
            let section = &sections[at];
            all[at] > 0
                && section.task.is_none()
                && section.parent.is_some_and(|up| is_node[up] && sections[up].task.is_none())
        };
        let states = |line: &PlanLine<'_>| line.kind != LineKind::Heading(1) && states_needs(line.content());
        let stating = self
            .outline
            .phase_lines
            .iter()
            .filter(|(at, line)| is_part(*at) && !is_node[*at] && states(line));
        let phases: HashSet<Option<usize>> = stating.map(|(at, _)| sections[*at].parent).collect();
        let parts: Vec<usize> =
            (0..sections.len()).filter(|at| phases.contains(&sections[*at].parent) && is_part(*at)).collect();
        parts.into_iter().for_each(|at| is_node[at] = true);
    }

    /// A section and those around it, innermost first.
    fn chain(&self, section: Option<usize>) -> impl Iterator<Item = usize> {
        self.outline.chain(section)
    }

    /// For each section, how many tasks are directly in it, and how many in it and below.
    fn task_counts(&self) -> (Vec<usize>, Vec<usize>) {
        let mut direct = vec![0; self.outline.sections.len()];
        for (at, entry) in self.tasks() {
            let Some(section) = entry.section else { continue };
            let own = self.outline.sections[section].task == Some(at);
            if let Some(section) = if own { self.outline.sections[section].parent } else { Some(section) } {
                direct[section] += 1;
            }
        }
        let mut all = direct.clone();
        for at in (0..all.len()).rev() {
            if let Some(parent) = self.outline.sections[at].parent {
                all[parent] += all[at];
            }
        }
        (direct, all)
    }

    fn name_sections(&self, is_node: &[bool], names: &mut UniqueIds) -> Vec<Option<TaskId>> {
        let mut count = 0;
        let mut ids = vec![None; is_node.len()];
        let mut before: Option<usize> = None;
        for (at, section) in self.outline.sections.iter().enumerate().filter(|(at, _)| is_node[*at]) {
            let label = phase_label(&section.title).map(|label| slug_label(&label));
            // "Phase A (continued)" right after "Phase A" is no other phase.
            let is_same = |before: &usize| {
                let before = &self.outline.sections[*before];
                before.level == section.level && phase_label(&before.title) == phase_label(&section.title)
            };
            if let Some(first) = self.phase_tracked_in(at).filter(|first| ids[*first].is_some()) {
                ids[at] = ids[first].clone();
                continue;
            }
            if label.is_some()
                && has_word(&section.title, &["continued", "cont", "contd"])
                && let Some(first) = before.replace(at).filter(is_same)
            {
                ids[at] = ids[first].clone();
                continue;
            }
            (before, count) = (Some(at), count + 1);
            let wanted = match label {
                Some(label) if label.is_empty() => format!("phase-{count}"),
                Some(label) => format!("phase-{label}"),
                None => Some(slug(&section.title))
                    .filter(|slug| !slug.is_empty())
                    .unwrap_or(format!("section-{count}")),
            };
            ids[at] = names.name(&wanted);
        }
        ids
    }

    /// The phase whose status a section lists: "### Phase 2" below "## Status", after "## Phase 2: Server" itself.
    fn phase_tracked_in(&self, at: usize) -> Option<usize> {
        let sections = &self.outline.sections;
        let label = phase_label(&sections[at].title)?;
        self.chain(sections[at].parent).find(|up| is_tracking(&sections[*up].title))?;
        (0..at).find(|first| phase_label(&sections[*first].title).as_ref() == Some(&label))
    }

    /// What an entry or section belongs to: the task it is nested in, else the nearest phase or heading task.
    fn container(
        &self,
        parent: Option<usize>,
        section: Option<usize>,
        own: usize,
        section_ids: &[Option<TaskId>],
        numbers: Option<&HashMap<&str, usize>>,
    ) -> Option<TaskId> {
        if let Some(found) = parent.and_then(|parent| self.canonical[parent]) {
            return Some(self.outline.entries[found].id.clone());
        }
        if let Some(whole) = numbers.and_then(|numbers| self.whole_of(own, section, numbers)) {
            return Some(whole);
        }
        self.chain(section).find_map(|at| {
            let task = self.outline.sections[at].task.and_then(|task| self.canonical[task]);
            match task.filter(|task| *task != own) {
                Some(task) => Some(self.outline.entries[task].id.clone()),
                None => section_ids[at].clone(),
            }
        })
    }

    /// The boxes that have numbers for ids. One that lists its own work is not the whole of optional extras beside it, such as
    /// `- [ ]* 4.1 Tests` after `- [ ] 4. Upload`.
    fn numbers(&self) -> HashMap<&str, usize> {
        let boxes = || self.tasks().filter(|(_, entry)| entry.form == Form::Box && entry.is_numeric());
        let mut numbers: HashMap<&str, usize> = boxes().map(|(at, entry)| (entry.id.as_str(), at)).collect();
        if boxes().any(|(_, entry)| entry.is_optional) {
            let core = boxes().filter(|(_, entry)| !entry.is_optional && entry.parent.is_none());
            let wholes: HashSet<&str> =
                core.filter_map(|(_, entry)| Some(entry.id.as_str().rsplit_once('.')?.0)).collect();
            let lists_work = |at: usize| self.outline.entries[at].lists_work();
            // Where other wholes list work that their parts repeat, this one does too.
            let repeats = wholes.iter().any(|id| numbers.get(id).is_some_and(|at| lists_work(*at)));
            numbers.retain(|id, at| repeats || wholes.contains(id) || !lists_work(*at));
        }
        numbers
    }

    /// The task `3` of a task `3.1` that comes after it in the same list.
    fn whole_of(&self, own: usize, section: Option<usize>, numbers: &HashMap<&str, usize>) -> Option<TaskId> {
        let (whole, _) = self.outline.entries.get(own)?.id.as_str().rsplit_once('.')?;
        let at = *numbers.get(whole).filter(|at| **at < own)?;
        (self.outline.entries[at].section == section).then(|| self.outline.entries[at].id.clone())
    }

    fn section(&self, at: usize, id: &TaskId, section_ids: &[Option<TaskId>]) -> DraftNode {
        let section = &self.outline.sections[at];
        let mut task = Task::new(id.clone(), section.title.trim_matches(['*', ' ']));
        task.description = section.text.trim().to_owned();
        task.parent = self.container(None, section.parent, usize::MAX, section_ids, None);
        task.source = Some(self.source(section.at, None));
        DraftNode { task, place: SourcePlace { file: self.file.0, at: section.at }, needs: Vec::new() }
    }

    /// A phase is a story only if it has the number of one: in its title, or as the one tag of all its tasks.
    fn role(&self, at: usize, tagged: &[Option<String>], section_ids: &[Option<TaskId>]) -> Role {
        let title = &self.outline.sections[at].title;
        let is_part = self.chain(self.outline.sections[at].parent).any(|up| section_ids[up].is_some());
        let mut stories = story_numbers(title);
        let numbers_in_text = story_numbers_of_line(&self.outline.sections[at].text);
        let is_told = stories.is_empty() && !numbers_in_text.is_empty();
        if is_told {
            stories = numbers_in_text;
        }
        // A part of a phase is no story beside it.
        let is_tagged = stories.is_empty();
        if is_tagged && !is_part {
            stories.extend(tagged[at].clone().filter(|tag| !tag.is_empty()));
        }
        let kind = match purpose(title) {
            Purpose::Last if !is_told => NodeKind::Last,
            Purpose::First => NodeKind::Phase,
            _ if stories.is_empty() => NodeKind::Phase,
            _ => NodeKind::Story,
        };
        // "Project Initialization (US1)" is called by its story if its tasks have the tag of it.
        let is_called =
            kind == NodeKind::Phase && stories.len() == 1 && tagged[at].as_ref() == stories.first();
        if kind != NodeKind::Story && !is_called {
            stories.clear();
        }
        let is_annotated =
            story_numbers(without_brackets(title)).is_empty() && !story_numbers(title).is_empty();
        let [titles, aliases] = spoken_names(title);
        Role {
            kind,
            label: phase_label(title),
            counted: counted_label(title),
            part: counted_part(title),
            priority: priority(title).map(str::to_owned),
            words: title_words(title),
            stories,
            is_annotated,
            is_tagged,
            is_first: purpose(title) == Purpose::First,
            titles,
            aliases,
            is_unnamed: false,
            is_optional: false,
            section: Subsection::default(),
        }
    }

    /// For each section, the one story that all tasks in it and below are tagged with; empty if there is none.
    fn tagged_stories(&self) -> Vec<Option<String>> {
        let mut tagged: Vec<Option<String>> = vec![None; self.outline.sections.len()];
        for (_, entry) in self.tasks() {
            let mut stories = entry.tags.iter().filter_map(|tag| tag.strip_prefix("US"));
            let story = match (stories.next(), stories.next()) {
                (Some(story), None) => story.trim_start_matches('-').to_lowercase(),
                _ => String::new(),
            };
            for section in self.chain(entry.section) {
                match &mut tagged[section] {
                    Some(known) if *known != story => known.clear(),
                    Some(_) => {}
                    none => *none = Some(story.clone()),
                }
            }
        }
        tagged
    }

    /// The heading between a task and its phase.
    fn subsection(
        &self,
        own: usize,
        entry: &TaskEntry,
        section_ids: &[Option<TaskId>],
        apart: &HashSet<usize>,
    ) -> Subsection {
        let is_own = |at: &usize| self.outline.sections[*at].task == Some(own);
        let Some(at) = self.chain(entry.section).find(|at| !is_own(at)) else { return Subsection::default() };
        let section = &self.outline.sections[at];
        if section_ids[at].is_some() || section.task.is_some() {
            return Subsection::default();
        }
        Subsection {
            number: Some(at),
            is_tests: is_about_tests(section),
            is_implementation: is_about_implementation(section),
            is_apart: apart.contains(&at)
                || is_declared_independent(&section.title)
                || is_declared_independent(&section.text),
        }
    }

    fn source(&self, at: usize, mark_at: Option<usize>) -> TaskSource {
        TaskSource { file: self.file.1.label.to_owned(), line: self.file.1.line_of(at), mark_at }
    }

    fn task(&self, entry: &TaskEntry, parent: Option<TaskId>) -> DraftNode {
        let mut task = Task::new(entry.id.clone(), name_of(entry));
        task.description = entry.text.trim().to_owned();
        task.parent = parent;
        task.mark = entry.mark;
        task.parallel = entry.is_parallel;
        for tag in &entry.tags {
            if let Some(names) = tag.strip_prefix("repo:") {
                task.repos.extend(names.split(',').map(|name| name.trim().to_owned()));
            } else if let Some(allowed) = tag.strip_prefix(ALLOW) {
                task.allow.extend(Some(allowed.trim().to_owned()).filter(|allowed| !allowed.is_empty()));
            } else if tag.eq_ignore_ascii_case("red") {
                task.red = true;
            } else {
                task.tags.push(tag.clone());
            }
        }
        task.files = changed_paths(&entry.text);
        task.source = Some(self.source(entry.at, entry.mark_at));
        DraftNode { task, place: SourcePlace { file: self.file.0, at: entry.at }, needs: Vec::new() }
    }
}
