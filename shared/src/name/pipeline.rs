//! Names of pipelines: the name of the plan, as one ref component.

use std::{fmt, path::Path};

use super::ref_component_fault;

/// The name of a run without a plan.
const UNPLANNED: &str = "adhoc";

/// File names that say nothing, so that the folder is used instead.
const USUAL_FILES: [&str; 5] = ["tasks", "task-tree", "tree", "plan", "spec"];

/// Folder names that say nothing.
const USUAL_FOLDERS: [&str; 6] = ["spec", "specs", "plan", "plans", "docs", ".arborist"];

/// Not allowed, because the branches of tasks are below this name.
const TAKEN: &str = "task";

const LONGEST_PIPELINE_NAME: usize = 100;

/// The name of a pipeline, which is a valid ref component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineName(String);

impl PipelineName {
    /// The name for the run of a plan that was read from this path.
    #[must_use]
    pub fn of_plan(path: Option<&str>) -> Self {
        let Some(path) = path.map(Path::new) else {
            return Self(UNPLANNED.to_owned());
        };
        let name = |part: Option<&std::ffi::OsStr>| part.map(|part| part.to_string_lossy().into_owned());
        let stem = name(path.file_stem()).unwrap_or_default();
        let folder = name(path.parent().and_then(Path::file_name));
        let telling = folder.filter(|folder| {
            USUAL_FILES.contains(&stem.as_str()) && !USUAL_FOLDERS.contains(&folder.as_str())
        });
        Self(component(&telling.unwrap_or(stem)))
    }

    /// Makes a name valid by replacing what is not allowed.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(component(name))
    }

    /// The name as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Converts `name` into a ref component.
fn component(name: &str) -> String {
    let is_kept = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut made = String::new();
    for c in name.chars().map(|c| if is_kept(c) { c } else { '-' }) {
        let is_doubled = matches!(c, '.' | '-') && made.ends_with(['.', '-']);
        if !is_doubled && made.len() + c.len_utf8() <= LONGEST_PIPELINE_NAME {
            made.push(c);
        }
    }
    let made = made.trim_matches(['.', '-']);
    match made {
        "" => "plan".to_owned(),
        TAKEN => format!("{TAKEN}-plan"),
        made if ref_component_fault(made).is_some() => format!("{made}-plan"),
        made => made.to_owned(),
    }
}

impl fmt::Display for PipelineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::BranchName;

    #[test]
    fn a_pipeline_name_is_derived_from_its_plan_and_valid_in_a_ref() {
        let table = [
            (Some("specs/auth/tasks.md"), "auth"),
            (Some("spec/tasks.md"), "tasks"),
            (Some("tasks.md"), "tasks"),
            (Some("task-tree.json"), "task-tree"),
            (Some("plans/big one.json"), "big-one"),
            (Some("a..b@{c.md"), "a.b-c"),
            (Some("x/größe.md"), "größe"),
            (Some("x.lock.md"), "x.lock-plan"),
            (Some("task.md"), "task-plan"),
            (Some("~^:?*[.json"), "plan"),
            (None, "adhoc"),
        ];
        for (path, expected) in table {
            let name = PipelineName::of_plan(path);
            assert_eq!(name.as_str(), expected, "{path:?}");
            assert!(format!("arborist/{name}/s1").parse::<BranchName>().is_ok(), "{name}");
        }
    }
}
