//! What is said once for a run before it begins: what does not hold as the user may believe.

use arborist_core::{
    agent::{RunnerKind, limits::Chain},
    failure::Failure,
    message::visible,
    pipeline::Budgets,
    plan::{Unread, Why},
    queue,
};

use super::{GardeningArgs, OpenRun, Planned, Reporter};

/// What nobody has typed now holds all the same.
pub(super) fn tell_of_taken_up(args: &GardeningArgs, reporter: &mut Reporter<'_>) {
    let words = &args.inherited.words;
    if !words.is_empty() {
        reporter.remark(&visible(&format!("goes on with what this session was given before:{words}")));
    }
}

impl OpenRun {
    /// Warns once in each run that tasks have no test command, and that landings are untested where that is so.
    pub(super) fn tell_of_missing_tests(
        &self,
        planned: &Planned,
        (is_start, queue): (bool, Option<&queue::QueueOptions>),
        reporter: &mut Reporter<'_>,
    ) {
        let untested = self.count_untested(planned);
        let lands_untested = queue.is_some_and(|queue| queue.gates.is_empty());
        let words = match (is_start, lands_untested) {
            _ if untested == 0 => return,
            (true, true) => "their tests pass whatever they do, and their landings are not tested",
            (true, false) => "their tests pass whatever they do",
            (false, true) => "their landings are not tested",
            (false, false) => return,
        };
        reporter.warn(&format!("there is no test command for {untested} of the tasks: {words}"));
        reporter.hint("name one with --test-command, or as test-command in .arborist/config.toml");
    }

    fn count_untested(&self, planned: &Planned) -> usize {
        planned.plan.leaves().filter(|task| !self.options.tests_of(task).1).count()
    }

    /// What its author may take for a task must not be missing in silence.
    pub(super) fn tell_of_unread_lines(&self, planned: &Planned, reporter: &mut Reporter<'_>) {
        for mistake in &planned.plan.mistakes {
            reporter.warn(&mistake.to_string());
            reporter.hint(&mistake.fix);
        }
        let is_check = |unread: &&Unread| unread.why == Why::Check;
        for unread in planned.plan.unread.iter().filter(is_check) {
            reporter
                .warn(&format!("{}:{}: {}", unread.problem.file, unread.problem.line, unread.problem.what));
        }
        let mut unread = planned.plan.unread.iter().filter(|unread| !is_check(unread));
        let count = unread.clone().count();
        let Some(first) = unread.next() else { return };
        let (place, why) = (format!("{}:{}", first.problem.file, first.problem.line), first.why.as_str());
        let words = match count {
            1 => "1 line looks like a task and was".to_owned(),
            count => format!("{count} lines look like tasks and were"),
        };
        reporter.warn(&format!("{words} not taken: {why}, first at {place}"));
        reporter.hint("see all of them: git arborist plan --check");
    }

    /// A limit on what nobody tells is no limit.
    pub(super) fn tell_of_unmeasured(
        &self,
        planned: &Planned,
        reporter: &mut Reporter<'_>,
    ) -> Result<(), Failure> {
        let Budgets { run, task } = &self.options.budgets;
        let (has_cost, has_tokens) = (run.cost.or(task.cost).is_some(), run.tokens.or(task.tokens).is_some());
        let mut silent: Vec<String> = Vec::new();
        for step_runner in self.options.runners.chains(&planned.plan)?.iter().flat_map(Chain::iter) {
            let RunnerKind::Program(runner) = &step_runner.runner else { continue };
            let is_told =
                (!has_cost || runner.events.tells_cost()) && (!has_tokens || runner.events.tells_tokens());
            if !is_told && !silent.contains(&step_runner.name) {
                silent.push(step_runner.name.clone());
            }
        }
        if !silent.is_empty() {
            let names = silent.join(", ");
            reporter.warn(&format!(
                "{names} may not tell what is used: limits on cost and tokens do not hold there"
            ));
            reporter.hint("--max-time holds for every agent");
        }
        Ok(())
    }
}
