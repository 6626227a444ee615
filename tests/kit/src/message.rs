//! Task commits, written independently of the code under test.

use std::fmt;

/// A message in the form of the contract, for branch `main` unless told otherwise.
#[derive(Debug, Clone)]
pub struct TaskCommit {
    branch: String,
    task: String,
    status: String,
    text: String,
    trailers: Vec<(String, String)>,
    body: String,
}

impl TaskCommit {
    /// A step of a task in its first attempt.
    #[must_use]
    pub fn new(task: &str, status: &str) -> Self {
        let (step, outcome) = outcome(status);
        let mut commit = Self {
            branch: "main".into(),
            task: task.into(),
            status: status.into(),
            text: format!("{status} \"{task} does it\""),
            trailers: Vec::new(),
            body: String::new(),
        };
        commit = commit.trailer("Step", step);
        if let Some((key, value)) = outcome {
            commit = commit.trailer(key, value);
        }
        match status {
            "complete" => commit.trailer("Report", &format!("spec/reports/{task}.json")),
            "merge" => commit.trailer("Source", &"1".repeat(40)).trailer("Gate", "none"),
            "failed" | "reset" => commit,
            _ => commit.trailer("Retry", "0"),
        }
    }

    /// The start of a run.
    #[must_use]
    pub fn run_start(branch: &str, session: &str, base: &str) -> Self {
        Self {
            branch: branch.into(),
            task: String::new(),
            status: "run-start".into(),
            text: "run started".into(),
            trailers: Vec::new(),
            body: String::new(),
        }
        .trailer("Step", "run-start")
        .trailer("Base", base)
        .trailer("Plan", "none")
        .trailer("Session", session)
    }

    /// The steps that a completion needs before it, of the same task, branch and session; none for another status.
    #[must_use]
    pub fn steps_before(&self) -> Vec<Self> {
        if self.status != "complete" {
            return Vec::new();
        }
        let session = self.trailers.iter().find(|(key, _)| key == "Session");
        let step = |status| {
            let step = Self::new(&self.task, status).branch(&self.branch);
            session.map_or_else(|| step.clone(), |(_, session)| step.clone().trailer("Session", session))
        };
        ["implement-pass", "test-pass", "review-approved"].map(step).into()
    }

    /// The same for another branch.
    #[must_use]
    pub fn branch(mut self, branch: &str) -> Self {
        self.branch = branch.into();
        self
    }

    /// The same with a trailer set; the key without its prefix.
    #[must_use]
    pub fn trailer(mut self, key: &str, value: &str) -> Self {
        match self.trailers.iter_mut().find(|(k, _)| k == key) {
            Some(found) => value.clone_into(&mut found.1),
            None => self.trailers.push((key.into(), value.into())),
        }
        self
    }

    /// The same with this text after the colon of the subject.
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        self.text = text.into();
        self
    }

    /// The same with a body, which must end in a line end.
    #[must_use]
    pub fn body(mut self, body: &str) -> Self {
        self.body = format!("{body}\n");
        self
    }
}

fn outcome(status: &str) -> (&str, Option<(&str, &str)>) {
    match status {
        "implement-pass" => ("implement", Some(("Result", "pass"))),
        "implement-fail" => ("implement", Some(("Result", "fail"))),
        "test-pass" => ("test", Some(("Test", "pass"))),
        "test-fail" => ("test", Some(("Test", "fail"))),
        "review-approved" => ("review", Some(("Review", "approved"))),
        "review-rejected" => ("review", Some(("Review", "rejected"))),
        "complete" => ("complete", Some(("Result", "pass"))),
        "failed" => ("complete", Some(("Result", "fail"))),
        "merge" => ("merge", Some(("Result", "pass"))),
        other => (other, None),
    }
}

impl fmt::Display for TaskCommit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { branch, task, status, text, body, .. } = self;
        write!(f, "task({branch}@{task}@{status}): {text}\n\n{body}")?;
        for (key, value) in &self.trailers {
            writeln!(f, "Arborist-{key}: {value}")?;
        }
        Ok(())
    }
}
