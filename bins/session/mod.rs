//! `git arborist session`: shows and continues what agents did, turn by turn.

mod agent_trace;
mod brought;
mod completed;
mod diff;
pub mod document;
mod elsewhere;
mod export;
mod fetch;
mod follow;
mod git_ai;
mod hook;
mod keep;
mod list;
mod mark;
mod onward;
mod open;
mod others;
mod paths;
mod plumbing;
mod replay;
mod restore;
mod resume;
mod session_worktree;
mod show;
mod then;
mod turn;
mod which;
mod words;

pub(crate) use hook::Agent;

use arborist_core::run::refuse_here_in_step;
use clap::{Parser, Subcommand};

use crate::{catalog, entry::Outcome, ui::Ui};

const EXAMPLES: &str = "\
EXAMPLES
   See all sessions, the last one first
       git arborist session list

   See what one did, a line for each turn
       git arborist session turns 3f9a

   See what a turn changed
       git arborist session show 3f9a --turn 7 --patch

   Read what was said in a turn: the prompt, the agent's words, its tools
       git arborist session show 3f9a --turn 7 --transcript

   See what happened between two turns
       git arborist session diff 3f9a 3 7

   Go on with a session, whatever your checkout looks like
       git arborist session resume 3f9a

   Go on with the one that is left in a fresh clone: its branches and records
   are fetched from where they were pushed to
       git clone <url> && cd <repository> && git arborist session resume

   Go on from an earlier turn; what came after it stays in history
       git arborist session resume 3f9a --turn 7 -- --runner codex

   Let another model take it from there, beside what was done
       git arborist session replay 3f9a --turn 7 -- --model opus

   Play the same again without calling any model, to see how it was taken in
       git arborist session replay 3f9a --turn 0 --offline

   Let git-ai read who wrote which line
       git arborist session export 3f9a --format git-ai --write

   Ask where a commit comes from
       git arborist session which HEAD~3

   Record a session of your own driver
       id=$(git arborist session start --pipeline mine)
       git arborist session turn --session \"$id\" --node T001 --model sonnet -m 'Add a schema'
       git arborist session end --session \"$id\"";

#[derive(Debug, Parser)]
#[command(name = "git-arborist-session", bin_name = "git arborist session", about = catalog::about("session"), after_help = EXAMPLES)]
#[allow(missing_docs, reason = "the text for people stands in the attributes")]
pub struct SessionArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List sessions, the last one first
    List(list::SessionListArgs),
    /// Show one session, or one of its turns
    Show(show::SessionShowArgs),
    /// List the turns of a session, a line each
    Turns(show::TurnsArgs),
    /// Show what differs between the trees of two turns
    Diff(diff::DiffArgs),
    /// Say which session, task and turn a commit comes from
    Which(which::WhichArgs),
    /// Print a whole session, also in the formats of other tools
    Export(export::ExportArgs),
    /// Go on with a session that rests, crashed or failed, on its own branch and in a worktree
    Resume(resume::ResumeArgs),
    /// Begin a new session at a turn of another, on a branch of its own; the other stays as it is
    Replay(replay::ReplayArgs),
    /// Begin a session of another driver, and print its id
    Start(plumbing::StartArgs),
    /// Commit what an agent did in a turn, record it, and print its commit
    Turn(turn::TurnArgs),
    /// Record that a step has ended
    Checkpoint(plumbing::CheckpointArgs),
    /// Record that a session is over
    End(plumbing::EndArgs),
    /// Record what an interactive agent does; this is what its hooks call
    Hook(hook::HookArgs),
}

/// Runs the command.
#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub fn run(args: SessionArgs, ui: &mut Ui) -> Outcome {
    let is_writing = matches!(
        args.verb,
        Verb::Resume(_)
            | Verb::Replay(_)
            | Verb::Start(_)
            | Verb::Turn(_)
            | Verb::Checkpoint(_)
            | Verb::End(_)
    );
    if is_writing {
        refuse_here_in_step()?;
    }
    match &args.verb {
        Verb::List(args) => list::run(args, ui),
        Verb::Show(args) => show::run(args, ui),
        Verb::Turns(args) => show::turns(args, ui),
        Verb::Diff(args) => diff::run(args, ui),
        Verb::Export(args) => export::run(args, ui),
        Verb::Which(args) => which::run(args, ui),
        Verb::Resume(args) => resume::run(args, ui),
        Verb::Replay(args) => replay::run(args, ui),
        Verb::Start(args) => plumbing::start(args, ui),
        Verb::Turn(args) => turn::run(args, ui),
        Verb::Checkpoint(args) => plumbing::checkpoint(args, ui),
        Verb::End(args) => plumbing::end(args, ui),
        Verb::Hook(args) => hook::run(args),
    }
}
