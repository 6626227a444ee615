//! Where a reviewer reads. It may change nothing: what it changed all the same is put back as it was.

use crate::{
    git::{GitError, Repository, Stock, TreeChange},
    name::Oid,
    pipeline::{
        ConfigGuard,
        checkout::{
            guard::{ConfigWatch, PlaceWatch, joined},
            leftovers::{self, WorktreeBefore},
            place,
        },
    },
    record::RunRecorder,
};

/// A place that somebody only reads in, as it was before.
#[derive(Debug)]
pub(in crate::pipeline) struct Lent {
    /// What git said of it; `None` if that needed not be asked.
    status: Option<Vec<u8>>,
    /// Whether worktree and index held what the branch holds, and nothing else.
    is_clean: bool,
    /// What lay in the worktree.
    tree: Oid,
    /// What was staged.
    staged: Oid,
    /// Repositories without a commit that lay there.
    left_out: Vec<Vec<u8>>,
    watch: ConfigWatch,
}

/// Remembers how everything is.
pub(in crate::pipeline) fn lend(
    recorder: &RunRecorder<'_>,
    config_guard: &ConfigGuard,
) -> Result<Lent, GitError> {
    let repository = recorder.repository();
    // Where nobody was at work since the last commit, there is nothing new to see. First: the guard needs the same look.
    let is_known = recorder.is_settled() || repository.is_known_clean(recorder.tree());
    let watch = config_guard.watch(repository);
    let status = if is_known { None } else { Some(repository.status()?) };
    let is_clean = status.as_deref().is_none_or(says_nothing);
    let (tree, staged, left_out) = if is_clean {
        (recorder.tree(), recorder.tree(), Vec::new())
    } else {
        let Stock { tree, left_out, .. } = repository.take_snapshot()?;
        (tree, repository.staged()?, left_out)
    };
    Ok(Lent { status, is_clean, tree, staged, left_out, watch })
}

impl Lent {
    /// Watches the worktree that the reader works in. End what is returned after this was taken back.
    pub(in crate::pipeline) fn watch_place(&self, repository: &Repository) -> PlaceWatch {
        self.watch.watch_place(repository)
    }

    /// Makes everything as it was, and says what was not, in a sentence. What was made of files is kept under the name
    /// of the mark that `attempt` had.
    pub(in crate::pipeline) fn take_back(
        &self,
        recorder: &RunRecorder<'_>,
        attempt: &str,
    ) -> Result<Option<String>, GitError> {
        let mut trespasses = self.watch.end();
        let is_untouched = self.is_clean
            && (self.is_known_untouched(recorder)?
                || self.is_as_before(recorder, &recorder.repository().status()?));
        trespasses.extend(place::quit_operations(recorder.repository(), attempt)?);
        // A branch that leads to another one looks the same, and would move that one.
        if !is_untouched || !place::is_untouched(recorder)? {
            trespasses.extend(place::put_back_at(recorder, attempt, recorder.head())?);
            trespasses.extend(self.put_back_files(recorder, attempt)?);
        }
        Ok(joined(&trespasses))
    }

    /// Whether nothing has changed, as far as can be told without git.
    fn is_known_untouched(&self, recorder: &RunRecorder<'_>) -> Result<bool, GitError> {
        let is_clean = || recorder.repository().is_known_clean(recorder.tree());
        Ok(self.status.is_none() && place::is_untouched(recorder)? && is_clean())
    }

    fn is_as_before(&self, recorder: &RunRecorder<'_>, status: &[u8]) -> bool {
        match &self.status {
            Some(before) => status == before,
            None => says_nothing(status) && tells_of(recorder, status),
        }
    }

    fn put_back_files(&self, recorder: &RunRecorder<'_>, attempt: &str) -> Result<Vec<String>, GitError> {
        let repository = recorder.repository();
        let Stock { tree: after, left_out, .. } = repository.take_snapshot()?;
        let touched = repository.changes(self.tree, after)?;
        let before = WorktreeBefore { tree: self.tree, head: recorder.head(), left_out: &self.left_out };
        let planted = leftovers::move_out(repository, before, &touched, &left_out)?;
        let files: Vec<TreeChange> = touched.into_iter().filter(|change| !change.is_gitlink()).collect();
        let shown: Vec<String> = files.iter().map(TreeChange::shown).collect();
        let mut kept = String::new();
        if !files.is_empty() {
            let under = place::save_tree(repository, attempt, (after, recorder.head()))?;
            repository.put_back(self.tree, &files)?;
            let is_shared = recorder.branch() == recorder.run();
            kept = if is_shared { way_back(&under, &shown) } else { format!("; that is kept in {under}") };
        }
        let staged = repository.staged()?;
        repository.enter(&repository.changes(staged, self.staged)?)?;
        let shown = shown.join(", ");
        let read = (!shown.is_empty()).then(|| format!("it changed what it may only read: {shown}{kept}"));
        Ok(read.into_iter().chain(planted).collect())
    }
}

/// In the user's checkout it may have been the user who saved a file meanwhile: they are told how to get it back.
fn way_back(under: &str, shown: &[String]) -> String {
    let is_plain =
        |path: &&String| path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte));
    let file = match shown {
        [one] => Some(one).filter(is_plain).map_or("FILE", String::as_str),
        _ => "FILE",
    };
    format!("; that is kept in {under}, and if you saved it: git restore --source={under} -- {file}")
}

/// Whether a status tells of the branch only.
fn says_nothing(status: &[u8]) -> bool {
    status.split(|byte| *byte == 0).all(|line| line.is_empty() || line.starts_with(b"# "))
}

/// Whether a status tells that our branch is checked out, where we left it.
fn tells_of(recorder: &RunRecorder<'_>, status: &[u8]) -> bool {
    let head = [format!("# branch.oid {}", recorder.head()), format!("# branch.head {}", recorder.branch())];
    head.iter().all(|wanted| status.split(|byte| *byte == 0).any(|line| line == wanted.as_bytes()))
}
