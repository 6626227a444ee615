//! The MCP server that an agent is given, written in the format of each program.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::name::TaskId;

/// A program that offers tools over MCP on its standard streams.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolServer {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment variables; some agents do not pass on their own.
    pub env: Vec<(String, String)>,
    /// The time limit of a call in seconds.
    pub patience: u64,
    /// The number of repositories that it has tools for.
    pub repositories: usize,
    /// A file with this definition, for programs that need one.
    pub file: Option<PathBuf>,
    /// A home directory for a program that reads the definition there.
    pub home: Option<PathBuf>,
}

/// The format of the definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolsForm {
    /// The most common one: `{"mcpServers": …}`.
    Json,
    /// The path of a file that contains [`Self::Json`].
    File,
    /// The value of one server in TOML.
    Toml,
    /// The format of OpenCode's configuration.
    Opencode,
    /// In the program's home directory.
    Home,
}

impl ToolServer {
    /// Its name in the configuration of an agent, and so the prefix of its tools.
    pub const NAME: &'static str = "arborist";

    /// The definition in this format; `None` if it needs a file and there is none.
    #[must_use]
    pub fn written(&self, form: ToolsForm) -> Option<String> {
        match form {
            ToolsForm::Json => Some(self.json()),
            ToolsForm::File => self.file.as_ref().map(|file| file.to_string_lossy().into_owned()),
            ToolsForm::Toml => Some(self.toml()),
            ToolsForm::Opencode => Some(self.opencode()),
            ToolsForm::Home => self.home.as_ref().map(|home| home.to_string_lossy().into_owned()),
        }
    }

    /// This server for an agent that works in `to` instead of `from`.
    #[must_use]
    pub fn moved(&self, from: &Path, to: &Path) -> Self {
        let mut moved = self.clone();
        let end = format!("={}", from.display());
        for at in 1..moved.args.len() {
            let name = moved.args[at].strip_suffix(&end).filter(|_| moved.args[at - 1] == "--root");
            if let Some(root) = name.map(|name| format!("{name}={}", to.display())) {
                moved.args[at] = root;
            }
        }
        for (_, value) in moved.env.iter_mut().filter(|(name, _)| name == "ARBORIST_WORKTREE") {
            *value = to.to_string_lossy().into_owned();
        }
        moved
    }

    /// The folders that it serves.
    pub fn roots(&self) -> impl Iterator<Item = PathBuf> {
        let pairs = self.args.windows(2).filter(|pair| pair[0] == "--root");
        pairs.filter_map(|pair| pair[1].split_once('=')).map(|(_, folder)| PathBuf::from(folder))
    }

    /// This server for the agent of a task.
    #[must_use]
    pub fn for_task(mut self, task: &TaskId) -> Self {
        self.env.push(("ARBORIST_TASK".into(), task.to_string()));
        self
    }

    /// The content of a file or of an argument. `trust` and `timeout` are for programs that descend from Gemini.
    #[must_use]
    pub fn json(&self) -> String {
        let server = json!({
            "command": self.program,
            "args": self.args,
            "env": self.env(),
            "timeout": self.patience.saturating_mul(1000),
            "trust": true,
        });
        json!({ "mcpServers": { Self::NAME: server } }).to_string()
    }

    /// An inline table for Codex, which otherwise refuses tools that change files if it cannot ask the user. JSON
    /// strings are valid TOML strings.
    fn toml(&self) -> String {
        let text = |text: &str| Value::from(text).to_string();
        let args: Vec<String> = self.args.iter().map(|arg| text(arg)).collect();
        let env: Vec<String> =
            self.env.iter().map(|(name, value)| format!("{name} = {}", text(value))).collect();
        format!(
            "{{ command = {}, args = [{}], env = {{ {} }}, tool_timeout_sec = {}, \
             default_tools_approval_mode = \"approve\" }}",
            text(&self.program),
            args.join(", "),
            env.join(", "),
            self.patience
        )
    }

    fn opencode(&self) -> String {
        let command: Vec<&String> = std::iter::once(&self.program).chain(&self.args).collect();
        let server =
            json!({ "type": "local", "command": command, "environment": self.env(), "enabled": true });
        json!({ "mcp": { Self::NAME: server } }).to_string()
    }

    fn env(&self) -> Map<String, Value> {
        self.env.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_server_is_described_identically_in_every_format() {
        let server = ToolServer {
            program: "/a b/tools".into(),
            args: vec!["--root".into(), "x=/p \"q\"".into(), "--command".into(), "x:t=a\n\\b".into()],
            env: vec![("A".into(), "é'".into())],
            patience: 300,
            repositories: 1,
            file: Some("/f".into()),
            home: Some("/h".into()),
        };
        let json: Value = serde_json::from_str(&server.json()).unwrap();
        let toml = format!("x = {}", server.written(ToolsForm::Toml).unwrap());
        let toml: toml::Table = toml::from_str(&toml).unwrap();
        let opencode: Value = serde_json::from_str(&server.written(ToolsForm::Opencode).unwrap()).unwrap();
        let told = &json["mcpServers"]["arborist"];
        assert_eq!(told["args"][3], "x:t=a\n\\b");
        assert_eq!(toml["x"]["args"][3].as_str(), told["args"][3].as_str());
        assert_eq!(toml["x"]["args"][1].as_str(), told["args"][1].as_str());
        assert_eq!(toml["x"]["env"]["A"].as_str(), Some("é'"));
        assert_eq!(opencode["mcp"]["arborist"]["command"][4], told["args"][3]);
        assert_eq!(opencode["mcp"]["arborist"]["environment"], told["env"]);
        assert_eq!(server.written(ToolsForm::File).as_deref(), Some("/f"));
        assert_eq!(server.written(ToolsForm::Home).as_deref(), Some("/h"));
    }
}
