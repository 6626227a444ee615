//! Watches the configuration of agent programs in the home directory. The next call of the program obeys it, and that
//! may be the reviewer of the agent that wrote it; later the user's own sessions do.

use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

use serde_json::{Map, Value};

use super::{
    restore_watched_files::{RunningChildren, WatchedCopy},
    watched_files::{WatchMode, WatchedItem},
};
use crate::{
    agent::{ProtectedKind, ProtectedPath},
    git::{add_notice, copy_aside},
    message::visible,
    mutex::MutexExt,
    safe_files::{self, FileEvents, FileKind},
};

/// The largest file of which parts are compared. `.claude.json` grows with every project.
const MAX_SIZE: u64 = 64 * 1024 * 1024;

/// Keys of `.claude.json` that name commands, at the top and in each project.
const COMMANDS: [&str; 5] =
    ["mcpServers", "hooks", "env", "enabledMcpjsonServers", "enableAllProjectMcpServers"];

/// Tables that codex writes itself: folders that the user trusts, and notices that were shown.
const NOTES_OF_CODEX: [&str; 2] = ["projects", "notice"];

/// What opencode adds to its settings if they name no schema.
const SCHEMA: &str = "\n  \"$schema\": \"https://opencode.ai/config.json\",";

/// The files as they were when the run began.
#[derive(Debug)]
pub(super) struct AgentFiles {
    whole: WatchedCopy,
    parts: Vec<PartlyWatched>,
    /// Notices what an agent puts there while another one starts, and takes away again.
    events: FileEvents,
    /// What a program may make itself, and had not made yet.
    missing: Vec<PathBuf>,
    /// Messages about everything that was changed.
    changes: Vec<String>,
}

/// A file of which only a part is compared.
#[derive(Debug)]
struct PartlyWatched {
    path: PathBuf,
    kind: ProtectedKind,
    before: Option<Vec<u8>>,
}

impl AgentFiles {
    pub(super) fn remember(files: &[ProtectedPath], git_dir: &Path) -> Self {
        let (mut items, mut parts, mut inside) = (Vec::new(), Vec::new(), Vec::new());
        let (mut unwritten, mut missing) = (Vec::new(), Vec::new());
        for ProtectedPath { path, kind } in files {
            let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { continue };
            // The user may have linked it to another place. Then both the link and this place are watched.
            let (path, real) = (safe_files::resolved(folder).join(name), safe_files::resolved(path));
            inside.extend([&path, &real].into_iter().filter_map(|path| path.parent()).map(Path::to_owned));
            let found = safe_files::kind_of(&path);
            if *kind == ProtectedKind::Whole {
                unwritten.extend([path.clone()].into_iter().chain((real != path).then(|| real.clone())));
            }
            match kind {
                ProtectedKind::WithoutSchema
                | ProtectedKind::ClaudeCommands
                | ProtectedKind::CodexSettings => {
                    if found == Some(FileKind::Link) {
                        items.push(WatchedItem { path, watch_mode: WatchMode::Kind });
                    }
                    parts.push(PartlyWatched { before: read(&real), path: real, kind: *kind });
                }
                ProtectedKind::IfFound if found.is_none() => missing.push(real),
                ProtectedKind::Whole | ProtectedKind::IfFound => {
                    let watch_mode =
                        if found == Some(FileKind::File) { WatchMode::Whole } else { WatchMode::Folder };
                    items.push(WatchedItem { path, watch_mode });
                }
            }
        }
        let home = std::env::var_os("HOME").map(|home| safe_files::resolved(Path::new(&home)));
        let inside = home.into_iter().chain(inside).collect();
        let whole =
            WatchedCopy::take(items, inside, git_dir.to_owned(), RunningChildren::None).keeping_files();
        Self { whole, parts, events: FileEvents::watch(unwritten), missing, changes: Vec::new() }
    }

    /// Tells the user about what was made for the first time. It stays, because the program may have made it itself.
    fn report_new_files(&mut self) {
        let (made, missing) = std::mem::take(&mut self.missing).into_iter().partition(|path| has_files(path));
        self.missing = missing;
        for path in made {
            add_notice(format!(
                "{} was made during the run, by an agent or by its program; look at it, because programs of agents may run what is in it",
                visible(&path.to_string_lossy())
            ));
        }
    }

