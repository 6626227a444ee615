//! The JSON document of `git arborist sandbox check`.

use schemars::JsonSchema;
use serde::Serialize;

/// What programs in the sandbox can do here.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SandboxDocument {
    /// The configured mode: `auto`, `landlock`, `bwrap` or `off`.
    pub mode: String,
    /// What limits programs: `landlock` or `bwrap`; null if nothing does.
    pub backend: Option<String>,
    /// What an agent that implements a task finds as the git directory: `closed` or `private`.
    pub git: String,
    /// Whether everything is as configured.
    pub is_enforced: bool,
    /// The rules that were tried.
    pub rules: Vec<RuleDocument>,
}

/// One rule.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RuleDocument {
    /// What was tried.
    pub rule: String,
    /// `allowed`, `denied`, `not enforced` (it works, but should not), `blocked` (it does not work, but should),
    /// `limited to …` or `not limited`.
    pub result: String,
}
