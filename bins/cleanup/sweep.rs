//! `git arborist cleanup` itself: makes the plan and applies it.

use std::path::PathBuf;

use arborist_core::{
    cleanup::{
        CleanupOptions, CleanupOutcome, CleanupPlan, CleanupRules, CleanupVerdict, Mode, Reclaimed, Sweep,
        Topic, UnsavedPolicy, refuse_unknown_names,
    },
    failure::{Exit, Failure},
    git::{Network, Repository, has_skipped_refs},
    name::RepoName,
    process::Cancel,
    settings::{AGES, Age, Settings},
    workspace::RepoSection,
};
use clap::{Args, builder::PossibleValuesParser};

use super::{
    document::CleanupDocument,
    open::{OpenCleanup, OpenRepositories, open_all},
    show,
};
use crate::{approval, clock, document, entry::Outcome, ui::Ui};

#[derive(Debug, Args)]
pub(super) struct SweepArgs {
    /// Remove only items older than this age, such as 12h, 7d, 2w, or 0 for all (not for records and saved work)
    #[arg(long, value_name = "AGE")]
    older_than: Option<String>,
    /// Show what would be done without doing it
    #[arg(short = 'n', long)]
    pub(super) dry_run: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Also remove unmerged work; it is saved under a ref first
    #[arg(short, long)]
    force: bool,
    /// Also delete branches at remotes, if they have landed there
    #[arg(long)]
    remote: bool,
    /// Also delete build output and caches in the worktrees that are kept
    #[arg(long)]
    reclaim: bool,
    /// Approve the settings that come from .arborist/
    #[arg(long)]
    yes: bool,
    /// Only these kinds of items
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = topics())]
    only: Vec<String>,
    /// Only items of these tasks or sessions
    #[arg(value_name = "TASK")]
    names: Vec<String>,
}

fn topics() -> PossibleValuesParser {
    PossibleValuesParser::new(Topic::ALL.iter().map(|topic| topic.as_str()))
}

/// The settings of each repository that decide where something is deleted.
const DECISIVE_FOLDERS: [&str; 3] = ["worktree.base", "log-dir", "report-dir"];

impl SweepArgs {
    /// Refuses settings of the repositories' files that decide what is deleted and that the user has not approved.
    fn require_approval(&self, all: &[(RepoSection, OpenCleanup)], ui: &mut Ui) -> Result<(), Failure> {
        for (n, (_, opened)) in all.iter().enumerate().filter(|_| !self.dry_run) {
            let mut lines = opened.settings.tracked_lines_of(&DECISIVE_FOLDERS);
            // The rules of the current repository count for all.
            if n == 0 {
                lines.extend(opened.settings.tracked_cleanup_lines(self.reclaim));
            }
            approval::require(&opened.repository, &lines, approval::consent(self.yes), ui)?;
        }
        Ok(())
    }

    /// The rules, which are the same in all repositories: those of the current one.
    fn rules(&self, settings: &Settings) -> Result<CleanupRules, Failure> {
        let given = self.older_than.as_deref().map(parse_age).transpose()?;
        let keep_saved = given.filter(|_| self.force && self.topics() == [Topic::Saved]);
        Ok(CleanupRules {
            now: clock::now(),
            older_than: given.unwrap_or(settings.cleanup.older_than),
            keep_saved: keep_saved.unwrap_or(settings.cleanup.keep_saved),
            keep_records: settings.cleanup.keep_records,
            unsaved: if self.force { UnsavedPolicy::Saved } else { UnsavedPolicy::Kept },
        })
    }

    fn topics(&self) -> Vec<Topic> {
        let is_asked = |topic: &Topic| self.only.iter().any(|only| only == topic.as_str());
        Topic::ALL.iter().copied().filter(is_asked).collect()
    }

