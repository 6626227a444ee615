//! The programs, and the configuration that points each at the scripted model.

use std::{fs, path::Path, process::Command};

use arborist_testkit::TestRepo;
use serde_json::json;

/// An agent program as it is installed from npm.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Agent {
    /// The name of its program and of its runner.
    pub(crate) name: &'static str,
    /// Its package.
    pub(crate) package: &'static str,
    /// The model that it is asked for.
    pub(crate) model: &'static str,
    /// How many requests it makes before it tells of a limit, with the settings below.
    pub(crate) requests: u32,
    /// How long it may be silent, in seconds: longer than it needs to start and to make these requests, also where others
    /// are at work, and shorter than anyone likes to wait.
    pub(crate) silence: u32,
    env: &'static [(&'static str, &'static str)],
    /// Writes its configuration: the repository with the home, codex's own home, and the model's address.
    configure: fn(&TestRepo, &Path, &str),
}

/// Claude Code.
pub(crate) const CLAUDE: Agent = Agent {
    name: "claude",
    package: "@anthropic-ai/claude-code",
    model: "sonnet",
    requests: 2,
    silence: 40,
    // Root may skip permissions only where the program is told that it is alone.
    env: &[
        ("IS_SANDBOX", "1"),
        ("ANTHROPIC_API_KEY", "no-key-is-needed"),
        ("CLAUDE_CODE_MAX_RETRIES", "1"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_TELEMETRY", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
    ],
    configure: |_, _, _| {},
};

/// Codex.
pub(crate) const CODEX: Agent = Agent {
    name: "codex",
    package: "@openai/codex",
    model: "gpt-scripted",
    requests: 1,
    silence: 40,
    env: &[("SCRIPTED_KEY", "no-key-is-needed")],
    configure: |_, codex_home, url| {
        let config = format!(
            "model_provider = \"scripted\"\n\
             [model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{url}/v1\"\nwire_api = \"responses\"\n\
             env_key = \"SCRIPTED_KEY\"\nrequest_max_retries = 0\nstream_max_retries = 0\n\
             [analytics]\nenabled = false\n"
        );
        fs::write(codex_home.join("config.toml"), config).unwrap();
    },
};

/// OpenCode.
pub(crate) const OPENCODE: Agent = Agent {
    name: "opencode",
    package: "opencode-ai",
    model: "scripted/m",
    requests: 6,
    silence: 80,
    env: &[("OPENCODE_DISABLE_AUTOUPDATE", "1"), ("OPENCODE_DISABLE_MODELS_FETCH", "1")],
    configure: |repo, _, url| {
        let options = json!({ "baseURL": format!("{url}/v1"), "apiKey": "no-key-is-needed" });
        let provider =
            json!({ "npm": "@ai-sdk/openai-compatible", "options": options, "models": { "m": {} } });
        let config = json!({
            "autoupdate": false,
            "share": "disabled",
            "provider": { "scripted": provider },
            "permission": { "edit": "allow", "bash": "allow" },
        });
        write(repo, ".config/opencode/opencode.json", &config.to_string());
    },
};

/// Gemini CLI.
pub(crate) const GEMINI: Agent = Agent {
    name: "gemini",
    package: "@google/gemini-cli",
    model: "gemini-2.5-pro",
    requests: 1,
    silence: 40,
    env: &[("GEMINI_API_KEY", "no-key-is-needed")],
    configure: |repo, _, _| {
        let config = json!({
            "security": { "auth": { "selectedType": "gemini-api-key" } },
            "privacy": { "usageStatisticsEnabled": false },
            "general": { "enableAutoUpdate": false, "maxAttempts": 1 },
        });
        write(repo, ".gemini/settings.json", &config.to_string());
    },
};

impl Agent {
    /// Writes its configuration.
    pub(crate) fn configure(&self, repo: &TestRepo, codex_home: &Path, url: &str) {
        (self.configure)(repo, codex_home, url);
    }

    /// Sets what it needs in the environment. What it would send elsewhere goes to a port that is closed.
    pub(crate) fn point(&self, command: &mut Command, url: &str) {
        command.envs(self.env.iter().copied());
        command.env("ANTHROPIC_BASE_URL", url).env("GOOGLE_GEMINI_BASE_URL", url);
        command.env("HTTPS_PROXY", "http://127.0.0.1:9").env("NO_PROXY", "127.0.0.1,localhost");
    }
}

/// Writes a file of the repository's home.
pub(crate) fn write(repo: &TestRepo, path: &str, text: &str) {
    let file = repo.home().join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}
