//! Why workers could not be started or ended.

use super::preset::{EnginePreset, NO_IMAGE};
use crate::{
    failure::{Exit, Explain},
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
    fn exit(&self) -> Exit {
        match self {
            Self::Unknown { .. }
            | Self::NoPlaces(_)
            | Self::Places(_)
            | Self::Place(_)
            | Self::Job(_)
            | Self::NoHost { .. } => Exit::Usage,
            Self::NoCommand { .. } | Self::Placeholder { .. } => Exit::No,
            Self::NewManifest(_) | Self::NoImage(_) | Self::TooMany(_) => Exit::Person,
            Self::Failed { .. }
            | Self::NoAnswer { .. }
            | Self::Unusable { .. }
            | Self::NotStarted { .. }
            | Self::Manifest { .. } => Exit::Fatal,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown { name, known } => Some(format!(
                "known engines: {}\nto add one, set engines.{}.submit",
                known.join(", "),
                if name.is_empty() { "NAME" } else { name }
            )),
            Self::NoCommand { engine, key } => Some(format!("set engines.{engine}.{key}")),
            Self::NoPlaces(engine) => Some(format!("name them: --on {engine}:host1,host2")),
            Self::Places(engine) => Some(format!("use: --on {engine} --workers N")),
            Self::NoHost { example, .. } => Some(format!("give it as it was printed, such as {example}")),
            Self::Failed { key: "submit", .. } | Self::Unusable { .. } => {
                Some("no worker was started".into())
            }
            Self::Failed { .. } | Self::NoAnswer { .. } => None,
            Self::NotStarted { started, .. } if started.is_empty() => Some("no worker was started".into()),
            Self::NotStarted { started, .. } => Some(format!("these were started: {}", started.join(" "))),
            Self::NewManifest(path) | Self::NoImage(path) => Some(format!(
                "replace '{NO_IMAGE}…' in {path} by an image with git-arborist and your agent (examples/Containerfile), then run the same command again"
            )),
            Self::TooMany(_) => {
                Some("start the workers yourself with ARBORIST_TRUST=1, or use fewer test commands".into())
            }
            Self::Placeholder { .. } => {
                Some("see 'engines' in git-arborist(1); {{name}} stands for {name}".into())
            }
            Self::Place(_) | Self::Job(_) | Self::Manifest { .. } => None,
        }
    }
}
