//! What nodes are called: ids of phases, and names of tasks on one line.

use std::collections::{HashMap, HashSet};

use super::{entry::Entry, section::slug};
use crate::name::TaskId;

/// Names sections. Ids that tasks have are taken, also when they differ only in case.
#[derive(Debug, Default)]
pub(super) struct Names {
    used: HashSet<String>,
    next: HashMap<String, usize>,
}

impl Names {
    pub(super) fn reserve<'a>(&mut self, ids: impl Iterator<Item = &'a TaskId>) {
        self.used.extend(ids.map(TaskId::folded));
    }

    /// The first free id among `wanted`, `wanted-2`, `wanted-3` …
    pub(super) fn name(&mut self, wanted: &str) -> Option<TaskId> {
        let next = self.next.entry(wanted.to_owned()).or_insert(1);
        loop {
            let name = if *next == 1 { wanted.to_owned() } else { format!("{wanted}-{next}") };
            *next += 1;
            if self.used.insert(name.to_ascii_lowercase()) {
                return name.parse().ok();
            }
        }
    }
}

/// An id made from a text, which stays the same when other lines are inserted. Texts without ASCII words are hashed.
pub(super) fn virtual_id(text: &str) -> String {
    const SHORTEST: usize = 3;
    let plain = text.split(['(', '—']).next().filter(|start| start.trim().len() > SHORTEST).unwrap_or(text);
    let slug = slug(plain);
    let is_mostly_ascii = text.chars().filter(char::is_ascii_alphanumeric).count() * 2
        >= text.chars().filter(|c| c.is_alphanumeric()).count();
    if slug.len() >= SHORTEST && is_mostly_ascii {
        return slug;
    }
    format!("task-{:08x}", stable_hash(text))
}

/// FNV-1a: ids must be the same with every build.
pub(super) fn stable_hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// `3.1` and `5a` are fit for an id as they are; other scripts have no slug.
pub(super) fn slug_label(label: &str) -> String {
    let ascii: String = label.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '.').collect();
    ascii.trim_matches('.').replace("..", ".")
}

/// The first paragraph on one line, cut at a word where it gets long.
pub(super) fn name_of(entry: &Entry) -> String {
    const LONGEST: usize = 120;
    let ends = |line: &&str| !(line.is_empty() || line.starts_with(['-', '*', '+', '|', '>', '`', '#']));
    let mut lines = entry.text.lines().skip_while(|line| line.is_empty());
    let first = lines.next().unwrap_or(entry.id.as_str());
    let paragraph: Vec<&str> = std::iter::once(first).chain(lines.take_while(ends)).map(str::trim).collect();
    let name = paragraph.join(" ");
    let Some((cut, _)) = name.char_indices().nth(LONGEST) else { return name };
    let cut = name[..cut].rfind(' ').unwrap_or(cut);
    format!("{}…", &name[..cut])
}
