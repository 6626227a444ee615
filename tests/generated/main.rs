//! Manual pages and completions are made from the definitions of the commands, and committed. This test holds
//! them true; with `BLESS=1` it writes them anew.

#![allow(clippy::expect_used, reason = "a test may stop where it stands")]

mod after;
mod bash;
mod embedded;
mod fish;
mod manual;
mod roff;
mod shape;
mod shells;
mod suite_page;
mod trailers_page;
mod verb_page;
mod zsh;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use arborist_core::settings::SETTINGS;
use git_arborist::catalog::{VERBS, definitions};
use manual::Manual;
use shape::Shape;

/// Verbs that are announced but not written yet. It must become empty.
const UNWRITTEN: [&str; 0] = [];

#[test]
fn every_verb_is_described_with_the_same_words_as_in_its_definition() {
    let defined = definitions();
    for verb in VERBS {
        let name = format!("git-arborist-{}", verb.name);
        let found = defined.iter().find(|definition| definition.get_name() == name);
        let about = found.map(|definition| definition.get_about().map(ToString::to_string));
        match about {
            Some(about) => assert_eq!(about.as_deref(), Some(verb.about), "{name}"),
            None => assert!(UNWRITTEN.contains(&verb.name), "add {name} to catalog::definitions()"),
        }
        let written = found.is_some();
        assert!(!written || !UNWRITTEN.contains(&verb.name), "take {name} out of UNWRITTEN");
    }
    assert!(defined.len() <= VERBS.len(), "a definition has no entry in VERBS");
}

#[test]
fn generated_files_are_up_to_date() {
    let files = generated();
    let strays = stray_files(&files);
    if std::env::var_os("BLESS").is_some() {
        strays.iter().for_each(|stray| fs::remove_file(stray).expect("a file that can be removed"));
        files.iter().for_each(|(path, text)| write(path, text));
        return;
    }
    let stale = files.iter().filter(|(path, text)| fs::read_to_string(path).ok().as_ref() != Some(text));
    let stale: Vec<&PathBuf> = stale.map(|(path, _)| path).chain(&strays).collect();
    assert!(stale.is_empty(), "run 'BLESS=1 cargo test --test generated', because of {stale:#?}");
}

#[test]
fn groff_accepts_manual_pages_without_warnings() {
    let pages = generated().into_iter().filter(|(path, _)| path.starts_with(top().join("man")));
    for (path, text) in pages.chain([(PathBuf::from("sample.1"), sample_page())]) {
        let groff = Command::new("groff")
            .args(["-man", "-Tutf8", "-ww", "-P-c"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut groff) = groff else {
            eprintln!("skipped: there is no groff here");
            return;
        };
        std::io::Write::write_all(&mut groff.stdin.take().expect("a pipe"), text.as_bytes())
            .expect("a reader");
        let output = groff.wait_with_output().expect("an end");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{}", path.display());
        assert!(output.stdout.len() > 500, "{} is empty", path.display());
    }
}

#[test]
fn a_manual_page_includes_the_subcommands() {
    let page = sample_page();
    for part in
        [".SS sample install", "\\fBgit arborist sample install\\fR", "Which hook", "\\fBEXIT STATUS\\fR"]
    {
        assert!(page.contains(part), "no '{part}' in:\n{page}");
    }
    assert!(!page.contains("hidden"), "{page}");
}

#[test]
fn a_manual_page_has_the_examples_of_its_own_text_and_not_those_of_the_help() {
    let page = sample_page();
    for part in [
        ".SH EXAMPLES\n.PP\nInstall \\fBall\\fR hooks:",
        "$ git arborist sample install\n\\[u2714] installed",
        ".TP\n\\fBmax\\-retries\\fR\nHow often. Default: 5.\n.PP\nOther settings.\n",
        "\\fBgit\\-arborist\\-plan\\fR(1),\n.BR git\\-arborist (1),",
        ".TP\n\\fB1\\fR\nIt\\(aqs not there.\nOr it was removed.\n",
    ] {
        assert!(page.contains(part), "no '{part}' in:\n{page}");
    }
    for part in ["Install all", "Show one", "prepared"] {
        assert!(!page.contains(part), "'{part}' in:\n{page}");
    }
}

#[test]
fn every_command_is_explained_and_has_examples_settings_and_files() {
    for definition in definitions() {
        let verb = verb(&definition);
        let description = definition.get_long_about().map(ToString::to_string).unwrap_or_default();
        assert!(description.matches("\n\n").count() >= 2, "the description of {verb} explains too little");
        Manual::of(verb).check(verb);
    }
}

#[test]
fn every_setting_is_on_the_page_of_a_command() {
    let manuals: Vec<Manual> = definitions().iter().map(|definition| Manual::of(verb(definition))).collect();
    let described: BTreeSet<&str> = manuals.iter().flat_map(Manual::settings).collect();
    let missing: Vec<&str> =
        SETTINGS.iter().map(|setting| setting.key).filter(|key| !described.contains(key)).collect();
    assert!(missing.is_empty(), "add to a CONFIGURATION section in docs/man/: {missing:#?}");
}

/// The page of the sample, with every part that a text can have.
fn sample_page() -> String {
    const TEXT: &str = "\
```sh
echo prepared
```

## EXAMPLES

Install `all`
hooks:

<!-- hidden, file: prepared -->
```sh
prepared
```

<!-- exit 1 -->
```console
$ git arborist sample install
✔ installed
```

## CONFIGURATION

- `max-retries`: How
  often.

Other settings.

## FILES

- `.git/hooks/`: the hooks

## SEE ALSO

- git-arborist-plan(1)
";
    verb_page::page(&shells::sample(), &Manual::read(TEXT))
}

/// The name of a command in `git arborist <name>`.
fn verb(definition: &clap::Command) -> &str {
    definition.get_name().trim_start_matches("git-arborist-")
}

/// Every generated file with its text.
fn generated() -> BTreeMap<PathBuf, String> {
    let definitions = definitions();
    let shapes: Vec<Shape> = definitions.iter().map(Shape::of).collect();
    let mut files = BTreeMap::from([
        ("man/git-arborist.1".to_owned(), suite_page::page()),
        ("man/git-arborist-trailers.5".to_owned(), trailers_page::page()),
        ("completions/git-arborist".to_owned(), bash::completion(&shapes)),
        ("completions/_git-arborist".to_owned(), zsh::completion(&shapes)),
        ("completions/git-arborist.fish".to_owned(), fish::completion(&shapes)),
        ("completions/conf.d/git-arborist.fish".to_owned(), fish::START.to_owned()),
    ]);
    for definition in &definitions {
        let page = verb_page::page(definition, &Manual::of(verb(definition)));
        files.insert(format!("man/{}.1", definition.get_name()), page);
    }
    let list = embedded::list(files.keys());
    files.insert("bins/install_assets/embedded.rs".into(), list);
    files.into_iter().map(|(path, text)| (top().join(path), text)).collect()
}

/// Files in the generated folders that nothing generates.
fn stray_files(files: &BTreeMap<PathBuf, String>) -> Vec<PathBuf> {
    let folders = ["man", "completions", "completions/conf.d"];
    let entries = folders.iter().filter_map(|folder| fs::read_dir(top().join(folder)).ok()).flatten();
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.is_file() && !files.contains_key(path)).collect()
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a file that can be written");
}

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
