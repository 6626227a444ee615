//! Why a call failed: in its program's own words, and whose fault these say that it is.

use crate::agent::{
    CallOutcome, FailureKind,
    redact::{Redactor, Secrets},
};

/// How many characters of a program's complaint are repeated as the reason of a failure.
const LONGEST_REASON: usize = 300;

/// A program that gives up before its stream begins says why, mostly on standard error, and its last line is the reason.
pub(super) fn explain(outcome: &mut CallOutcome, words: &str) {
    // What the provider said is the reason already.
    let is_ours = matches!(outcome, CallOutcome::Failed { kind: FailureKind::Other, .. });
    if let (CallOutcome::Failed { message, .. }, Some(reason), true) = (outcome, last_words(words), is_ours) {
        message.push_str(": ");
        message.extend(reason.chars().take(LONGEST_REASON));
    }
}

/// A failure whose last words say that it is the provider's is the provider's: `printed` is what a program said that gave no
/// other reason.
pub(super) fn attributed(outcome: CallOutcome, printed: [&str; 2]) -> CallOutcome {
    let CallOutcome::Failed { kind: FailureKind::Other, message, usage, session } = outcome else {
        return outcome;
    };
    let ends = [message.as_str()].into_iter().chain(printed).filter_map(last_words);
    let told = ends.filter_map(|line| Some((line, FailureKind::of_words(line)?))).next_back();
    let told = told.map(|(line, told)| (line.chars().take(LONGEST_REASON).collect(), told));
    let Some((message, (kind, until))) = told else {
        return CallOutcome::Failed { kind: FailureKind::Other, message, usage, session };
    };
    match kind.as_limit() {
        Some(kind) => CallOutcome::Limited { kind, until, message, usage, session },
        None => CallOutcome::Failed { kind, message, usage, session },
    }
}

fn last_words(text: &str) -> Option<&str> {
    text.lines().map(str::trim).rfind(|line| !line.is_empty())
}

/// The same without secrets.
pub(super) fn redacted(outcome: CallOutcome, secrets: &Secrets) -> CallOutcome {
    let clean = |text: String| Redactor::redact(secrets, &text);
    match outcome {
        CallOutcome::Success { text, usage, session } => {
            CallOutcome::Success { text: clean(text), usage, session }
        }
        CallOutcome::Failed { kind, message, usage, session } => {
            CallOutcome::Failed { kind, message: clean(message), usage, session }
        }
        CallOutcome::Limited { kind, until, message, usage, session } => {
            CallOutcome::Limited { kind, until, message: clean(message), usage, session }
        }
    }
}
