//! Files of agent programs that decide what the next call, or the user's next session, runs or is told: settings with
//! hooks and MCP servers, instructions, and installed programs. An agent must not change them. Credentials, sessions and
//! logs are not among them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Mutex,
};

use crate::{
    mutex::MutexExt,
    process::is_executable,
    safe_files::{self, FileKind},
};

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
    /// It must not change, except for a line that names its schema, which its program adds; nor appear.
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

/// Names in the state folders of agent programs under which they keep data of their sessions. Scripts below them are copies of
/// files, or made again for each session.
const DATA: [&str; 20] = [
    "backups", "cache", "debug", "file-history", "history", "log", "logs", "paste-cache", "plans",
    "projects", "repos", "session-env", "sessions", "shell-snapshots", "snapshot", "statsig", "storage",
    "telemetry", "tmp", "todos",
];
/// The endings of files that an interpreter runs.
const SCRIPTS: [&str; 13] =
    ["sh", "bash", "zsh", "fish", "py", "js", "cjs", "mjs", "ts", "rb", "pl", "lua", "ps1"];
/// How deep programs are searched for in an entry of such a folder, and how many names are read.
const MAX_DEPTH: usize = 3;
const MAX_NAMES: usize = 1000;

/// The programs and scripts in a state folder that exist when this is called first: installations of the program itself,
/// scripts that the user's settings name, and everything else that the user may run.
pub(super) fn programs_in(folder: &Path) -> Vec<PathBuf> {
    static PROGRAMS: Mutex<BTreeMap<PathBuf, Vec<PathBuf>>> = Mutex::new(BTreeMap::new());
    let mut known = PROGRAMS.hold();
    let found = known.entry(folder.to_owned()).or_insert_with(|| {
        let entries = safe_files::list_kinds(folder).unwrap_or_default().into_iter();
        let is_data =
            |path: &Path| DATA.iter().any(|name| path.file_name().is_some_and(|file| file == *name));
        let others = entries.filter(|entry| !is_data(&entry.path));
        others.filter(|entry| has_program(&entry.path, entry.kind)).map(|entry| entry.path).collect()
    });
    found.clone()
}

/// Whether this is a program or a script, or a folder with one.
fn has_program(path: &Path, kind: FileKind) -> bool {
    let (mut open, mut count) = (vec![(path.to_owned(), kind, 0)], 0);
    while let Some((path, kind, depth)) = open.pop().filter(|_| count < MAX_NAMES) {
        count += 1;
        if kind == FileKind::Folder && depth < MAX_DEPTH {
            let entries = safe_files::list_kinds(&path).unwrap_or_default().into_iter();
            open.extend(entries.map(|entry| (entry.path, entry.kind, depth + 1)));
        }
        let is_script = || {
            let ending = path.extension().and_then(|ending| ending.to_str());
            ending.is_some_and(|ending| SCRIPTS.contains(&ending))
        };
        if matches!(kind, FileKind::File | FileKind::Link) && (is_executable(&path) || is_script()) {
            return true;
        }
    }
    false
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
    // The program itself, if it was installed by `claude migrate-installer`, and a program that the browser starts.
    whole("CLAUDE_CONFIG_DIR", ".claude", &["local", "chrome"]),
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

pub(super) const GEMINI: &[ProtectedFiles] = &[
    whole(
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
    ),
    // Programs that it has fetched.
    if_found("", ".gemini", &["tmp/bin"]),
];

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
            "AGENTS.md", "agent", "agents", "command", "commands", "mode", "modes", "plugin", "plugins",
            "skill", "skills", "tool", "tools",
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
    &["mcp.json", "hooks.json", "agents", "commands", "extensions", "hooks", "plugins", "rules", "skills"],
)];

/// Variables that it loads at its start. It writes them itself only while a person logs in.
pub(super) const AIDER: &[ProtectedFiles] = &[whole("", ".aider", &["oauth-keys.env"])];

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
