//! From settled entries to nodes: which sections are phases, what belongs where, and what everything is called.

use super::{
    entry::Entry,
    naming::{Names, name_of, slug_label},
    outline::Outline,
    paths::paths,
    section::{is_story, phase_label, slug},
    settle::Standing,
};
use crate::{
    name::TaskId,
    plan::{
        Source, Task,
        assemble::{Draft, Place},
        text::SpecFile,
    },
};

/// What a node is, for the rules of order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Role {
    Task,
    /// A phase; `label` is how sentences name it.
    Phase {
        is_story: bool,
        label: Option<String>,
    },
}

/// The nodes of one file, in its order, and for each entry the node that it is.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    pub(super) drafts: Vec<Draft>,
    pub(super) roles: Vec<Role>,
    /// For each entry, the id of its task.
    pub(super) ids: Vec<Option<TaskId>>,
}

/// How many tasks of a section are tagged with a user story.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StoryTags {
    /// There is no task.
    None,
    /// At least one is not.
    Some,
    All,
}

/// Builds the nodes of one file.
pub(super) struct TreeBuilder<'t, 'a> {
    pub(super) file: (usize, &'t SpecFile<'a>),
    pub(super) outline: &'t Outline<'a>,
    pub(super) standing: &'t Standing,
}

impl TreeBuilder<'_, '_> {
    pub(super) fn build(&self, names: &mut Names) -> Nodes {
        let phases = self.phases();
        let stories = self.stories();
        let section_ids = self.name_sections(&phases, names);
        let mut nodes = Nodes { ids: self.entry_ids(), ..Nodes::default() };
        let named = section_ids.iter().enumerate().filter_map(|(at, id)| Some((at, id.as_ref()?)));
        let mut sections = named.peekable();
        for (at, entry) in self.tasks() {
            let is_before = |(section, _): &(usize, &TaskId)| self.outline.sections[*section].at < entry.at;
            while let Some(section) = sections.next_if(is_before) {
                nodes.drafts.push(self.section(section, &section_ids));
                nodes.roles.push(self.role(section.0, stories[section.0]));
            }
            let parent = self.container(entry.parent, entry.section, (at, &section_ids));
            nodes.drafts.push(self.task(entry, parent));
            nodes.roles.push(Role::Task);
        }
        nodes
    }

    /// The entries that are tasks, in the order of the file.
    fn tasks(&self) -> impl Iterator<Item = (usize, &Entry)> {
        let stands = |at: &usize| self.standing[*at] == Some(*at);
        (0..self.outline.entries.len()).filter(stands).map(|at| (at, &self.outline.entries[at]))
    }

    fn entry_ids(&self) -> Vec<Option<TaskId>> {
        let id = |found: usize| self.outline.entries[found].id.clone();
        self.standing.iter().map(|found| found.map(id)).collect()
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
        let mut is_plain = vec![false; sections.len()];
        for at in (0..sections.len()).filter(|at| direct[*at] > 0 && sections[*at].level > 1) {
            let covers = |up: usize| is_node[up] || is_plain[up] || sections[up].task.is_some();
            is_plain[at] = !self.chain(Some(at)).any(covers);
        }
        if is_node.contains(&true) || is_plain.iter().filter(|is_plain| **is_plain).count() > 1 {
            is_node.iter_mut().zip(is_plain).for_each(|(is_node, is_plain)| *is_node |= is_plain);
        }
        is_node
    }

    /// A section and those around it, innermost first.
    fn chain(&self, section: Option<usize>) -> impl Iterator<Item = usize> {
        std::iter::successors(section, |at| self.outline.sections[*at].parent)
    }

    /// For each section, how many tasks stand right in it, and how many in it and below.
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

    fn name_sections(&self, is_node: &[bool], names: &mut Names) -> Vec<Option<TaskId>> {
        let mut count = 0;
        let mut ids = vec![None; is_node.len()];
        for (at, section) in self.outline.sections.iter().enumerate().filter(|(at, _)| is_node[*at]) {
            count += 1;
            let label = phase_label(&section.title).map(|label| slug_label(&label));
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

    /// What an entry or section belongs to: the task it is nested in, else the nearest phase or heading task.
    fn container(
        &self,
        parent: Option<usize>,
        section: Option<usize>,
        (own, section_ids): (usize, &[Option<TaskId>]),
    ) -> Option<TaskId> {
        if let Some(found) = parent.and_then(|parent| self.standing[parent]) {
            return Some(self.outline.entries[found].id.clone());
        }
        self.chain(section).find_map(|at| {
            let task = self.outline.sections[at].task.and_then(|task| self.standing[task]);
            match task.filter(|task| *task != own) {
                Some(task) => Some(self.outline.entries[task].id.clone()),
                None => section_ids[at].clone(),
            }
        })
    }

    fn section(&self, (at, id): (usize, &TaskId), section_ids: &[Option<TaskId>]) -> Draft {
        let section = &self.outline.sections[at];
        let mut task = Task::new(id.clone(), section.title.trim_matches(['*', ' ']));
        task.description = section.text.trim().to_owned();
        task.parent = self.container(None, section.parent, (usize::MAX, section_ids));
        task.source = Some(self.source(section.at, None));
        Draft { task, place: Place { file: self.file.0, at: section.at }, needs: Vec::new() }
    }

    fn role(&self, at: usize, has_only_stories: StoryTags) -> Role {
        let title = &self.outline.sections[at].title;
        Role::Phase {
            is_story: is_story(title) || has_only_stories == StoryTags::All,
            label: phase_label(title),
        }
    }

    /// For each section, whether every task right in it is tagged with a user story.
    fn stories(&self) -> Vec<StoryTags> {
        let mut stories = vec![StoryTags::None; self.outline.sections.len()];
        for (_, entry) in self.tasks() {
            let Some(section) = entry.section else { continue };
            let is_story = entry.tags.iter().any(|tag| tag.starts_with("US"));
            stories[section] = match stories[section] {
                StoryTags::Some => StoryTags::Some,
                _ if !is_story => StoryTags::Some,
                _ => StoryTags::All,
            };
        }
        stories
    }

    fn source(&self, at: usize, mark_at: Option<usize>) -> Source {
        Source { file: self.file.1.label.to_owned(), line: self.file.1.line_of(at), mark_at }
    }

    fn task(&self, entry: &Entry, parent: Option<TaskId>) -> Draft {
        let mut task = Task::new(entry.id.clone(), name_of(entry));
        task.description = entry.text.trim().to_owned();
        task.parent = parent;
        task.mark = entry.mark;
        task.parallel = entry.is_parallel;
        for tag in &entry.tags {
            match tag.strip_prefix("repo:") {
                None if tag.eq_ignore_ascii_case("red") => task.red = true,
                Some(names) => task.repos.extend(names.split(',').map(|name| name.trim().to_owned())),
                None => task.tags.push(tag.clone()),
            }
        }
        task.files = paths(&entry.text);
        task.source = Some(self.source(entry.at, entry.mark_at));
        Draft { task, place: Place { file: self.file.0, at: entry.at }, needs: Vec::new() }
    }
}
