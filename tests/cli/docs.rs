//! The README, the chapters in `docs/` and the examples of manual pages in `docs/man/` are run: each with its own home folder and its own shell, block after block, as a reader would.
//!
//! - A block `sh` must succeed; its output is not compared.
//! - A block `console` has commands behind `$ `, each followed by its output, which is compared.
//! - `<!-- file: PATH -->` before a block writes the block to that file.
//! - `<!-- exit N -->` before a block is the exit code of its last command.
//! - `<!-- not run: reason -->` before a block leaves it out.
//! - `<!-- hidden -->` before a block, or `hidden, ` before one of these comments, keeps it out of the manual page.
//!
//! Ids, times and paths differ from run to run. An id that a chapter shows stands for the one that the command printed, also
//! in later commands. A date stands for one date on the whole page. `BLESS=1 cargo test --test cli docs` writes the output that differs; read the difference.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Stdio},
    sync::LazyLock,
};

use arborist_testkit::{Run, TestRepo, is_installed, steady};
use regex::Regex;

/// The home folder of the reader, as the chapters show it.
const HOME: &str = "/home/ada";

/// A fenced block of a chapter.
struct Block {
    directive: String,
    language: String,
    /// The line numbers of its content, from 0.
    start: usize,
    end: usize,
}

fn blocks(lines: &[&str]) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut directive = String::new();
    let mut number = 0;
    while let Some(line) = lines.get(number) {
        number += 1;
        if let Some(language) = line.strip_prefix("```") {
            let end = (number..lines.len()).find(|&n| lines[n] == "```").expect("the end of a block");
            let directive = std::mem::take(&mut directive);
            blocks.push(Block { directive, language: language.to_owned(), start: number, end });
            number = end + 1;
        } else if let Some(comment) = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->")) {
            let comment = comment.strip_prefix("hidden").unwrap_or(comment);
            comment.trim_start_matches(", ").clone_into(&mut directive);
        } else if !line.is_empty() {
            directive.clear();
        }
    }
    blocks
}

/// A command of a `console` block and the output that the chapter shows.
struct Shown {
    command: String,
    output: Vec<String>,
}

fn shown(lines: &[&str]) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    for line in lines {
        match (line.strip_prefix("$ "), all.last_mut()) {
            (Some(command), _) => all.push(Shown { command: command.to_owned(), output: Vec::new() }),
            (None, Some(last)) => last.output.push((*line).to_owned()),
            (None, None) => panic!("a console block begins with a command, not with '{line}'"),
        }
    }
    all
}

/// The reader's shell, which keeps its folder and its variables from block to block.
struct Reader {
    home: PathBuf,
    shell: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Ids as the chapter shows them, and as they are in this run.
    ids: Vec<(String, String)>,
    /// Dates in the same way.
    dates: Vec<(String, String)>,
}

impl Reader {
    fn new(repo: &TestRepo, folder: &Path) -> Self {
        let mut command = repo.command("bash", folder);
        command.args(["--norc", "--noprofile"]).env("LANG", "C.UTF-8").env("PAGER", "cat");
        // Files have the time of the real clock. With a clock that stands still they would be from the future.
        for name in ["GIT_TEST_DATE_NOW", "GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
            command.env_remove(name);
        }
        let mut shell = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("bash");
        let input = shell.stdin.take().expect("a pipe");
        let output = BufReader::new(shell.stdout.take().expect("a pipe"));
        Self { home: repo.home(), shell, input, output, ids: Vec::new(), dates: Vec::new() }
    }

