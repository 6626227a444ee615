//! A model that does what a test tells it: it writes a file for each task, approves of everything, and makes
//! trouble where that was asked for.

use std::sync::Mutex;

use serde_json::Value;

/// What a program asks, whatever wire it uses.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    /// Everything that stands in messages of the user.
    pub(crate) words: String,
    /// How many tools have been used in this conversation.
    pub(crate) results: usize,
    /// Programs also ask for titles and summaries, without tools.
    pub(crate) has_tools: bool,
}

/// What the model answers. Where an argument says TASK the task is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    /// Words, which end the call.
    Say(String),
    /// A file to be written, by its path in the repository.
    Write {
        /// The file.
        path: String,
        /// All of it.
        text: String,
    },
    /// A command to be run.
    Shell(String),
    /// A tool of a server, by the end of its name.
    Tool {
        /// Its own name, without what a program puts before it.
        tool: &'static str,
        /// What it is given.
        input: Value,
    },
    /// Status 429.
    Refuse,
    /// Nothing, ever.
    Hang,
}

impl Act {
    fn for_task(&self, task: &str) -> Self {
        let named = |text: &str| text.replace("TASK", task);
        match self {
            Self::Write { path, text } => Self::Write { path: named(path), text: named(text) },
            Self::Shell(command) => Self::Shell(named(command)),
            Self::Tool { tool, input } => {
                Self::Tool { tool, input: serde_json::from_str(&named(&input.to_string())).unwrap() }
            }
            other => other.clone(),
        }
    }
}

/// What an agent was called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// To do a task.
    Implement,
    /// To judge it.
    Review,
}

/// Something that goes wrong the first times that a step is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Trouble {
    /// In which step.
    pub(crate) step: Step,
    /// Of which task.
    pub(crate) task: &'static str,
    /// What is answered instead.
    pub(crate) act: Act,
    /// How often.
    pub(crate) times: u32,
}

/// When the model answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Pace {
    /// At once.
    #[default]
    AtOnce,
    /// When the turn before is committed. A real model needs longer than that, and all its turns write something.
    TurnByTurn,
}

/// The scripted model.
#[derive(Debug, Default)]
pub(crate) struct Model {
    troubles: Mutex<Vec<Trouble>>,
    /// What is done for a task, one after the other, instead of the usual.
    acts: Vec<Act>,
    /// What is done once instead of the act with this number.
    once: Mutex<Option<(usize, Act)>>,
    pace: Pace,
    asked: Mutex<Vec<Ask>>,
}

impl Model {
    /// One that makes these troubles, and otherwise works.
    pub(crate) fn new(troubles: Vec<Trouble>) -> Self {
        Self { troubles: Mutex::new(troubles), ..Self::default() }
    }

    /// One that does this for each task.
    pub(crate) fn acting(acts: Vec<Act>) -> Self {
        Self { acts, ..Self::default() }
    }

    /// One that does this for each task, no faster than its turns are committed.
    pub(crate) fn pacing(acts: Vec<Act>) -> Self {
        Self { acts, pace: Pace::TurnByTurn, ..Self::default() }
    }

    /// The same with another act instead of this one, the first time.
    pub(crate) fn but_once(mut self, number: usize, act: Act) -> Self {
        self.once = Mutex::new(Some((number, act)));
        self
    }

    /// How many turns must be committed before this is answered.
    pub(crate) fn awaited_turns(&self, ask: &Ask) -> usize {
        let is_awaited = self.pace == Pace::TurnByTurn && ask.has_tools;
        let is_work = matches!(agent_call(&ask.words), Some((Step::Implement, _)));
        if is_awaited && is_work { ask.results } else { 0 }
    }

    /// All that was said in conversations about this task, the results of tools too.
    pub(crate) fn conversations_about(&self, task: &str) -> String {
        let asked = self.asked.lock().unwrap();
        let own = asked.iter().filter(|ask| agent_call(&ask.words) == Some((Step::Implement, task)));
        own.map(|ask| ask.words.as_str()).collect()
    }

    /// The words of every call for this step of this task, one for each conversation that was begun.
    pub(crate) fn calls(&self, step: Step, task: &str) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        let begun = asked.iter().filter(|ask| ask.has_tools && ask.results == 0);
        begun
            .filter(|ask| agent_call(&ask.words) == Some((step, task)))
            .map(|ask| ask.words.clone())
            .collect()
    }

    /// The next act in a conversation.
    pub(crate) fn act(&self, ask: Ask) -> Act {
        let act = self.decide(&ask);
        self.asked.lock().unwrap().push(ask);
        act
    }

    fn decide(&self, ask: &Ask) -> Act {
        let agent_call = agent_call(&ask.words).filter(|_| ask.has_tools);
        let Some((step, task)) = agent_call else {
            return Act::Say("A small task".into());
        };
        if ask.results == 0
            && let Some(trouble) = self.trouble(step, task)
        {
            return trouble;
        }
        let again = if ask.words.contains("Previous feedback") { ".again" } else { "" };
        match (step, ask.results) {
            (Step::Review, _) => Act::Say("It does what the task asks.\n\nAPPROVED".into()),
            (_, n) if !self.acts.is_empty() => {
                let once = self.once.lock().unwrap().take_if(|(number, _)| *number == n);
                let act = once.map(|(_, act)| act).or_else(|| self.acts.get(n).cloned());
                act.map_or_else(|| Act::Say(format!("Wrote {task}.txt.")), |act| act.for_task(task))
            }
            (_, 0) => Act::Write { path: format!("{task}{again}.txt"), text: format!("{task}\n") },
            (_, 1) => Act::Shell(format!("echo more >> {task}{again}.txt")),
            _ => Act::Say(format!("Wrote {task}{again}.txt.")),
        }
    }

    fn trouble(&self, step: Step, task: &str) -> Option<Act> {
        let mut troubles = self.troubles.lock().unwrap();
        let due = troubles.iter_mut().find(|due| due.step == step && due.task == task && due.times > 0)?;
        due.times -= 1;
        Some(due.act.clone())
    }
}

/// Which step of which task a prompt is about.
fn agent_call(words: &str) -> Option<(Step, &str)> {
    let openings = [(Step::Review, "Review the changes for task "), (Step::Implement, "Implement task ")];
    openings.iter().find_map(|(step, opening)| {
        let rest = &words[words.find(opening)? + opening.len()..];
        Some((*step, rest.split_once(':')?.0))
    })
}
