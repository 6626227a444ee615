//! `git arborist trailers`: reads, checks and queries the trailers that hold the state.

mod check;
pub mod log;
pub mod parse;
mod source;

use clap::{Parser, Subcommand};

use crate::{catalog, entry::Outcome, ui::Ui};

const LONG_ABOUT: &str = "\
Read, check and query the trailers that hold the state.

Each step of a task is a commit. Its subject names the branch, the task and
what happened, as in 'task(main@T001@test-pass)'. The last lines of the
message are trailers, such as 'Arborist-Test: pass', in the format of
'Signed-off-by:'. The state of a task is read from them and stored nowhere
else. git-arborist-trailers(5) describes the format.

Only a message that follows the format exactly counts. A message that only
looks like it is ignored, and 'check' reports it. 'parse' prints the trailers
of one message, and 'log' lists the task commits of a history.

Messages are read by fixed rules, whatever git's own configuration of trailers
says, so every clone sees the same state.";

const EXAMPLES: &str = "\
EXAMPLES
   Show the trailers of the last commit
       git arborist trailers parse HEAD

   Check everything that a branch adds, as a CI job would
       git arborist trailers check origin/main..HEAD

   Check a message before it is committed
       git arborist trailers check --file message.txt

   List the failed tests of a task in the last two weeks
       git arborist trailers log --task T001 --result fail --since '2 weeks ago'

EXIT STATUS
   1  'trailers check' found a message that is not valid.";

#[derive(Debug, Parser)]
#[command(name = "git-arborist-trailers", bin_name = "git arborist trailers", about = catalog::about("trailers"), long_about = LONG_ABOUT, after_help = EXAMPLES)]
#[allow(missing_docs, reason = "the text for people stands in the attributes")]
pub struct TrailersArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Print the trailers of a message, as 'git interpret-trailers --parse' does with the built-in settings of git
    Parse(parse::ParseArgs),
    /// Check messages that look like task commits; exit 1 if one is not valid
    Check(check::CheckArgs),
    /// List the task commits of a history
    Log(log::LogArgs),
}

/// Runs the command.
pub fn run(args: TrailersArgs, ui: &mut Ui) -> Outcome {
    match args.verb {
        Verb::Parse(args) => parse::run(&args, ui),
        Verb::Check(args) => check::run(&args, ui),
        Verb::Log(args) => log::run(&args, ui),
    }
}
