//! `git arborist plan`: a spec becomes a tree of tasks, is checked, shown, or gets its boxes ticked.

mod ai;
mod check;
mod edit;
mod explain;
mod graph;
mod output;
mod sources;
mod text;

pub use explain::ExplainDocument;
pub use text::WavesDocument;

use std::path::PathBuf;

use arborist_core::{
    failure::Failure,
    plan::{Plan, PlanError, TestProposal, propose_test},
    safe_files,
};
use clap::{Parser, ValueEnum};

use self::{ai::AiArgs, sources::PlanSources};
use crate::{catalog, entry::Outcome, ui::Ui};

const LONG_ABOUT: &str = "\
Show, check and convert a plan.

A plan is a tree of tasks, written as a Markdown list or as JSON. A task has
an id, a title and, indented below it, more words for the agent. A heading
that has tasks below it is a phase.

The order follows from the file. A phase starts when the phase before it is
complete. Within a phase, a task waits for the tasks above it. The mark [P]
(parallel) changes that: neighbours that all have it do not wait for each
other. '(depends on T001)' names tasks that a task waits for in addition. Two
tasks that name the same file do not run at once.

A wave is a group of tasks that can run at the same time. --waves lists the
waves. --explain shows why a task waits, with the line of the plan that says
so. --check looks for mistakes.

A run uses the plan as it was when the run began. If you change the file
later, 'git arborist gardener' shows the difference and stops, until you
accept it with --accept-changes.";

const EXAMPLES: &str = "\
WHAT IS READ
   Markdown: list items with a box and an id, as
   '- [ ] T001 [P] [US1] text (depends on T000)'.
   [red] marks a task that writes tests which must fail; [allow:PATH] and
   [allow:fewer-tests] let a task change protected tests.
   A box without an id gets one from its number or its text. Headings and table
   rows can be tasks, too. A heading with tasks below it is a phase; a task can
   depend on it by its id, as 'depends on phase-1', or as 'Phase 1'.

   JSON: the tree file, and task-master's tasks.json.

   Lines that look like tasks but are not read as tasks are counted, with the
   reason.

   With --ai, any text: an agent (the runner and the model of the step 'plan')
   makes the tree. It works in this checkout and must not change anything; if
   it does, the change is reported. Commands in its tree are not run.

EXAMPLES
   The plan of this branch: phases, tasks, what waits for what
       git arborist plan

   Check a plan; each problem is one line
       git arborist plan --check specs/login/tasks.md

   Show which tasks can run at once, and which of them name the same file
       git arborist plan --waves

   Why does a task wait, and for what?
       git arborist plan --explain T012

   Write a tree file for a run
       git arborist plan specs/login/tasks.md -o task-tree.json

   Let an agent make the tree from a spec in prose
       git arborist plan --ai spec.md -o task-tree.json

   Tick the boxes of the tasks that are complete on this branch
       git arborist plan --tick

EXIT STATUS
   1  There is no plan, or --check found errors (with --strict, also
      warnings).";

#[derive(Debug, Parser)]
#[command(name = "git-arborist-plan", bin_name = "git arborist plan", about = catalog::about("plan"), long_about = LONG_ABOUT, after_help = EXAMPLES)]
#[allow(missing_docs, reason = "the text for people stands in the attributes")]
pub struct PlanArgs {
    /// Files or folders with tasks [default: the plan of this branch]
    #[arg(value_name = "SPEC")]
    specs: Vec<PathBuf>,
    /// Write the plan to this file as JSON; keys that you have added there are kept
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print errors and warnings instead of the plan; exit with 1 if there are errors
    #[arg(long, conflicts_with_all = ["output", "waves", "format", "tick", "assign_ids"])]
    check: bool,
    /// Treat warnings as errors
    #[arg(long)]
    strict: bool,
    /// Show the waves: groups of tasks that can run at the same time
    #[arg(long, conflicts_with_all = ["output", "tick", "assign_ids"])]
    waves: bool,
    /// Show why a task waits, with the file and line of each reason
    #[arg(long, value_name = "TASK", conflicts_with_all = ["output", "check", "waves", "tick", "assign_ids"])]
    explain: Option<String>,
    /// How to print the plan
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with_all = ["tick", "assign_ids"])]
    format: Option<Format>,
    /// Tick the boxes of tasks that are complete in the history of this branch
    #[arg(long, conflicts_with_all = ["output", "assign_ids"])]
    tick: bool,
    /// Write ids into boxes that have none
    #[arg(long, conflicts_with = "output")]
    assign_ids: bool,
    #[command(flatten)]
    ai: AiArgs,
}

