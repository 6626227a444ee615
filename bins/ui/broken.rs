//! Text in lines that fit.

use unicode_width::UnicodeWidthStr;

/// A text in lines of at most `room` columns, unless a word is longer.
pub(crate) fn broken(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut words = text.split(' ');
    while let Some(word) = words.next() {
        // A quoted command stays on one line.
        let mut word = word.to_owned();
        while word.starts_with("'git") && !word[1..].contains('\'') {
            let Some(next) = words.next() else { break };
            word += &format!(" {next}");
        }
        match lines.last_mut().filter(|line| line.width() + 1 + word.width() <= room) {
            Some(line) => *line += &format!(" {word}"),
            None => lines.push(word),
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}
