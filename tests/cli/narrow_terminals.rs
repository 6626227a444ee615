//! Lists with long ids and branch names on a terminal: no line is wider than the terminal, and nothing that is needed is cut
//! away.

use std::fs;

use arborist_testkit::{Terminal, TestRepo};

use crate::test_workspace::TestWorkspace;

const LONG: &str = "PORTAL-2026-a-task-with-a-very-long-id-that-still-is-valid-004";
const PHASE: &str = "phase-1-the-data-model-of-the-customer-portal";
const WORKER: &str = "case \"$prompt\" in
Review*) echo APPROVED ;;
*) [ \"$ARBORIST_TASK\" = T003 ] && exit 3; echo \"$ARBORIST_TASK\" > same.txt ;;
esac";

/// A plan with a task that has the longest id, one with a usual id, one that fails, and one that waits for them.
fn plan(repo: &str) -> String {
    let task = |id: &str, name: &str, more: &str| {
        format!(
            "\"{id}\": {{\"id\": \"{id}\", \"name\": \"{name}\", \"parent\": \"{PHASE}\", \"parallel\": true{more}}}"
        )
    };
    let waits = format!(", \"depends_on\": [\"{LONG}\"]");
    let nodes = [
        task(LONG, "Create the schema of customers, with addresses, contacts and their history", repo),
        task("PORTAL-2026-migrations-002", "Add migrations", ""),
        task("T003", "Fail", ""),
        task("T004", "Wait", &waits),
    ];
    let name = "The data model of the customer portal, with all of its tables, views and indexes";
    let ids = format!("\"{LONG}\", \"PORTAL-2026-migrations-002\", \"T003\", \"T004\"");
    format!(
        "{{\"nodes\": {{\"{PHASE}\": {{\"id\": \"{PHASE}\", \"name\": \"{name}\", \"children\": [{ids}]}}, {}}}, \"root_ids\": [\"{PHASE}\"]}}",
        nodes.join(", ")
    )
}

/// The lines of a command on a terminal of so many columns. None of them is wider.
#[track_caller]
fn lines(repo: &TestRepo, columns: u16, args: &[&str]) -> Vec<String> {
    let mut command = repo.command("git", &repo.path(""));
    command.arg("arborist").args(args).env("NO_COLOR", "1");
    let (_, _, printed) = Terminal::start(command, columns).ends();
    let lines: Vec<String> = printed.lines().map(|line| line.trim_end().to_owned()).collect();
    let is_wide = |line: &&String| line.chars().count() > usize::from(columns) && !line.starts_with("hint: ");
    assert_eq!(lines.iter().find(is_wide), None, "{args:?}: {printed}");
    lines
}

#[track_caller]
fn has(lines: &[String], begin: &str, rest: &[&str]) {
    let is_it =
        |line: &String| line.trim_start().starts_with(begin) && rest.iter().all(|word| line.contains(word));
    assert!(lines.iter().any(is_it), "'{begin}' and {rest:?} in {lines:#?}");
}

/// A workspace in which one task was finished, one landed by hand, and one failed.
fn workspace() -> TestWorkspace {
    let workspace = TestWorkspace::of(&["backend"], &plan(", \"repo\": \"backend\""));
    workspace.agent(WORKER);
    workspace.git(["config", "arborist.merge.auto", "false"]).succeeds();
    let run = ["gardener", "--jobs", "3", "--keep-going", "--max-retries", "1"];
    workspace.arborist(run).exits(1);
    workspace
}

#[test]
fn the_task_tree_on_a_narrow_terminal_shows_ids_and_remarks_in_full() {
    let workspace = workspace();
    let shown = lines(&workspace, 80, &["state"]);
    assert!(shown.contains(&format!("  ▶ {LONG}")), "{shown:#?}");
    let at = shown.iter().position(|line| line.ends_with(LONG)).unwrap();
    assert!(shown[at + 1].contains("complete      not landed"), "{shown:#?}");
    has(&shown, "▶ PORTAL-2026-migrations-002 Add migrations", &["complete      not landed"]);
    has(&shown, "✘ T003", &["failed"]);
    has(&shown, "the agent exited with code 3", &[]);
    has(&shown, &format!("waits for {LONG}"), &[]);
    has(&shown, &format!("✘ {PHASE} The data model of the c…  failed"), &[]);
    let wide = lines(&workspace, 140, &["state"]);
    has(&wide, &format!("▶ {LONG} Create the schema of customers, w…  complete"), &["not landed"]);
}

#[test]
fn lists_on_a_narrow_terminal_shorten_branches_before_ids() {
    let workspace = workspace();
    let scope = workspace.session_branch("repo");
    let queue = lines(&workspace, 80, &["merge", "list", "--scope", &scope]);
    has(&queue, "PORTAL-2026-a-task-…t-still-is-valid-004  waiting", &["  …"]);
    let wide = lines(&workspace, 140, &["merge", "list", "--scope", &scope]);
    has(&wide, LONG, &["waiting", &scope]);
    let shown = lines(&workspace, 80, &["worktree", "list", "--branches", "--scope", &scope]);
    has(&shown, "PORTAL-2026-a-ta", &["…", "-is-valid-004  complete", "  …s-valid-004"]);
    has(&shown, "PORTAL-2026-migrations-002  ", &["complete", "  …rations-002"]);
    let wide = lines(&workspace, 140, &["worktree", "list", "--branches", "--scope", &scope]);
    has(&wide, LONG, &["complete", "…", "a-very-long-id-that-still-is-valid-004"]);
}

#[test]
fn the_session_list_shortens_a_long_branch_and_still_shows_the_plan() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    repo.git(["checkout", "-q", "-b", "feature/customer-portal-with-a-rather-long-branch-name"]).succeeds();
    repo.arborist(["gardener"]).succeeds();
    let shown = lines(&repo, 80, &["session", "list"]);
    assert!(shown[1].contains("feature/custom") && shown[1].contains("…"), "{shown:#?}");
    assert!(shown[1].contains("ong-branch-name  tasks.md"), "{shown:#?}");
    let wide = lines(&repo, 140, &["session", "list"]);
    assert!(wide[1].ends_with("rather-long-branch-name  tasks.md"), "{wide:#?}");
}

