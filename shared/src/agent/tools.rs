//! The server of tools that an agent is given, written down as each program wants it.

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
    /// What it finds in its environment; some agents keep theirs from it.
    pub env: Vec<(String, String)>,
    /// How many seconds a call may take.
    pub patience: u64,
    /// Of how many repositories it has tools.
    pub repositories: usize,
    /// A file that says all this, for programs that want one.
    pub file: Option<PathBuf>,
    /// A home of a program that finds it there.
    pub home: Option<PathBuf>,
}

/// How a program wants it written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolsForm {
    /// As most have it: `{"mcpServers": …}`.
    Json,
    /// The same in a file, by its path.
    File,
    /// The value of one server, for TOML.
    Toml,
    /// As in the configuration of OpenCode.
    Opencode,
    /// In a folder that is the program's home.
    Home,
}

impl ToolServer {
    /// What it is called in the configuration of an agent, and so before the names of its tools.
    pub const NAME: &'static str = "arborist";

    /// It, as a program wants it; `None` if there is no file that it could be told of.
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

    /// The same for one who works in `to` instead of `from`.
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

    /// The same, for a task.
    #[must_use]
    pub fn for_task(mut self, task: &TaskId) -> Self {
        self.env.push(("ARBORIST_TASK".into(), task.to_string()));
        self
    }

    /// The whole of a file, or of an argument. `trust` and `timeout` are for those that come from Gemini.
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

    /// An inline table for Codex, which would refuse what replaces files where there is nobody to ask. The strings of JSON are
    /// strings of TOML too.
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
    fn every_form_says_the_same() {
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
