//! How the hooks show what is wrong with a message: the line, the fault, the fix.

use std::fmt::Write;

use arborist_core::{
    failure::{Exit, Failure},
    message::{Fault, plain_line},
};

const MAX_SHOWN: usize = 5;
const LONGEST_FAULT: usize = 100;

/// The position of a fault.
pub(super) struct FaultPlace<'a> {
    /// The line, from 1.
    pub line: usize,
    /// The text of the line.
    pub text: &'a str,
}

/// An error that shows the first faults with their positions. The hints say what would be right.
pub(super) fn refusal<'a>(what: &str, faults: &[Fault], place: impl Fn(usize) -> FaultPlace<'a>) -> Failure {
    let mut failure = Failure::new(Exit::No, what);
    for fault in faults.iter().take(MAX_SHOWN) {
        if fault.is_missing {
            let _ = write!(failure.message, "\n  {}", fault.what);
            failure = failure.hint(&fault.fix);
            continue;
        }
        let FaultPlace { line, text } = place(fault.line);
        let _ = write!(failure.message, "\n  line {line}: {}\n    {}", shown(text), fault.what);
        failure = failure.hint(format!("line {line}: {}", fault.fix));
    }
    if let Some(rest) = more_than(MAX_SHOWN, faults) {
        let _ = write!(failure.message, "\n  and {rest}");
    }
    failure
}

/// A sentence about the faults that are not shown, if there are any. The reader stops at some number.
pub(crate) fn more_than(reported: usize, faults: &[Fault]) -> Option<String> {
    let rest = faults.len().checked_sub(reported).filter(|rest| *rest > 0)?;
    Some(if faults.len() < Fault::MAX_REPORTED { format!("{rest} more") } else { "many more".into() })
}

/// A line of foreign text, without control characters.
pub(super) fn shown(line: &str) -> String {
    let plain = plain_line(line);
    match plain.char_indices().nth(LONGEST_FAULT) {
        Some((end, _)) => format!("{}…", &plain[..end]),
        None => plain,
    }
}