    /// The options for one repository, with its own settings.
    fn options(&self, rules: &CleanupRules, section: &RepoSection, settings: &Settings) -> CleanupOptions {
        CleanupOptions {
            rules: rules.clone(),
            topics: self.topics(),
            names: self.names.clone(),
            cleans_remotes: self.remote,
            network: Network { silence: settings.network_silence(), cancel: Cancel::new() },
            log_dir: settings.general.log_dir.clone(),
            report_dir: settings.general.report_dir.clone(),
            section: section.clone(),
        }
    }
}

fn parse_age(text: &str) -> Result<Age, Failure> {
    text.parse::<Age>()
        .map_err(|error| Failure::new(Exit::Usage, error.to_string()).hint(format!("write it as {AGES}")))
}

/// The results of a cleanup in one repository.
pub(super) struct Outcomes {
    /// The name of the repository.
    pub(super) repo: RepoName,
    pub(super) plan: CleanupPlan,
    /// `None` for a dry run.
    pub(super) fates: Option<Vec<CleanupOutcome>>,
    pub(super) reclaimed: Vec<Reclaimed>,
    pub(super) older_than: Age,
}

pub(super) fn run(args: &SweepArgs, ui: &mut Ui) -> Outcome {
    let OpenRepositories { all, mut exit } = open_all(ui)?;
    let Some((_, here)) = all.first() else { return Ok(exit) };
    args.require_approval(&all, ui)?;
    let rules = args.rules(&here.settings)?;
    let patterns = here.settings.cleanup.reclaim.clone();
    let places: Vec<(RepoSection, Repository)> =
        all.iter().map(|(section, opened)| (section.clone(), opened.repository.clone())).collect();
    let mut sweeps = Vec::new();
    for ((section, opened), (_, repository)) in all.into_iter().zip(&places) {
        let options = args.options(&rules, &section, &opened.settings);
        let others = places.iter().filter(|(other, _)| other.name != section.name).cloned().collect();
        sweeps.push((section.name, Sweep::new(repository, opened.pool, options, others)));
    }
    // Everything is decided before anything is deleted, so that a wrong name deletes nothing in any repository.
    let plans = sweeps.iter().map(|(_, sweep)| sweep.plan()).collect::<Result<Vec<_>, _>>()?;
    refuse_unknown_names(&args.names, &plans)?;
    let mut outcomes = Vec::new();
    for ((repo, sweep), plan) in sweeps.into_iter().zip(plans) {
        let fates = match args.dry_run {
            true => None,
            false => match sweep.apply(&plan) {
                Ok(fates) => Some(fates),
                Err(error) if places.len() == 1 => return Err(error.into()),
                // What was done in the others is still reported.
                Err(error) => {
                    ui.warn(&format!("'{repo}' is not cleaned up"));
                    ui.fail(&error.into());
                    exit = Exit::No;
                    continue;
                }
            },
        };
        let mut reclaimed = Vec::new();
        if args.reclaim {
            let mode = if args.dry_run { Mode::DryRun } else { Mode::Real };
            reclaimed = sweep.reclaim(&patterns, &leaving(&plan, args.dry_run), mode)?;
        }
        outcomes.push(Outcomes { repo, plan, fates, reclaimed, older_than: rules.older_than });
    }
    if args.json {
        document::print(ui, &CleanupDocument::new(&outcomes, rules.older_than))?;
    } else {
        show::show(ui, &outcomes);
        show::hint(ui, &outcomes, args.force, !args.names.is_empty());
    }
    let is_partial = has_skipped_refs() || outcomes.iter().any(has_failed);
    Ok(if is_partial { Exit::No } else { exit })
}

/// The worktrees that a dry run assumes to be deleted.
fn leaving(plan: &CleanupPlan, dry_run: bool) -> Vec<PathBuf> {
    let goes = plan.items.iter().filter(|item| dry_run && matches!(item.verdict, CleanupVerdict::Remove(..)));
    goes.filter_map(|item| item.candidate.path().cloned()).collect()
}

fn has_failed(outcomes: &Outcomes) -> bool {
    let mut fates = outcomes.fates.iter().flatten();
    fates.any(|fate| matches!(fate, CleanupOutcome::Failed(_)))
        || outcomes.reclaimed.iter().any(|one| one.failed.is_some())
}
