//! `git arborist cleanup` itself: makes the plan and applies it.

use std::path::PathBuf;

use arborist_core::{
    cleanup::{
        CleanupOptions, CleanupOutcome, CleanupPlan, CleanupRules, CleanupVerdict, Mode, Reclaimed, Remotes,
        Sweep, Topic, UnsavedPolicy,
    },
    failure::{Exit, Failure},
    git::{Network, Repository},
    process::Cancel,
    settings::{AGES, Age, Settings},
    workspace::Workspace,
};
use clap::{Args, builder::PossibleValuesParser};

use super::{document::CleanupDocument, open::open, show};
use crate::{clock, document, entry::Outcome, ui::Ui};

#[derive(Debug, Args)]
pub(super) struct SweepArgs {
    /// Leave alone what is younger: 0, 12h, 7d, 2w
    #[arg(long, value_name = "AGE")]
    older_than: Option<String>,
    /// Show what would be done, and do nothing
    #[arg(short = 'n', long)]
    pub(super) dry_run: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Also what holds work that is nowhere else; it is saved under a ref first
    #[arg(short, long)]
    force: bool,
    /// Also branches of remotes, if they have landed there
    #[arg(long)]
    remote: bool,
    /// Also free build output and caches in the worktrees that are kept
    #[arg(long)]
    reclaim: bool,
    /// Only these; with --force, saved work alone then has the age that is given
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = topics())]
    only: Vec<String>,
    /// Only what belongs to these tasks or sessions
    #[arg(value_name = "TASK")]
    names: Vec<String>,
}

fn topics() -> PossibleValuesParser {
    PossibleValuesParser::new(Topic::ALL.map(Topic::as_str))
}

/// The default minimal age.
const USUAL: Age = Age::days(7);
/// How long saved work and records are kept by default.
const LONG: Age = Age::days(90);
/// The default patterns of caches.
const CACHES: [&str; 2] = ["target/", "node_modules/"];

impl SweepArgs {
    fn options(&self, repository: &Repository, settings: &Settings) -> Result<CleanupOptions, Failure> {
        let given = self.older_than.as_deref().map(parse_age).transpose()?;
        let topics: Vec<Topic> = Topic::ALL
            .into_iter()
            .filter(|topic| self.only.iter().any(|only| only == topic.as_str()))
            .collect();
        let keep_saved = given.filter(|_| self.force && topics == [Topic::Saved]);
        let dir = |key: &str, usual: &str| settings.text(key).unwrap_or(usual).to_owned();
        Ok(CleanupOptions {
            rules: CleanupRules {
                now: clock::now(),
                older_than: given.unwrap_or_else(|| settings.age("cleanup.older-than").unwrap_or(USUAL)),
                keep_saved: keep_saved.unwrap_or_else(|| settings.retention("cleanup.keep-saved", LONG)),
                keep_records: settings.retention("cleanup.keep-records", LONG),
                unsaved: if self.force { UnsavedPolicy::Saved } else { UnsavedPolicy::Kept },
            },
            topics,
            names: self.names.clone(),
            remotes: if self.remote { Remotes::Cleaned } else { Remotes::Left },
            network: Network { silence: settings.network_silence(), cancel: Cancel::new() },
            log_dir: dir("log-dir", "spec/logs"),
            report_dir: dir("report-dir", "spec/reports"),
            section: Workspace::load(repository, settings, &Cancel::new())?.main().clone(),
        })
    }
}

fn parse_age(text: &str) -> Result<Age, Failure> {
    text.parse::<Age>()
        .map_err(|error| Failure::new(Exit::Usage, error.to_string()).hint(format!("write it as {AGES}")))
}

/// The results of a cleanup.
pub(super) struct Outcomes {
    pub(super) plan: CleanupPlan,
    /// `None` for a dry run.
    pub(super) fates: Option<Vec<CleanupOutcome>>,
    pub(super) reclaimed: Vec<Reclaimed>,
    pub(super) older_than: Age,
}

pub(super) fn run(args: &SweepArgs, ui: &mut Ui) -> Outcome {
    let opened = open(ui)?;
    let options = args.options(&opened.repository, &opened.settings)?;
    let older_than = options.rules.older_than;
    let sweep = Sweep::new(&opened.repository, opened.pool, options);
    let plan = sweep.plan()?;
    let fates = if args.dry_run { None } else { Some(sweep.apply(&plan)?) };
    let mut reclaimed = Vec::new();
    if args.reclaim {
        let usual = || CACHES.map(str::to_owned).to_vec();
        let patterns = opened.settings.words("cleanup.reclaim").map_or_else(usual, <[String]>::to_vec);
        let mode = if args.dry_run { Mode::DryRun } else { Mode::Real };
        reclaimed = sweep.reclaim(&patterns, &leaving(&plan, args.dry_run), mode)?;
    }
    let outcomes = Outcomes { plan, fates, reclaimed, older_than };
    if args.json {
        document::print(ui, &CleanupDocument::new(&outcomes))?;
    } else {
        show::show(ui, &outcomes);
        show::hint(ui, &outcomes, args.force, !args.names.is_empty());
    }
    Ok(exit_of(&outcomes))
}

/// The worktrees that a dry run assumes to be deleted.
fn leaving(plan: &CleanupPlan, dry_run: bool) -> Vec<PathBuf> {
    let goes = plan.items.iter().filter(|item| dry_run && matches!(item.verdict, CleanupVerdict::Remove(..)));
    goes.filter_map(|item| item.candidate.path().cloned()).collect()
}

fn exit_of(outcomes: &Outcomes) -> Exit {
    let fates = outcomes.fates.iter().flatten();
    let has_failed = fates.into_iter().any(|fate| matches!(fate, CleanupOutcome::Failed(_)))
        || outcomes.reclaimed.iter().any(|one| one.failed.is_some());
    if has_failed { Exit::No } else { Exit::Done }
}
