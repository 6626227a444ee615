//! Tests: commands that are proposed from what a repository contains, and until when those of a task marked red may fail.

use super::{Plan, Task, TestCommand, TestKind};
use crate::name::TaskId;

/// That a task writes tests which must fail first, as the plan says in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedProposal {
    /// The task.
    pub task: TaskId,
    /// The file, as it was named.
    pub file: String,
    /// The line that says so.
    pub line: usize,
}

/// A test command and the file that speaks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct TestProposal {
    /// The command.
    pub test: TestCommand,
    /// Why: the file.
    pub because: &'static str,
}

/// A file that tells how a project is tested: its name, the command, the framework.
type Sign = (&'static str, &'static str, &'static str);

/// Files whose presence is enough, the surest first.
const SIGNS: &[Sign] = &[
    ("Cargo.toml", "cargo test", "cargo"),
    ("go.mod", "go test ./...", "go"),
    ("mix.exs", "mix test", "exunit"),
    ("Package.swift", "swift test", "swift"),
    ("deno.json", "deno test", "deno"),
    ("pom.xml", "mvn -q test", "junit"),
    ("gradlew", "./gradlew test", "junit"),
    ("build.gradle", "gradle test", "junit"),
    ("build.gradle.kts", "gradle test", "junit"),
    ("global.json", "dotnet test", "dotnet"),
    (".rspec", "bundle exec rspec", "rspec"),
    ("phpunit.xml", "vendor/bin/phpunit", "phpunit"),
    ("phpunit.xml.dist", "vendor/bin/phpunit", "phpunit"),
    ("pytest.ini", "pytest", "pytest"),
    ("conftest.py", "pytest", "pytest"),
    ("tox.ini", "pytest", "pytest"),
];

/// The test command of a repository. `read` gives the text of a file at its top, if it is there.
pub fn propose_test(read: impl Fn(&str) -> Option<String>) -> Option<TestProposal> {
    let found = SIGNS.iter().find(|(file, ..)| read(file).is_some());
    if let Some((file, command, framework)) = found {
        return Some(proposal(command, framework, file));
    }
    if let Some(script) = read("package.json").as_deref().and_then(test_script) {
        let framework = ["vitest", "jest", "mocha", "playwright"].iter().find(|name| script.contains(**name));
        return Some(proposal(node_command(&read), framework.copied().unwrap_or_default(), "package.json"));
    }
    if read("pyproject.toml").is_some_and(|text| text.contains("pytest")) {
        let command = if read("uv.lock").is_some() { "uv run pytest" } else { "pytest" };
        return Some(proposal(command, "pytest", "pyproject.toml"));
    }
    if read("pubspec.yaml").is_some_and(|text| text.contains("sdk: flutter")) {
        return Some(proposal("flutter test", "flutter", "pubspec.yaml"));
    }
    let has_target = |text: String| text.lines().any(|line| line.starts_with("test:"));
    read("Makefile").is_some_and(has_target).then(|| proposal("make test", "", "Makefile"))
}

fn proposal(command: &str, framework: &str, because: &'static str) -> TestProposal {
    let framework = Some(framework.to_owned()).filter(|name| !name.is_empty());
    let test = TestCommand {
        kind: TestKind::Unit,
        command: command.to_owned(),
        framework,
        ..TestCommand::default()
    };
    TestProposal { test, because }
}

/// The `test` script of a `package.json`, unless it is the one that npm writes to say that there is none.
fn test_script(text: &str) -> Option<String> {
    let package: serde_json::Value = serde_json::from_str(text).ok()?;
    let script = package.get("scripts")?.get("test")?.as_str()?;
    (!script.contains("no test specified")).then(|| script.to_owned())
}

fn node_command(read: &impl Fn(&str) -> Option<String>) -> &'static str {
    let locks = [
        ("pnpm-lock.yaml", "pnpm test"),
        ("yarn.lock", "yarn test"),
        ("bun.lock", "bun run test"),
        ("bun.lockb", "bun run test"),
    ];
    locks.iter().find(|(file, _)| read(file).is_some()).map_or("npm test", |(_, command)| command)
}

impl Plan {
    /// The tasks that write failing tests, each with those that have to make them pass: the others of its phase that
    /// come later or, where the phase has none, those of the next phase that has any. Once all of these are done, no test
    /// may fail. What the plan skips or has ticked does not count.
    #[must_use]
    pub fn tests_first(&self) -> Vec<(TaskId, Vec<TaskId>)> {
        if self.leaves().all(|task| !task.red) {
            return Vec::new();
        }
        let order = self.order();
        let reds = order.iter().enumerate().filter(|(_, task)| task.red);
        reds.map(|(at, red)| (red.id.clone(), find_fixing_tasks(&order[at + 1..], red))).collect()
    }
}

fn find_fixing_tasks(later: &[&Task], red: &Task) -> Vec<TaskId> {
    let open = || later.iter().filter(|task| !task.red && !task.mark.is_settled());
    let in_phase = |parent: &Option<TaskId>| -> Vec<TaskId> {
        open().filter(|task| task.parent == *parent).map(|task| task.id.clone()).collect()
    };
    match in_phase(&red.parent) {
        own if !own.is_empty() => own,
        _ => open().next().map(|next| in_phase(&next.parent)).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Plan, propose_test};

    fn find_fixing_tasks(text: &str, red: &str) -> String {
        let plan = Plan::read("tasks.md", text.as_bytes()).unwrap();
        let found = plan.tests_first().into_iter().find(|(task, _)| task.as_str() == red).unwrap().1;
        found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn red_tests_are_fixed_by_later_tasks_of_the_phase() {
        let text = "## Phase 1: A\n\n- [ ] T001 x\n- [ ] T002 [red] tests\n- [ ] T003 [red] more\n- [ ] T004 y\n- [-] T005 no\n- [ ] T006 z\n\n## Phase 2: B\n\n- [ ] T007 w\n";
        assert_eq!(find_fixing_tasks(text, "T002"), "T004 T006");
        assert_eq!(find_fixing_tasks(text, "T003"), "T004 T006");
    }

    #[test]
    fn red_tests_of_a_phase_without_other_tasks_are_fixed_by_the_next_phase() {
        let text = "## Phase 1: Tests\n\n- [ ] T001 [red] tests\n\n## Phase 2: Work\n\n- [ ] T002 a\n- [ ] T003 b\n\n## Phase 3: More\n\n- [ ] T004 c\n";
        assert_eq!(find_fixing_tasks(text, "T001"), "T002 T003");
    }

    #[test]
    fn each_kind_of_project_gets_its_test_command() {
        let script = r#"{"scripts": {"test": "vitest run"}}"#;
        let none = r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#;
        for (files, wanted) in [
            (&[("Cargo.toml", "")][..], Some("cargo test")),
            (&[("package.json", script)], Some("npm test")),
            (&[("package.json", script), ("pnpm-lock.yaml", "")], Some("pnpm test")),
            (&[("package.json", none)], None),
            (&[("pyproject.toml", "[tool.pytest.ini_options]"), ("uv.lock", "")], Some("uv run pytest")),
            (&[("Makefile", "all:\ntest: all\n")], Some("make test")),
            (&[("Makefile", "all:\n")], None),
            (&[], None),
        ] {
            let read =
                |name: &str| files.iter().find(|(file, _)| *file == name).map(|(_, text)| (*text).to_owned());
            let found = propose_test(read).map(|proposal| proposal.test.command);
            assert_eq!(found.as_deref(), wanted, "{files:?}");
        }
    }
}
