//! The output of `--dry-run`: what would be run, and by which runner.

use arborist_core::{
    agent::limits::Chain,
    failure::Failure,
    message::{one_line, plain_text},
    pipeline::{RunOptions, StepRunner},
    plan::Task,
    run::PromptPreview,
};

use crate::ui::{Tone, Ui};

/// One task and its steps.
pub(crate) fn print_forecast(ui: &mut Ui, options: &RunOptions, task: &Task) -> Result<(), Failure> {
    let title = format!("{} {}", task.id, one_line(&task.name));
    ui.line(&ui.paint(Tone::Strong, &title));
    let tests = options.tests_of(task);
    let commands: Vec<String> = tests.iter().map(|test| one_line(&test.command)).collect();
    let tested = if commands.is_empty() { "no command".to_owned() } else { commands.join("; ") };
    let steps = [
        ("implement", people(&options.runners.implementers(task)?)),
        ("test", tested),
        ("review", people(&options.runners.reviewers()?)),
    ];
    if !task.repos.is_empty() {
        ui.line(&format!("    {:<10} {}", "in", one_line(&task.repos.join(", "))));
    }
    if !task.allow.is_empty() {
        ui.line(&format!("    {:<10} {}", "permitted", one_line(&task.allow.join(", "))));
    }
    for (step, by) in steps {
        ui.line(&format!("    {step:<10} {by}"));
    }
    Ok(())
}

/// A phase with whose tests the run starts.
pub(crate) fn print_phase_forecast(ui: &mut Ui, phase: &Task) {
    let title = format!("{} {}", phase.id, one_line(&phase.name));
    ui.line(&ui.paint(Tone::Strong, &title));
    let commands: Vec<String> = phase.own_tests().map(|test| one_line(&test.command)).collect();
    ui.line(&format!("    {:<10} {}", "test", commands.join("; ")));
}

/// The prompts of a task, indented below their step.
pub(crate) fn print_prompts(ui: &mut Ui, prompts: &PromptPreview) {
    for (step, prompt) in [("implement", &prompts.implement), ("review", &prompts.review)] {
        ui.line(&format!("    prompt of {step}:"));
        for line in plain_text(prompt).lines() {
            ui.line(format!("        {line}").trim_end());
        }
    }
}

/// The runners of a step: the first one, and its fallbacks.
fn people(chain: &Chain<StepRunner>) -> String {
    let named = |step_runner: &StepRunner| match &step_runner.model {
        Some(model) => format!("{} ({})", step_runner.name, one_line(model)),
        None => step_runner.name.clone(),
    };
    chain.iter().map(named).collect::<Vec<_>>().join(", else ")
}
