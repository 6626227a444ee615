//! Where a plan is looked for if nobody names one.

use crate::name::BranchName;

/// The file that spec-kit keeps tasks in.
pub const TASK_LIST: &str = "tasks.md";

/// The usual places of a branch's plan, from the top of the worktree, the first before the others.
#[must_use]
pub fn usual_places(branch: Option<&BranchName>) -> Vec<String> {
    let own = branch.map(|branch| format!("specs/{branch}/{TASK_LIST}"));
    let anywhere = [format!("spec/{TASK_LIST}"), TASK_LIST.to_owned()];
    std::iter::once("task-tree.json".to_owned()).chain(own).chain(anywhere).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_has_a_place_of_its_own() {
        let branch = "fix/login".parse().unwrap();
        let places = usual_places(Some(&branch));
        assert_eq!(places, ["task-tree.json", "specs/fix/login/tasks.md", "spec/tasks.md", "tasks.md"]);
        assert_eq!(usual_places(None), ["task-tree.json", "spec/tasks.md", "tasks.md"]);
    }
}
