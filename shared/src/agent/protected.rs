//! Files of agent programs that decide what the next call, or the user's next session, runs or is told: settings with
//! hooks and MCP servers, instructions, and installed programs. An agent must not change them. Credentials, sessions and
//! logs are not among them.

use std::path::PathBuf;

/// Files of one program, in the folder that a variable names, or else in the home directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtectedFiles {
    pub(super) variable: &'static str,
    pub(super) folder: &'static str,
    pub(super) kind: ProtectedKind,
    /// Names in the folder; an empty name is the path itself.
    pub(super) names: &'static [&'static str],
}

/// How a protected file is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtectedKind {
    /// It must not change, nor appear.
    Whole,
    /// The same, except for a line that names its schema, which its program adds.
    WithoutSchema,
    /// It must not change. If it is missing, its program may make it: it is used only if a setting names it.
    IfFound,
    /// Only the commands in it must not change, because its program writes other things to it in each call.
    ClaudeCommands,
    /// It must not change except for the tables in which codex notes which folders are trusted and which notices were
    /// shown.
    CodexSettings,
}

/// A protected file or folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedPath {
    /// Where it is.
    pub path: PathBuf,
    /// How it is compared.
    pub kind: ProtectedKind,
}

const fn whole(
    variable: &'static str,
    folder: &'static str,
    names: &'static [&'static str],
) -> ProtectedFiles {
    ProtectedFiles { variable, folder, kind: ProtectedKind::Whole, names }
}

const fn if_found(
    variable: &'static str,
    folder: &'static str,
    names: &'static [&'static str],
) -> ProtectedFiles {
    ProtectedFiles { variable, folder, kind: ProtectedKind::IfFound, names }
}

const fn claude_commands(variable: &'static str, folder: &'static str) -> ProtectedFiles {
    ProtectedFiles { variable, folder, kind: ProtectedKind::ClaudeCommands, names: &[".claude.json"] }
}

pub(super) const CLAUDE: &[ProtectedFiles] = &[
    whole(
        "CLAUDE_CONFIG_DIR",
        ".claude",
        &[
            "settings.json",
            "settings.local.json",
            "CLAUDE.md",
            "agents",
            "commands",
            "hooks",
            "output-styles",
            "rules",
            "skills",
            "workflows",
        ],
    ),
    if_found("CLAUDE_CONFIG_DIR", ".claude", &["plugins"]),
    claude_commands("CLAUDE_CONFIG_DIR", ""),
];

pub(super) const CODEX: &[ProtectedFiles] = &[
    whole(
        "CODEX_HOME",
        ".codex",
        &[
            "managed_config.toml",
            "AGENTS.md",
            "AGENTS.override.md",
            ".env",
            "agents",
            "hooks",
            "hooks.json",
            "prompts",
            "rules",
        ],
    ),
    // Codex installs skills of its own.
    if_found("CODEX_HOME", ".codex", &["plugins", "skills"]),
    ProtectedFiles {
        variable: "CODEX_HOME",
        folder: ".codex",
        kind: ProtectedKind::CodexSettings,
        names: &["config.toml"],
    },
];

pub(super) const GEMINI: &[ProtectedFiles] = &[whole(
    "",
    ".gemini",
    &[
        "settings.json",
        "GEMINI.md",
        ".env",
        "agents",
        "commands",
        "extensions",
        "hooks",
        "policies",
        "skills",
        "trustedFolders.json",
    ],
)];

pub(super) const OPENCODE: &[ProtectedFiles] = &[
    ProtectedFiles {
        variable: "",
        folder: ".config/opencode",
        kind: ProtectedKind::WithoutSchema,
        names: &["opencode.json", "opencode.jsonc", "config.json"],
    },
    whole(
        "",
        ".config/opencode",
        &[
            "AGENTS.md",
            "agent",
            "agents",
            "command",
            "commands",
            "mode",
            "modes",
            "plugin",
            "plugins",
            "skill",
            "skills",
            "tool",
            "tools",
        ],
    ),
    // Plugins and language servers that it has fetched.
    if_found("", ".config/opencode", &["node_modules"]),
    if_found("", ".local/share/opencode", &["bin"]),
    if_found("", ".cache/opencode", &["bin", "node_modules", "packages"]),
];

pub(super) const CURSOR: &[ProtectedFiles] = &[whole(
    "",
    ".cursor",
    &["mcp.json", "hooks.json", "agents", "commands", "hooks", "plugins", "rules", "skills"],
)];

pub(super) const COPILOT: &[ProtectedFiles] = &[
    whole(
        "",
        ".copilot",
        &["mcp-config.json", "lsp-config.json", "copilot-instructions.md", "agents", "hooks", "skills"],
    ),
    if_found("", ".copilot", &["installed-plugins", "pkg"]),
];

pub(super) const QWEN: &[ProtectedFiles] = &[whole(
    "",
    ".qwen",
    &[
        "settings.json",
        "QWEN.md",
        ".env",
        "agents",
        "commands",
        "extensions",
        "hooks",
        "skills",
        "trustedFolders.json",
    ],
)];

pub(super) const AMP: &[ProtectedFiles] = &[whole(
    "",
    ".config/amp",
    &["settings.json", "settings.jsonc", "AGENTS.md", "AGENT.md", "commands", "plugins", "skills", "tools"],
)];

pub(super) const GOOSE: &[ProtectedFiles] =
    &[whole("", ".config/goose", &["config.yaml", ".goosehints", "custom_providers", "recipes", "skills"])];