    /// Runs commands: what they print, and the exit code of the last one.
    fn run(&mut self, commands: &str) -> (String, i32) {
        const END: &str = "\u{1}end ";
        let commands = self.translate(commands);
        writeln!(self.input, "{{ {commands}\n}} </dev/null 2>&1\nprintf '\\001end %d\\n' $?")
            .expect("a shell");
        let mut text = String::new();
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("a pipe") > 0, "the shell has ended:\n{text}");
            if let Some((rest, code)) = line.split_once(END) {
                text.push_str(rest);
                let home = self.home.display().to_string();
                return (text.replace(&home, HOME), code.trim().parse().expect("an exit code"));
            }
            // Tests run without a sandbox, but readers do not.
            if !(line.starts_with("  note ") && line.contains(" ran without a sandbox: ")) {
                text.push_str(&line);
            }
        }
    }

    /// Writes a file below the folder that the shell is in.
    fn write_file(&mut self, path: &str, text: &str) {
        let write =
            format!("mkdir -p \"$(dirname {path})\" && cat > {path} <<'END-OF-FILE'\n{text}\nEND-OF-FILE");
        let (output, code) = self.run(&write);
        assert_eq!(code, 0, "{path} is not written: {output}");
    }

    /// Runs the commands of a `console` block, and gives the block with their output. Output that is the same keeps its ids
    /// and times.
    fn repeat(&mut self, block: &Block, content: &[&str]) -> String {
        let last_code =
            block.directive.strip_prefix("exit ").map_or(0, |code| code.parse().expect("an exit code"));
        let commands = shown(content);
        let last = commands.len() - 1;
        let mut result = String::new();
        for (number, Shown { command, output: shown }) in commands.into_iter().enumerate() {
            let (output, code) = self.run(&command);
            assert_eq!(code, if number == last { last_code } else { 0 }, "$ {command}\n{output}");
            let shown = shown.join("\n");
            let output = self.learn(&shown, &output);
            let output = self.learn_dates(&shown, &output);
            let is_same =
                is_same(&comparable(&shown), &comparable(&output)) && have_same_dates(&shown, &output);
            let kept = if is_same { &shown } else { output.trim_end() };
            result.push_str(&format!("$ {command}\n"));
            result.extend(kept.lines().map(|line| format!("{}\n", line.trim_end())));
        }
        result
    }

    /// The command with the ids of this run.
    fn translate(&self, command: &str) -> String {
        let pattern = Regex::new(r"\b[0-9a-f]{4,64}\b").expect("a pattern");
        let replace = |found: &regex::Captures<'_>| {
            let known = self.ids.iter().find(|(shown, _)| shown.starts_with(&found[0]));
            known.map_or_else(|| found[0].to_owned(), |(_, id)| id[..found[0].len()].to_owned())
        };
        pattern.replace_all(command, replace).into_owned()
    }

    /// Notes which ids stand for which, and gives the output with the chapter's ids.
    fn learn(&mut self, shown: &str, output: &str) -> String {
        let pattern = Regex::new(r"\b[0-9a-f]{7,64}\b").expect("a pattern");
        let ids = |text: &str| pattern.find_iter(text).map(|id| id.as_str().to_owned()).collect::<Vec<_>>();
        let (old, new) = (ids(shown), ids(output));
        if old.len() == new.len() {
            self.ids.extend(old.into_iter().zip(new).filter(|(old, new)| old.len() == new.len()));
        }
        let back = |found: &regex::Captures<'_>| {
            let known = self.ids.iter().find(|(_, id)| id.starts_with(&found[0]));
            known.map_or_else(|| found[0].to_owned(), |(shown, _)| shown[..found[0].len()].to_owned())
        };
        pattern.replace_all(output, back).into_owned()
    }

    /// Notes which dates stand for which, and gives the output with the dates that the page shows first for them.
    fn learn_dates(&mut self, shown: &str, output: &str) -> String {
        let (old, new) = (dates(shown), dates(output));
        if old.len() == new.len() {
            for (old, new) in old.into_iter().zip(new) {
                if !self.dates.iter().any(|(_, known)| *known == new) {
                    self.dates.push((old, new));
                }
            }
        }
        let back = |found: &regex::Captures<'_>| {
            let known = self.dates.iter().find(|(_, date)| *date == found[0]);
            known.map_or_else(|| found[0].to_owned(), |(shown, _)| shown.clone())
        };
        DATE.replace_all(output, back).into_owned()
    }
}

/// A day in a text.
static DATE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}\b").expect("a pattern"));

fn dates(text: &str) -> Vec<String> {
    DATE.find_iter(text).map(|date| date.as_str().to_owned()).collect()
}

