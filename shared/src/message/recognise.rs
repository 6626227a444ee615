//! Decides whether a message claims to be ours. This is cheap, because it is asked for every commit of a history.

use std::borrow::Cow;

use super::Subject;

/// Whether a message claims to be ours: by its subject, which is its first line that is not blank, or by a line that
/// begins with one of our keys.
#[must_use]
pub fn claims_to_be_ours(message: &[u8]) -> bool {
    let subject = first_line(message);
    let is_claimed = || {
        let text = std::str::from_utf8(subject).map_or_else(|_| String::from_utf8_lossy(subject), Cow::from);
        Subject::has_subject_form(text.trim_end())
    };
    let by_subject = subject.starts_with(b"task(") && is_claimed();
    by_subject || lines_of_ours(message).next().is_some()
}

/// Whether a file that git has not cleaned up yet could become a message that claims to be ours. Cheaper than
/// [`claims_to_be_ours`] on the result, and a "no" is always right.
#[must_use]
pub fn could_be_ours(file: &[u8]) -> bool {
    file.starts_with(b"task(")
        || memchr::memmem::find(file, b"\ntask(").is_some()
        || lines_of_ours(file).next().is_some()
}

/// The first line that is not blank, or the last.
fn first_line(message: &[u8]) -> &[u8] {
    let mut rest = message;
    loop {
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        if end == rest.len() || !is_blank(&rest[..end]) {
            return &rest[..end];
        }
        rest = &rest[end + 1..];
    }
}

/// Whether a line is empty in git's sense.
pub(super) fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n'))
}

/// The offsets of lines that begin like `Arborist-Key:`, whatever their case.
fn lines_of_ours(message: &[u8]) -> impl Iterator<Item = usize> {
    let starts = std::iter::once(0).chain(memchr::memchr_iter(b'\n', message).map(|at| at + 1));
    starts.filter(move |at| looks_ours(&message[*at..]))
}

/// Whether a line begins like `Arborist-Key:`, whatever its case.
pub(super) fn looks_ours(line: &[u8]) -> bool {
    const PREFIX: &[u8] = b"arborist-";
    let Some((head, rest)) = line.split_at_checked(PREFIX.len()) else {
        return false;
    };
    if !head.eq_ignore_ascii_case(PREFIX) {
        return false;
    }
    let end =
        rest.iter().position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b' ' | b'\t')));
    end.is_some_and(|end| rest[end] == b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_task_subjects_and_our_trailers_claim_to_be_ours() {
        for (message, expected) in [
            ("task(main@T1@complete): x", true),
            ("\n \t\r\n\ntask(main@T1@complete): x\n", true),
            ("x\n\ntask(main@T1@complete): x\n", false),
            (" task(main@T1@complete): x\n", false),
            ("\n\ntask(ui): x\n", false),
            ("x\n\nARBORIST-step : y\n", true),
            ("", false),
            ("\n\n", false),
        ] {
            assert_eq!(claims_to_be_ours(message.as_bytes()), expected, "{message:?}");
            assert!(could_be_ours(message.as_bytes()) || !expected, "{message:?}");
        }
    }
}
