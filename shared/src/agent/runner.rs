//! A runner: how one agent program is called. Creating an [`Invocation`] is pure; the pipeline starts it.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use super::{
    AgentError, EventFormat, NamedIn, NoStart, Placeholder, Preset, ProtectedFiles, ProtectedKind,
    ProtectedPath, Template, ToolServer, ToolsForm, protected::programs_in,
};
use crate::{
    process::{ProgramPlace, find_missing_interpreter, is_executable, locate_program, resolve_program},
    sandbox::{self, ProgramFolder},
};

/// The parameters of one call.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The prompt.
    pub prompt: &'a str,
    /// The model, if not the program's default.
    pub model: Option<&'a str>,
    /// The working directory.
    pub dir: &'a Path,
    /// The program's own session to resume.
    pub session: Option<&'a str>,
    /// A file with the prompt, for runners that need one.
    pub prompt_file: Option<&'a Path>,
    /// The MCP server that it is given.
    pub tools: Option<&'a ToolServer>,
}

/// A call, ready to be started without a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The program, by name or path.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables to set for it.
    pub env: Vec<(String, String)>,
    /// Its standard input; otherwise that is closed at once.
    pub stdin: Option<Vec<u8>>,
}

/// How an agent program is called, and the format of its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runner {
    /// Its name in the configuration.
    pub name: String,
    /// The format of its output.
    pub events: EventFormat,
    command: Template,
    /// The key of its command, and where it is set.
    location: Option<String>,
    resume: Option<Template>,
    env: BTreeMap<String, String>,
    /// The preset of its program.
    known: Option<&'static Preset>,
}

/// The configuration of a runner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// The command.
    pub command: Option<Vec<String>>,
    /// The key of the command, and where it is set.
    pub location: Option<String>,
    /// The command that resumes a session.
    pub resume: Option<Vec<String>>,
    /// The event format.
    pub events: Option<EventFormat>,
    /// Variables, in addition to those of a preset.
    pub env: BTreeMap<String, String>,
}

impl Runner {
    /// The runner called `name`: a preset changed by `own`, or one that is completely configured. A configured command
    /// replaces the preset's commands completely, including the one that resumes a session.
    pub fn new(name: &str, own: &Overrides) -> Result<Self, AgentError> {
        let preset = Preset::find(name);
        let called = preset.filter(|_| own.command.is_none());
        let command = template(name, own.command.as_deref(), called.map(|preset| preset.command))?
            .ok_or_else(|| AgentError::UnknownRunner {
                name: name.to_owned(),
                place: NamedIn::File,
                configured: Vec::new(),
            })?;
        let resume = template(name, own.resume.as_deref(), called.and_then(|preset| preset.resume))?;
        let given = preset.map(|preset| preset.env).unwrap_or_default();
        let given = given.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let known = preset.filter(|preset| preset.program() == command.program());
        Ok(Self {
            name: name.to_owned(),
            location: own.location.clone(),
            events: own.events.or(preset.map(|preset| preset.events)).unwrap_or(EventFormat::Text),
            command,
            resume,
            env: given.chain(own.env.clone()).collect(),
            known,
        })
    }

    /// The program that it starts.
    #[must_use]
    pub fn program(&self) -> &str {
        self.command.program()
    }

    /// The literal parts of its commands, and the values of its variables.
    pub fn command_parts(&self) -> impl Iterator<Item = &str> {
        self.templates().flat_map(Template::texts).chain(self.env.values().map(String::as_str))
    }

    /// Whether its program reads this path of the repository as settings, which name commands, variables or the address of
    /// the model. A wrapper that names the program counts as the program.
    #[must_use]
    pub fn reads_settings(&self, path: &str) -> bool {
        let is_setting = |name: &&str| match name.strip_suffix('/') {
            Some(folder) => {
                let first = path.split('/').next().unwrap_or_default();
                first.eq_ignore_ascii_case(folder)
            }
            None => path.eq_ignore_ascii_case(name),
        };
        self.project_settings().any(|name| is_setting(&name))
    }

