//! Printing a plan, and writing the tree file.

use std::path::Path;

use anyhow::Context;
use arborist_core::{
    failure::{Exit, Failure},
    git::plain_path,
    message::escape_json,
    plan::{Changes, Plan, PlanError, Problem, TestProposal, TreeDocument},
    process::shell_word,
    safe_files,
};

use super::{Format, graph, sources::PlanSources, text};
use crate::{entry::Outcome, ui::Ui};

/// Up to this many warnings are printed with the way to correct each.
const MOST_HINTS: usize = 3;

/// Prints the plan. What sums it up goes with the tree for people, and beside anything that programs read.
pub(super) fn print(
    ui: &mut Ui,
    mut plan: Plan,
    proposal: Option<&TestProposal>,
    sources: &PlanSources,
    format: Format,
) -> Outcome {
    warn(ui, &plan);
    let mut summary = text::summary(&plan);
    summary.extend(text::reds(&plan));
    if let Some(TestProposal { test, because }) = proposal {
        summary.push(format!("test command: {} (from {because})", test.command));
    }
    summary.push(format!("read from {}", sources.labels()));
    if format == Format::Text {
        text::tree(ui, &plan);
        ui.line("");
        summary.iter().for_each(|line| ui.text_line("", line));
        return Ok(Exit::Done);
    }
    ui.out(&rendered(&mut plan, proposal, sources, format)?);
    summary.iter().for_each(|line| ui.err(&format!("{line}\n")));
    Ok(Exit::Done)
}

/// Refuses a file in a folder that does not exist, before an agent is paid.
pub(super) fn require_folder(file: &Path) -> Result<(), Failure> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    let Some(folder) = folder else { return Ok(()) };
    let folder = folder.display().to_string();
    let words = format!("could not write '{}': there is no folder '{folder}'", file.display());
    Err(Failure::new(Exit::Fatal, words).hint(format!("create it with: mkdir -p {}", shell_word(&folder))))
}

/// Refuses to replace a file that this command did not write, before an agent is paid. The plan itself would be lost.
pub(super) fn require_own_file(file: &Path, format: Format) -> Result<(), Failure> {
    let is_tree = matches!(format, Format::Json | Format::Text);
    let (name, other) = (file.display(), "name another file, such as: -o task-tree.json");
    if file.is_dir() {
        return Err(
            Failure::new(Exit::Fatal, format!("could not write '{name}': it is a folder")).hint(other)
        );
    }
    let bytes = match safe_files::read_users(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        read => read.with_context(|| format!("could not read '{name}'"))?,
    };
    let bytes = bytes.trim_ascii_start();
    let is_own = match format {
        Format::Json | Format::Text => is_tree_file(bytes),
        Format::Mermaid => bytes.starts_with(b"flowchart "),
        Format::Dot => bytes.starts_with(b"digraph "),
    };
    if !bytes.is_empty() && !is_own {
        let what = if is_tree { "task tree" } else { "graph of a plan" };
        let words = format!("'{name}' exists and is not a {what}, so it is not overwritten");
        return Err(Failure::new(Exit::No, words).hint("choose another name with -o, or move the file away"));
    }
    if is_tree && file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("md")) {
        let words = format!("a task tree is JSON, and a run would read '{name}' as Markdown");
        return Err(Failure::new(Exit::No, words).hint(other));
    }
    Ok(())
}

/// Whether this is JSON with nodes. A file with a syntax error may be one, and is refused when it is read.
fn is_tree_file(bytes: &[u8]) -> bool {
    let is_tree = |value: &serde_json::Value| value.get("nodes").is_some();
    bytes.starts_with(b"{") && serde_json::from_slice(bytes).map_or(true, |value| is_tree(&value))
}

/// Writes the plan to a file, all or nothing.
pub(super) fn write(
    ui: &mut Ui,
    mut plan: Plan,
    proposal: Option<&TestProposal>,
    sources: &PlanSources,
    file: &Path,
    format: Format,
) -> Outcome {
    warn(ui, &plan);
    refuse_link_out(sources, file)?;
    let mut summary = text::summary(&plan);
    if format == Format::Json {
        summary.extend(keep_additions(&mut plan, file)?);
    }
    let text = rendered(&mut plan, proposal, sources, format)?;
    replace(file, text.as_bytes()).with_context(|| format!("could not write '{}'", file.display()))?;
    ui.err(&format!("wrote {}\n", file.display()));
    summary.iter().for_each(|line| ui.err(&format!("{line}\n")));
    Ok(Exit::Done)
}

fn warn(ui: &mut Ui, plan: &Plan) {
    let problems: Vec<&Problem> = plan.warnings.iter().chain(&plan.mistakes).collect();
    for problem in &problems {
        ui.warn(&problem.to_string());
        if problems.len() <= MOST_HINTS && !problem.fix.is_empty() {
            ui.hint(&problem.fix);
        }
    }
    if problems.len() > MOST_HINTS {
        ui.hint("to see how to correct these, add --check");
    }
}

fn rendered(
    plan: &mut Plan,
    proposal: Option<&TestProposal>,
    sources: &PlanSources,
    format: Format,
) -> Result<String, Failure> {
    match format {
        Format::Mermaid => Ok(graph::mermaid(plan)),
        Format::Dot => Ok(graph::dot(plan)),
        Format::Json | Format::Text => {
            plan.rename_files(|label| sources.label_from_top(label));
            if let Some(proposal) = proposal {
                plan.accept(proposal);
            }
            let json =
                serde_json::to_string_pretty(&TreeDocument::from(&*plan)).context("could not write JSON")?;
            Ok(escape_json(&json) + "\n")
        }
    }
}

/// Keeps what a tree file that is there already says beyond the spec, and tells what changed in it.
fn keep_additions(plan: &mut Plan, file: &Path) -> Result<Vec<String>, Failure> {
    let bytes = match safe_files::read_users(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.with_context(|| format!("could not read '{}'", file.display()))?,
    };
    if bytes.trim_ascii().is_empty() {
        return Ok(Vec::new());
    }
    let old = Plan::read(&file.display().to_string(), &bytes).map_err(|error: PlanError| {
        Failure::from(error).hint("the file would be overwritten; correct it or move it away")
    })?;
    let Changes { added, gone } = plan.take_over(&old);
    let changed = [("new", added), ("gone", gone)].into_iter().filter(|(_, ids)| !ids.is_empty());
    Ok(changed
        .map(|(word, ids)| {
            format!("{word}: {}", ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        })
        .collect())
}

/// Refuses a link in the repository that leads out of it: whoever committed it, or an agent that was just called, must
/// not choose which file is written.
fn refuse_link_out(sources: &PlanSources, file: &Path) -> Result<(), Failure> {
    let place = sources.repository.as_ref().and_then(|found| Some((&found.dir, found.worktree.as_deref()?)));
    let Some((dir, top)) = place else { return Ok(()) };
    let file = plain_path(&dir.join(file));
    let Some(link) =
        Some(top).filter(|top| file.starts_with(top)).and_then(|top| safe_files::find_link_out(top, &file))
    else {
        return Ok(());
    };
    let words = format!("'{}' is a link that leads out of the repository", link.display());
    Err(Failure::new(Exit::No, words)
        .hint(format!("name another file, or remove the link: rm '{}'", link.display())))
}

/// Writes to a temporary file and renames it, so that no one ever sees half of it.
pub(super) fn replace(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let target = safe_files::resolved(file);
    safe_files::write(&target, bytes)
}
