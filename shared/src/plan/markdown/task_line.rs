//! From the first line of a task to its box, id, tags and title: `- [x] **T001** [P] [US1] Add the table`.

use super::{ids, keywords::is_parallel_word};

/// A box at the start of a list item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Checkbox<'a> {
    /// `[x]`: the one character in it.
    Marked(&'a str),
    /// `[]` or `[ x ]`: there is no one character that could be changed.
    Malformed,
}

/// What the first line of a task says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TaskLine<'a> {
    pub(super) id: &'a str,
    pub(super) tags: Vec<String>,
    pub(super) is_parallel: bool,
    pub(super) is_struck: bool,
    /// Whether a word such as "Task" comes before the id.
    pub(super) is_worded: bool,
    pub(super) title: String,
}

/// Emphasis, code and strike, longest first: they may be wrapped around an id.
const DRESS: [&str; 6] = ["**", "__", "~~", "`", "*", "_"];

/// Words that may come before an id.
const WORDS: [&str; 13] = [
    "Task ", "task ", "Issue ", "Ticket ", "Tarefa ", "Tarea ", "Tâche ", "Aufgabe ", "Задача ", "タスク",
    "任务", "任務", "작업 ",
];

/// Splits a box from what follows it. A link is no box.
pub(super) fn checkbox(content: &str) -> Option<(Checkbox<'_>, &str)> {
    let inner = content.strip_prefix('[')?;
    let (inside, rest) = inner.split_once(']')?;
    let checkbox = match inside.chars().count() {
        1 => Checkbox::Marked(inside),
        0 | 2 | 3 if inside.trim().chars().count() <= 1 => Checkbox::Malformed,
        _ => return None,
    };
    let rest = behind_star(rest).unwrap_or(rest);
    let is_apart = rest.is_empty() || rest.starts_with([' ', '\t']);
    (is_apart || ids::lettered(rest).is_some()).then_some((checkbox, rest))
}

/// What is after the star of `[ ]* 4.1 Tests`. Some tools write it for a task that may be left out, and formatters make `[ ]\*` of it.
fn behind_star(text: &str) -> Option<&str> {
    let starred = text.strip_prefix("\\*").or_else(|| text.strip_prefix('*'));
    starred.filter(|rest| rest.starts_with(' '))
}

/// Whether a star is after the box that an item begins with, or after its number, as in `[ ] 4.1* Tests`.
pub(super) fn is_starred(content: &str) -> bool {
    let behind = content.split_once(']').map_or("", |(_, behind)| behind);
    let numbered = behind.trim_start();
    behind_star(behind).is_some()
        || ids::numeric(numbered).is_some_and(|id| behind_star(&numbered[id.len()..]).is_some())
}

