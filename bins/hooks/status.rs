//! The state of each hook, and why it does not run.

use arborist_core::git::{DirPlace, GitVersion, HooksDir};
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    event::HookEvent,
    site::{HookContent, HookFile, HookSite, Manager},
};

/// Whether git will run our hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HookState {
    /// It is installed.
    Installed,
    /// It is not installed.
    Missing,
    /// It is installed, but git does not run it.
    Shadowed,
    /// It is installed, but was edited.
    Edited,
}

/// The answer of `hooks status --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct HooksStatus {
    /// Which git will run the hooks.
    pub git: String,
    /// The directory that git reads hook files from.
    pub hooks_dir: String,
    /// The scope of the `core.hooksPath` that decides so, if it is set.
    pub hooks_path_scope: Option<String>,
    /// One entry for each hook that we know.
    pub hooks: Vec<HookStatus>,
    /// One entry for each interactive agent whose turns can be recorded.
    pub agents: Vec<AgentStatus>,
}

/// Whether an interactive agent records its turns here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AgentStatus {
    /// The agent.
    pub agent: &'static str,
    /// Whether its settings call us.
    pub state: HookState,
    /// The file that they are in.
    pub place: Option<String>,
    /// Further remarks.
    pub note: Option<String>,
}

/// The state of one hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct HookStatus {
    /// Its name in git.
    pub event: HookEvent,
    /// Whether git will run ours.
    pub state: HookState,
    /// The file or configuration key that contains ours.
    pub place: Option<String>,
    /// The earlier hook, which ours calls first.
    pub chained: Option<String>,
    /// The program that ours calls; if null, it is looked up on `PATH`.
    pub binary: Option<String>,
    /// The program that manages the hook file, if one was recognised.
    pub manager: Option<Manager>,
    /// Why it does not run, or other remarks.
    pub note: Option<String>,
}

impl HooksStatus {
    pub(super) fn new(
        git: GitVersion,
        dir: &HooksDir,
        hooks: Vec<HookStatus>,
        agents: Vec<AgentStatus>,
    ) -> Self {
        Self {
            git: git.to_string(),
            hooks_dir: dir.path.to_string_lossy().into_owned(),
            hooks_path_scope: dir.setting.as_ref().map(|setting| setting.scope.clone()),
            hooks,
            agents,
        }
    }
}

impl HookStatus {
    /// Determines it from what exists.
    pub(super) fn of(site: &HookSite) -> Self {
        let found = if let Some(place) = firing_place(site) {
            (HookState::Installed, Some(place), None)
        } else {
            find_shadowed(site).unwrap_or_else(|| (HookState::Missing, None, missing_note(site)))
        };
        let (state, place, note) = found;
        let binary = site.config.binary().or_else(|| site.script.content.binary());
        let gone = binary.iter().find(|binary| !binary.is_there);
        let gone = gone.map(|binary| format!("'{}' is gone, so the one on PATH is used", binary.path));
        let is_chained = site.script.content.is_ours() && site.kept.is_executable;
        Self {
            event: site.event,
            state,
            place,
            chained: is_chained.then(|| shown(&site.kept)),
            binary: binary.map(|binary| binary.path),
            manager: site.manager,
            note: note.or(gone),
        }
    }
}

/// Whether git runs ours.
pub(super) fn is_firing(site: &HookSite) -> bool {
    firing_place(site).is_some()
}

fn firing_place(site: &HookSite) -> Option<String> {
    if site.config.is_ours() && site.is_enabled && site.git >= GitVersion::CONFIG_HOOKS {
        return Some(format!("{}.command", site.event.config_section()));
    }
    let file = site.husky.as_ref().unwrap_or(&site.script);
    if site.script.is_executable && (file.content.is_ours() || file.calls_ours(site.event)) {
        return Some(shown(file));
    }
    let by_pre_commit = site.manager == Some(Manager::PreCommit) && site.script.is_executable;
    let legacy = site.moved.as_ref().filter(|spot| spot.path.extension().is_some_and(|e| e == "legacy"));
    legacy.filter(|spot| by_pre_commit && spot.is_executable).map(shown)
}

type Found = (HookState, Option<String>, Option<String>);

/// Ours, in a place that git does not use or with a text that was edited.
fn find_shadowed(site: &HookSite) -> Option<Found> {
    let found = |state, place: String, note: String| Some((state, Some(place), Some(note)));
    let command = format!("{}.command", site.event.config_section());
    match site.config {
        HookContent::Edited => return found(HookState::Edited, command, "it was edited".into()),
        HookContent::Ours(_) => return found(HookState::Shadowed, command, config_note(site)),
        HookContent::Absent | HookContent::Foreign => {}
    }
    let file = site.husky.as_ref().unwrap_or(&site.script);
    match file.content {
        HookContent::Edited => {
            return found(HookState::Edited, shown(file), "it was edited".into());
        }
        HookContent::Ours(_) => return found(HookState::Shadowed, shown(file), file_note(site)),
        HookContent::Absent | HookContent::Foreign => {}
    }
    if let Some(moved) = &site.moved {
        let by = site.manager.map_or("another hook", Manager::as_str);
        return found(
            HookState::Shadowed,
            shown(moved),
            format!("'{}' now belongs to {by}", shown(&site.script)),
        );
    }
    let (spot, _) = site.elsewhere.as_ref()?;
    let scope = site.dir.setting.as_ref().map_or("", |setting| setting.scope.as_str());
    let dir = site.dir.path.display();
    found(
        HookState::Shadowed,
        shown(spot),
        format!("git reads hooks from '{dir}' (core.hooksPath, {scope}), so this one does not run"),
    )
}

fn missing_note(site: &HookSite) -> Option<String> {
    let is_out_of_reach = site.dir.reach == DirPlace::Outside && site.git < GitVersion::CONFIG_HOOKS;
    is_out_of_reach.then(|| "git reads hooks from outside this repository, where nothing is installed".into())
}

fn config_note(site: &HookSite) -> String {
    if site.is_enabled {
        format!(
            "git {} does not run hooks from its configuration, {} does",
            site.git,
            GitVersion::CONFIG_HOOKS
        )
    } else {
        format!("it is switched off by {}.enabled", site.event.config_section())
    }
}

fn file_note(site: &HookSite) -> String {
    match &site.husky {
        Some(_) if site.script.bytes.is_none() => format!(
            "'{}' is not in this worktree, so git runs no hook here; run 'npx husky' in it",
            shown(&site.script)
        ),
        _ => format!("'{}' is not executable, so git ignores it", shown(&site.script)),
    }
}

fn shown(spot: &HookFile) -> String {
    spot.path.to_string_lossy().into_owned()
}
