//! The keys of tests: how they are run, and what keeps tasks from weakening them.

use super::{DefaultValue, ValueKind, setting::settings};

/// The pathspecs that `protect = "tests"` stands for: files that only tests use. Files of a CI service are not among
/// them.
pub const TEST_FILES: [&str; 25] = [
    ":(glob)**/test/**",
    ":(glob)**/tests/**",
    ":(glob)**/__tests__/**",
    ":(glob)**/testdata/**",
    ":(glob)**/test_*.py",
    ":(glob)**/*_test.*",
    ":(glob)**/*_spec.*",
    ":(glob)**/*.test.*",
    ":(glob)**/*.spec.*",
    ":(glob)**/*Test.java",
    ":(glob)**/*Tests.java",
    ":(glob)**/*IT.java",
    ":(glob)**/*Test.kt",
    ":(glob)**/*Test.php",
    ":(glob)**/*Test.cs",
    ":(glob)**/*Tests.cs",
    ":(glob)**/*Tests.swift",
    ":(glob)**/conftest.py",
    ":(glob)**/pytest.ini",
    ":(glob)**/phpunit.xml*",
    ":(glob)**/jest.config.*",
    ":(glob)**/vitest.config.*",
    ":(glob)**/playwright.config.*",
    ":(glob)**/.mocharc.*",
    ":(glob)**/.config/nextest.toml",
];

settings! {
    /// How tasks are tested, and what keeps them from weakening their tests.
    TestSettings in TESTS;

    allow_red: bool {
        key: "test.allow-red",
        variable: "ARBORIST_TEST_ALLOW_RED",
        kind: ValueKind::Switch,
        default: DefaultValue::Switch(false),
        about: "Whether to start a run although its tests fail before the first task. If the output of the test command names the failed tests, a task then fails only if a test fails that passed before; otherwise every task fails until the command succeeds.",
    }
    clean: bool {
        key: "test.clean",
        variable: "ARBORIST_TEST_CLEAN",
        kind: ValueKind::Switch,
        default: DefaultValue::Switch(false),
        about: "Whether the tests of a task that works in your checkout run in a separate, clean worktree of its commit. The settings worktree.setup and worktree.copy say how that worktree is set up.",
    }
    allow_fewer: bool {
        key: "test.allow-fewer",
        variable: "ARBORIST_TEST_ALLOW_FEWER",
        kind: ValueKind::Switch,
        default: DefaultValue::Switch(false),
        about: "Whether a task passes its test step and lands although a test command or a gate ran fewer tests than before, skipped more, or no longer says how many ran. A command whose output never said how many tests ran is not compared. '[allow:fewer-tests]' in a task's line of the plan allows it for that task, and --allow fewer-tests for the rest of the session.",
    }
    protect: Vec<Vec<String>> {
        key: "protect",
        variable: "ARBORIST_PROTECT",
        kind: ValueKind::Pathspecs,
        expected: "a list of pathspecs in quotes, or \"tests\"",
        default: DefaultValue::List(&[], "nothing"),
        about: "Files that a task must not change, move or delete. New files are allowed. The word tests stands for usual test files: those in folders called test, tests, __tests__ or testdata, files such as test_x.py, x_test.go, x.spec.ts and XTest.java, and the configuration of pytest, jest, vitest, playwright, mocha, phpunit and nextest; write tests/ for that folder alone. The lists of all sources are joined: a file of the repository can add to your own list, but cannot remove anything from it. '[allow:PATH]' in a task's line of the plan, or --allow PATH, allows a change.",
    }
}