impl<'a> TaskLine<'a> {
    /// Reads what comes after the box, if it has an id.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        Self::parse_with(text, id_at)
    }

    /// Reads what comes after the box, if it has an id such as `A1` or `DB-1`.
    pub(super) fn parse_family(text: &'a str) -> Option<Self> {
        Self::parse_with(text, |text| ids::family(text).filter(|id| ids::parse(id).is_some()))
    }

    /// Reads a cell of a table or a heading, if it begins with an id such as `A1` or `DB-1`.
    pub(super) fn parse_series(text: &'a str) -> Option<Self> {
        Self::parse_with(text, |text| ids::series(text).filter(|id| ids::parse(id).is_some()))
    }

    fn parse_with(text: &'a str, id_at: fn(&str) -> Option<&str>) -> Option<Self> {
        let mut head = Self::default();
        let mut open = Vec::new();
        let rest = head.find_id(text, id_at, &mut open)?;
        let rest = head.take_tags(rest, &mut open);
        let rest = head.take_last_marks(rest);
        head.title = undressed(rest, &open);
        Some(head)
    }

    /// Reads what comes after a box without an id.
    pub(super) fn plain(text: &'a str) -> Self {
        let mut head = Self::default();
        let rest = head.take_tags(text, &mut Vec::new());
        let rest = head.take_last_marks(rest);
        head.is_struck = rest.starts_with("~~");
        head.title = rest.trim().to_owned();
        head
    }

    /// Skips emoji, emphasis and tags up to the id, and notes which emphasis is open after it.
    fn find_id(
        &mut self,
        text: &'a str,
        id_at: fn(&str) -> Option<&str>,
        open: &mut Vec<&'static str>,
    ) -> Option<&'a str> {
        let mut rest = text.trim_start();
        loop {
            if let Some(id) = id_at(rest).filter(|id| self.is_worded || is_plain(id, &rest[id.len()..])) {
                self.id = id;
                return Some(&rest[id.len()..]).filter(|behind| !continues_as_range(behind));
            }
            if let Some((inside, behind)) = bracketed(rest) {
                if let Some(id) = id_at(inside).filter(|id| id.len() == inside.len()) {
                    self.id = id;
                    return Some(behind);
                }
                self.add_tag(inside);
                rest = behind.trim_start();
            } else if let Some(dress) = DRESS.iter().find(|dress| rest.starts_with(**dress)) {
                self.is_struck |= *dress == "~~";
                open.push(*dress);
                rest = &rest[dress.len()..];
            } else if let Some(behind) = issue_number(rest) {
                self.is_worded = true;
                rest = behind;
            } else if let Some(behind) = WORDS.iter().find_map(|word| rest.strip_prefix(word)) {
                self.is_worded = true;
                rest = behind.trim_start();
            } else {
                let next = rest.chars().next()?;
                let is_ornament = next.is_whitespace() || (!next.is_ascii() && !next.is_alphanumeric());
                rest = is_ornament.then(|| &rest[next.len_utf8()..])?;
            }
        }
    }

    /// Takes tags, the ends of emphasis and separators that are between id and title.
    fn take_tags(&mut self, text: &'a str, open: &mut Vec<&'static str>) -> &'a str {
        let mut rest = text;
        let mut is_separated = false;
        loop {
            rest = rest.trim_start();
            if let Some(at) = open.iter().position(|dress| rest.starts_with(dress)) {
                rest = &rest[open.remove(at).len()..];
            } else if let Some((inside, behind)) = tag(rest) {
                self.add_tag(inside);
                rest = behind;
            } else if let Some(behind) = separator(rest).filter(|_| !is_separated) {
                is_separated = true;
                rest = behind;
            } else {
                return rest;
            }
        }
    }

    /// Takes the marks `[P]`, `(P)` and `[allow:x]` at the end of a line.
    fn take_last_marks(&mut self, text: &'a str) -> &'a str {
        let mut rest = text;
        while let Some((before, mark)) = last_mark(rest) {
            self.add_tag(mark);
            rest = before;
        }
        rest
    }

    fn add_tag(&mut self, tag: &str) {
        let is_story =
            |part: &str| part.starts_with("US") && part[2..].starts_with(|c: char| c.is_ascii_digit());
        // `[PARALLEL]`, `[PARALLEL-GROUP-2]`, but not `[NOT PARALLEL]`.
        let mut words = tag.split(|c: char| !c.is_alphanumeric());
        let is_worded = words.next().is_some_and(is_parallel_word);
        if tag == "P" || tag.starts_with("P ") || is_worded {
            self.is_parallel = true;
        }
        if is_story(tag) {
            self.tags.extend(tag.split(['+', '/', ',']).map(|part| part.trim().to_owned()));
        } else if tag != "P" {
            self.tags.push(tag.to_owned());
        }
    }
}

/// What comes after the `#` of "#12 Add the table".
fn issue_number(text: &str) -> Option<&str> {
    text.strip_prefix('#').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn id_at(text: &str) -> Option<&str> {
    let is_keycap = |id: &&str| !text[id.len()..].starts_with('\u{fe0f}');
    ids::lettered(text)
        .or_else(|| ids::named(text))
        .or_else(|| ids::numeric(text).filter(is_keycap))
        .filter(|id| ids::parse(id).is_some())
}

/// A bare number such as the 3 of "3 nodes" is no id; `1.2`, `3.` and `3)` are.
fn is_plain(id: &str, behind: &str) -> bool {
    id.contains(|c: char| !c.is_ascii_digit()) || behind.starts_with(['.', ')', ':'])
}

/// `T001-T003` speaks of several tasks and is none.
fn continues_as_range(behind: &str) -> bool {
    let next = behind.trim_start_matches([' ', '*', '`']).strip_prefix(['-', '–', '—', '~', '…']);
    next.is_some_and(|last| ids::lettered(last.trim_start_matches([' ', '*', '`'])).is_some())
}

/// How the mark begins that allows a task to change a protected path.
pub(super) const ALLOW: &str = "allow:";

/// `[inside]` at the start of `text`, and what is after it. Links and links of links are none.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    const LONGEST: usize = 60;
    let (inside, behind) = text.strip_prefix('[')?.split_once(']')?;
    // A path may be long. A longer text is no tag, but a remark.
    let is_short = inside.len() <= LONGEST || inside.starts_with(ALLOW);
    let is_tag = !inside.is_empty() && is_short && !inside.contains('[');
    let is_link = behind.starts_with(['(', ':'])
        || behind.starts_with('[') && !is_usual(inside) && !is_usual(inside_next(behind));
    (is_tag && !is_link).then_some((inside, behind))
}

/// `P`, `US1`, `red` and `allow:x` are tags also where the next tag follows without a space, as in `[US1][P]`.
fn is_usual(tag: &str) -> bool {
    let is_story =
        tag.strip_prefix("US").is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()));
    is_story || matches!(tag, "P" | "red") || tag.starts_with(ALLOW)
}

fn inside_next(behind: &str) -> &str {
    behind.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or("", |(inside, _)| inside)
}

/// A tag at the start of `text`; `(P)` is one too.
fn tag(text: &str) -> Option<(&str, &str)> {
    bracketed(text).or_else(|| text.strip_prefix("(P)").map(|behind| ("P", behind)))
}

