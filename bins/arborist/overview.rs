//! The output of `git arborist` without a verb: the commands by topic, and the state of this repository.

use arborist_core::process::Program;

use super::{find_verb, verbs_on_path};
use crate::{
    catalog::{VERBS, Verb},
    ui::Ui,
};

const USAGE: &str = "usage: git arborist [--version] [-h] <command> [<args>]\n";
const FOOTER: &str = "\n'git arborist <command> -h' lists the options of a command; --help shows more.\n";

/// The overview and one line on this repository.
pub(super) fn show(ui: &mut Ui) {
    usage(ui);
    if let Some(line) = standing() {
        ui.out(&format!("\n{line}\n"));
    }
}

/// The overview alone.
pub(super) fn usage(ui: &mut Ui) {
    ui.out(USAGE);
    let mut topic = "";
    for Verb { name, topic: own, about } in VERBS {
        if *own != topic {
            topic = own;
            ui.out(&format!("\n{topic}\n"));
        }
        ui.out(&format!("   {name:<15} {about}\n"));
    }
    let others: Vec<String> =
        verbs_on_path().into_iter().filter(|verb| VERBS.iter().all(|own| own.name != verb)).collect();
    if !others.is_empty() {
        ui.out("\nfrom elsewhere on PATH\n");
        others.iter().for_each(|verb| ui.out(&format!("   {verb}\n")));
    }
    ui.out(FOOTER);
}

/// Runs `state`, so that the dispatcher itself need not know git. `None` outside of a repository.
fn standing() -> Option<String> {
    let state = find_verb("state".as_ref())?;
    let output = Program::new(state).arg("--short").finish().ok()?;
    let line = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !line.is_empty()).then_some(line)
}
