//! A model that does what a test tells it: it writes a file for each task, approves of everything, and makes
//! trouble where that was asked for.

use std::sync::Mutex;

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

/// What the model answers.
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
    /// Status 429.
    Refuse,
    /// Nothing, ever.
    Hang,
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

/// The scripted model.
#[derive(Debug, Default)]
pub(crate) struct Model {
    troubles: Mutex<Vec<Trouble>>,
    asked: Mutex<Vec<Ask>>,
}

impl Model {
    /// One that makes these troubles, and otherwise works.
    pub(crate) fn new(troubles: Vec<Trouble>) -> Self {
        Self { troubles: Mutex::new(troubles), asked: Mutex::default() }
    }

    /// The words of every call for this step of this task, one for each conversation that was begun.
    pub(crate) fn calls(&self, step: Step, task: &str) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        let begun = asked.iter().filter(|ask| ask.has_tools && ask.results == 0);
        begun.filter(|ask| errand(&ask.words) == Some((step, task))).map(|ask| ask.words.clone()).collect()
    }

    /// The next act in a conversation.
    pub(crate) fn act(&self, ask: Ask) -> Act {
        let act = self.decide(&ask);
        self.asked.lock().unwrap().push(ask);
        act
    }

    fn decide(&self, ask: &Ask) -> Act {
        let errand = errand(&ask.words).filter(|_| ask.has_tools);
        let Some((step, task)) = errand else {
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
fn errand(words: &str) -> Option<(Step, &str)> {
    let openings = [(Step::Review, "Review the changes for task "), (Step::Implement, "Implement task ")];
    openings.iter().find_map(|(step, opening)| {
        let rest = &words[words.find(opening)? + opening.len()..];
        Some((*step, rest.split_once(':')?.0))
    })
}
