//! Fetches more of a shallow history when a merge needs it: in steps, until two commits have a common ancestor.

use std::{collections::HashSet, fmt};

use crate::{
    failure::{Exit, Explain, Explanation},
    git::{GitError, Network, RemoteError, Repository, shown_url},
    name::Oid,
    safe_files,
};

/// How many more commits are fetched in each step; after the last one, the whole history.
const STEPS: [u64; 3] = [50, 500, 5000];

/// What was fetched to find a common ancestor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deepened {
    /// The remote.
    pub remote: String,
    /// The number of commits below each shallow boundary; `None` if it was the whole history.
    pub by: Option<u64>,
}

/// Why no common ancestor could be found.
#[derive(Debug, thiserror::Error)]
pub enum DeepenError {
    /// There is none in the shallow history, and more of it could not be fetched.
    #[error("{} and {} have no commit in common in this shallow clone, and more history could not be fetched: {why}", a.short(), b.short())]
    Apart {
        /// One commit.
        a: Oid,
        /// The other commit.
        b: Oid,
        /// Why not.
        why: String,
    },
    /// More of the history could not be fetched.
    #[error("more history of this shallow clone could not be fetched: {why}")]
    Unfetched {
        /// Why not.
        why: String,
    },
    /// Something else failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

fn unfetched(error: RemoteError) -> DeepenError {
    match error {
        RemoteError::Git(error) => error.into(),
        unreached => DeepenError::Unfetched { why: unreached.to_string() },
    }
}

impl Explain for DeepenError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Apart { .. } | Self::Unfetched { .. } => Exit::Fatal
                .hint("when the remote can be reached, fetch the history with: git fetch --unshallow"),
            Self::Git(error) => error.explain(),
        }
    }
}

impl fmt::Display for Deepened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let remote = shown_url(&self.remote);
        match self.by {
            Some(count) => write!(
                f,
                "fetched {count} more commits from '{remote}', because this clone is shallow and a merge needed more history"
            ),
            None => write!(
                f,
                "fetched the whole history from '{remote}', because this clone was shallow and a merge needed more history"
            ),
        }
    }
}

impl Repository {
    /// The commits whose parents are missing.
    #[must_use]
    pub fn list_shallow_edge(&self) -> HashSet<Oid> {
        if !self.is_shallow {
            return HashSet::new();
        }
        let listed = safe_files::read_text(&self.common_dir.join("shallow")).unwrap_or_default();
        listed.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Makes sure that a shallow history does not hide the common ancestor of two commits. The network is used only if
    /// none is known here. Returns what was fetched. Unrelated histories are left to the merge.
    pub fn join_histories(&self, a: Oid, b: Oid, network: &Network) -> Result<Option<Deepened>, DeepenError> {
        if !self.is_shallow || !self.is_cut_off() || self.find_merge_base(a, b)?.is_some() {
            return Ok(None);
        }
        let apart = |error| match error {
            DeepenError::Unfetched { why } => DeepenError::Apart { a, b, why },
            other => other,
        };
        let deepened =
            self.deepen_until(network, || Ok::<_, DeepenError>(self.find_merge_base(a, b)?.is_some()));
        deepened.map(Some).map_err(apart)
    }

    /// Fetches more of a shallow history, step by step, until it is enough or complete.
    pub fn deepen_until<E: From<DeepenError>>(
        &self,
        network: &Network,
        mut is_enough: impl FnMut() -> Result<bool, E>,
    ) -> Result<Deepened, E> {
        let remote = self.find_default_remote().map_err(DeepenError::from)?;
        let remote = remote.ok_or_else(|| DeepenError::Unfetched { why: "it has no remote".into() })?;
        let names = self.find_common_branches(&remote, network).map_err(unfetched)?;
        let fetch = |more| self.fetch_refs(&remote, &names, more, network).map_err(unfetched);
        let mut sum = 0;
        for more in STEPS {
            fetch(FetchDepth::Commits(more))?;
            sum += more;
            if !self.is_cut_off() {
                return Ok(Deepened { remote, by: None });
            }
            if is_enough()? {
                return Ok(Deepened { remote, by: Some(sum) });
            }
        }
        fetch(FetchDepth::Everything)?;
        Ok(Deepened { remote, by: None })
    }

    /// Whether the history is still shallow.
    fn is_cut_off(&self) -> bool {
        self.common_dir.join("shallow").exists()
    }

    /// The default remote: `origin`, or the first one.
    fn find_default_remote(&self) -> Result<Option<String>, GitError> {
        let remotes = self.list_remotes()?;
        Ok(remotes.iter().find(|name| *name == "origin").or_else(|| remotes.first()).cloned())
    }

    /// The branches of a remote that are known here, by whatever name: the shallow history was fetched through one of
    /// them. Fetching others would get history that was never asked for.
    fn find_common_branches(&self, remote: &str, network: &Network) -> Result<Vec<String>, RemoteError> {
        let here: Vec<String> = self.list_refs(&["refs/"])?.into_iter().map(|found| found.name).collect();
        let is_here = |name: &String| {
            let short = name.strip_prefix("refs/heads/").unwrap_or(name);
            here.contains(name) || here.contains(&format!("refs/remotes/{remote}/{short}"))
        };
        let there = self.list_remote_refs(remote, &["refs/heads/*", "refs/arborist/*"], network)?;
        let names: Vec<String> = there.into_iter().map(|(name, _)| name).filter(is_here).collect();
        Ok(if names.is_empty() { vec!["HEAD".into()] } else { names })
    }
}

/// How much of the history is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchDepth {
    /// Only newer commits than those here.
    Newer,
    /// So many commits below the shallow boundary; no ref is written.
    Commits(u64),
    /// The whole history; no ref is written.
    Everything,
}
