//! `git arborist verify`: checks that the finished tasks of a range went through their steps.

mod range;

use std::collections::BTreeSet;

use arborist_core::{
    failure::{Exit, Failure},
    git::Repository,
    message::{counted, first_of},
    name::BranchName,
    process::shell_word,
    verify::{Verification, VerifyProblem, verify},
};
use clap::Parser;

use crate::{
    catalog,
    document::print,
    entry::{self, Outcome},
    scope,
    ui::{Tone, Ui},
};

const LONG_ABOUT: &str = "\
Check that finished tasks were implemented, tested and reviewed.

For every task that was completed or landed in the range, history is read
again and checked: the steps are there and in order, what was tested and
approved is what was completed, protected files were changed only with
permission, a landing is nothing but the merge of its target and the task, and
its gates passed on the tree that landed. Records of sessions and of the merge
queue are compared with history.

Any clone can be verified. A check whose records are not in the clone is
listed as 'not checked': it has neither passed nor failed, and a hint says how
to fetch what is missing. Commits that people made between those of a run are
listed, but are not a problem. Nothing is changed.

Without signatures, anyone who can push can write a branch that looks like the
work of a run. With 'git config arborist.sign true', task commits, landings
and records are signed by git's own configuration (gpg.format,
user.signingKey). --signed accepts only signers that the verifying machine
knows: keys of GPG, or those in the file gpg.ssh.allowedSignersFile. Use a
file that the verified branch cannot change.";

const EXAMPLES: &str = "\
EXAMPLES
   Everything that this branch adds to its upstream
       git arborist verify

   What a pull request adds, as a CI job would
       git arborist verify origin/main..HEAD

   The tasks of one session
       git arborist verify bb69900f

   Only commits with the signature of a known signer
       git arborist verify --signed origin/main..HEAD

CHECKS
   message: commits that look like task commits are valid ones.

   run: they belong to a run that started in this history, and no merge has
   joined two runs of one branch.

   steps: implementation, passed tests, approved review and completion of the
   same attempt follow each other, and a landing contains the completion.

   review: between the implementation and the completed or landed commit
   nothing was changed, except by a clean merge and by the report of the
   completion.

   protected: the implementation changed no file that 'protect' lists, or its
   commit says that it had permission. The list is that of the repository when
   the run started, the one that the run recorded then, and that of the
   verifying machine. The message says if only this machine lists the file:
   then verify a range after the task, or take the path off the list.

   landing: its tree is the clean merge of its two parents. A conflict that was
   resolved by an agent or a person is 'not checked'.

   gates: the recorded results say that the gates of a landing passed on the
   tree that landed, or on that of a later landing that was tested together
   with it. The results are in refs/arborist/gates/ of the repository that
   landed it. They are 'not checked' for a task that a person merged by hand
   with other changes. Such a merge is listed with the files that differ from
   git's own merge, and with the protected ones among them. A merge by hand
   without other changes is accepted.

   records: the heads, turns and last steps in the records of a session, and
   the log of the merge queue, agree with history, and have every finished task.
   Sessions are in refs/arborist/sessions/. If the range branched off before
   the end of a session, some local or remote branch must still have the end,
   and the session's own branch must not be reset to the range.

   signature: with --signed, 'git verify-commit' accepts every task commit and
   every record that was used.

EXIT STATUS
   0  There is no problem.
   1  There is a problem, or with --strict, something could not be checked.";

/// How many commits that were made outside of a run are shown.
const MOST_OUTSIDE: usize = 10;

