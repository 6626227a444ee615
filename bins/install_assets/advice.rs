//! After installing: checks whether `man` and zsh find the files, and otherwise suggests a line for the shell's
//! profile.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use arborist_core::process::{Program, find_program};

use super::{
    assets::AssetFolder,
    files::InstallStep,
    places::{Layout, Surroundings},
};
use crate::ui::Ui;

/// Prints what is missing. A packager's prefix is not on any search path yet, so it is not checked.
pub(super) fn give(ui: &mut Ui, layout: &Layout, steps: &[InstallStep]) {
    let Layout::User(user) = layout else { return };
    if let Some(page) = first_on(AssetFolder::Man1, steps) {
        about_manuals(ui, &page);
    }
    if let Some(dir) = first_on(AssetFolder::Zsh, steps).as_deref().and_then(Path::parent) {
        about_zsh(ui, user, dir);
    }
}

fn first_on(asset_folder: AssetFolder, steps: &[InstallStep]) -> Option<PathBuf> {
    steps.iter().find(|step| step.asset.asset_folder == asset_folder).map(|step| step.file.clone())
}

fn about_manuals(ui: &mut Ui, page: &Path) {
    if !is_installed("man") {
        ui.hint("there is no 'man' on PATH, so 'git help arborist' cannot open the pages");
        return;
    }
    let Some(name) = page.file_stem() else { return };
    let found = Program::new("man").arg("-w").arg(name).finish();
    let found = found.map(|man| String::from_utf8_lossy(&man.stdout).trim().to_owned()).unwrap_or_default();
    if same_file(Path::new(&found), page) {
        return;
    }
    let Some(folder) = page.ancestors().nth(2) else { return };
    let folder = folder.display();
    if found.is_empty() {
        let rest = if env::var_os("MANPATH").is_some() { "$MANPATH" } else { "" };
        ui.hint("'man' does not look there yet; add to the profile of your shell:");
        ui.hint(&format!("  export MANPATH=\"{folder}:{rest}\""));
    } else {
        ui.hint(&format!("'man' finds another page first: {found}"));
    }
}

/// Reads the profile without running it: an interactive shell may do anything.
fn about_zsh(ui: &mut Ui, user: &Surroundings, dir: &Path) {
    if !is_installed("zsh") || default_fpath().iter().any(|known| known == dir) {
        return;
    }
    let home = env::var_os("ZDOTDIR").map(PathBuf::from).or_else(|| user.home().map(Path::to_owned));
    let profile = home.map(|home| home.join(".zshrc"));
    let text = profile.and_then(|file| fs::read(file).ok()).unwrap_or_default();
    if names_in_fpath(&String::from_utf8_lossy(&text), dir, user.home()) {
        return;
    }
    ui.hint("zsh does not look there yet; add to ~/.zshrc, before the line that runs compinit:");
    ui.hint(&format!("  fpath=(\"{}\" $fpath)", dir.display()));
}

fn default_fpath() -> Vec<PathBuf> {
    let asked = Program::new("zsh").args(["-fc", "print -rl -- $fpath"]).finish();
    let printed = asked.map(|zsh| zsh.stdout).unwrap_or_default();
    String::from_utf8_lossy(&printed).lines().map(PathBuf::from).collect()
}

/// Whether a line of a zsh profile puts `dir` into `fpath`, in full or by way of home.
fn names_in_fpath(profile: &str, dir: &Path, home: Option<&Path>) -> bool {
    let mut spellings = vec![dir.display().to_string()];
    if let Some(rest) = home.and_then(|home| dir.strip_prefix(home).ok()) {
        spellings.extend(["~", "$HOME", "${HOME}"].map(|home| format!("{home}/{}", rest.display())));
    }
    let lines = profile.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let mut lines = lines.filter(|line| line.to_ascii_lowercase().contains("fpath"));
    lines.any(|line| spellings.iter().any(|spelling| line.contains(spelling)))
}

fn is_installed(program: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| find_program(program, &path).is_some())
}

fn same_file(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_that_already_names_the_folder_is_recognised() {
        let dir = Path::new("/home/ada/.local/share/zsh/site-functions");
        let home = Some(Path::new("/home/ada"));
        for line in [
            "fpath=(/home/ada/.local/share/zsh/site-functions $fpath)",
            "  fpath+=~/.local/share/zsh/site-functions",
            "FPATH=\"$HOME/.local/share/zsh/site-functions:$FPATH\"",
        ] {
            assert!(names_in_fpath(line, dir, home), "{line}");
        }
        for line in ["# fpath+=~/.local/share/zsh/site-functions", "fpath+=~/other", ""] {
            assert!(!names_in_fpath(line, dir, home), "{line}");
        }
    }
}
