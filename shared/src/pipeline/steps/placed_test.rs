//! Which repository each test command runs in.
//!
//! The test commands of a task run in the first repository that it names. The test command of the run also runs in every
//! other repository that the task has changed, so that nothing is completed or lands untested.

use std::path::PathBuf;

use crate::{
    git::GitError,
    name::RepoName,
    pipeline::{TaskContext, TaskRun},
    plan::{Task, TestCommand},
};

/// A test command and the repository that it runs in.
#[derive(Debug, Clone)]
pub(in crate::pipeline) struct PlacedTest {
    /// The command.
    pub(in crate::pipeline) test: TestCommand,
    /// The name of the repository; `None` for the plan's.
    pub(in crate::pipeline) repo: Option<RepoName>,
    /// The checkout of that repository. A command that names a tool runs in the tool's directory.
    pub(in crate::pipeline) dir: PathBuf,
    /// Whether it runs in another repository than the first that the task names.
    pub(in crate::pipeline) is_elsewhere: bool,
}

impl PlacedTest {
    /// The command, with the name of its repository if that is not the task's first.
    pub(in crate::pipeline) fn describe(&self, command: &str) -> String {
        match &self.repo {
            Some(repo) if self.is_elsewhere => format!("'{command}' in {repo}"),
            None if self.is_elsewhere => format!("'{command}' in the repository of the plan"),
            _ => format!("'{command}'"),
        }
    }
}

impl TaskContext<'_> {
    /// Test commands in the first repository that the task names.
    pub(in crate::pipeline) fn place_tests(&self, task: &Task, commands: &[TestCommand]) -> Vec<PlacedTest> {
        let dir = self.place_of(task);
        let named = |(name, path): &&(RepoName, PathBuf)| {
            path == dir && task.repos.first().is_some_and(|first| first == name.as_str())
        };
        let repo = (dir != self.dir).then(|| self.places.iter().find(named)).flatten();
        let place = |test: &TestCommand| PlacedTest {
            test: test.clone(),
            repo: repo.map(|(name, _)| name.clone()),
            dir: dir.to_owned(),
            is_elsewhere: false,
        };
        commands.iter().map(place).collect()
    }
}

impl TaskRun<'_, '_, '_> {
    /// The tests of the task, in every repository that it has changed.
    pub(in crate::pipeline) fn place_tests_with_changed_repos(
        &self,
        commands: &[TestCommand],
    ) -> Result<Vec<PlacedTest>, GitError> {
        let context = &self.context;
        let mut placed = context.place_tests(self.task, commands);
        let usual = context.run.options.usual_test();
        let Some(usual) = usual.filter(|usual| context.find_tool(&usual.command).is_none()) else {
            return Ok(placed);
        };
        let tool_dir = |test: &PlacedTest| Some(context.find_tool(&test.test.command)?.dir.clone());
        let mut tested: Vec<PathBuf> = vec![context.place_of(self.task).to_owned()];
        tested.extend(placed.iter().filter_map(tool_dir));
        for (repo, dir) in self.changed_repos()? {
            if !tested.contains(&dir) {
                placed.push(PlacedTest { test: usual.clone(), repo, dir, is_elsewhere: true });
            }
        }
        Ok(placed)
    }

    /// The repositories that the task has changed, and their checkouts. The plan's is only looked at if there are others.
    fn changed_repos(&self) -> Result<Vec<(Option<RepoName>, PathBuf)>, GitError> {
        let others = &self.context.other_repos;
        let changed = others.iter().filter(|other| other.base.tree != other.tip.tree);
        let changed = changed.map(|other| (Some(other.name.clone()), other.repository.top().to_owned()));
        let mut changed: Vec<(Option<RepoName>, PathBuf)> = changed.collect();
        if !others.is_empty() {
            // The report of the task is written there even if all of its work is elsewhere.
            let folder = self.context.run.options.report_dir.trim_matches('/');
            let start = format!("{folder}/{}_run_", self.task.id);
            let is_report = |path: &[u8]| path.starts_with(start.as_bytes()) && path.ends_with(b".json");
            let changes = self.recorder.repository().changes(self.base.tree, self.recorder.tree())?;
            if changes.iter().any(|change| !is_report(&change.path)) {
                changed.push((None, self.context.dir.to_owned()));
            }
        }
        Ok(changed)
    }
}