#[derive(Debug, Parser)]
#[command(name = "git-arborist-verify", bin_name = "git arborist verify", about = catalog::about("verify"), long_about = LONG_ABOUT, after_help = EXAMPLES)]
#[allow(missing_docs, reason = "the text for people stands in the attributes")]
pub struct VerifyArgs {
    /// A range, a session or a revision [default: what HEAD adds to its upstream]
    #[arg(value_name = "RANGE|SESSION")]
    range: Option<String>,
    /// Require signatures of known signers
    #[arg(long)]
    signed: bool,
    /// Exit with 1 also if something could not be checked
    #[arg(long)]
    strict: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the command.
#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub fn run(args: VerifyArgs, ui: &mut Ui) -> Outcome {
    let (repository, config) = entry::open_repository(ui)?;
    let range = range::find(&repository, args.range.as_deref())?;
    let found = verify(&repository, &range, args.signed, &config)?;
    if args.json {
        print(ui, &found)?;
    } else {
        show(ui, &found);
        let unrecorded: BTreeSet<&BranchName> =
            found.not_checked.iter().filter_map(|unchecked| unchecked.unrecorded.as_ref()).collect();
        for branch in unrecorded {
            let option = scope::option(&repository, branch);
            ui.hint(&format!("record them with: git arborist merge run{option}"));
        }
        if let Some(hint) = hint_to_fetch(&repository, &found)? {
            ui.hint(&hint);
        }
    }
    let is_refused = args.strict && !found.not_checked.is_empty();
    Ok(if !found.problems.is_empty() || is_refused { Exit::No } else { Exit::Done })
}

fn show(ui: &mut Ui, found: &Verification) {
    for problem in &found.problems {
        show_problem(ui, problem);
    }
    for unchecked in &found.not_checked {
        let task = unchecked.task.as_ref().map(|task| format!("{task} ")).unwrap_or_default();
        let check = unchecked.check.as_str();
        ui.line(&format!("{task}not checked ({check}): {}", unchecked.reason));
    }
    show_outside(ui, found);
    let tasks = counted(found.tasks.len(), "task");
    match found.problems.len() {
        0 => {
            let except = match found.not_checked.len() {
                0 => String::new(),
                missing => format!(", except for {} that could not be made", counted(missing, "check")),
            };
            ui.line(&format!("verified {tasks} in {}{except}", found.range));
        }
        problems => {
            ui.err(&format!("found {} in {} ({tasks})\n", counted(problems, "problem"), found.range));
            if let Some(commit) = found.problems.iter().find_map(|problem| problem.commit) {
                ui.hint(&format!("see a commit and its changes with: git show {}", commit.short()));
            }
        }
    }
}

/// How to get the records that this clone lacks, if it has a remote.
fn hint_to_fetch(repository: &Repository, found: &Verification) -> Result<Option<String>, Failure> {
    let refs: BTreeSet<&str> =
        found.not_checked.iter().filter_map(|unchecked| unchecked.refs.as_deref()).collect();
    let remotes = repository.list_remotes()?;
    let remote = remotes.iter().find(|remote| *remote == "origin").or(remotes.first());
    let Some(remote) = remote.filter(|_| !refs.is_empty()) else { return Ok(None) };
    let refs: Vec<String> = refs.iter().map(|pattern| format!("'{pattern}:{pattern}'")).collect();
    let command = format!("git fetch {} {}", shell_word(remote), refs.join(" "));
    Ok(Some(format!("if the remote has what is missing, get it with: {command}")))
}

fn show_problem(ui: &mut Ui, problem: &VerifyProblem) {
    let commit = problem.commit.map(|commit| format!("{} ", commit.short())).unwrap_or_default();
    let task = problem.task.as_ref().map(|task| format!("{task} ")).unwrap_or_default();
    let words = ui.paint(Tone::Bad, &problem.problem);
    ui.line(&format!("{commit}{task}(check '{}'): {words}", problem.check.as_str()));
}

fn show_outside(ui: &mut Ui, found: &Verification) {
    if found.outside.is_empty() {
        return;
    }
    ui.line(&format!("made outside of the run: {}", counted(found.outside.len(), "commit")));
    for outside in found.outside.iter().take(MOST_OUTSIDE) {
        ui.line(&format!("  {} {}", outside.commit.short(), outside.subject));
        for (words, paths) in [
            ("differs from git's own merge in", &outside.changed),
            ("changes protected files", &outside.protected),
        ] {
            if !paths.is_empty() {
                ui.line(&format!("    {words}: {}", first_of(paths, MOST_OUTSIDE)));
            }
        }
    }
    if let more @ 1.. = found.outside.len().saturating_sub(MOST_OUTSIDE) {
        ui.line(&format!("  and {more} more"));
    }
}
