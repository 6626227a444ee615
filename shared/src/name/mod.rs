//! Names that are validated when they are constructed, with a separate type for each kind.

/// The JSON schema of a type that is written as a string: `string`, without a name or a description.
macro_rules! string_schema {
    ($name:ident) => {
        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                String::json_schema(generator)
            }
        }
    };
}

/// Makes a type that holds a string a name: it is parsed from text, unless `fault` says what is wrong with the text, and
/// printed as it was written.
macro_rules! checked_name {
    ($name:ident, $kind:expr, $fault:expr) => {
        string_schema!($name);

        impl $name {
            /// The name as written.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = crate::name::NameError;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                match $fault(name) {
                    Some(why) => Err(Self::Err::new(name, $kind, why)),
                    None => Ok(Self(name.into())),
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = crate::name::NameError;

            fn try_from(name: String) -> Result<Self, Self::Error> {
                name.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.as_str().to_owned()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

mod branch;
mod oid;
mod pipeline;
mod repo;
mod saved;
mod task;

pub use branch::{BranchName, LANDINGS, TASK_BRANCHES, TASK_REFS, escaped, unescaped};
pub use oid::{ObjectFormat, ObjectKind, Oid, digest};
pub use pipeline::PipelineName;
pub use repo::{RepoName, ToolName};
pub use saved::{SAVED, dated_saved_ref, saved_ref, split_day};
pub use task::{SessionId, TaskId, WorkerName};

use std::fmt;

use serde::{Deserialize, Serialize};

/// A name that is not valid, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{name}' is not a valid {kind}: {why}")]
pub struct NameError {
    /// The text.
    pub name: String,
    /// The kind of name, such as `task id`.
    pub kind: &'static str,
    /// The rule that it breaks.
    pub why: &'static str,
}

impl NameError {
    fn new(name: &str, kind: &'static str, why: &'static str) -> Self {
        Self { name: name.escape_debug().to_string(), kind, why }
    }
}

/// The number of an attempt at a task, from 0 as in `Arborist-Retry`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Attempt(pub u32);

impl Attempt {
    /// The number for people, from 1.
    #[must_use]
    pub fn ordinal(self) -> u32 {
        self.0.saturating_add(1)
    }

    /// The attempt after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why git would reject `name` as a ref component, if it would.
fn ref_component_fault(name: &str) -> Option<&'static str> {
    let bytes = name.as_bytes();
    let pair = |a: u8, b: u8| bytes.windows(2).any(|pair| pair == [a, b]);
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !bytes.is_empty() && bytes.iter().all(is_plain) {
        None
    } else if bytes.is_empty() {
        Some("it has an empty part")
    } else if bytes[0] == b'.' {
        Some("a part of it begins with a dot")
    } else if bytes.len() >= LOCK.len() && bytes[bytes.len() - LOCK.len()..].eq_ignore_ascii_case(LOCK) {
        Some("a part of it ends in '.lock'")
    } else if pair(b'.', b'.') {
        Some("it contains '..'")
    } else if pair(b'@', b'{') {
        Some("it contains '@{'")
    } else if bytes.iter().any(|byte| byte.is_ascii_control() || b" ~^:?*[\\".contains(byte)) {
        Some("it contains a space, a control character or one of ~^:?*[\\")
    } else {
        None
    }
}

/// The suffix of refs that git is writing.
const LOCK: &[u8] = b".lock";
