//! The built-in agent for demos. It writes a plausible file for a task, and approves what it reviews. A description can
//! make it fail on purpose: with "rejects the first attempt" the task is rejected once, with "the agent fails" it
//! always fails.

use std::{fs, io::Read};

use anyhow::Context;
use arborist_core::failure::{Exit, Failure};

use crate::{entry::Outcome, ui::Ui};

pub(super) fn run(ui: &mut Ui) -> Outcome {
    let mut prompt = String::new();
    std::io::stdin().lock().read_to_string(&mut prompt).context("could not read the prompt")?;
    if let Some(task) = prompt.strip_prefix("Review the changes for task ") {
        review(ui, task);
        return Ok(Exit::Done);
    }
    match prompt.strip_prefix("Implement task ").and_then(|rest| rest.lines().next()?.split_once(": ")) {
        Some((id, name)) => implement(ui, &prompt, id, name),
        None => Err(Failure::new(Exit::No, "this is not a prompt that the demo agent understands")),
    }
}

fn implement(ui: &mut Ui, prompt: &str, id: &str, name: &str) -> Outcome {
    if prompt.contains("the agent fails") {
        return Err(Failure::new(Exit::No, "the demo agent was told to fail"));
    }
    let has_feedback = prompt.contains("Previous feedback from failed attempts");
    let path = format!("src/{id}.md");
    let first = format!("# {name}\n\nDone by the demo agent.\n");
    let second = format!("{first}\nWith what the reviewer asked for.\n");
    let is_written = |now: String| now == second || (now == first && !has_feedback);
    let text = if has_feedback { &second } else { &first };
    if fs::read_to_string(&path).is_ok_and(is_written) {
        ui.line(&format!("NOTHING TO DO: {path} is already written."));
        return Ok(Exit::Done);
    }
    fs::create_dir_all("src")
        .and_then(|()| fs::write(&path, text))
        .with_context(|| format!("could not write '{path}'"))?;
    ui.line(&format!("Wrote {path}: {name}."));
    Ok(Exit::Done)
}

fn review(ui: &mut Ui, task: &str) {
    if task.contains("rejects the first attempt") && !task.contains("With what the reviewer asked for.") {
        ui.line("The form has no label for its password field.\n\nREJECTED: the password field has no label");
    } else {
        ui.line("The change does what the task asks.\n\nAPPROVED");
    }
}
