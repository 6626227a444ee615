//! The sides of a merge that joined two runs of one branch, for example by `git pull` after two clones have worked on it.

use std::collections::HashMap;

use super::RunScope;
use crate::{
    git::{GitError, Repository},
    name::Oid,
};

impl RunScope {
    /// The last commits that have one of these starts of runs and not the other one. A side comes before another one if it is
    /// an earlier parent of the merge that joined them.
    pub fn find_sides(&self, repository: &Repository, starts: [Oid; 2]) -> Result<Vec<Oid>, GitError> {
        let Some(tip) = self.tip else { return Ok(Vec::new()) };
        let mut revisions = vec!["--topo-order".to_owned(), "--reverse".to_owned(), tip.to_string()];
        revisions.extend(starts.iter().map(|start| format!("^{start}")));
        // Which of the starts a commit contains. Each commit comes after its parents.
        let mut contained = HashMap::from([(starts[0], [true, false]), (starts[1], [false, true])]);
        let mut sides: Vec<Oid> = Vec::new();
        for commit in repository.stream_commits(&revisions)? {
            let commit = commit?;
            let of_parents: Vec<(Oid, [bool; 2])> =
                commit.parents().filter_map(|parent| Some((parent, *contained.get(&parent)?))).collect();
            let here = of_parents.iter().fold([false; 2], |[a, b], (_, [c, d])| [a | c, b | d]);
            if here == [true; 2] {
                let is_side = |has: &[bool; 2]| has[0] != has[1];
                let of_merge = of_parents.iter().filter(|(_, has)| is_side(has)).map(|(parent, _)| *parent);
                let new: Vec<Oid> = of_merge.filter(|side| !sides.contains(side)).collect();
                sides.extend(new);
            }
            contained.insert(commit.id, here);
        }
        Ok(sides)
    }
}