    /// The files and folders of a repository that its program reads as settings. The names of folders end in a slash.
    pub fn project_settings(&self) -> impl Iterator<Item = &'static str> {
        let words = || self.templates().flat_map(Template::words);
        let is_called = move |preset: &&Preset| {
            words().any(|word| Path::new(word).file_name() == Some(OsStr::new(preset.program())))
        };
        Preset::ALL.iter().filter(is_called).flat_map(|preset| preset.project_settings.iter().copied())
    }

    /// How to log in at the program's provider, if we know.
    #[must_use]
    pub fn login(&self) -> Option<&'static str> {
        self.known.map(|preset| preset.login)
    }

    /// Whether a call needs the prompt in a file.
    #[must_use]
    pub fn wants_prompt_file(&self) -> bool {
        self.templates().any(|template| template.uses(Placeholder::PromptFile))
    }

    /// Whether a call has the prompt in its arguments.
    #[must_use]
    pub fn takes_prompt_argument(&self) -> bool {
        self.templates().any(|template| template.uses(Placeholder::Prompt))
    }

    /// Whether it can be given tools.
    #[must_use]
    pub fn takes_tools(&self) -> bool {
        let gaps = [Placeholder::Tools, Placeholder::ToolsFile, Placeholder::ToolsToml];
        self.tools_variable().is_some() || gaps.iter().any(|gap| self.command.uses(*gap))
    }

    /// Whether a call needs a file that describes the tools.
    #[must_use]
    pub fn wants_tools_file(&self) -> bool {
        self.templates().any(|template| template.uses(Placeholder::ToolsFile))
    }

    /// Whether its program has its own sandbox.
    #[must_use]
    pub fn has_own_sandbox(&self) -> bool {
        let is_limited = |template: &Template| template.words().any(|word| word == "workspace-write");
        self.known.is_some_and(|preset| preset.name == "codex") && self.templates().all(is_limited)
    }

    /// The folders and files in which its program keeps its own state.
    #[must_use]
    pub fn state(&self) -> Vec<ProgramFolder> {
        let value = |name: &str| self.env.get(name).cloned().or_else(|| std::env::var(name).ok());
        let folders = self.known.map_or(&[][..], |preset| preset.state);
        folders
            .iter()
            .filter_map(|(variable, folder)| sandbox::find_folder(variable, folder, value))
            .collect()
    }

    /// The files of its program in which an agent must not change anything.
    #[must_use]
    pub fn protected(&self) -> Vec<ProtectedPath> {
        let value = |name: &str| self.env.get(name).cloned().or_else(|| std::env::var(name).ok());
        let of_group = |files: &ProtectedFiles| {
            let folder = sandbox::find_path(files.variable, files.folder, value).unwrap_or_default();
            let paths = files.names.iter().map(move |name| folder.join(name));
            let paths = paths.filter(|path| path.is_absolute());
            paths.map(|path| ProtectedPath { path, kind: files.kind }).collect::<Vec<ProtectedPath>>()
        };
        let listed = self.known.map_or(&[][..], |preset| preset.protected).iter().flat_map(of_group);
        let mut found: Vec<ProtectedPath> = listed.collect();
        for state in self.state() {
            let ProgramFolder::Folder(folder) = state else { continue };
            for path in programs_in(&folder) {
                if !found.iter().any(|known| path.starts_with(&known.path)) {
                    found.push(ProtectedPath { path, kind: ProtectedKind::IfFound });
                }
            }
        }
        found
    }

    /// The folder of its program of which each call gets an empty one where the sandbox can do that. Claude writes a script
    /// there for each session, and the user's own sessions run theirs before every command.
    #[must_use]
    pub fn private_folder(&self) -> Option<PathBuf> {
        let value = |name: &str| self.env.get(name).cloned().or_else(|| std::env::var(name).ok());
        self.known.filter(|preset| preset.name == "claude")?;
        Some(sandbox::find_path("CLAUDE_CONFIG_DIR", ".claude", value)?.join("shell-snapshots"))
    }

    /// The variable with the program's home directory, if it reads its tools there, and its configured value.
    #[must_use]
    pub fn wants_tools_home(&self) -> Option<(&'static str, Option<&str>)> {
        let (name, _) = self.tools_variable().filter(|(_, form)| *form == ToolsForm::Home)?;
        Some((name, self.env.get(name).map(String::as_str)))
    }

    pub(super) fn templates(&self) -> impl Iterator<Item = &Template> {
        std::iter::once(&self.command).chain(&self.resume)
    }

    /// Creates the call for a request. If no argument contains the prompt, it goes to standard input.
    #[must_use]
    pub fn call(&self, request: &Request<'_>) -> Invocation {
        // The session id comes from the program's output: one that looks like an option is not passed on.
        let session = request.session.filter(|session| !session.starts_with('-'));
        let template = match (&self.resume, session) {
            (Some(resume), Some(_)) => resume,
            _ => &self.command,
        };
        let dir = request.dir.to_string_lossy();
        let file = request.prompt_file.map(Path::to_string_lossy);
        let written = |form| request.tools.and_then(|server| server.written(form));
        let [json, tools_file, toml] = [ToolsForm::Json, ToolsForm::File, ToolsForm::Toml].map(written);
        let args = template.fill(|gap| match gap {
            Placeholder::Prompt => Some(request.prompt),
            Placeholder::PromptFile => file.as_deref(),
            Placeholder::Model => request.model,
            Placeholder::Dir => Some(&dir),
            Placeholder::Session => session,
            Placeholder::Tools => json.as_deref(),
            Placeholder::ToolsFile => tools_file.as_deref(),
            Placeholder::ToolsToml => toml.as_deref(),
        });
        let has_prompt_in_arguments =
            template.uses(Placeholder::Prompt) || (template.uses(Placeholder::PromptFile) && file.is_some());
        Invocation {
            program: template.program().to_owned(),
            args,
            env: self.env.clone().into_iter().chain(self.server_variable(request.tools)).collect(),
            stdin: (!has_prompt_in_arguments).then(|| request.prompt.as_bytes().to_vec()),
        }
    }

    /// The variable that names its tools, if it has one.
    fn tools_variable(&self) -> Option<(&'static str, ToolsForm)> {
        self.known.and_then(|preset| preset.tools)
    }

    fn server_variable(&self, server: Option<&ToolServer>) -> Option<(String, String)> {
        let (name, form) = self.tools_variable()?;
        Some((name.to_owned(), server?.written(form)?))
    }

    /// Finds the program, given the value of `PATH`. A folder in which children can write is not searched.
    pub fn require_program(&self, path: &OsStr) -> Result<PathBuf, AgentError> {
        let program = self.program();
        // A command that was written as one word is reported as such.
        let is_path = program.contains('/') && !program.contains(' ') && !program.starts_with('[');
        let cannot_start = |file, why| AgentError::CannotStart {
            runner: self.name.clone(),
            file,
            location: self.location.clone(),
            why,
        };
        let place = if is_path {
            let file = resolve_program(program);
            if !file.exists() {
                return Err(cannot_start(file, NoStart::Missing));
            }
            if !is_executable(&file) {
                return Err(cannot_start(file, NoStart::NotExecutable));
            }
            ProgramPlace::Found(file)
        } else if program.contains('/') {
            let file = Some(resolve_program(program)).filter(|file| is_executable(file));
            file.map_or(ProgramPlace::Missing, ProgramPlace::Found)
        } else {
            locate_program(program, self.env.get("PATH").map_or(path, OsStr::new))
        };
        match place {
            ProgramPlace::Found(file) => match find_missing_interpreter(&file) {
                None => Ok(file),
                Some(interpreter) => Err(cannot_start(file, NoStart::NoInterpreter(interpreter))),
            },
            ProgramPlace::InCheckout(file) => {
                Err(AgentError::InCheckout { runner: self.name.clone(), program: program.to_owned(), file })
            }
            ProgramPlace::Missing => Err(AgentError::NotInstalled {
                runner: self.name.clone(),
                program: program.to_owned(),
                install: self.known.map(|preset| preset.install.to_owned()),
            }),
        }
    }
}

/// The configured command, or that of the preset.
fn template(
    name: &str,
    own: Option<&[String]>,
    preset: Option<&str>,
) -> Result<Option<Template>, AgentError> {
    let preset = || preset.map(|words| words.split(' ').map(str::to_owned).collect());
    let words: Option<Vec<String>> = own.map(<[String]>::to_vec).or_else(preset);
    words.map(|words| Template::parse(name, &words)).transpose()
}
