//! The agent programs that we know: how each is called without a terminal and without questions, and how to install it.

use super::{
    AgentError, EventFormat, Overrides, Runner, ToolsForm,
    protected::{self, ProtectedFiles},
};

/// A known program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// Its name, which is also the name of the runner.
    pub name: &'static str,
    /// The command, as words separated by spaces. The prompt goes to standard input unless `{prompt}` or `{prompt-file}` is
    /// one of them.
    pub command: &'static str,
    /// The command that resumes a session, if it is different.
    pub resume: Option<&'static str>,
    /// The format of its output.
    pub events: EventFormat,
    /// Variables that it needs.
    pub env: &'static [(&'static str, &'static str)],
    /// The variable that names its MCP servers, if they are not passed as arguments.
    pub tools: Option<(&'static str, ToolsForm)>,
    /// Where it keeps its own state: a variable that names the folder, or the path in the home directory.
    pub state: &'static [(&'static str, &'static str)],
    /// Files in which an agent must not change anything, because later calls and the user's own sessions obey them.
    pub protected: &'static [ProtectedFiles],
    /// Files and folders at the top of a repository that it reads as settings. A task cannot change them while it reviews,
    /// so folders to which the program itself writes must not be listed.
    pub project_settings: &'static [&'static str],
    /// How to install it.
    pub install: &'static str,
    /// How to log in at its provider.
    pub login: &'static str,
    /// The provider of its models, if it uses only one.
    pub provider: Option<&'static str>,
}

/// What the name of a runner stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunnerKind {
    /// A program, called by its template.
    Program(Runner),
    /// The task's own `command`, by `sh -c`.
    Shell,
    /// The built-in agent that needs no network.
    Demo,
}

impl RunnerKind {
    /// Resolves `name` with its configuration. A configured command makes any name a program.
    pub fn resolve(name: &str, own: &Overrides) -> Result<Self, AgentError> {
        match (name, &own.command) {
            (SHELL, None) => Ok(Self::Shell),
            (DEMO, None) => Ok(Self::Demo),
            _ => Runner::new(name, own).map(Self::Program),
        }
    }
}

/// The runner that runs the command of a task.
pub const SHELL: &str = "shell";

/// The built-in runner.
const DEMO: &str = "demo";

