//! `git arborist install-assets`: what it writes is found by `man` and the shells, and what is not ours stays.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use arborist_testkit::{Run, Shell, TestRepo, is_installed};

const BASH: &str = ".local/share/bash-completion/completions/git-arborist";
const FISH: &str = ".config/fish/completions/git-arborist.fish";
const PAGE: &str = ".local/share/man/man1/git-arborist.1";

/// A repository in which the suite is installed as `cargo install` does it.
fn with_cargo_home() -> (TestRepo, PathBuf) {
    let repo = TestRepo::init();
    let bin = repo.home().join(".cargo/bin");
    repo.install(&bin);
    (repo, bin)
}

/// A command with this folder first on `PATH`.
fn on_path(repo: &TestRepo, bin: &Path, args: &[&str]) -> Command {
    let mut command = repo.command("git", &repo.path(""));
    let path = std::env::var_os("PATH").expect("a PATH");
    let dirs = std::iter::once(bin.to_owned()).chain(std::env::split_paths(&path));
    command.args(args).env("PATH", std::env::join_paths(dirs).expect("a PATH")).env("MANPAGER", "cat");
    command
}

fn has(repo: &TestRepo, file: &str) -> bool {
    repo.home().join(file).symlink_metadata().is_ok()
}

#[test]
fn git_help_opens_the_manual_pages_after_cargo_install_and_install_assets() {
    let (repo, bin) = with_cargo_home();
    let installed = Run::of(&mut on_path(&repo, &bin, &["arborist", "install-assets"]), b"").succeeds();
    installed.out(".cargo/share/man/man1/git-arborist.1").never("MANPATH");
    if !is_installed("man") {
        eprintln!("skipped: there is no man here");
        return;
    }
    // Numbers that stand in the pages only: they are not hyphenated, nor in bold, which some readers type twice.
    let help = |args: &[&str]| Run::of(&mut on_path(&repo, &bin, args), b"").succeeds();
    help(&["help", "arborist"]).out("128+");
    help(&["arborist", "--help"]).out("128+");
    help(&["arborist", "install-assets", "--help"]).out("129");
    help(&["arborist", "help", "install-assets"]).out("129");
    help(&["arborist", "trailers", "check", "--help"]).out("129");
    help(&["-c", "alias.page=!man 5", "page", "git-arborist-trailers"]).out("1024");
}

#[test]
fn completions_work_in_every_shell_after_install_assets() {
    let repo = TestRepo::init();
    repo.arborist(["install-assets"]).succeeds();
    for shell in Shell::ALL {
        let Some(offered) = shell.offers(&repo, "git arborist inst") else { continue };
        assert!(offered.contains("install-assets"), "{shell:?}: {offered:?}");
        let Some(offered) = shell.offers(&repo, "git arborist install-assets --only ") else { continue };
        assert!(offered.contains("zsh"), "{shell:?}: {offered:?}");
    }
}

#[test]
fn install_assets_prints_the_needed_profile_line_if_man_or_zsh_would_not_find_its_files() {
    let repo = TestRepo::init();
    let man = repo.home().join(".local/share/man");
    let said = repo.arborist(["install-assets"]).succeeds();
    if is_installed("man") {
        said.err(&format!("export MANPATH=\"{}:\"", man.display()));
    }
    let zshrc = repo.home().join(".zshrc");
    if is_installed("zsh") {
        repo.arborist(["install-assets"]).succeeds().err("fpath=(");
        fs::write(zshrc, "fpath+=~/.local/share/zsh/site-functions\n").expect("a profile");
        repo.arborist(["install-assets"]).succeeds().never("fpath=(");
    }
    repo.arborist(["install-assets", "--quiet"]).succeeds().silent().never("hint");
}

#[test]
fn installing_assets_twice_changes_nothing_and_uninstalling_removes_all_of_them() {
    let repo = TestRepo::init();
    repo.arborist(["install-assets"]).succeeds().out("wrote").never("unchanged");
    repo.arborist(["install-assets"]).succeeds().out("unchanged").never("wrote");
    repo.arborist(["install-assets", "--uninstall", "--dry-run"]).succeeds().out("would remove");
    assert!(has(&repo, PAGE) && has(&repo, BASH) && has(&repo, FISH));
    repo.arborist(["install-assets", "--uninstall"]).succeeds().out("removed");
    assert!(!has(&repo, PAGE) && !has(&repo, BASH) && !has(&repo, FISH));
    repo.arborist(["install-assets", "--uninstall"]).succeeds().silent();
}

#[test]
fn install_assets_dry_run_writes_nothing_and_only_selects_kinds_of_files() {
    let repo = TestRepo::init();
    repo.arborist(["install-assets", "--dry-run"]).succeeds().out("would write");
    assert!(!has(&repo, ".local") && !has(&repo, ".config"));
    repo.arborist(["install-assets", "--only", "bash", "--only", "man"]).succeeds().never("fish");
    assert!(has(&repo, PAGE) && has(&repo, BASH) && !has(&repo, ".config"));
    repo.arborist(["install-assets", "--only", "tcsh"]).exits(129).err("tcsh");
}

