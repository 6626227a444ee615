//! Reads a reviewer's decision. Only a plain yes in the last line approves; everything else rejects.

use crate::{agent::begins_with_rejection, message::plain_text};

/// A reviewer's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The last line is a plain yes.
    Approved,
    /// Everything else.
    Rejected,
}

/// Words that take a yes back or make it conditional.
const DOUBTS: [&str; 24] = [
    "not", "no", "never", "cannot", "neither", "nor", "without", "unless", "if", "once", "when", "until",
    "would", "could", "should", "might", "but", "however", "except", "rejected", "reject", "disapproved",
    "unapproved", "changes",
];

impl Verdict {
    /// Reads the decision from a reviewer's whole answer.
    #[must_use]
    pub fn of(review: &str) -> Self {
        let plain = plain_text(review);
        let last = plain.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        // Another program may have written to the reviewer's output after its rejection.
        if is_yes(undecorated(last)) && !begins_with_rejection(&plain) {
            Self::Approved
        } else {
            Self::Rejected
        }
    }
}

/// Removes Markdown emphasis around a whole line.
fn undecorated(line: &str) -> &str {
    line.trim().trim_matches(['*', '_', '`']).trim()
}

fn is_yes(line: &str) -> bool {
    if line == "APPROVED" || line == "APPROVED." {
        return true;
    }
    let Some(before) = line.strip_suffix("APPROVED.").map(undecorated_end) else {
        return false;
    };
    let ends_a_sentence = before.ends_with(['.', '!', '?', ':', ';']);
    ends_a_sentence && !has_doubt(before)
}

fn undecorated_end(text: &str) -> &str {
    text.trim_end_matches(['*', '_', '`', ' '])
}

fn has_doubt(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’');
    words.any(|word| {
        DOUBTS.contains(&word) || word.ends_with("n't") || word.ends_with("n’t") || word.contains("approve")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_approval_in_the_last_line_is_an_approval() {
        for yes in [
            "APPROVED",
            "APPROVED.",
            "looks good\n\nAPPROVED\n\n",
            "**APPROVED**",
            "`APPROVED`",
            "The schema follows best practices. APPROVED.",
            "not bad at all\nAPPROVED",
            "first I thought REJECTED\r\nAPPROVED\r\n",
            "\u{1b}[32mAPPROVED\u{1b}[0m",
        ] {
            assert_eq!(Verdict::of(yes), Verdict::Approved, "{yes}");
        }
    }

    #[test]
    fn any_other_review_output_is_a_rejection() {
        for no in [
            "",
            "APPROVED\nREJECTED: no tests",
            "REJECTED: no tests\nAPPROVED",
            "**REJECTED**: no tests\n\nAPPROVED",
            "REJECTED",
            "NOT APPROVED",
            "NOT APPROVED.",
            "would be APPROVED if",
            "This would be fine. APPROVED if you add tests.",
            "I do not like it. APPROVED.",
            "It isn't right. APPROVED.",
            "If the tests pass: APPROVED.",
            "REJECTED or APPROVED.",
            "unapproved",
            "DISAPPROVED",
            "approved",
            "Approved.",
            "APPROVED!",
            "APPROVED REJECTED",
            "Reply APPROVED if the code is correct, or REJECTED with reasons.",
            "\"APPROVED\"",
            "> APPROVED",
            "Verdict: APPROVED",
            "The change was APPROVED.",
            "APPROVED\nbut see below",
            "UNAPPROVED.",
            "批准",
        ] {
            assert_eq!(Verdict::of(no), Verdict::Rejected, "{no}");
        }
    }
}