impl Preset {
    /// The preset of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|preset| preset.name == name)
    }

    /// The program that it starts.
    #[must_use]
    pub fn program(&self) -> &'static str {
        self.command.split(' ').next().unwrap_or_default()
    }

    /// All names that need no configuration.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::ALL.iter().map(|preset| preset.name).chain([SHELL, DEMO])
    }

    /// All known programs.
    pub const ALL: &[Self] = &[
        Self {
            name: "claude",
            command: "claude -p --output-format stream-json --verbose --dangerously-skip-permissions \
                --mcp-config {tools} --model {model} --resume {session}",
            resume: None,
            events: EventFormat::Claude,
            env: &[],
            tools: None,
            state: &[("CLAUDE_CONFIG_DIR", ".claude"), ("", ".claude.json")],
            protected: protected::CLAUDE,
            project_settings: &[".claude/", ".mcp.json"],
            install: "npm install -g @anthropic-ai/claude-code",
            login: "start 'claude' and log in with /login, or set ANTHROPIC_API_KEY",
            provider: Some("anthropic"),
        },
        Self {
            name: "codex",
            command: "codex exec --json -s workspace-write --skip-git-repo-check \
                -c mcp_servers.arborist={tools-toml} -m {model} -C {dir} -",
            resume: Some(
                "codex exec --json -s workspace-write --skip-git-repo-check \
                -c mcp_servers.arborist={tools-toml} -m {model} -C {dir} resume {session} -",
            ),
            events: EventFormat::Codex,
            env: &[],
            tools: None,
            state: &[("CODEX_HOME", ".codex")],
            protected: protected::CODEX,
            project_settings: &[".codex/"],
            install: "npm install -g @openai/codex",
            login: "log in with 'codex login'",
            provider: Some("openai"),
        },
        Self {
            name: "gemini",
            command: "gemini -o stream-json --approval-mode yolo --skip-trust -m {model} -r {session}",
            resume: None,
            events: EventFormat::Gemini,
            env: &[],
            // It accepts them as no argument, and trusts only files of root, of its home and of the worktree.
            tools: Some(("GEMINI_CLI_HOME", ToolsForm::Home)),
            state: &[("", ".gemini")],
            protected: protected::GEMINI,
            project_settings: &[".gemini/", ".env"],
            install: "npm install -g @google/gemini-cli",
            login: "log in by starting 'gemini' once, or set GEMINI_API_KEY",
            provider: Some("google"),
        },
        Self {
            name: "opencode",
            command: "opencode run --format json --auto --dir {dir} -m {model} -s {session}",
            resume: None,
            events: EventFormat::Opencode,
            env: &[],
            tools: Some(("OPENCODE_CONFIG_CONTENT", ToolsForm::Opencode)),
            state: &[
                ("", ".local/share/opencode"),
                ("", ".local/state/opencode"),
                ("", ".config/opencode"),
                ("", ".cache/opencode"),
            ],
            protected: protected::OPENCODE,
            project_settings: &[".opencode/", "opencode.json", "opencode.jsonc"],
            install: "npm install -g opencode-ai",
            login: "log in with 'opencode auth login'",
            provider: None,
        },
        Self {
            name: "aider",
            command: "aider --yes-always --no-auto-commits --no-dirty-commits --no-check-update \
                --no-gitignore --no-pretty --model {model} --message-file {prompt-file}",
            resume: None,
            events: EventFormat::Text,
            env: &[],
            tools: None,
            state: &[("", ".aider")],
            protected: protected::AIDER,
            project_settings: &[
                ".env",
                ".aider.conf.yml",
                ".aider.model.settings.yml",
                ".aider.model.metadata.json",
            ],
            install: "python -m pip install aider-install && aider-install",
            login: "set the key of the model's provider, such as OPENAI_API_KEY",
            provider: None,
        },
        Self {
            name: "cursor-agent",
            command: "cursor-agent -p --force --trust --output-format stream-json --model {model} --resume \
                {session} {prompt}",
            resume: None,
            events: EventFormat::Claude,
            env: &[],
            tools: None,
            state: &[("", ".cursor"), ("", ".config/cursor")],
            protected: protected::CURSOR,
            project_settings: &[".cursor/"],
            install: "curl https://cursor.com/install -fsS | bash",
            login: "log in with 'cursor-agent login', or set CURSOR_API_KEY",
            provider: Some("cursor"),
        },
        Self {
            name: "copilot",
            command: "copilot -p {prompt} --allow-all-tools --no-ask-user --model {model} \
                --resume={session}",
            resume: None,
            events: EventFormat::Text,
            env: &[],
            tools: None,
            state: &[("", ".copilot")],
            protected: protected::COPILOT,
            project_settings: &[".copilot/", ".mcp.json", ".vscode/mcp.json"],
            install: "npm install -g @github/copilot",
            login: "log in by starting 'copilot' once, or set GH_TOKEN",
            provider: Some("github"),
        },
        Self {
            name: "qwen",
            command: "qwen -o stream-json --approval-mode yolo -m {model} --resume {session}",
            resume: None,
            events: EventFormat::Claude,
            env: &[],
            tools: None,
            state: &[("", ".qwen")],
            protected: protected::QWEN,
            project_settings: &[".qwen/", ".env"],
            install: "npm install -g @qwen-code/qwen-code",
            login: "log in by starting 'qwen' once",
            provider: Some("alibaba"),
        },
        Self {
            name: "amp",
            command: "amp -x --stream-json --dangerously-allow-all",
            resume: Some("amp threads continue {session} -x --stream-json --dangerously-allow-all"),
            events: EventFormat::Claude,
            env: &[],
            tools: None,
            state: &[("", ".local/share/amp"), ("", ".config/amp")],
            protected: protected::AMP,
            project_settings: &[".amp/"],
            install: "npm install -g @sourcegraph/amp",
            login: "log in with 'amp login', or set AMP_API_KEY",
            provider: Some("sourcegraph"),
        },
        Self {
            name: "goose",
            command: "goose run -q --model {model} -i -",
            resume: None,
            events: EventFormat::Text,
            env: &[("GOOSE_MODE", "auto")],
            tools: None,
            state: &[("", ".config/goose"), ("", ".local/share/goose"), ("", ".local/state/goose")],
            protected: protected::GOOSE,
            project_settings: &[".goose/"],
            install: "curl -fsSL https://github.com/block/goose/releases/download/stable/download_cli.sh | bash",
            login: "name a provider and its key with 'goose configure'",
            provider: None,
        },
    ];
}