/// Whether two texts name the same dates. Where lines are left out, they cannot be compared.
fn have_same_dates(shown: &str, output: &str) -> bool {
    let (shown, output) = (dates(shown), dates(output));
    shown.len() != output.len() || shown == output
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// Whether the output is the one that is shown. A line `...` stands for any lines.
fn is_same(shown: &[String], output: &[String]) -> bool {
    match shown.split_first() {
        None => output.is_empty(),
        Some((first, rest)) if first == "..." => (0..=output.len()).any(|n| is_same(rest, &output[n..])),
        Some((first, rest)) => output.first() == Some(first) && is_same(rest, &output[1..]),
    }
}

/// Lines without what differs from run to run. Columns may be wider.
fn comparable(text: &str) -> Vec<String> {
    // Of several logs in one second, the later ones have a number.
    let stamps = Regex::new("[0-9]{8}T[0-9]{6}(-[0-9]+)?").expect("a pattern");
    let text = stamps.replace_all(text.trim_end(), "[stamp]");
    let runtimes = Regex::new("Runtime: [0-9.]+").expect("a pattern");
    let text = runtimes.replace_all(&text, "Runtime: [time]");
    steady(&text)
        .replace("[time] [time]", "[time]")
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

/// Gives a text with the output that its commands print now.
fn play(text: &str, reader: &mut Reader) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut result = String::new();
    let mut copied = 0;
    for block in blocks(&lines) {
        let content = &lines[block.start..block.end];
        if block.directive.starts_with("not run: ") {
            continue;
        }
        match (block.directive.strip_prefix("file: "), block.language.as_str()) {
            (Some(path), _) => reader.write_file(path, &content.join("\n")),
            (None, "sh") => {
                reader.run(&format!("set -e\n{}\nset +e", content.join("\n")));
            }
            (None, "console") => {
                result.extend(lines[copied..block.start].iter().map(|line| format!("{line}\n")));
                result.push_str(&reader.repeat(&block, content));
                copied = block.end;
            }
            _ => {}
        }
    }
    result.extend(lines[copied..].iter().map(|line| format!("{line}\n")));
    result
}

/// Runs a text: its commands must exist, exit as it says and print what it shows. Some output depends on the clock and on
/// what runs at the same time, so a difference counts only if it occurs twice. `start` begins in a new repository.
#[track_caller]
fn check(path: &str, start: impl Fn() -> (TestRepo, Reader)) {
    let text = fs::read_to_string(path).expect("a text");
    let mut difference = None;
    for _ in 0..2 {
        let (_repo, mut reader) = start();
        let played = play(&text, &mut reader);
        if std::env::var_os("BLESS").is_some() {
            return fs::write(path, played).expect("a text");
        }
        let found = text.lines().zip(played.lines()).find(|(shown, printed)| shown != printed);
        difference = found.map(|(shown, printed)| format!("  shown:   {shown}\n  printed: {printed}"));
        if difference.is_none() {
            return;
        }
    }
    let difference = difference.unwrap_or_default();
    panic!(
        "{path} shows other output than its commands print, first here:\n{difference}\n\
         BLESS=1 cargo test --test cli docs writes the output"
    );
}

/// One test for each text below `docs/`, so that they run at the same time.
macro_rules! texts {
    ($list:ident, $($name:ident: $file:literal,)+) => {
        const $list: &[&str] = &[$($file),+];
        $(
            #[test]
            fn $name() {
                check(concat!("docs/", $file), || {
                    let repo = TestRepo::with_options(&[]);
                    let reader = Reader::new(&repo, &repo.home());
                    (repo, reader)
                });
            }
        )+
    };
}

texts! {
    CHAPTERS,
    first_run: "first-run.md",
    writing_plans: "writing-plans.md",
    agents_and_models: "agents-and-models.md",
    parallel_work: "parallel-work.md",
    merging: "merging.md",
    sessions: "sessions.md",
    workspaces: "workspaces.md",
    cleaning_up: "cleaning-up.md",
    verifying: "verifying.md",
    what_an_agent_can_do: "what-an-agent-can-do.md",
    configuration: "configuration.md",
    how_it_works_in_git: "how-it-works-in-git.md",
    scale: "scale.md",
}

texts! {
    MANUALS,
    man_cleanup: "man/cleanup.md",
    man_demo: "man/demo.md",
    man_garden: "man/garden.md",
    man_gardener: "man/gardener.md",
    man_hooks: "man/hooks.md",
    man_init: "man/init.md",
    man_install_assets: "man/install-assets.md",
    man_logs: "man/logs.md",
    man_merge: "man/merge.md",
    man_plan: "man/plan.md",
    man_reset: "man/reset.md",
    man_sandbox: "man/sandbox.md",
    man_session: "man/session.md",
    man_state: "man/state.md",
    man_tools: "man/tools.md",
    man_trailers: "man/trailers.md",
    man_verify: "man/verify.md",
    man_work: "man/work.md",
    man_workspace: "man/workspace.md",
    man_worktree: "man/worktree.md",
}

/// With the demo agent in place of Claude Code, and tests that fail once the login form is there.
#[test]
fn readme() {
    check("README.md", || {
        let repo = TestRepo::with_options(&[]);
        repo.plant("npm", "#!/bin/sh\n[ ! -e src/T003.md ] || { echo 'not ok 3 - the password field has a label'; exit 1; }\necho ok\n");
        let config =
            "[runners.claude]\ncommand = [\"git\", \"arborist\", \"demo\", \"--agent\"]\nevents = \"text\"\n";
        repo.write("../home/.config/git-arborist/config.toml", config);
        let reader = Reader::new(&repo, &repo.path(""));
        (repo, reader)
    });
}

/// The same date is shown in the same way on the whole page. Another one is another date.
#[test]
fn contradictory_dates_on_one_page_are_detected() {
    let page = "```console\n$ echo 2020-01-01\n2001-01-01\n$ echo 2020-01-01 2020-01-02\n2001-01-07 2001-01-09\n```\n";
    let repo = TestRepo::with_options(&[]);
    let mut reader = Reader::new(&repo, &repo.home());
    assert_eq!(play(page, &mut reader), page.replace("2001-01-07", "2001-01-01"));
}

/// Relative links of the README and of the chapters lead to files.
#[test]
fn relative_links_lead_to_existing_files() {
    let pattern = Regex::new(r"\]\(([^)#:]+)(#[^)]*)?\)").unwrap();
    for path in texts() {
        let text = fs::read_to_string(&path).unwrap();
        for link in pattern.captures_iter(&text) {
            let file = path.parent().unwrap().join(&link[1]);
            assert!(file.exists(), "{}: {} is not there", path.display(), file.display());
        }
    }
}

/// The README, and everything written in `docs/`.
pub(crate) fn texts() -> Vec<PathBuf> {
    let folders = ["docs", "docs/man"].map(|folder| fs::read_dir(folder).unwrap());
    let docs = folders.into_iter().flatten().flatten().map(|entry| entry.path());
    let is_text = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    std::iter::once("README.md".into()).chain(docs.filter(is_text)).collect()
}

#[test]
fn the_readme_is_short_and_shows_a_picture() {
    let text = fs::read_to_string("README.md").unwrap();
    assert!(text.lines().count() <= 200, "the rest belongs in docs/");
    assert!(text.contains("](docs/run.svg)"));
}

#[test]
fn the_picture_of_the_readme_can_be_generated() {
    if !is_installed("python3") {
        eprintln!("skipped: python3 is not installed here");
        return;
    }
    let repo = TestRepo::with_options(&[]);
    let script = fs::canonicalize("docs/make-picture").unwrap();
    let target = repo.root().join("run.svg");
    let mut command = repo.command("python3", repo.root());
    Run::of(command.arg(script).arg(&target), b"").succeeds();
    let picture = fs::read_to_string(target).unwrap();
    for text in ["$ git arborist gardener", "review rejected", "3 of 3 done", "</svg>"] {
        assert!(picture.contains(text), "no '{text}' in:\n{picture}");
    }
}

#[test]
fn every_chapter_is_run_and_listed() {
    let list = fs::read_to_string("docs/README.md").unwrap();
    for file in CHAPTERS {
        assert!(list.contains(&format!("({file})")), "docs/README.md does not list {file}");
    }
    for entry in fs::read_dir("docs").unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let is_chapter = name.ends_with(".md") && !["README.md", "performance.md"].contains(&name.as_str());
        assert!(!is_chapter || CHAPTERS.contains(&name.as_str()), "docs/{name} is not run");
    }
    for entry in fs::read_dir("docs/man").unwrap().flatten() {
        let name = format!("man/{}", entry.file_name().display());
        assert!(MANUALS.contains(&name.as_str()), "docs/{name} is not run");
    }
}
