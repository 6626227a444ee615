//! Why workers could not be started or ended.

use super::preset::{EnginePreset, NO_IMAGE};
use crate::{
    failure::{Exit, Explain, Explanation},
    message::one_line,
    settings::Settings,
};

/// Why workers could not be started or ended.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum EngineError {
    #[error("there is no engine '{name}'")]
    Unknown { name: String, known: Vec<String> },
    #[error("engine '{engine}' has no command '{key}'")]
    NoCommand { engine: String, key: &'static str },
    #[error("the command '{key}' of engine '{engine}' has the unknown placeholder '{{{name}}}'")]
    Placeholder { engine: String, key: &'static str, name: String },
    #[error("engine '{0}' needs the hosts to start workers on")]
    NoPlaces(String),
    #[error("engine '{0}' takes no hosts")]
    Places(String),
    #[error("'{0}' cannot be the name of a host")]
    Place(String),
    #[error("'{0}' cannot be the name of a job")]
    Job(String),
    #[error("job '{job}' names no host")]
    NoHost { job: String, example: String },
    #[error("the command engines.{engine}.{key} failed: {why}")]
    Failed { engine: String, key: &'static str, why: String },
    #[error("the command engines.{engine}.{key} has failed for job '{job}': {why}")]
    NoAnswer { engine: String, key: &'static str, job: String, why: String },
    #[error("no worker can be started at '{place}': {why}")]
    Unusable { place: String, why: String },
    #[error("could not start workers at '{place}': {why}")]
    NotStarted { place: String, why: String, started: Vec<String> },
    #[error("'{0}' was written, and you must edit it before workers can be started")]
    NewManifest(String),
    #[error("'{0}' names no image")]
    NoImage(String),
    #[error("could not use '{path}': {why}")]
    Manifest { path: String, why: String },
    #[error("the plan has {0} different commands, which are too many to pass on to workers")]
    TooMany(usize),
}

impl EngineError {
    pub(super) fn unknown(name: &str, settings: &Settings) -> Self {
        let own = settings.engines.iter().filter(|engine| engine.settings.submit.is_some());
        let own = own.map(|engine| engine.name.as_str());
        let built_in = EnginePreset::ALL.iter().map(|preset| preset.name);
        let mut known: Vec<String> = built_in.chain(own).map(str::to_owned).collect();
        known.sort();
        known.dedup();
        Self::Unknown { name: one_line(name), known }
    }

    pub(super) fn no_command(engine: &str, key: &'static str) -> Self {
        Self::NoCommand { engine: engine.to_owned(), key }
    }
}

impl Explain for EngineError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Unknown { name, known } => Exit::Usage.hint(format!(
                "known engines: {}\nto add one, set engines.{}.submit",
                known.join(", "),
                if name.is_empty() { "NAME" } else { name }
            )),
            Self::NoPlaces(engine) => Exit::Usage.hint(format!("name them: --on {engine}:host1,host2")),
            Self::Places(engine) => Exit::Usage.hint(format!("use: --on {engine} --workers N")),
            Self::NoHost { example, .. } => {
                Exit::Usage.hint(format!("give it as it was printed, such as {example}"))
            }
            Self::Place(_) | Self::Job(_) => Exit::Usage.into(),
            Self::NoCommand { engine, key } => Exit::No.hint(format!("set engines.{engine}.{key}")),
            Self::Placeholder { .. } => {
                Exit::No.hint("see 'engines' in git-arborist(1); {{name}} stands for {name}")
            }
            Self::NewManifest(path) | Self::NoImage(path) => Exit::Person.hint(format!(
                "replace '{NO_IMAGE}…' in {path} by an image with git-arborist and your agent (examples/Containerfile), then run the same command again"
            )),
            Self::TooMany(_) => Exit::Person
                .hint("start the workers yourself with ARBORIST_TRUST=1, or use fewer test commands"),
            Self::Failed { key: "submit", .. } | Self::Unusable { .. } => {
                Exit::Fatal.hint("no worker was started")
            }
            Self::NotStarted { started, .. } if started.is_empty() => {
                Exit::Fatal.hint("no worker was started")
            }
            Self::NotStarted { started, .. } => {
                Exit::Fatal.hint(format!("these were started: {}", started.join(" ")))
            }
            Self::Failed { .. } | Self::NoAnswer { .. } | Self::Manifest { .. } => Exit::Fatal.into(),
        }
    }
}
