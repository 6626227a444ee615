//! How a supervised program ended, and the sentence about its end.

use std::{fmt, io, os::unix::process::ExitStatusExt, process::ExitStatus, time::Duration};

/// The signal for a process whose file becomes too large.
const TOO_LARGE: i32 = rustix::process::Signal::XFSZ.as_raw();

/// How a supervised program ended. Displayed, it follows the program's name: "'claude' timed out after 600 s".
#[derive(Debug)]
pub enum Ending {
    /// It exited with this code.
    Exited(i32),
    /// A signal that we did not send ended it.
    Signalled(i32),
    /// It exceeded its time limit.
    TimedOut {
        /// The limit.
        after: Duration,
    },
    /// It printed nothing for too long.
    Silent {
        /// The limit.
        after: Duration,
    },
    /// The run was cancelled.
    Cancelled,
    /// It could not be started.
    NotStarted(io::Error),
}

impl Ending {
    /// Whether it exited with code 0.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Exited(0))
    }

    /// Its exit code, if it exited.
    #[must_use]
    pub const fn code(&self) -> Option<i32> {
        match self {
            Self::Exited(code) => Some(*code),
            _ => None,
        }
    }
}

impl From<ExitStatus> for Ending {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Exited(code),
            (None, signal) => Self::Signalled(signal.unwrap_or_default()),
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(0) => f.write_str("succeeded"),
            // The codes of every shell.
            Self::Exited(126) => f.write_str("failed with exit code 126 (command not executable)"),
            Self::Exited(127) => f.write_str("failed with exit code 127 (command not found)"),
            Self::Exited(code) if *code == 128 + TOO_LARGE => {
                write!(f, "failed with exit code {code} (file size limit exceeded)")
            }
            Self::Exited(code) => write!(f, "failed with exit code {code}"),
            Self::Signalled(number @ TOO_LARGE) => {
                write!(f, "was ended by signal {number} (SIGXFSZ, file size limit exceeded)")
            }
            Self::Signalled(number) => match signal_hook::low_level::signal_name(*number) {
                Some(name) => write!(f, "was ended by signal {number} ({name})"),
                None => write!(f, "was ended by signal {number}"),
            },
            Self::TimedOut { after } => write!(f, "timed out after {} s", after.as_secs_f64()),
            Self::Silent { after } => {
                write!(f, "was stopped because it wrote nothing for {} s", after.as_secs_f64())
            }
            Self::Cancelled => f.write_str("was stopped with the run"),
            Self::NotStarted(error) => write!(f, "could not be started: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_ending_has_its_message() {
        let after = Duration::from_secs(600);
        let table = [
            (Ending::Exited(0), "succeeded"),
            (Ending::Exited(3), "failed with exit code 3"),
            (Ending::Signalled(9), "was ended by signal 9 (SIGKILL)"),
            (Ending::Exited(153), "failed with exit code 153 (file size limit exceeded)"),
            (Ending::Signalled(25), "was ended by signal 25 (SIGXFSZ, file size limit exceeded)"),
            (Ending::Signalled(77), "was ended by signal 77"),
            (Ending::TimedOut { after }, "timed out after 600 s"),
            (
                Ending::Silent { after: Duration::from_millis(500) },
                "was stopped because it wrote nothing for 0.5 s",
            ),
            (Ending::Cancelled, "was stopped with the run"),
            (Ending::NotStarted(io::ErrorKind::NotFound.into()), "could not be started: entity not found"),
        ];
        for (ending, sentence) in table {
            assert_eq!(ending.to_string(), sentence);
        }
    }
}