#[test]
fn help_is_as_wide_as_the_terminal_even_if_its_height_is_unknown() {
    let repo = TestRepo::init();
    for columns in [60, 80, 130] {
        for args in [&["merge", "-h"][..], &["gardener", "-h"], &["session", "replay", "-h"]] {
            let shown = lines(&repo, columns, args);
            let widest = shown.iter().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= usize::from(columns.min(100)), "{args:?}: {widest}");
        }
    }
    let mut command = repo.command("sh", &repo.path(""));
    command.args(["-c", "stty rows 0 cols 70; git arborist merge -h"]);
    let (_, _, printed) = Terminal::start(command, 70).ends();
    let widest = printed.lines().map(|line| line.trim_end().chars().count()).max();
    assert!(widest.unwrap() <= 70, "{printed}");
}

#[test]
fn examples_fit_into_eighty_columns_so_that_they_can_be_copied() {
    let repo = TestRepo::init();
    let names = fs::read_dir("docs/man").unwrap().flatten();
    let names = names.filter_map(|file| Some(file.path().file_stem()?.to_str()?.to_owned()));
    let examples = |columns: u16, name: &str| -> Vec<String> {
        let mut shown = lines(&repo, columns, &[name, "-h"]);
        shown.retain(|line| line.starts_with("       git "));
        shown
    };
    for name in names.filter(|name| name != "arborist") {
        assert_eq!(examples(80, &name), examples(100, &name), "{name}");
    }
}

#[test]
fn long_reasons_are_wrapped_only_on_a_terminal() {
    let reason =
        "this reason is much longer than the eighty columns of a terminal, because it explains all of it";
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", &format!("echo '{reason}' >&2; exit 3"));
    let mut command = repo.command("git", &repo.path(""));
    command.args(["arborist", "gardener", "--max-retries", "2"]);
    let (_, _, printed) = Terminal::start(command, 80).ends();
    let first = " attempt 1: the agent exited with code 3: this reason is much longer than";
    assert!(printed.lines().any(|line| line.trim_end().ends_with(first)), "{printed}");
    repo.arborist(["state", "T001"]).succeeds().out(reason);
    lines(&repo, 80, &["state", "T001"]);
}

#[test]
fn the_list_of_task_commits_fits_on_a_terminal_and_repeats_nothing() {
    let repo = TestRepo::planned("task-tree.json", &plan(""), WORKER);
    repo.arborist(["gardener", "--until", LONG]).succeeds();
    repo.arborist(["garden", "T003", "--max-retries", "1"]).exits(1);
    let shown = lines(&repo, 140, &["trailers", "log"]);
    has(&shown, "", &[" T003 ", " implement-fail  #1  \"Fail\" (failed, attempt 1/1)"]);
    has(&shown, "", &[LONG, " complete            \"Create the schema"]);
    let narrow = lines(&repo, 80, &["trailers", "log"]);
    has(&narrow, "", &[" PORTAL-2026-a-task-with-a", " complete"]);
    has(&lines(&repo, 80, &["trailers", "log", "--task", "T003"]), "", &["\"Fail\" (failed, attempt 1/1)"]);
}
