//! The report of a completed task, which is part of the commit that completes it.

use std::{io, path::Path};

use crate::{
    agent::limits::Spent,
    git::TreeChange,
    history::Event,
    message::{Body, Key, Status},
    name::Attempt,
    pipeline::{Expense, IgnoredFiles, PipelineError, TaskRun},
    record::StagedCommit,
    safe_files::{self, FileKind, find_file_in_way},
};

/// How many different names the reports of a task can have within one second.
const MAX_NAMES_PER_SECOND: u32 = 100;

impl TaskRun<'_, '_, '_> {
    pub(in crate::pipeline) fn complete(&mut self, attempt: Attempt) -> Result<(), PipelineError> {
        let path = self.free_path();
        let report = self.report(attempt);
        let repository = self.recorder.repository();
        let mut in_way = find_file_in_way(repository.top(), Path::new(&path));
        if let Some(file) = &in_way
            && safe_files::kind_of(&repository.top().join(file)) == Some(FileKind::Special)
        {
            // A named pipe contains no work, and would stop every later task.
            let _ = safe_files::remove(&repository.top().join(file));
            in_way = find_file_in_way(repository.top(), Path::new(&path));
        }
        if let Some(file) = in_way {
            let source = io::Error::other(format!("'{}' is a file", file.display()));
            return Err(PipelineError::File { path, source });
        }
        let blob = repository.write_blob(report.as_bytes())?;
        let change =
            TreeChange { path: path.clone().into_bytes(), before: None, after: Some((0o100_644, blob)) };
        let tree = repository.tree_with(self.recorder.tree(), std::slice::from_ref(&change))?;
        let mut entry = self.entry(Status::Complete, attempt);
        let heading = format!("Completed after {} attempt(s). Report: {path}", attempt.ordinal());
        entry.body = Body::new(&heading, "");
        let _ = entry.trailers.set(Key::Report, &path);
        let delivery = StagedCommit { tree, tip: self.recorder.head(), changes: &[change], index: None };
        let event = self.recorder.record_staged(entry, delivery, &[])?;
        self.apply_event(event, None, Expense::default());
        Ok(())
    }

    /// A path without a report. Two runs may complete the same task within a second.
    fn free_path(&self) -> String {
        let begin = format!(
            "{}/{}_run_{}",
            self.context.run.options.report_dir,
            self.task.id,
            self.context.file_timestamp()
        );
        let is_free = |path: &String| !self.recorder.repository().top().join(path).exists();
        let numbered = (2..=MAX_NAMES_PER_SECOND).map(|number| format!("{begin}-{number}.json"));
        std::iter::once(format!("{begin}.json"))
            .chain(numbered)
            .find(is_free)
            .unwrap_or_else(|| format!("{begin}.json"))
    }

    /// The report as JSON. Unknown values are left out.
    fn report(&self, attempt: Attempt) -> String {
        let step = |event: &Event| {
            let attempt = event.attempt().map(|attempt| attempt.0);
            serde_json::json!({ "commit": event.commit.to_string(), "status": event.status().as_str(), "attempt": attempt })
        };
        let steps: Vec<_> = self.events.iter().map(step).collect();
        let mut report = serde_json::json!({
            "task_id": self.task.id.as_str(),
            "name": self.task.name,
            "result": "pass",
            "retries": attempt.0,
            "branch": self.recorder.run_branch().as_str(),
            "base": self.base.commit.to_string(),
            "steps": steps,
        });
        let ignored = self.context.ignored.as_ref().map(IgnoredFiles::found).unwrap_or_default();
        for (name, files) in [("ignored_files", ignored.new), ("changed_ignored_files", ignored.changed)] {
            if !files.is_empty() {
                report[name] = files.into();
            }
        }
        let Spent { totals, time } = self.events.iter().collect();
        let known = [
            ("tokens_in", totals.tokens_in.map(serde_json::Value::from)),
            ("tokens_out", totals.tokens_out.map(serde_json::Value::from)),
            ("cost", totals.cost.map(serde_json::Value::from)),
            ("seconds", (!time.is_zero()).then(|| time.as_secs_f64().into())),
        ];
        for (name, value) in known {
            if let Some(value) = value {
                report[name] = value;
            }
        }
        format!("{report:#}\n")
    }
}
