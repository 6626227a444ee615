//! What a run asks of the user's checkout before it works there.

use std::path::Path;

use arborist_core::{
    failure::{Exit, Failure},
    gardener::GardenerError,
    git::{GoingOn, TreeChange},
    record::RunRecorder,
    safe_files::{self, FileKind},
};

use super::{GardeningArgs, OpenRun, Planned};

impl OpenRun {
    /// Hides logs from `git status` by an entry in the repository's own exclude file.
    pub(super) fn hide_logs(&self) -> Result<(), Failure> {
        self.refuse_tracked_link()?;
        // The user may well keep them on another disk. What an agent links there later is not theirs.
        safe_files::allow_linked(&self.repository.top().join(&self.options.log_dir));
        Ok(self.repository.exclude(&format!("/{}/", self.options.log_dir.trim_matches('/')))?)
    }

    /// A link that the user made may lead to another disk. One that came with the repository was chosen by someone else.
    fn refuse_tracked_link(&self) -> Result<(), Failure> {
        let top = self.repository.top();
        let folders: Vec<&Path> = Path::new(self.options.log_dir.trim_matches('/')).ancestors().collect();
        let is_link = |folder: &&&Path| safe_files::kind_of(&top.join(folder)) == Some(FileKind::Link);
        // From the top: below the first link, nothing is tracked here.
        let Some(link) = folders.iter().rev().find(is_link) else { return Ok(()) };
        let is_tracked = self.repository.find_path(self.head, &link.to_string_lossy())?.is_some();
        if !is_tracked || safe_files::resolved(&top.join(link)).starts_with(safe_files::resolved(top)) {
            return Ok(());
        }
        let what = format!(
            "logs would be written outside of the repository: '{}' is a tracked link that leads there",
            link.display()
        );
        Err(Failure::new(Exit::No, what).hint("keep logs elsewhere with: --log-dir logs"))
    }

    /// What is not committed could be lost or mixed in. The plan and the configuration are committed with the start.
    pub(super) fn refuse_dirt(
        &self,
        args: &GardeningArgs,
        recorder: &RunRecorder<'_>,
        planned: &Planned,
    ) -> Result<(), Failure> {
        if let Some(going_on) = GoingOn::find_operation(&self.repository.git_dir) {
            return Err(GardenerError::GoingOn(going_on.what).into());
        }
        if args.allow_dirty || self.settings.switch("allow-dirty") == Some(true) {
            return Ok(());
        }
        let changes = self.repository.changes(recorder.tree(), self.repository.snapshot()?)?;
        let plan = planned.file.as_ref().map(|file| file.path.as_str());
        // What git is told not to look at stays out of commits, and is not shown by 'git status' either.
        let hidden = self.repository.hidden()?;
        let changed_paths: Vec<String> = changes
            .iter()
            .filter(|change| !hidden.contains(&change.path))
            .map(TreeChange::shown)
            .filter(|path| Some(path.as_str()) != plan && path != ".arborist/config.toml")
            .collect();
        if changed_paths.is_empty() {
            return Ok(());
        }
        Err(GardenerError::Dirty(changed_paths.join(", ")).into())
    }
}
