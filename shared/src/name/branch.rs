//! Branch names, and their conversion into a single ref component.

use serde::{Deserialize, Serialize};

use super::{TaskId, ref_component_fault};

/// The prefix of the branches of single tasks, below `refs/heads/`.
pub const TASK_BRANCHES: &str = "arborist/task/";
/// The prefix of the full ref names of the branches of single tasks.
pub const TASK_REFS: &str = "refs/heads/arborist/task/";

/// The prefix of refs for landings that wait for a checkout of their branch.
pub const LANDINGS: &str = "refs/arborist/landing/";

/// A name with slashes as one ref component.
#[must_use]
pub fn escaped(name: &str) -> String {
    name.replace('%', "%25").replace('/', "%2F")
}

/// The name that [`escaped`] made into this component. Text that is not escaped stays as it is.
#[must_use]
pub fn unescaped(component: &str) -> String {
    component.replace("%2F", "/").replace("%25", "%")
}

/// A ref component is a file name on disk, which file systems limit in length.
const LONGEST_COMPONENT: usize = 200;

/// The short name of a branch, such as `feature/x`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BranchName(String);

impl BranchName {
    /// The branch whose ref has this full name.
    #[must_use]
    pub fn of_ref(full_name: &str) -> Option<Self> {
        full_name.strip_prefix("refs/heads/")?.parse().ok()
    }

    /// The full name of its ref.
    #[must_use]
    pub fn to_ref(&self) -> String {
        format!("refs/heads/{}", self.0)
    }

    /// The name as one ref component. Injective: two branches never share one.
    #[must_use]
    pub fn component(&self) -> String {
        let escaped = escaped(&self.0);
        if escaped.len() <= LONGEST_COMPONENT {
            return escaped;
        }
        let mut cut = LONGEST_COMPONENT - 66;
        while !escaped.is_char_boundary(cut) {
            cut -= 1;
        }
        format!("{}%%{}", &escaped[..cut], super::oid::digest(self.0.as_bytes()))
    }

    /// The prefix of the refs of this run's task branches, with a trailing slash.
    #[must_use]
    pub fn task_refs(&self) -> String {
        format!("{TASK_REFS}{}/", self.component())
    }

    /// The branch for the work of one task of this run.
    #[must_use]
    pub fn task_branch(&self, task: &TaskId) -> Self {
        Self(format!("{TASK_BRANCHES}{}/{task}", self.component()))
    }

    /// The ref with the commit that has landed on this branch and waits for a checkout of it.
    #[must_use]
    pub fn landing_ref(&self) -> String {
        format!("{LANDINGS}{}", self.component())
    }

    /// The component that names the run, if this is the branch of one of its tasks.
    #[must_use]
    pub fn run_component(&self) -> Option<&str> {
        self.0.strip_prefix(TASK_BRANCHES)?.split_once('/').map(|(component, _task)| component)
    }

    /// The run's branch, if this is the branch of one of its tasks and the component contains its whole name.
    #[must_use]
    pub fn run_of_task_branch(&self) -> Option<Self> {
        let component = self.run_component().filter(|component| !component.contains("%%"))?;
        unescaped(component).parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn branch(name: &str) -> BranchName {
        name.parse().unwrap()
    }

    #[test]
    fn unusual_but_valid_branch_names_are_accepted() {
        for good in ["main", "feature/x", "a@b(c)/ü", "x@y", "a;b", "$(x)", "a%2Fb", "heads/main"] {
            assert_eq!(branch(good).as_str(), good);
        }
    }

    #[test]
    fn branch_names_that_git_refuses_are_refused() {
        for bad in [
            "", "HEAD", "-x", "a b", "a:b", "a..b", "a@{b", "/a", "a/", "a//b", "a/.b", "a.lock/b", "a.", "@",
        ] {
            assert!(bad.parse::<BranchName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn ref_components_of_branches_are_unique_and_short() {
        let long = |end: char| format!("{}{end}", "x/".repeat(150));
        let names = ["a/b", "a%2Fb", "a%252Fb", "a-b", &long('a'), &long('b')].map(|n| branch(n).component());
        for (i, a) in names.iter().enumerate() {
            assert!(a.len() <= 200 && !a.contains('/'), "{a}");
            assert!(names[i + 1..].iter().all(|b| a != b), "{a}");
        }
    }

    #[test]
    fn a_task_branch_has_a_fixed_depth() {
        let id = "T001".parse().unwrap();
        assert_eq!(branch("feature/x").task_branch(&id).as_str(), "arborist/task/feature%2Fx/T001");
        for run in ["feature/x", "a%2Fb/c", "main"].map(branch) {
            assert_eq!(run.task_branch(&id).run_of_task_branch(), Some(run));
        }
        assert_eq!(branch("feature/x").run_of_task_branch(), None);
    }
}

/// Why `name` is no name of a branch, if it is not.
fn fault(name: &str) -> Option<&'static str> {
    if name == "HEAD" || name == "@" {
        return Some("it is reserved by git");
    }
    if name.starts_with('-') {
        return Some("it begins with '-'");
    }
    if name.ends_with('.') {
        return Some("it ends in a dot");
    }
    name.split('/').find_map(ref_component_fault)
}

checked_name!(BranchName, "branch name", fault);
