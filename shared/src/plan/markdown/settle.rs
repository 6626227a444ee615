//! From an outline to the tasks of a file: which form its tasks have, and which entries speak of the same one.

use std::collections::{HashMap, HashSet};

use super::{
    entry::{Form, Why},
    outline::Outline,
};
use crate::{name::TaskId, plan::Mark};

/// For each entry, the entry that stands for its task; `None` if it is no task.
pub(super) type Standing = Vec<Option<usize>>;

/// Decides which entries are tasks, and drops from the unread lines what only repeats one.
pub(super) fn settle(outline: &mut Outline<'_>) -> Standing {
    let form = main_form(outline);
    let has_letters = outline.entries.iter().any(|entry| is_main(entry.form, form) && !entry.is_numeric());
    let mut first: HashMap<TaskId, usize> = HashMap::new();
    let mut standing = Vec::with_capacity(outline.entries.len());
    let mut numbers = Vec::new();
    for at in 0..outline.entries.len() {
        let entry = &outline.entries[at];
        if !is_main(entry.form, form) {
            standing.push(None);
        } else if has_letters && entry.is_numeric() {
            numbers.push((entry.at, None, Why::Number));
            standing.push(None);
        } else {
            let found = *first.entry(entry.id.clone()).or_insert(at);
            standing.push(Some(if outline.entries[found].form == entry.form { at } else { found }));
        }
    }
    outline.unread.append(&mut numbers);
    for (at, found) in standing.iter().enumerate() {
        if let Some(found) = found.filter(|found| *found != at) {
            merge(outline, found, at);
        }
    }
    forget_repetitions(outline, form, &first.into_keys().collect());
    outline.entries.iter_mut().for_each(mark_by_steps);
    standing
}

/// Boxes and headings go before rows, and rows before plain list items.
fn main_form(outline: &Outline<'_>) -> Form {
    let has = |form: Form| outline.entries.iter().any(|entry| entry.form == form);
    if has(Form::Box) || has(Form::Heading) {
        Form::Box
    } else if has(Form::Row) {
        Form::Row
    } else {
        Form::Bullet
    }
}

fn is_main(form: Form, main: Form) -> bool {
    form == main || (main == Form::Box && form == Form::Heading)
}

/// A list of boxes beside headings that tell more: one task, told in two places.
fn merge(outline: &mut Outline<'_>, found: usize, other: usize) {
    let text = std::mem::take(&mut outline.entries[other].text);
    let (mark, mark_at, steps) = {
        let other = &outline.entries[other];
        (other.mark, other.mark_at, other.steps)
    };
    let entry = &mut outline.entries[found];
    if entry.mark_at.is_none() && mark_at.is_some() {
        (entry.mark, entry.mark_at) = (mark, mark_at);
    }
    entry.steps = (entry.steps.0 + steps.0, entry.steps.1 + steps.1);
    if !entry.text.contains(&text) {
        entry.say(&text);
    }
}

fn forget_repetitions(outline: &mut Outline<'_>, form: Form, ids: &HashSet<TaskId>) {
    let is_known = |id: &str| id.parse::<TaskId>().is_ok_and(|id| ids.contains(&id));
    outline.unread.retain(|(_, id, why)| match (why, form) {
        (Why::Row, Form::Row) | (Why::NoBox, Form::Bullet) => false,
        _ => !id.as_deref().is_some_and(is_known),
    });
    outline.unread.sort_by_key(|(at, ..)| *at);
}

/// A heading has no box of its own: its boxes without ids tell how far it is.
fn mark_by_steps(entry: &mut super::entry::Entry) {
    if entry.form != Form::Heading || entry.mark_at.is_some() || entry.mark != Mark::Todo {
        return;
    }
    entry.mark = match entry.steps {
        (0, _) => Mark::Todo,
        (done, all) if done == all => Mark::Done,
        _ => Mark::Partial,
    };
}
