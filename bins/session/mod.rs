//! `git arborist session`: shows and continues what agents did, turn by turn.

mod approvals;
mod commit_turn;
mod diff;
pub mod document;
mod export;
mod external_driver;
mod fetch;
mod hook;
mod list;
mod moment;
mod open;
mod origin;
mod other_repos;
mod paths;
mod replay;
mod restore;
mod resume;
mod resume_options;
mod session_worktree;
mod show;
mod turn;
mod words;

pub(crate) use hook::Agent;

use arborist_core::run::refuse_here_in_step;
use clap::{Parser, Subcommand};

use crate::{catalog, entry::Outcome, ui::Ui};

const LONG_ABOUT: &str = "\
Show what agents did, turn by turn; resume or replay a session.

A session is the record of a run: every call to an agent with its prompt, what
it said, which files it wrote, its tokens and its cost. A turn is one exchange
with the agent's model. A turn that changed files is a commit, so you can see
what each turn changed and go back to it. Records are commits below
refs/arborist/sessions/, which can be pushed and fetched.

A session branch is a branch for one session, arborist/<plan>/<session>. A run
works on one with --session-branch, and always in a workspace. It is checked
out in a worktree beside your checkout, which stays as it is. Use 'git merge'
to bring the work into your branch.

'resume' continues a session that was paused, has crashed or has failed. With
--turn it first puts the files back as they were after that turn; later turns
stay in the history. 'replay' starts a new session from a turn of another one,
for example to compare two models; the other session stays as it is. With
--offline it calls no agent: answers and files come from the record, and the
tests run again.

'start', 'turn', 'checkpoint', 'end' and 'hook' let other programs record their
own sessions.";

const EXAMPLES: &str = "\
EXAMPLES
   List all sessions, the newest first
       git arborist session list

   List the turns of a session
       git arborist session turns 3f9a

   See what a turn changed
       git arborist session show 3f9a --turn 7 --patch

   Read the prompt, the agent's words and its tool calls in a turn
       git arborist session show 3f9a --turn 7 --transcript

   See what changed between two turns
       git arborist session diff 3f9a 3 7

   Continue a session, where it ran
       git arborist session resume 3f9a

   Continue an unfinished session in a fresh clone; its branches and records
   are fetched from its remotes
       git clone <url> && cd <repository> && git arborist session resume

   Continue from an earlier turn; later turns stay in history
       git arborist session resume 3f9a --turn 7 -- --runner codex

   Continue from a turn with another model, as a separate session
       git arborist session replay 3f9a --turn 7 -- --model opus

   Repeat a session from its records, without calling a model
       git arborist session replay 3f9a --turn 0 --offline

   Record for git-ai which agent wrote which line
       git arborist session export 3f9a --format git-ai --write

   See which session and turn made a commit
       git arborist session which HEAD~3

   Record the session of your own program
       id=$(git arborist session start --pipeline mine)
       git arborist session turn --session \"$id\" --node T001 \\
           --model opus -m 'Add a schema'
       git arborist session end --session \"$id\"

EXIT STATUS
   1  There is no such session, or no session to continue.
   2  You must act: the plan has changed, or the worktree has uncommitted
      files.
   3  The session is running.

   After 'resume' and 'replay' have started a run, they exit as
   git-arborist-gardener(1) does.";

#[derive(Debug, Parser)]
#[command(name = "git-arborist-session", bin_name = "git arborist session", about = catalog::about("session"), long_about = LONG_ABOUT, after_help = EXAMPLES)]
#[allow(missing_docs, reason = "the text for people stands in the attributes")]
pub struct SessionArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List sessions, newest first
    List(list::SessionListArgs),
    /// Show one session, or one of its turns
    Show(show::SessionShowArgs),
    /// List the turns of a session
    Turns(show::TurnsArgs),
    /// Show what differs between the files of two turns
    Diff(diff::DiffArgs),
    /// Show which session, task and turn made a commit
    Which(origin::WhichArgs),
    /// Print a whole session, also in the formats of other tools
    Export(export::ExportArgs),
    /// Continue a paused, crashed or failed session, in the checkout or worktree where it ran
    Resume(resume::ResumeArgs),
    /// Start a new session from a turn of another one, on its own branch
    Replay(replay::ReplayArgs),
    /// Start a session of another program, and print its id
    Start(external_driver::StartArgs),
    /// Commit and record a turn of an agent, and print the commit
    Turn(turn::TurnArgs),
    /// Record that a step has ended
    Checkpoint(external_driver::CheckpointArgs),
    /// Record that a session has ended
    End(external_driver::EndArgs),
    /// Record an event of an interactive agent (called by the agent's hooks)
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
        Verb::Which(args) => origin::run(args, ui),
        Verb::Resume(args) => resume::run(args, ui),
        Verb::Replay(args) => replay::run(args, ui),
        Verb::Start(args) => external_driver::start(args, ui),
        Verb::Turn(args) => turn::run(args, ui),
        Verb::Checkpoint(args) => external_driver::checkpoint(args, ui),
        Verb::End(args) => external_driver::end(args, ui),
        Verb::Hook(args) => hook::run(args),
    }
}
