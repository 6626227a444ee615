//! Finds the trailer block as git itself does with its built-in settings (`:` separates, `#` comments), for messages
//! that are not ours. The rules are those of `git log --format=%(trailers:only,unfold)`.

use super::{read::SCISSORS, recognise::is_blank};

/// Prefixes that git recognises without configuration: if one of them is present, the block may contain other lines.
const GENERATED: [&[u8]; 2] = [b"Signed-off-by: ", b"(cherry picked from commit "];

/// The trailers that `git log` reads from a commit with this message, unfolded.
#[must_use]
pub fn read_as_git(message: &[u8]) -> Vec<(String, String)> {
    let message = message.split(|b| *b == 0).next().unwrap_or_default();
    let lines: Vec<&[u8]> =
        message.split_inclusive(|b| *b == b'\n').skip_while(|line| is_blank(line)).collect();
    let end = end_of_text(&lines);
    let Some(start) = start_of_block(&lines[..end]) else {
        return Vec::new();
    };
    fold(&lines[start..end])
}

fn is_comment(line: &[u8]) -> bool {
    line.starts_with(b"#")
}

/// Everything from the scissors on, and trailing comments, empty lines and an old `Conflicts:` list, is not part of the
/// text.
fn end_of_text(lines: &[&[u8]]) -> usize {
    let is_cut = |line: &&[u8]| {
        line.strip_prefix(b"# ").and_then(|l| l.strip_suffix(b"\n")) == Some(SCISSORS.as_bytes())
    };
    let cut = lines.iter().position(is_cut).unwrap_or(lines.len());
    let mut tail = None;
    let mut in_conflicts = false;
    for (at, line) in lines[..cut].iter().enumerate() {
        if is_comment(line) || *line == b"\n" {
            tail.get_or_insert(at);
        } else if *line == b"Conflicts:\n" {
            in_conflicts = true;
            tail.get_or_insert(at);
        } else if !(in_conflicts && line.starts_with(b"\t")) {
            tail = None;
            in_conflicts = false;
        }
    }
    tail.unwrap_or(cut)
}

/// The first paragraph is the title and contains no trailers; `None` if the last paragraph is no trailer block.
fn start_of_block(lines: &[&[u8]]) -> Option<usize> {
    let title = lines.iter().position(|line| !is_comment(line) && is_blank(line))?;
    let (mut trailers, mut others, mut folded) = (0, 0, 0);
    let mut recognized = false;
    let mut only_spaces = true;
    for at in (title..lines.len()).rev() {
        let line = lines[at];
        if is_comment(line) {
            others += folded;
            folded = 0;
        } else if is_blank(line) {
            if only_spaces {
                continue;
            }
            others += folded;
            let mixed = recognized && trailers * 3 >= others;
            return (mixed || (trailers > 0 && others == 0)).then_some(at + 1);
        } else if GENERATED.iter().any(|prefix| line.starts_with(prefix)) {
            (trailers, folded, recognized, only_spaces) = (trailers + 1, 0, true, false);
        } else if starts_with_space(line) {
            (folded, only_spaces) = (folded + 1, false);
        } else if separator(line).is_some_and(|at| at >= 1) {
            (trailers, folded, only_spaces) = (trailers + 1, 0, false);
        } else {
            (others, folded, only_spaces) = (others + 1 + folded, 0, false);
        }
    }
    None
}

fn starts_with_space(line: &[u8]) -> bool {
    line.first().is_some_and(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n'))
}

/// The position of the colon, if the text before it can be a key.
fn separator(line: &[u8]) -> Option<usize> {
    let mut spaced = false;
    for (at, byte) in line.iter().enumerate() {
        match byte {
            b':' => return Some(at),
            b if !spaced && (b.is_ascii_alphanumeric() || *b == b'-') => {}
            b' ' | b'\t' if at > 0 => spaced = true,
            _ => return None,
        }
    }
    None
}

fn fold(lines: &[&[u8]]) -> Vec<(String, String)> {
    let mut trailers: Vec<(String, String)> = Vec::new();
    let mut may_fold = false;
    for line in lines.iter().filter(|line| !is_comment(line)) {
        let text = String::from_utf8_lossy(line);
        if may_fold && starts_with_space(line) {
            if let Some((_, value)) = trailers.last_mut() {
                value.push(' ');
                value.push_str(trimmed(&text));
            }
        } else if let Some(at) = separator(line).filter(|at| *at >= 1) {
            trailers.push((trimmed(&text[..at]).to_owned(), trimmed(&text[at + 1..]).to_owned()));
            may_fold = true;
        } else {
            may_fold = false;
        }
    }
    for (_, value) in &mut trailers {
        value.truncate(trimmed(value).len());
    }
    trailers
}

fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\r', '\n'])
}