    /// Adds messages about what was changed, even if it was put back.
    fn note_events(&mut self) {
        let changed = self.events.take();
        let words = |path: &PathBuf| format!("{} was changed for a while", visible(&path.to_string_lossy()));
        self.changes.extend(changed.iter().map(words));
    }

    /// Restores what is not as it was, and adds messages about it.
    fn restore(&mut self) {
        let mut restored = self.whole.restore();
        let git_dir = self.whole.git_dir();
        restored.extend(self.parts.iter().filter_map(|part| part.restore(git_dir)));
        if !restored.is_empty() {
            // These events were our own. All children that are running fail anyway.
            self.events.restart();
            self.changes.extend(restored);
        }
    }
}

/// Watches the files for one child.
#[derive(Debug)]
pub(super) struct AgentWatch {
    files: Arc<Mutex<AgentFiles>>,
    /// The number of messages that existed before the child began.
    known: usize,
}

impl AgentWatch {
    /// What was changed since the last child counts against this one: it must not work with such files unnoticed.
    pub(super) fn begin(files: Arc<Mutex<AgentFiles>>) -> Self {
        let mut locked = lock(&files);
        // What was put back before this child began does not count against it.
        locked.note_events();
        let known = locked.changes.len();
        locked.restore();
        drop(locked);
        Self { files, known }
    }

    /// Restores what was changed, and returns messages about everything that was restored since the child began.
    pub(super) fn restore(&self) -> Vec<String> {
        let mut files = lock(&self.files);
        // First, because the message about a file that is restored says more.
        files.restore();
        files.note_events();
        files.report_new_files();
        files.changes.iter().skip(self.known).cloned().collect()
    }
}

fn lock(files: &Mutex<AgentFiles>) -> MutexGuard<'_, AgentFiles> {
    files.hold()
}

/// Whether this is a file, or a folder with a file at some depth.
fn has_files(path: &Path) -> bool {
    match safe_files::kind_of(path) {
        None => false,
        Some(FileKind::Folder) => {
            let entries = safe_files::list_kinds(path).unwrap_or_default();
            entries.iter().any(|entry| entry.kind != FileKind::Folder || has_files(&entry.path))
        }
        Some(_) => true,
    }
}

fn read(path: &Path) -> Option<Vec<u8>> {
    safe_files::read_up_to(path, MAX_SIZE).ok()
}

impl PartlyWatched {
    /// Restores the part that counts if it was changed, and returns a message.
    fn restore(&self, git_dir: &Path) -> Option<String> {
        let now = read(&self.path);
        if now == self.before || self.is_same(now.as_deref()) {
            return None;
        }
        let mut words = format!("{} was changed while an agent or a command ran", self.path.display());
        if let Some(kept) = now.is_some().then(|| copy_aside(git_dir, &self.path)).and_then(Result::ok) {
            words += &format!(", and the changed version is kept in {}", kept.display());
        }
        let mode = self.path.symlink_metadata().map_or(0o600, |found| found.permissions().mode() & 0o777);
        let restored = self.restored(now.as_deref());
        let _ = safe_files::remove(&self.path);
        if let Some(Err(error)) = restored.map(|bytes| safe_files::write_with_mode(&self.path, &bytes, mode))
        {
            words += &format!(", and could not be restored: {error}");
        }
        Some(words)
    }

    fn is_same(&self, now: Option<&[u8]>) -> bool {
        let before = self.before.as_deref();
        match self.kind {
            ProtectedKind::ClaudeCommands => commands(&parse(before)) == commands(&parse(now)),
            ProtectedKind::CodexSettings => {
                codex_settings(before).is_some_and(|before| codex_settings(now) == Some(before))
            }
            _ => before.map(without_schema) == now.map(without_schema),
        }
    }

    /// The content with the part that counts as it was.
    fn restored(&self, now: Option<&[u8]>) -> Option<Vec<u8>> {
        match (self.kind, parse(now)) {
            (ProtectedKind::ClaudeCommands, Value::Object(now)) => {
                let merged = with_commands(now, &commands(&parse(self.before.as_deref())));
                serde_json::to_vec_pretty(&Value::Object(merged)).ok()
            }
            _ => self.before.clone(),
        }
    }
}