/// How a plan is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A tree for people
    Text,
    /// The tree file
    Json,
    /// A flowchart for Mermaid
    Mermaid,
    /// A graph for Graphviz
    Dot,
}

/// What was meant by the arguments.
enum Action {
    Check,
    Tick,
    AssignIds,
    Waves(Format),
    Explain(String, Format),
    Print(Format),
    Write(PathBuf, Format),
}

impl PlanArgs {
    fn action(&self) -> Action {
        let format = self.format.unwrap_or(Format::Text);
        match &self.output {
            _ if self.check => Action::Check,
            _ if self.tick => Action::Tick,
            _ if self.assign_ids => Action::AssignIds,
            _ if self.waves => Action::Waves(format),
            _ if self.explain.is_some() => Action::Explain(self.explain.clone().unwrap_or_default(), format),
            Some(file) => Action::Write(file.clone(), self.format.unwrap_or(Format::Json)),
            None => Action::Print(format),
        }
    }
}

/// Runs the command.
#[allow(clippy::needless_pass_by_value, reason = "every command's body takes its arguments")]
pub fn run(args: PlanArgs, ui: &mut Ui) -> Outcome {
    let sources = PlanSources::find(&args.specs, args.ai.ai, ui)?;
    let strictness = if args.strict { Strictness::Strict } else { Strictness::Lenient };
    let read = |ui: &mut Ui| {
        if args.ai.ai {
            return Ok((ai::plan(ui, &sources, &args.ai, strictness)?, None));
        }
        read(&sources, strictness)
    };
    match args.action() {
        Action::Check => check::run(ui, &sources, strictness),
        Action::AssignIds => edit::assign_ids(ui, &sources),
        Action::Tick => edit::tick(ui, &sources),
        Action::Waves(format) => {
            let (plan, _) = read(ui)?;
            text::waves(ui, &plan, format)
        }
        Action::Explain(task, format) => {
            let (plan, _) = read(ui)?;
            explain::run(ui, &plan, &args.specs, &task, format)
        }
        Action::Print(format) => {
            let (plan, proposal) = read(ui)?;
            output::print(ui, plan, proposal.as_ref(), &sources, format)
        }
        Action::Write(file, format) => {
            output::require_folder(&file)?;
            output::require_own_file(&file, format)?;
            let (plan, proposal) = read(ui)?;
            output::write(ui, plan, proposal.as_ref(), &sources, &file, format)
        }
    }
}

/// Whether warnings are errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strictness {
    Strict,
    Lenient,
}

/// The plan, and the test command that the repository suggests.
fn read(sources: &PlanSources, strictness: Strictness) -> Result<(Plan, Option<TestProposal>), Failure> {
    let plan = sources.read()?;
    let findings = check::findings(&plan, sources.workspace(&plan)?.as_ref());
    if strictness == Strictness::Strict && !findings.is_empty() {
        return Err(PlanError::wrong(findings).into());
    }
    // A tree file says itself how its tasks are tested.
    let top = sources.top().filter(|_| sources.is_spec_of(&plan));
    let proposal = top.and_then(|top| propose_test(|name| safe_files::read_text(&top.join(name)).ok()));
    Ok((plan, proposal))
}
