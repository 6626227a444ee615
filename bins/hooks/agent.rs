//! Hooks of an interactive agent: entries in its own settings file, next to existing ones, that record its turns.

use std::{io, path::Path};

use arborist_core::{
    failure::{Exit, Failure},
    git::{Repository, Worktree},
    safe_files,
};
use serde_json::{Map, Value, json};

use super::{
    event::Quoted,
    plan::HookChange,
    status::{AgentStatus, HookState},
};

/// The personal settings of Claude Code in one repository.
pub(super) const SETTINGS: &str = ".claude/settings.local.json";
/// The comment above our line in the exclude file.
const NOTE: &str = "# added by: git arborist hooks install --agent claude";
/// The text by which our entries are recognised. A missing program must not be an error for the agent.
const CALL: &str = " hook claude 2>/dev/null || :";
/// The program that our entries run.
pub(super) const BINARY: &str = "git-arborist-session";
/// Seconds after which Claude Code continues without us.
const HOOK_TIMEOUT_SECONDS: u32 = 30;

/// The events on which we are called, and for which tools.
const EVENTS: [(&str, Option<&str>); 4] = [
    ("UserPromptSubmit", None),
    ("PostToolUse", Some("Edit|MultiEdit|Write|NotebookEdit|Bash")),
    ("Stop", None),
    ("SessionEnd", None),
];

/// What to do to the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SettingsRequest {
    Install,
    Uninstall,
}

/// Whether the settings call us; `None` without a checkout.
pub(super) fn status(repository: &Repository) -> Option<AgentStatus> {
    let path = repository.worktree.as_ref().map(|_| repository.top().join(SETTINGS))?;
    let (state, note) = match load(&path) {
        Ok(settings) => match count_ours(&settings) {
            0 => (HookState::Missing, None),
            count if count == EVENTS.len() => (HookState::Installed, None),
            _ => (HookState::Edited, Some("it is incomplete".to_owned())),
        },
        Err(failure) => (HookState::Missing, Some(failure.message)),
    };
    let place = (state != HookState::Missing).then(|| path.to_string_lossy().into_owned());
    Some(AgentStatus { agent: "claude", state, place, note })
}

/// The number of events for which the settings call us.
fn count_ours(settings: &Value) -> usize {
    let calls_us =
        |event: &str| settings["hooks"][event].as_array().is_some_and(|entries| entries.iter().any(is_ours));
    EVENTS.iter().filter(|(event, _)| calls_us(event)).count()
}

fn load(path: &Path) -> Result<Value, Failure> {
    let text = match safe_files::read_text(&safe_files::resolved(path)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(unreadable(path, &error)),
    };
    match text.trim() {
        "" => Ok(json!({})),
        text => serde_json::from_str(text).map_err(|error| unreadable(path, &error)),
    }
}

/// The change that installs or removes our entries; `None` if there is nothing to do.
pub(super) fn plan(
    repository: &Repository,
    wish: SettingsRequest,
    binary: &Quoted,
) -> Result<Option<HookChange>, Failure> {
    if repository.worktree.is_none() {
        return Err(Failure::new(Exit::Fatal, "agents need a checkout, but this repository is bare"));
    }
    let path = repository.top().join(SETTINGS);
    require_inside(repository.top(), &path)?;
    let old = load(&path)?;
    let mut new = old.clone();
    let settings = new.as_object_mut().ok_or_else(|| unreadable(&path, &"it is not a JSON object"))?;
    take_out(settings);
    if wish == SettingsRequest::Install {
        put_in(settings, binary).map_err(|why| unreadable(&path, &why))?;
    }
    if new == old {
        return Ok(None);
    }
    if new == json!({}) {
        return Ok(Some(HookChange::Remove { path }));
    }
    let bytes = format!("{new:#}\n").into_bytes();
    Ok(Some(HookChange::Edit { path, bytes }))
}

/// Hides the settings from git: they are personal, and must not make the checkout dirty.
pub(super) fn hide(repository: &Repository) -> Result<(), Failure> {
    Ok(repository.exclude_with_note(&format!("/{SETTINGS}"), NOTE)?)
}

/// Removes the folder of the settings, which are gone, if it is empty.
pub(super) fn remove_folder(repository: &Repository) {
    if let Some(folder) = repository.top().join(SETTINGS).parent() {
        // A folder with other files stays.
        let _ = safe_files::remove_folder(folder);
    }
}

/// Removes the line that [`hide`] added, unless the settings of another worktree still have our entries.
pub(super) fn stop_hiding(repository: &Repository) -> Result<(), Failure> {
    // Settings that cannot be understood may still have our entries.
    let is_used = |worktree: &Worktree| match load(&worktree.path.join(SETTINGS)) {
        Ok(settings) => count_ours(&settings) > 0,
        Err(_) => true,
    };
    if !repository.list_worktrees()?.iter().any(is_used) {
        repository.stop_excluding(&format!("/{SETTINGS}"), NOTE)?;
    }
    Ok(())
}

/// Refuses a tracked link that leads out of the repository.
fn require_inside(top: &Path, path: &Path) -> Result<(), Failure> {
    let Some(link) = safe_files::find_link_out(top, path) else { return Ok(()) };
    Err(leads_out(&link))
}

/// The error for a tracked link that leads out of the repository.
pub(super) fn leads_out(link: &Path) -> Failure {
    let words = format!("'{}' is a link that leads out of the repository", link.display());
    Failure::new(Exit::Person, words)
        .hint(format!("nothing was changed; remove the link: rm '{}'", link.display()))
}

fn put_in(settings: &mut Map<String, Value>, binary: &Quoted) -> Result<(), &'static str> {
    let hooks = settings.entry("hooks").or_insert_with(|| json!({}));
    let hooks = hooks.as_object_mut().ok_or("its hooks are not a JSON object")?;
    let command = format!("{}{CALL}", binary.word());
    for (event, matcher) in EVENTS {
        let mut entry = Map::new();
        if let Some(matcher) = matcher {
            entry.insert("matcher".into(), matcher.into());
        }
        let call = json!([{ "type": "command", "command": command, "timeout": HOOK_TIMEOUT_SECONDS }]);
        entry.insert("hooks".into(), call);
        let entries = hooks.entry(event).or_insert_with(|| json!([]));
        entries.as_array_mut().ok_or("its hooks are not lists")?.push(Value::Object(entry));
    }
    Ok(())
}

/// Removes our entries, and containers that are empty without them.
fn take_out(settings: &mut Map<String, Value>) {
    let Some(hooks) = settings.get_mut("hooks").and_then(Value::as_object_mut) else {
        return;
    };
    let mut has_changed = false;
    for (event, _) in EVENTS {
        let Some(entries) = hooks.get_mut(event).and_then(Value::as_array_mut) else {
            continue;
        };
        let count = entries.len();
        entries.retain(|entry| !is_ours(entry));
        has_changed |= entries.len() != count;
        if entries.is_empty() && count > 0 {
            hooks.shift_remove(event);
        }
    }
    if has_changed && hooks.is_empty() {
        settings.shift_remove("hooks");
    }
}

/// Whether an entry does nothing but call us.
fn is_ours(entry: &Value) -> bool {
    let calls = entry["hooks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_call = |call: &Value| {
        call["command"].as_str().is_some_and(|command| command.contains(BINARY) && command.ends_with(CALL))
    };
    !calls.is_empty() && calls.iter().all(is_call)
}

fn unreadable(path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::new(Exit::Person, format!("'{}' cannot be understood: {why}", path.display()))
        .hint("nothing was changed; correct the file and try again")
}