#[test]
fn install_assets_with_prefix_uses_the_folder_layout_of_distributions() {
    let repo = TestRepo::init();
    let mut command = repo.command("git", &repo.path(""));
    let run =
        Run::of(command.args(["arborist", "install-assets", "--prefix", "pkg"]).env_remove("HOME"), b"");
    run.succeeds().never("hint");
    for file in [
        "man/man1/git-arborist.1",
        "man/man5/git-arborist-trailers.5",
        "bash-completion/completions/git-arborist",
        "zsh/site-functions/_git-arborist",
        "fish/vendor_completions.d/git-arborist.fish",
        "fish/vendor_conf.d/git-arborist.fish",
    ] {
        assert!(repo.path("pkg/share").join(file).is_file(), "{file}");
    }
}

#[test]
fn install_assets_writes_nothing_if_it_would_replace_a_file_it_did_not_write() {
    let repo = TestRepo::init();
    repo.write("../home/.config/fish/completions/git-arborist.fish", "# mine\n");
    repo.arborist(["install-assets"]).exits(1).err("git arborist did not write it").err("--force").silent();
    assert!(!has(&repo, PAGE));
    repo.arborist(["install-assets", "--uninstall"]).succeeds().silent();
    assert!(has(&repo, FISH));
    repo.arborist(["install-assets", "--force"]).succeeds();
    repo.arborist(["install-assets", "--uninstall"]).succeeds();
    assert!(!has(&repo, FISH));
}

#[test]
fn an_edited_completion_file_is_updated_by_install_but_kept_by_uninstall() {
    let repo = TestRepo::init();
    repo.arborist(["install-assets"]).succeeds();
    let file = repo.home().join(BASH);
    let text = fs::read_to_string(&file).expect("a file");
    fs::write(&file, format!("{text}# by hand\n")).expect("a file");
    repo.arborist(["install-assets", "--uninstall"]).exits(1).err("it was changed");
    assert!(has(&repo, BASH) && !has(&repo, PAGE));
    repo.arborist(["install-assets"]).succeeds();
    assert_eq!(fs::read_to_string(&file).expect("a file"), text);
}

#[test]
fn install_assets_does_not_write_through_symbolic_links() {
    let repo = TestRepo::init();
    let outside = repo.root().join("outside");
    fs::create_dir_all(&outside).expect("a folder");
    symlink(&outside, repo.home().join(".config")).expect("a link");
    repo.arborist(["install-assets"]).exits(1).err("a symbolic link leads out of the folder");
    repo.arborist(["install-assets", "--only", "man", "--only", "bash"]).succeeds();

    let file = repo.home().join(BASH);
    fs::rename(&file, outside.join("kept")).expect("a file");
    symlink(outside.join("kept"), &file).expect("a link");
    fs::write(outside.join("kept"), "precious").expect("a file");
    repo.arborist(["install-assets", "--only", "bash"]).exits(1).err("not a plain file");
    repo.arborist(["install-assets", "--only", "bash", "--force"]).succeeds();
    assert_eq!(fs::read_to_string(outside.join("kept")).expect("a file"), "precious");
    assert!(file.symlink_metadata().expect("a file").is_file());
}

#[test]
fn install_assets_without_home_suggests_the_prefix_option() {
    let repo = TestRepo::init();
    let mut command = repo.command("git", &repo.path(""));
    let run = Run::of(command.args(["arborist", "install-assets"]).env_remove("HOME"), b"");
    run.exits(128).err("HOME is not set").err("--prefix");
}

#[test]
fn an_unwritable_prefix_is_an_error_that_names_the_path() {
    let repo = TestRepo::init();
    repo.write("pkg", "a file where a folder is needed");
    repo.arborist(["install-assets", "--prefix", "pkg"]).exits(128).err("could not").err("pkg/share");
}

#[test]
fn install_assets_uses_xdg_and_bash_completion_folders_from_the_environment() {
    let repo = TestRepo::init();
    let at = |name: &str| repo.root().join(name);
    let mut command = repo.command("git", &repo.path(""));
    command.args(["arborist", "install-assets"]);
    command.env("XDG_DATA_HOME", at("data")).env("XDG_CONFIG_HOME", "relative, so ignored");
    command.env("BASH_COMPLETION_USER_DIR", at("bash"));
    Run::of(&mut command, b"").succeeds();
    assert!(at("bash/completions/git-arborist").is_file());
    assert!(at("data/man/man5/git-arborist-trailers.5").is_file());
    assert!(at("data/zsh/site-functions/_git-arborist").is_file());
    assert!(has(&repo, FISH));
}

#[test]
fn did_you_mean_is_suggested_only_for_similar_options_and_values() {
    let repo = TestRepo::init();
    let said = repo.arborist(["install-assets", "--shell", "tcsh"]).exits(129);
    said.err("hint: see the options with: git arborist install-assets -h").never("did you mean");
    repo.arborist(["hooks", "install", "--agent", "codex"]).exits(129).never("hint:");
    repo.arborist(["hooks", "install", "--agent", "claud"]).exits(129).err("hint: did you mean 'claude'?");
}
