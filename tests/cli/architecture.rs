//! Rules about the structure of the source, checked by reading it.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The modules of the core, lowest first; each may use only those before it.
fn layers() -> Vec<String> {
    let lib = fs::read_to_string("shared/src/lib.rs").unwrap();
    lib.lines()
        .filter_map(|line| Some(line.strip_prefix("pub mod ")?.trim_end_matches(';').to_owned()))
        .collect()
}

pub(crate) fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::from(folder)];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    assert!(!found.is_empty(), "no sources");
    found
}

/// The source without the tests at its end and without comments.
fn code(text: &str) -> String {
    let body = text.split("#[cfg(test)]").next().unwrap();
    body.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn is_word_at(text: &str, at: usize, word: &str) -> bool {
    let boundary = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    boundary(text[..at].chars().next_back()) && boundary(text[at + word.len()..].chars().next())
}

fn uses(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| is_word_at(text, at, word))
}

/// Nobody but `places` may contain `words`.
fn only(folders: &[&str], places: &[&str], words: &[&str]) {
    for (path, text) in folders.iter().flat_map(|folder| sources(folder)) {
        if places.iter().any(|place| path.starts_with(place)) {
            continue;
        }
        for word in words {
            assert!(
                !uses(&code(&text), word),
                "{} contains '{word}', which belongs to {places:?}",
                path.display()
            );
        }
    }
}

#[test]
fn a_core_module_uses_only_modules_below_it() {
    let layers = layers();
    assert_eq!(
        &layers[..8],
        ["words", "mutex", "safe_files", "process", "name", "failure", "message", "git"]
    );
    for (height, module) in layers.iter().enumerate() {
        let folder = format!("shared/src/{module}");
        let file = format!("{folder}.rs");
        let texts = if Path::new(&file).exists() {
            vec![(PathBuf::from(&file), fs::read_to_string(&file).unwrap())]
        } else {
            sources(&folder)
        };
        for (path, text) in texts {
            for above in &layers[height + 1..] {
                let code = code(&text);
                let named = imports(&code).iter().any(|import| import == above);
                assert!(!named, "{} uses '{above}', which stands above it", path.display());
            }
        }
    }
}

/// The modules that a file names behind `crate::`, alone or in braces.
fn imports(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let names = match rest.strip_prefix('{') {
            Some(list) => top_level_names(list),
            None => vec![first_name(rest)],
        };
        found.extend(names);
    }
    found
}

fn top_level_names(list: &str) -> Vec<String> {
    let mut depth = 0;
    let mut names = vec![first_name(list)];
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(first_name(&list[at + 1..])),
            _ => {}
        }
    }
    names
}

