//! Which mode is in force for a child, and what enforces it.

use super::{Sandbox, SandboxedChild};
use crate::{
    process::ConfinementBackend,
    settings::{SandboxLayers, SandboxMode},
};

impl SandboxMode {
    /// What enforces the limits; `None` if nothing does. A backend that was chosen explicitly may not work here.
    #[must_use]
    pub fn backend(self) -> Option<ConfinementBackend> {
        match self {
            Self::Auto => ConfinementBackend::of_system().iter().copied().find(|backend| backend.works()),
            Self::Landlock => Some(ConfinementBackend::Landlock),
            Self::Bwrap => Some(ConfinementBackend::Bwrap),
            Self::Off => None,
        }
    }
}

impl Sandbox {
    /// Whether children should be limited, but cannot be on this system.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        let mode = self.mode(None, None);
        mode != SandboxMode::Off && mode.backend().is_none()
    }

    /// Whether one of these runners can write to the git directory of the user's own checkout when it
    /// implements a task.
    #[must_use]
    pub fn leaves_git_writable<'r>(&self, mut runners: impl Iterator<Item = &'r str>) -> bool {
        runners.any(|runner| {
            let mode = self.mode(Some("implement"), Some(runner));
            !mode.backend().is_some_and(ConfinementBackend::can_take_away)
        })
    }

    /// Whether nothing limits one of these runners when it implements a task, or the tests, gates and reviews of what it
    /// wrote: the user has turned the sandbox off, or this system has none.
    #[must_use]
    pub fn is_absent_for<'r>(&self, mut runners: impl Iterator<Item = &'r str>) -> bool {
        let is_absent = |step: &str, runner: Option<&str>| self.mode(Some(step), runner).backend().is_none();
        runners.any(|runner| is_absent("implement", Some(runner)))
            || ["test", "gate", "review"].into_iter().any(|step| is_absent(step, None))
    }

    /// How a child is limited.
    #[must_use]
    pub fn mode_of(&self, child: &SandboxedChild<'_>) -> SandboxMode {
        self.mode(Some(child.step), child.runner)
    }

    /// The mode that the most specific key sets. If a file of the repository sets it, the user's own mode counts unless it is
    /// weaker in any case.
    pub(super) fn mode(&self, step: Option<&str>, runner: Option<&str>) -> SandboxMode {
        let find =
            |layers: &'_ SandboxLayers| layers.of(step, runner).find_map(|settings| settings.mode.clone());
        let Some(mode) = find(&self.settings) else { return SandboxMode::default() };
        match find(&self.users).map(|mode| mode.value) {
            Some(users)
                if mode.is_tracked() && users != SandboxMode::Off && mode.value != SandboxMode::Bwrap =>
            {
                users
            }
            _ => mode.value,
        }
    }
}