/// A mark at the end of a line, and what is before it.
fn last_mark(text: &str) -> Option<(&str, &str)> {
    let line = text.trim_end();
    let (before, mark) = match line.strip_suffix("(P)") {
        Some(before) => (before, "P"),
        None => line.strip_suffix(']')?.rsplit_once('[')?,
    };
    let is_mark = mark == "P" || mark.starts_with(ALLOW);
    (is_mark && before.ends_with(char::is_whitespace)).then(|| (before.trim_end(), mark))
}

/// What may come between id and title: `:`, `.`, `)` at once, a dash before white space.
fn separator(text: &str) -> Option<&str> {
    let next = text.chars().next()?;
    let behind = &text[next.len_utf8()..];
    match next {
        ':' | '：' | '.' | ')' | '—' | '–' | '、' => Some(behind),
        '-' | '|' if behind.starts_with([' ', '\t']) => Some(behind),
        _ => None,
    }
}

/// The title without the ends of what was opened before the id.
fn undressed(text: &str, open: &[&str]) -> String {
    let mut title = text.trim().to_owned();
    for dress in open {
        if let Some(at) = title.find(dress) {
            title.replace_range(at..at + dress.len(), "");
        }
    }
    title.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_recognised_in_any_markup() {
        for (text, id, tags, title) in [
            (" T001 do it", "T001", &[][..], "do it"),
            (" **T001** — do it", "T001", &[], "do it"),
            (" **T001 [P]** do it", "T001", &["P"], "do it"),
            (" **T001 [P] [US1]**: do **it**", "T001", &["P", "US1"], "do **it**"),
            (" ✅ T001 [US2] [P] do `it`", "T001", &["P", "US2"], "do `it`"),
            (" ⚠️ T001 x", "T001", &[], "x"),
            (" ~~T051~~ ~~do it~~", "T051", &[], "~~do it~~"),
            (" ~~T051 do it~~ moved", "T051", &[], "do it moved"),
            (" `T001` `src/a.rs` x", "T001", &[], "`src/a.rs` x"),
            (" [T001] [P] [US1+US2] x", "T001", &["P", "US1", "US2"], "x"),
            (" [P] T001 x", "T001", &["P"], "x"),
            (" [US1] [Edge Case] T001: x", "T001", &["US1", "Edge Case"], "x"),
            (" T001 [P with T002] x", "T001", &["P", "P with T002"], "x"),
            (" T001 [see](http://a) x", "T001", &[], "[see](http://a) x"),
            (" T001 [[note]] x", "T001", &[], "[[note]] x"),
            (" 1.1 do it", "1.1", &[], "do it"),
            (" 2. do it", "2", &[], "do it"),
            (" 2.1 (P) do it", "2.1", &["P"], "do it"),
            (" Task 1.1: do it", "1.1", &[], "do it"),
            (" **Task T1**: do it", "T1", &[], "do it"),
            (" T1", "T1", &[], ""),
            (" **T-NEW-A** x", "T-NEW-A", &[], "x"),
            (" T001 [US1][P] x", "T001", &["P", "US1"], "x"),
            (" T001 [P][US1] x", "T001", &["P", "US1"], "x"),
            (" T001 do it [allow:a b] [P]", "T001", &["P", "allow:a b"], "do it"),
            (" T001 [allow:a/b.rs][allow:c] x", "T001", &["allow:a/b.rs", "allow:c"], "x"),
        ] {
            let head = TaskLine::parse(text).unwrap_or_else(|| panic!("{text}"));
            let parallel = head.is_parallel.then(|| "P".to_owned());
            let found: Vec<String> = parallel.into_iter().chain(head.tags).collect();
            assert_eq!(
                (head.id, found, head.title.as_str()),
                (id, tags.iter().map(|t| (*t).to_owned()).collect(), title)
            );
        }
    }

    #[test]
    fn a_heading_or_item_without_an_id_has_no_task_head() {
        for text in [
            "do it",
            "TXXX x",
            "[P] tasks = different files",
            "",
            "第1步",
            "`a/b.rs` x",
            "FR-003 x",
            "1️⃣ x",
            "3 nodes",
            "T001-T003 x",
            "T-shirt x",
            "**T001** – **T003**",
        ] {
            assert_eq!(TaskLine::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_checkbox_contains_at_most_one_character() {
        assert_eq!(checkbox("[x] a"), Some((Checkbox::Marked("x"), " a")));
        assert_eq!(checkbox("[ ]* a"), Some((Checkbox::Marked(" "), " a")));
        assert_eq!(checkbox("[] a"), Some((Checkbox::Malformed, " a")));
        assert_eq!(checkbox("[ x ] a"), Some((Checkbox::Malformed, " a")));
        assert_eq!(checkbox("[x]T001 a"), Some((Checkbox::Marked("x"), "T001 a")));
        for text in ["[x](a)", "[ab] c", "[x]y", "x", "[x", "["] {
            assert_eq!(checkbox(text), None, "{text}");
        }
    }
}
