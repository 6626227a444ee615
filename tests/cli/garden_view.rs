//! The live view: what a person sees on a terminal while a run goes on.

use std::time::Duration;

use arborist_testkit::{Run, Terminal, TestRepo, steady};

const TREE: &str = r#"{
  "nodes": {
    "T001": {"id": "T001", "name": "Create the schema"},
    "T002": {"id": "T002", "name": "Add the form", "depends_on": ["T001"]}
  },
  "root_ids": ["T001", "T002"]
}
"#;

/// Says something, and works on T002 until there is a file `go`.
const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *T002:*) printf 'I read \033[2Jthe 日本語 form, all of it, from its first line to its very last line\n'
    until [ -e "$ROOT/go" ]; do sleep 0.02; done ;;
  *) echo done ;;
esac
"#;

fn repo() -> TestRepo {
    TestRepo::planned("task-tree.json", TREE, WORKER)
}

fn start(repo: &TestRepo, columns: u16, args: &[&str], env: &[(&str, &str)]) -> Terminal {
    let mut command = repo.command("git-arborist-gardener", &repo.path(""));
    command.args(["--test-command", "true"]).args(args).envs(env.iter().copied());
    Terminal::start(command, columns)
}

fn go(repo: &TestRepo) {
    std::fs::write(repo.root().join("go"), "").unwrap();
}

/// The lines that end with the whole: those that are kept at the bottom.
fn bottom(screen: &str) -> Vec<&str> {
    let lines: Vec<&str> = screen.lines().filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(2)..].to_vec()
}

#[test]
fn the_live_view_shows_running_tasks_and_leaves_the_same_lines_as_piped_output() {
    let repo = repo();
    let terminal = start(&repo, 80, &[], &[]);
    terminal.becomes("not the rows of what runs", |screen| {
        matches!(bottom(screen)[..], [running, whole]
            if running.starts_with(" T002 implement 1/5 robot 00:")
                && running.ends_with("I read the 日本語 form, all of it, from its f…")
                && whole.starts_with(" ━━━━━━━━━━━━━━━─────────────── 1/2 done 00:"))
    });
    go(&repo);
    let (code, screen, bytes) = terminal.ends();
    assert_eq!(code, 0);
    let piped = Run::of(
        repo.command("git", &repo.path(""))
            .args(["arborist", "gardener", "--new-run", "--test-command", "true"]),
        b"",
    );
    let without_ids = |text: &str| {
        // The terminal wraps a long line.
        let text = steady(text).replace("\n  ", " ");
        let is_id = |word: &str| word.len() == 10 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let words = |line: &str| line.split(' ').filter(|word| !is_id(word)).collect::<Vec<_>>().join(" ");
        text.lines().filter(|line| !line.contains("git log")).map(words).collect::<Vec<_>>()
    };
    let expected = piped.stderr() + &piped.stdout();
    assert_eq!(without_ids(&screen), without_ids(&expected), "the view is gone, the story stays");
    assert!(
        !bytes.contains("\x1b[?25l") && !bytes.contains("\x1b[6n"),
        "nothing is hidden, nothing is asked"
    );
}

#[test]
fn the_live_view_fits_a_narrow_terminal_and_survives_resizing() {
    let repo = repo();
    let terminal = start(&repo, 120, &[], &[]);
    terminal.shows("its very last line");
    terminal.resize(40);
    terminal.becomes("not the rows of a narrow terminal", |screen| {
        matches!(bottom(screen)[..], [running, whole]
            if running.contains(" T002 implement 1/5 00:")
                && running.ends_with('…')
                && running.contains("I read the")
                && whole.contains("━─")
                && whole.contains(" 1/2 done 00:"))
    });
    terminal.resize(120);
    terminal.becomes("not one view", |screen| {
        screen.contains("last line") && screen.matches(" done 00:").count() == 1
    });
    go(&repo);
    let (code, screen, _) = terminal.ends();
    assert_eq!((code, screen.matches(" done 00:").count()), (0, 0), "{screen}");
}

#[test]
fn no_color_disables_colour_and_quiet_and_json_disable_the_live_view() {
    for (args, env, has_view, has_colour) in [
        (&[][..], &[][..], true, true),
        (&[], &[("NO_COLOR", "1")], true, false),
        (&["--quiet"], &[], false, false),
        (&["--json"], &[], false, false),
    ] {
        let repo = repo();
        go(&repo);
        let (code, screen, bytes) = start(&repo, 80, args, env).ends();
        assert_eq!(code, 0, "{screen}");
        assert_eq!(bytes.contains("\x1b[?7l"), has_view, "{args:?} {env:?}: {bytes}");
        assert_eq!(bytes.contains("\x1b[32m"), has_colour, "{args:?} {env:?}: {bytes}");
    }
}

#[test]
fn text_typed_during_a_run_is_cleared_from_the_live_view() {
    let repo = repo();
    let mut terminal = start(&repo, 80, &[], &[]);
    terminal.shows("日本語");
    terminal.types("hello");
    terminal.shows("hello");
    let end = std::time::Instant::now() + Duration::from_secs(120);
    while terminal.screen().contains("hello") {
        assert!(std::time::Instant::now() < end, "{}", terminal.screen());
        std::thread::sleep(Duration::from_millis(20));
    }
    go(&repo);
    assert_eq!(terminal.ends().0, 0);
}

#[test]
fn a_signal_removes_the_live_view_and_restores_the_terminal() {
    let repo = repo();
    let terminal = start(&repo, 80, &[], &[]);
    terminal.shows("日本語");
    terminal.signals("INT");
    let (code, screen, bytes) = terminal.ends();
    assert_eq!(code, 130, "{screen}");
    assert!(screen.contains("stopped") && screen.contains("1 completed (T001)"), "{screen}");
    assert!(!screen.contains(" done 00:"), "{screen}");
    assert!(bytes.rfind("\x1b[?7h") > bytes.rfind("\x1b[?7l"), "rows are broken again");
}

#[test]
fn a_second_signal_ends_everything_at_once_and_removes_the_live_view() {
    let repo = repo();
    repo.agent(&WORKER.replace("until", "trap '' INT TERM HUP; echo ready; until"));
    let terminal = start(&repo, 80, &[], &[]);
    terminal.shows("ready");
    terminal.signals("TERM");
    std::thread::sleep(Duration::from_millis(400));
    terminal.signals("TERM");
    let (code, screen, _) = terminal.ends();
    assert_eq!(code, 143, "{screen}");
    assert!(!screen.contains(" done 00:"), "{screen}");
    go(&repo);
}

#[test]
fn each_parallel_task_has_its_own_row_in_the_live_view() {
    let repo = repo();
    repo.write("task-tree.json", TREE.replace(", \"depends_on\": [\"T001\"]", ""));
    repo.commit("at once\n");
    repo.agent(&WORKER.replace("*T002:*)", "Implement*)"));
    let terminal = start(&repo, 80, &["--jobs", "2"], &[]);
    terminal.shows(" T001 implement 1/5 robot");
    terminal.becomes("not a row for each", |screen| {
        let is_whole = bottom(screen).last().is_some_and(|whole| whole.contains(" 0/2 done"));
        is_whole
            && ["T001", "T002"].iter().all(|task| screen.contains(&format!(" {task} implement 1/5 robot")))
    });
    go(&repo);
    let (code, screen, _) = terminal.ends();
    assert!(code == 0 && screen.contains("2 completed"), "{screen}");
}
