//! Where a plan is looked for if none is named.

use std::{fs, path::Path};

use super::read::is_prose;
use crate::{name::BranchName, safe_files};

/// The file that spec-kit keeps tasks in.
pub const TASK_LIST: &str = "tasks.md";

/// Folders whose folders each hold a task list: spec-kit, Kiro and OpenSpec.
const SPEC_FOLDERS: [&str; 4] = ["specs", ".specify/specs", ".kiro/specs", "openspec/changes"];

/// Plans without a folder, as many projects keep them.
const PLAN_FILES: [&str; 9] = [
    "IMPLEMENTATION_PLAN.md",
    "PLAN.md",
    "plan.md",
    "docs/plan.md",
    "docs/PLAN.md",
    "TODO.md",
    "todo.md",
    "ROADMAP.md",
    "docs/tasks.md",
];

/// The usual places of a branch's plan, from the top of the worktree, the first before the others.
#[must_use]
pub fn usual_places(branch: Option<&BranchName>) -> Vec<String> {
    let mut places = vec!["task-tree.json".to_owned()];
    if let Some(branch) = branch {
        places.push(format!("specs/{branch}/{TASK_LIST}"));
        // `feature/001-x` is the branch of `specs/001-x`.
        if let Some((_, name)) = branch.as_str().rsplit_once('/') {
            places.push(format!("specs/{name}/{TASK_LIST}"));
        }
    }
    places.extend([format!("spec/{TASK_LIST}"), TASK_LIST.to_owned()]);
    places
}

/// The plan of a branch: in its usual place, else the only one that there is. Several plans are all given.
#[must_use]
pub fn find_plans(top: &Path, branch: Option<&BranchName>) -> Vec<String> {
    match find_usual_plan(top, branch) {
        Some(place) => vec![place],
        None => all_plans(top),
    }
}

/// The plan of a branch in its usual place.
#[must_use]
pub fn find_usual_plan(top: &Path, branch: Option<&BranchName>) -> Option<String> {
    usual_places(branch).into_iter().find(|place| is_there(top, place))
}

/// Whether there is anything but a folder. A named pipe counts: who reads it says that it is not a regular file.
fn is_there(top: &Path, place: &str) -> bool {
    top.join(place).metadata().is_ok_and(|found| !found.is_dir())
}

/// Every plan in a place where people keep them, from the top of the worktree. Beside other plans, a file of prose is
/// none.
fn all_plans(top: &Path) -> Vec<String> {
    let mut plans: Vec<String> = Vec::new();
    for folder in SPEC_FOLDERS {
        plans.extend(
            names_in(&top.join(folder)).into_iter().map(|name| format!("{folder}/{name}/{TASK_LIST}")),
        );
    }
    plans.extend(PLAN_FILES.map(str::to_owned));
    plans.retain(|place| is_there(top, place));
    // On a file system without case `PLAN.md` and `plan.md` are one file.
    plans.dedup_by(|one, other| one.eq_ignore_ascii_case(other));
    if plans.len() > 1 {
        let is_plan =
            |place: &String| !safe_files::read_beneath(top, place).is_ok_and(|bytes| is_prose(place, &bytes));
        let with_tasks: Vec<String> = plans.iter().filter(|place| is_plan(place)).cloned().collect();
        return if with_tasks.is_empty() { plans } else { with_tasks };
    }
    plans
}

/// The names in a folder, sorted; none if it cannot be read. What has been archived is no plan.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| name != "archive");
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_plan_paths_include_those_of_the_branch() {
        let branch = "fix/login".parse().unwrap();
        let places = usual_places(Some(&branch));
        assert_eq!(
            places,
            [
                "task-tree.json",
                "specs/fix/login/tasks.md",
                "specs/login/tasks.md",
                "spec/tasks.md",
                "tasks.md"
            ]
        );
        assert_eq!(usual_places(None), ["task-tree.json", "spec/tasks.md", "tasks.md"]);
    }
}
