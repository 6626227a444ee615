//! `git arborist state --remote`: who works on a plan that is shared through a remote.

use arborist_core::{
    coordination::{ClaimState, RemoteClaim, RemoteView},
    failure::Failure,
    git::{RawCommit, Repository},
    history::{Run, RunScope},
    progress::{Progress, RunTotals},
    run::SharedWork,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::source;
use crate::{
    clock,
    document::{print, rfc3339},
    entry::{self, Outcome},
    ui::{Fit, Table, Ui},
};

/// How many seconds a run must have taken before a rate says something.
const SHORTEST_RUN: i64 = 60;

/// A plan that workers share, and who works on it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RemoteStateDocument {
    /// The remote.
    remote: String,
    /// The branch of the run.
    branch: String,
    /// The commit of the branch at the remote; null if it has no such branch.
    head: Option<String>,
    /// How many tasks the plan has.
    tasks: usize,
    /// How many of them have landed or are skipped.
    done: usize,
    /// How many workers are working on.
    working: usize,
    /// How many are finished and wait to land.
    finished: usize,
    /// How many have failed or could not land.
    failed: usize,
    /// How many are not begun.
    left: usize,
    /// How many tasks have landed in an hour since the run began, until now or until the last landing; null if none has, and in the first minute.
    per_hour: Option<f64>,
    /// How many seconds the rest takes at this rate; null if that is not known.
    seconds_left: Option<u64>,
    /// What the landed tasks cost in US dollars; null if no agent reported it.
    cost: Option<f64>,
    /// The claims of workers, by task. The claim of the worker that lands comes last.
    claims: Vec<ClaimDocument>,
    /// What cannot be used at the remote.
    remarks: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct ClaimDocument {
    /// The task; null for the claim of the worker that lands.
    task: Option<String>,
    /// `working`, `finished`, `failed`, `landing` or `free`; `unreadable` if no worker wrote it.
    state: &'static str,
    /// The worker; null if it is not known.
    worker: Option<String>,
    /// The host of the worker.
    host: Option<String>,
    /// The process of the worker.
    process: Option<u32>,
    /// Since when, in RFC 3339, by the clock of the worker.
    since: Option<String>,
    /// The last sign of life, in RFC 3339, by the clock of the worker.
    last_sign: Option<String>,
    /// How many seconds the claim is valid without another sign of life.
    ttl: Option<u64>,
    /// The engine that has started the worker; null if none has.
    engine: Option<String>,
    /// The worker's job at the engine.
    job: Option<String>,
}

/// Shows who works on the plan of the branch that is checked out.
pub(super) fn run(remote: &str, json: bool, ui: &mut Ui) -> Outcome {
    let (repository, _, settings) = entry::open_with_settings(ui)?;
    let shared = SharedWork::find(&repository, &settings, remote, clock::now)?;
    let view = shared.view()?;
    let scope = RunScope { branch: shared.run().clone(), tip: view.target };
    let run = Run::scan_listed(&repository, scope, None, Vec::new())?;
    let found = source::find(&repository, &settings, &run, None)?;
    let progress = Progress::new(found.plan.as_ref(), &run, found.boxes);
    let mut document = RemoteStateDocument::new(&shared, &view, &progress);
    document.measure(&repository, &run)?;
    if json {
        return print(ui, &document);
    }
    document.show(ui, &view);
    Ok(arborist_core::failure::Exit::Done)
}

impl RemoteStateDocument {
    fn new(shared: &SharedWork, view: &RemoteView, progress: &Progress<'_>) -> Self {
        let count = |state: ClaimState| view.tasks.values().filter(|claim| claim.is(state)).count();
        let is_claimed = |node: &arborist_core::progress::NodeProgress<'_>| view.tasks.contains_key(node.id);
        let leaves = || progress.leaves();
        let left = leaves().filter(|node| !node.state.is_done() && !is_claimed(node)).count();
        let lander = view.lander.iter().filter(|lander| !lander.is(ClaimState::Free));
        let claims = view.tasks.iter().map(|(task, claim)| ClaimDocument::new(Some(task.as_str()), claim));
        Self {
            remote: shared.remote(),
            branch: shared.run().to_string(),
            head: view.target.map(|target| target.to_string()),
            tasks: leaves().count(),
            done: leaves().filter(|node| node.state.is_done()).count(),
            working: count(ClaimState::Working),
            finished: count(ClaimState::Finished),
            failed: count(ClaimState::Failed),
            left,
            per_hour: None,
            seconds_left: None,
            cost: None,
            claims: claims.chain(lander.map(|lander| ClaimDocument::new(None, lander))).collect(),
            remarks: view.remarks.clone(),
        }
    }

    /// Adds how fast tasks land and what they cost.
    fn measure(&mut self, repository: &Repository, run: &Run) -> Result<(), Failure> {
        self.cost = RunTotals::of_run(run).cost;
        let landed = run.tasks.iter().filter(|task| task.has_landed());
        let landings: Vec<i64> = landed.filter_map(|task| task.last().map(|event| event.time)).collect();
        let Some(start) = &run.start else { return Ok(()) };
        let starts = repository.load_commits(&[start.commit])?;
        let begun = starts.first().and_then(RawCommit::committed);
        let is_active = self.working + self.finished > 0;
        let end = if is_active { Some(clock::now()) } else { landings.iter().max().copied() };
        let seconds = begun.zip(end).map_or(0, |((begun, _), end)| end.saturating_sub(begun));
        if landings.is_empty() || seconds < SHORTEST_RUN {
            return Ok(());
        }
        let rest = self.working + self.finished + self.left;
        let seconds = seconds.unsigned_abs();
        let landed = landings.len();
        #[allow(clippy::cast_precision_loss, reason = "a rate for people")]
        let per_hour = landed as f64 * 3600.0 / seconds as f64;
        self.per_hour = Some((per_hour * 100.0).round() / 100.0);
        self.seconds_left =
            u64::try_from(rest).ok().map(|rest| rest.saturating_mul(seconds) / landed.max(1) as u64);
        Ok(())
    }

    fn show(&self, ui: &mut Ui, view: &RemoteView) {
        let Self { remote, branch, tasks, done, working, finished, failed, left, .. } = self;
        ui.line(&format!("'{branch}' at {remote}: {done} of {tasks} tasks are done"));
        ui.line(&format!(
            "{working} being worked on, {finished} waiting to land, {failed} failed, {left} not begun"
        ));
        let rate = self.per_hour.map(|per_hour| format!("{per_hour:.1} tasks landed per hour"));
        let rest =
            self.seconds_left.filter(|seconds| *seconds > 0).and_then(|seconds| i64::try_from(seconds).ok());
        let rest = rest.map(|seconds| format!("the rest takes {} at this rate", clock::duration(seconds)));
        let cost = self.cost.map(|cost| format!("landed tasks cost ${cost:.2}"));
        let facts: Vec<String> = rate.into_iter().chain(rest).chain(cost).collect();
        if !facts.is_empty() {
            ui.line(&facts.join(", "));
        }
        let lander = view.lander.iter().filter(|lander| !lander.is(ClaimState::Free));
        let rows: Vec<[String; 6]> = self
            .claims
            .iter()
            .zip(view.tasks.values().chain(lander))
            .map(|(row, found)| {
                let times = found.claim.as_ref().map(|claim| (claim.since, claim.renewed));
                [
                    row.task.clone().unwrap_or_default(),
                    row.state.to_owned(),
                    row.worker.clone().unwrap_or_default(),
                    row.host.clone().unwrap_or_default(),
                    times.map(|(since, _)| clock::ago(since)).unwrap_or_default(),
                    times.map(|(_, renewed)| clock::ago(renewed)).unwrap_or_default(),
                ]
            })
            .collect();
        if !rows.is_empty() {
            ui.line("");
        }
        let fits = [Fit::Whole, Fit::Whole, Fit::Middle(8), Fit::End(4), Fit::Whole, Fit::Whole];
        Table::new(["task", "state", "worker", "host", "since", "last sign"], fits).show(
            ui,
            &rows,
            |_, _| None,
        );
        for remark in &self.remarks {
            ui.warn(remark);
        }
    }
}

impl ClaimDocument {
    fn new(task: Option<&str>, found: &RemoteClaim) -> Self {
        let claim = found.claim.as_ref();
        let state = match claim.map(|claim| claim.state) {
            Some(ClaimState::Working) if task.is_none() => "landing",
            Some(ClaimState::Working) => "working",
            Some(ClaimState::Finished) => "finished",
            Some(ClaimState::Failed) => "failed",
            Some(ClaimState::Free) => "free",
            None => "unreadable",
        };
        Self {
            task: task.map(str::to_owned),
            state,
            worker: claim.map(|claim| claim.worker.to_string()),
            host: claim.map(|claim| claim.host.clone()),
            process: claim.map(|claim| claim.process),
            since: claim.map(|claim| rfc3339(claim.since)),
            last_sign: claim.map(|claim| rfc3339(claim.renewed)),
            ttl: claim.map(|claim| claim.ttl),
            engine: claim.and_then(|claim| claim.job.as_ref()).map(|job| job.engine.clone()),
            job: claim.and_then(|claim| claim.job.as_ref()).map(|job| job.job.clone()),
        }
    }
}