/// Prefixes of models that identify the provider.
const MODELS: [(&str, &str); 10] = [
    ("claude", "anthropic"),
    ("gpt-", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("gemini", "google"),
    ("qwen", "alibaba"),
    ("grok", "xai"),
    ("deepseek", "deepseek"),
    ("mistral", "mistral"),
];

/// The provider of `model` if `program` uses it. A model may name its provider itself, as in `anthropic/sonnet`.
#[must_use]
pub fn provider_of(program: &str, model: Option<&str>) -> Option<String> {
    let named = model.and_then(|model| model.split_once('/')).map(|(provider, _)| provider.to_owned());
    let program = program.rsplit('/').next().unwrap_or(program);
    let by_program = || Preset::ALL.iter().find(|preset| preset.name == program)?.provider;
    let by_model = || {
        MODELS.iter().find(|(start, _)| model.is_some_and(|model| model.starts_with(start))).map(|(_, p)| *p)
    };
    named.filter(|name| !name.is_empty()).or_else(|| by_program().or_else(by_model).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Request, ToolServer, template::Placeholder},
        *,
    };
    use crate::failure::Explain;
    use std::{collections::BTreeMap, ffi::OsStr, path::Path};

    fn call(runner: &Runner, session: Option<&str>) -> (Vec<String>, bool) {
        let call = runner.call(&Request {
            prompt: "do it",
            model: Some("m"),
            dir: Path::new("/r p"),
            session,
            prompt_file: Some(Path::new("/p")),
            tools: None,
        });
        (call.args, call.stdin.is_some())
    }

    fn can_resume(runner: &Runner) -> bool {
        runner.templates().any(|template| template.uses(Placeholder::Session))
    }

    #[test]
    fn every_preset_gets_its_prompt_exactly_once() {
        for preset in Preset::ALL {
            let runner = Runner::new(preset.name, &Overrides::default()).unwrap();
            for session in [None, Some("s1")] {
                let (args, on_stdin) = call(&runner, session);
                let told = args.iter().filter(|arg| *arg == "do it" || *arg == "/p").count();
                assert_eq!(told + usize::from(on_stdin), 1, "{}: {args:?}", preset.name);
                assert!(!args.iter().any(|arg| arg.contains('{')), "{}: {args:?}", preset.name);
                let resumes = args.iter().any(|arg| arg.contains("s1"));
                assert_eq!(resumes, session.is_some() && can_resume(&runner), "{}: {args:?}", preset.name);
            }
        }
    }

    #[test]
    fn programs_with_mcp_get_the_tools_server_in_their_own_format() {
        let (file, home) = (Some("/f".into()), Some("/h".into()));
        let server = ToolServer { program: "t".into(), file, home, ..ToolServer::default() };
        let told = |name: &str, tools| {
            let runner = Runner::new(name, &Overrides::default()).unwrap();
            let call = runner.call(&Request {
                prompt: "x",
                model: None,
                dir: Path::new("/d"),
                session: None,
                prompt_file: None,
                tools,
            });
            (call.args, call.env)
        };
        for preset in Preset::ALL {
            let runner = Runner::new(preset.name, &Overrides::default()).unwrap();
            let is_told = told(preset.name, Some(&server)) != told(preset.name, None);
            assert_eq!(is_told, runner.takes_tools(), "{}", preset.name);
            assert_eq!(is_told, ["claude", "codex", "gemini", "opencode"].contains(&preset.name));
        }
        let (args, _) = told("claude", Some(&server));
        assert_eq!(&args[args.len() - 2..], ["--mcp-config", &server.json()]);
        let (args, _) = told("codex", Some(&server));
        let at = args.iter().position(|arg| arg == "-c").unwrap();
        assert!(args[at + 1].starts_with("mcp_servers.arborist={ command = \"t\""), "{args:?}");
        assert!(!told("codex", None).0.contains(&"-c".to_owned()));
        let (_, env) = told("opencode", Some(&server));
        assert_eq!(env[0].0, "OPENCODE_CONFIG_CONTENT");
        assert_eq!(told("gemini", Some(&server)).1, [("GEMINI_CLI_HOME".into(), "/h".into())]);
        let own = Overrides { command: Some(vec!["my-opencode".into()]), ..Overrides::default() };
        assert!(!Runner::new("opencode", &own).unwrap().takes_tools(), "who knows what that is");
    }

    #[test]
    fn codex_continues_a_session_with_its_resume_command() {
        let codex = Runner::new("codex", &Overrides::default()).unwrap();
        let (args, _) = call(&codex, Some("s1"));
        assert_eq!(&args[args.len() - 5..], ["-C", "/r p", "resume", "s1", "-"]);
    }

    #[test]
    fn a_preset_is_overridden_field_by_field() {
        let own = Overrides {
            events: Some(EventFormat::Text),
            env: BTreeMap::from([("A".to_owned(), "b".to_owned())]),
            ..Overrides::default()
        };
        let goose = Runner::new("goose", &own).unwrap();
        assert_eq!((goose.events, goose.program()), (EventFormat::Text, "goose"));
        let env = goose.call(&Request {
            prompt: "x",
            model: None,
            dir: Path::new("."),
            session: None,
            prompt_file: None,
            tools: None,
        });
        let set = [("A", "b"), ("GOOSE_MODE", "auto")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(env.env, set);
        let own = Overrides { command: Some(vec!["my-codex".into()]), ..Overrides::default() };
        let codex = Runner::new("codex", &own).unwrap();
        assert_eq!(
            (codex.events, codex.program(), can_resume(&codex)),
            (EventFormat::Codex, "my-codex", false)
        );
    }

    #[test]
    fn shell_and_demo_are_built_in_runners_unless_configured() {
        let own = Overrides { command: Some(vec!["zsh".into()]), ..Overrides::default() };
        assert_eq!(RunnerKind::resolve("shell", &Overrides::default()).unwrap(), RunnerKind::Shell);
        assert_eq!(RunnerKind::resolve("demo", &Overrides::default()).unwrap(), RunnerKind::Demo);
        assert!(matches!(RunnerKind::resolve("shell", &own).unwrap(), RunnerKind::Program(_)));
        let error = RunnerKind::resolve("cluade", &Overrides::default()).unwrap_err();
        assert_eq!(error.hint().unwrap(), "did you mean 'claude'?");
    }

    #[test]
    fn the_error_for_a_missing_program_says_how_to_install_it() {
        let nowhere = OsStr::new("/nonexistent");
        let own = Overrides { command: Some(vec!["/bin/no-such".into()]), ..Overrides::default() };
        let codex =
            Runner::new("codex", &Overrides::default()).unwrap().require_program(nowhere).unwrap_err();
        assert_eq!(codex.to_string(), "'codex' is not installed");
        assert_eq!(codex.hint().unwrap(), "install it with: npm install -g @openai/codex");
        let robot = Runner::new("codex", &own).unwrap().require_program(nowhere).unwrap_err();
        assert_eq!(robot.to_string(), "the runner 'codex' cannot start: there is no file '/bin/no-such'");
        let own = Overrides { command: Some(vec!["sh".into()]), ..Overrides::default() };
        assert!(Runner::new("robot", &own).unwrap().require_program(OsStr::new("/usr/bin:/bin")).is_ok());
    }

    #[test]
    fn the_provider_is_derived_from_the_model_or_the_program() {
        let table = [
            ("claude", None, Some("anthropic")),
            ("/usr/bin/codex", Some("gpt-5"), Some("openai")),
            ("opencode", Some("scripted/m"), Some("scripted")),
            ("opencode", Some("claude-sonnet-4"), Some("anthropic")),
            ("robot", Some("o3-mini"), Some("openai")),
            ("robot", Some("own"), None),
            ("robot", None, None),
        ];
        for (program, model, expected) in table {
            assert_eq!(provider_of(program, model).as_deref(), expected, "{program} {model:?}");
        }
    }
}