fn first_name(text: &str) -> String {
    text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

#[test]
fn only_the_ui_prints() {
    let printing = ["println!", "eprintln!", "print!", "eprint!", "io::stdout", "io::stderr"];
    only(&["bins"], &["bins/ui"], &printing);
    only(&["shared/src"], &[], &printing);
}

#[test]
fn only_the_process_module_starts_programs() {
    only(&["bins", "shared/src"], &["shared/src/process"], &["Command::new", "std::process::Command"]);
}

#[test]
fn only_the_git_module_runs_git_or_calls_libgit2() {
    only(&["bins", "shared/src"], &["shared/src/git"], &["git2", "Program::new(\"git\")"]);
}

#[test]
fn only_the_tools_service_uses_rmcp_tokio_and_regex() {
    only(&["bins", "shared/src"], &["bins/tools/service"], &["rmcp", "tokio", "regex::"]);
}

#[test]
fn the_core_uses_no_terminal_and_never_exits_the_process() {
    only(&["shared/src"], &[], &["clap", "process::exit", "abort", "IsTerminal"]);
}

/// Where files are opened that no agent can put a link in the place of, and why.
const OTHER_FILES: [&str; 16] = [
    "shared/src/safe_files",
    // A file without a name.
    "shared/src/process/input.rs",
    // Locks of dead processes, opened without following or waiting.
    "shared/src/process/crash.rs",
    // What the system tells of processes.
    "shared/src/process/identity.rs",
    "shared/src/process/interrupt.rs",
    "shared/src/process/occupants.rs",
    "shared/src/process/opened.rs",
    "shared/src/process/table.rs",
    // Files that stand on the command line: they may be pipes.
    "bins/hooks/commit_msg.rs",
    "bins/session/paths.rs",
    "bins/trailers/source.rs",
    // The user's own folders, before any agent runs.
    "bins/install_assets",
    "bins/demo",
    "bins/arborist",
    "bins/session/hook.rs",
    "bins/tools/service",
];

#[test]
fn only_listed_modules_open_write_move_or_remove_files() {
    let words = [
        "fs::read",
        "fs::read_to_string",
        "fs::write",
        "fs::copy",
        "fs::rename",
        "fs::hard_link",
        "fs::remove_file",
        "fs::remove_dir",
        "fs::remove_dir_all",
        "fs::create_dir",
        "fs::create_dir_all",
        "fs::set_permissions",
        "fs::symlink",
        "File::open",
        "File::create",
        "File::create_new",
        "File::options",
        "DirBuilder",
        "OpenOptions",
        "openat",
    ];
    only(&["bins", "shared/src"], &OTHER_FILES, &words);
}

#[test]
fn the_source_does_not_call_env_vars_or_env_args_which_panic_on_invalid_utf_8() {
    only(&["bins", "shared/src"], &[], &["env::vars()", "env::args()"]);
}

#[test]
fn the_source_contains_no_todo_markers_or_debug_macros() {
    only(&["bins", "shared/src"], &[], &["todo!", "unimplemented!", "dbg!", "FIXME:", "TODO:", "XXX:"]);
}

#[test]
fn every_source_file_begins_with_a_module_comment() {
    for (path, text) in
        ["bins", "shared/src", "shared/tests", "tests", "benches"].iter().flat_map(|folder| sources(folder))
    {
        assert!(text.starts_with("//! "), "{} does not begin with '//! '", path.display());
    }
}

#[test]
fn source_files_have_at_most_500_lines_of_code() {
    for (path, text) in ["bins", "shared/src"].iter().flat_map(|folder| sources(folder)) {
        let lines = code(&text).lines().count();
        assert!(lines <= 500, "{} has {lines} lines of code", path.display());
    }
}

#[test]
fn main_files_have_at_most_three_lines_of_code() {
    for (path, text) in sources("bins").iter().filter(|(path, _)| path.ends_with("main.rs")) {
        let is_body = |line: &&str| !line.trim().is_empty() && !line.starts_with("mod ");
        assert!(code(text).lines().filter(is_body).count() <= 3, "{}", path.display());
    }
}

/// A file that no module declares is not compiled, and its tests never run.
#[test]
fn every_cli_test_file_is_declared_as_a_module() {
    for (path, _) in sources("tests/cli") {
        // The file of a folder's module is declared by the one above it.
        let module: &Path = if path.ends_with("mod.rs") { path.parent().unwrap() } else { &path };
        let folder = module.parent().unwrap();
        let declaring = folder.join(if folder == Path::new("tests/cli") { "main.rs" } else { "mod.rs" });
        let name = module.file_stem().unwrap().to_str().unwrap();
        let declaration = format!("mod {name};");
        let text = fs::read_to_string(&declaring).unwrap();
        let is_declared = text.lines().any(|line| line.trim_start_matches("pub(crate) ") == declaration);
        assert!(path == declaring || is_declared, "{} has no '{declaration}'", declaring.display());
    }
}

/// A pipe to git can be cut by killing us. What git is told there must do nothing unless all of it arrives:
/// transactions that end with `commit`. All other input is a file that is complete before git starts.
#[test]
fn only_ref_transactions_are_sent_to_git_through_a_pipe() {
    let is_piped = |text: &str| code(text).contains("stdin(Stdio::piped())");
    for (path, text) in sources("shared/src").into_iter().chain(sources("bins")) {
        let count = code(&text).matches("stdin(Stdio::piped())").count();
        let is_known = path.ends_with("process/program.rs") && count == 1;
        assert!(!is_piped(&text) || is_known, "{} has a pipe to a program", path.display());
    }
    let conversing = |(path, text): &(PathBuf, String)| {
        let is_door = path.ends_with("git/command.rs");
        code(text).contains(".start_interactive(") && !is_door && !path.starts_with("shared/src/process")
    };
    let found: Vec<(PathBuf, String)> = sources("shared/src").into_iter().filter(conversing).collect();
    let names: Vec<_> = found.iter().filter_map(|(path, _)| path.file_name()?.to_str()).collect();
    assert_eq!(names, ["ref_updater.rs"], "a new one needs a reason here");
    let told = fs::read_to_string("shared/src/git/refs/transaction.rs").unwrap();
    assert!(told.contains("prepare\\ncommit"));
}