fn parse(bytes: Option<&[u8]>) -> Value {
    bytes.and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default()
}

/// The settings of codex without its own notes; `None` if the file is not valid.
fn codex_settings(bytes: Option<&[u8]>) -> Option<toml::Table> {
    let mut settings: toml::Table = std::str::from_utf8(bytes.unwrap_or_default()).ok()?.parse().ok()?;
    NOTES_OF_CODEX.iter().for_each(|table| drop(settings.remove(*table)));
    Some(settings)
}

fn without_schema(text: &[u8]) -> String {
    String::from_utf8_lossy(text).replacen(SCHEMA, "", 1)
}

/// The commands at the top (under an empty name) and of each project that has any.
fn commands(file: &Value) -> Map<String, Value> {
    let projects = file["projects"].as_object().into_iter().flatten();
    let places = projects.map(|(name, project)| (name.clone(), project)).chain([(String::new(), file)]);
    let of_place = |(name, place): (String, &Value)| {
        let is_set = |value: &&Value| match value {
            Value::Object(values) => !values.is_empty(),
            Value::Array(values) => !values.is_empty(),
            value => !value.is_null() && **value != Value::Bool(false),
        };
        let set = COMMANDS
            .iter()
            .filter_map(|key| Some(((*key).to_owned(), place.get(key).filter(is_set)?.clone())));
        let set: Map<String, Value> = set.collect();
        (!set.is_empty()).then_some((name, Value::Object(set)))
    };
    places.filter_map(of_place).collect()
}

/// Replaces the commands in `file` by these.
fn with_commands(mut file: Map<String, Value>, commands: &Map<String, Value>) -> Map<String, Value> {
    let replace = |place: &mut Map<String, Value>, set: Option<&Value>| {
        COMMANDS.iter().for_each(|key| drop(place.remove(*key)));
        place.extend(set.and_then(Value::as_object).cloned().into_iter().flatten());
    };
    replace(&mut file, commands.get(""));
    let projects = file.entry("projects").or_insert_with(|| Value::Object(Map::new()));
    if !projects.is_object() {
        *projects = Value::Object(Map::new());
    }
    let Some(projects) = projects.as_object_mut() else { return file };
    for name in commands.keys().filter(|name| !name.is_empty()) {
        projects.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
    }
    for (name, project) in projects.iter_mut() {
        if let Some(project) = project.as_object_mut() {
            replace(project, commands.get(name));
        }
    }
    file
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_changes_of_commands_in_the_claude_state_count() {
        let before = json!({"numStartups": 1, "mcpServers": {"a": {"command": "a"}}, "projects": {"/p": {"hooks": {}}}});
        let ordinary = json!({"numStartups": 2, "mcpServers": {"a": {"command": "a"}}, "projects": {"/p": {"cost": 1}, "/q": {"mcpServers": {}}}});
        let planted = json!({"numStartups": 3, "mcpServers": {"a": {"command": "b"}}, "projects": {"/p": {"mcpServers": {"c": {"command": "c"}}, "cost": 2}}});
        assert_eq!(commands(&before), commands(&ordinary));
        assert_ne!(commands(&before), commands(&planted));
        let restored = with_commands(planted.as_object().unwrap().clone(), &commands(&before));
        assert_eq!(
            Value::Object(restored),
            json!({"numStartups": 3, "mcpServers": {"a": {"command": "a"}}, "projects": {"/p": {"cost": 2}}})
        );
    }

    #[test]
    fn only_settings_and_not_trust_levels_of_codex_count() {
        let settings = |text: &str| codex_settings(Some(text.as_bytes()));
        let before = settings("model = \"a\"\n");
        assert_eq!(before, settings("model = \"a\"\n[projects.\"/p\"]\ntrust_level = \"trusted\"\n"));
        assert_ne!(before, settings("model = \"a\"\n[mcp_servers.x]\ncommand = \"x\"\n"));
        assert_eq!(codex_settings(None), settings(""));
        assert_eq!(settings("not toml"), None);
    }

    #[test]
    fn the_schema_key_that_opencode_adds_is_no_change() {
        let added = without_schema(b"{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"a\": 1\n}");
        assert_eq!(added, without_schema(b"{\n  \"a\": 1\n}"));
    }
}
