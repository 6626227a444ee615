//! Answers questions about ancestry from objects in this process, if the answer is near. A git process costs
//! milliseconds, and these questions are asked several times for each step of a task. For long walks, shallow histories
//! and objects that libgit2 cannot read, git is asked.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    path::PathBuf,
    sync::{LazyLock, Mutex},
};

use crate::{
    git::{GitError, RawCommit, Repository},
    mutex::MutexExt,
    name::{ObjectKind, Oid},
};

/// After this many commits, git is asked.
const MAX_VISITED: usize = 2048;

/// How many commits are visited on the way to a descendant that is known already.
const MAX_VISITED_AGAIN: usize = 512;
/// How many pairs of commits are remembered.
const MAX_REMEMBERED: usize = 1024;

/// The last commit that was found to descend from another one, by common git directory and that other one. Ids are digests
/// of the commits with all of their ancestors, so this cannot become wrong.
static DESCENDANTS: LazyLock<Mutex<HashMap<(PathBuf, Oid), Oid>>> = LazyLock::new(Mutex::default);

/// How many more commits are visited when only hidden ones are left, for histories with wrong dates. git uses the same
/// number.
const SLACK: usize = 5;

/// Marks commits that are excluded, with all of their ancestors.
const HIDDEN: u8 = 1;
/// Mark the two sides of a comparison, and what both of them have.
const OLD: u8 = 1;
const NEW: u8 = 2;
const BOTH: u8 = OLD | NEW;
/// Marks the ancestors of commits that both sides have.
const BELOW: u8 = 4;

/// The commits that were found, and those of them that are still to be visited, newest first.
struct Walk<'a> {
    repository: &'a Repository,
    met: HashMap<Oid, Met>,
    queue: BinaryHeap<(i64, Reverse<usize>, Oid)>,
    queued: usize,
    /// After this many commits, the walk is given up.
    max_visited: usize,
}

struct Met {
    commit: RawCommit,
    marks: u8,
}

impl<'a> Walk<'a> {
    fn new(repository: &'a Repository) -> Self {
        Self {
            repository,
            met: HashMap::new(),
            queue: BinaryHeap::new(),
            queued: 0,
            max_visited: MAX_VISITED,
        }
    }

    /// Adds marks to a commit, and queues it if it did not have all of them. `None` if git has to be asked.
    fn mark(&mut self, id: Oid, marks: u8) -> Result<Option<()>, GitError> {
        if let Some(met) = self.met.get_mut(&id) {
            let is_new = met.marks & marks != marks;
            met.marks |= marks;
            if is_new {
                let date = met.commit.committed().map_or(0, |(date, _)| date);
                self.push(date, id);
            }
            return Ok(Some(()));
        }
        if self.met.len() >= self.max_visited {
            return Ok(None);
        }
        let Some(content) = self.repository.read_object(ObjectKind::Commit, id)? else { return Ok(None) };
        let commit = RawCommit::new(id, content);
        self.push(commit.committed().map_or(0, |(date, _)| date), id);
        self.met.insert(id, Met { commit, marks });
        Ok(Some(()))
    }

    fn push(&mut self, date: i64, id: Oid) {
        self.queue.push((date, Reverse(self.queued), id));
        self.queued += 1;
    }

    fn marks_of(&self, id: Oid) -> u8 {
        self.met.get(&id).map_or(0, |met| met.marks)
    }

    fn parents_of(&self, id: Oid) -> Vec<Oid> {
        self.met.get(&id).map(|met| met.commit.parents().collect()).unwrap_or_default()
    }

    fn any_queued(&self, is_it: impl Fn(u8) -> bool) -> bool {
        self.queue.iter().any(|(_, _, id)| is_it(self.marks_of(*id)))
    }
}

impl Repository {
    /// The commits that are reachable from `tips` and not from `hidden`, newest first, in the order of `git rev-list`.
    /// `None` if git has to be asked.
    pub(in crate::git) fn walk_range(
        &self,
        tips: &[Oid],
        hidden: &[Oid],
    ) -> Result<Option<Vec<RawCommit>>, GitError> {
        if self.is_shallow || !self.reads_objects_in_process() {
            return Ok(None);
        }
        let mut walk = Walk::new(self);
        let sides = hidden.iter().map(|id| (*id, HIDDEN)).chain(tips.iter().map(|id| (*id, 0)));
        for (id, marks) in sides {
            if walk.mark(id, marks)?.is_none() {
                return Ok(None);
            }
        }
        let Some(order) = walk.visit_range()? else { return Ok(None) };
        let wanted = order.into_iter().filter_map(|id| walk.met.remove(&id));
        Ok(Some(wanted.filter(|met| met.marks & HIDDEN == 0).map(|met| met.commit).collect()))
    }

    /// Whether `old` is `new` or one of its ancestors. `None` if git has to be asked.
    ///
    /// A run asks for each task whether its own start is an ancestor of the present tip. So that this does not take longer with
    /// every task, the walk first ends at the last known descendant of `old`.
    pub(in crate::git) fn walk_to_ancestor(&self, old: Oid, new: Oid) -> Result<Option<bool>, GitError> {
        let key = (self.common_dir.clone(), old);
        let last = DESCENDANTS.hold().get(&key).copied().filter(|last| *last != old && !self.is_shallow);
        if let Some(last) = last
            && self.walk_up_to(last, new, MAX_VISITED_AGAIN)? == Some(true)
        {
            DESCENDANTS.hold().insert(key, new);
            return Ok(Some(true));
        }
        let found = self.walk_up_to(old, new, MAX_VISITED)?;
        if found == Some(true) && old != new {
            let mut known = DESCENDANTS.hold();
            if known.len() >= MAX_REMEMBERED {
                known.clear();
            }
            known.insert(key, new);
        }
        Ok(found)
    }

    /// Whether `old` is `new` or one of its ancestors, without what is remembered. `None` after `max_visited` commits.
    fn walk_up_to(&self, old: Oid, new: Oid, max_visited: usize) -> Result<Option<bool>, GitError> {
        if old == new {
            return Ok(self.read_object(ObjectKind::Commit, old)?.map(|_| true));
        }
        if self.is_shallow || !self.reads_objects_in_process() {
            return Ok(None);
        }
        let mut walk = Walk { max_visited, ..Walk::new(self) };
        if walk.mark(old, OLD)?.is_none() || walk.mark(new, NEW)?.is_none() {
            return Ok(None);
        }
        while walk.any_queued(|marks| marks & BOTH != BOTH) {
            let Some((_, _, id)) = walk.queue.pop() else { break };
            let marks = walk.marks_of(id) & BOTH;
            for parent in walk.parents_of(id) {
                if walk.marks_of(parent) & marks != marks && walk.mark(parent, marks)?.is_none() {
                    return Ok(None);
                }
            }
            if walk.marks_of(old) & BOTH == BOTH {
                return Ok(Some(true));
            }
        }
        Ok(Some(false))
    }

    /// The best common ancestors of two commits, as `git merge-base --all` prints them.
    pub(in crate::git) fn merge_bases(&self, one: Oid, other: Oid) -> Result<Vec<Oid>, GitError> {
        if one == other {
            return Ok(vec![one]);
        }
        if let Some(bases) = self.walk_to_bases(one, other)? {
            return Ok(bases);
        }
        let command = self.git("merge-base").arg("--all").args([one.to_string(), other.to_string()]);
        let printed = String::from_utf8_lossy(&command.answer()?.unwrap_or_default()).into_owned();
        let unexpected =
            |line: &str| GitError::UnexpectedOutput { command: "merge-base".into(), what: line.to_owned() };
        printed.lines().map(|line| line.parse().map_err(|_| unexpected(line))).collect()
    }

    /// Like [`Self::merge_bases`], from objects. `None` if git has to be asked.
    fn walk_to_bases(&self, one: Oid, other: Oid) -> Result<Option<Vec<Oid>>, GitError> {
        if self.is_shallow || !self.reads_objects_in_process() {
            return Ok(None);
        }
        let mut walk = Walk::new(self);
        if walk.mark(one, OLD)?.is_none() || walk.mark(other, NEW)?.is_none() {
            return Ok(None);
        }
        let mut found = Vec::new();
        while walk.any_queued(|marks| marks & BELOW == 0) {
            let Some((_, _, id)) = walk.queue.pop() else { break };
            let marks = walk.marks_of(id);
            let is_common = marks & BOTH == BOTH;
            if is_common && marks & BELOW == 0 && !found.contains(&id) {
                found.push(id);
            }
            let marks = if is_common { marks | BELOW } else { marks };
            for parent in walk.parents_of(id) {
                if walk.marks_of(parent) & marks != marks && walk.mark(parent, marks)?.is_none() {
                    return Ok(None);
                }
            }
        }
        found.retain(|id| walk.marks_of(*id) & BELOW == 0);
        self.without_ancestors(&found)
    }

    /// Removes commits that are ancestors of others: with wrong dates, an ancestor may be found first.
    fn without_ancestors(&self, commits: &[Oid]) -> Result<Option<Vec<Oid>>, GitError> {
        let mut kept = Vec::new();
        for commit in commits {
            let mut is_below = false;
            for other in commits.iter().filter(|other| *other != commit) {
                match self.walk_to_ancestor(*commit, *other)? {
                    Some(leads) => is_below |= leads,
                    None => return Ok(None),
                }
            }
            if !is_below {
                kept.push(*commit);
            }
        }
        Ok(Some(kept))
    }
}

impl Walk<'_> {
    /// Visits commits until only hidden ones are left. Some of the returned ones may have been marked as hidden later.
    fn visit_range(&mut self) -> Result<Option<Vec<Oid>>, GitError> {
        let mut order = Vec::new();
        let mut oldest = i64::MAX;
        let mut slack = SLACK;
        while let Some((date, _, id)) = self.queue.pop() {
            let is_hidden = self.marks_of(id) & HIDDEN != 0;
            for parent in self.parents_of(id) {
                let is_known = self.met.contains_key(&parent);
                if is_known && !is_hidden {
                    continue;
                }
                let marks = if is_hidden { HIDDEN } else { 0 };
                if self.mark(parent, marks)?.is_none() {
                    return Ok(None);
                }
            }
            if !is_hidden {
                order.push(id);
                oldest = date;
                continue;
            }
            let is_younger = self.queue.peek().is_some_and(|(newest, _, _)| *newest >= oldest);
            if is_younger || self.any_queued(|marks| marks & HIDDEN == 0) {
                slack = SLACK;
            } else if slack == 0 {
                break;
            } else {
                slack -= 1;
            }
        }
        Ok(Some(order))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::process::Program;

    fn run(dir: &Path, script: &str) -> String {
        let program = Program::new("sh").args(["-ec", script]).dir(dir);
        let ended = program.env("HOME", dir).env("GIT_CONFIG_NOSYSTEM", "1").finish().unwrap();
        assert!(ended.status.success(), "{script}: {}", ended.complaint());
        String::from_utf8(ended.stdout).unwrap()
    }

    /// Forty commits on three branches that are merged repeatedly. Some dates are wrong.
    const SCRIPT: &str = "git init -q -b main . && git config user.name A && git config user.email a@example.com
        empty=$(git hash-object -t tree -w --stdin < /dev/null)
        make() { GIT_AUTHOR_DATE=\"$1 +0000\" GIT_COMMITTER_DATE=\"$1 +0000\" git commit-tree -m $1 $empty \"${@:2}\"; }
        a=$(make 1700000000); b=$a; c=$a
        for n in 1 2 3 4 5 6 7 8 9 10; do
            a=$(make $((1700000000 + n)) -p $a); b=$(make $((1700000000 + n - n % 4)) -p $b); c=$(make 1700000005 -p $c -p $b)
            [ $((n % 3)) -eq 0 ] || continue
            a=$(make $((1700000000 + n)) -p $a -p $c)
            git update-ref refs/heads/a$n $a; git update-ref refs/heads/b$n $b; git update-ref refs/heads/c$n $c
        done
        git update-ref refs/heads/other $(make 1700000003)";

    #[test]
    fn ancestry_walks_give_the_same_answers_as_git() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("s"), SCRIPT).unwrap();
        run(folder.path(), "bash -e s");
        let repository = Repository::open_at(&folder.path().canonicalize().unwrap()).unwrap();
        let listed = run(folder.path(), "git for-each-ref --format='%(objectname)' refs/heads");
        let tips: Vec<Oid> = listed.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(tips.len(), 10);
        let script = "for x in $(git for-each-ref --format='%(objectname)' refs/heads); do
            for y in $(git for-each-ref --format='%(objectname)' refs/heads); do
            git merge-base --is-ancestor $x $y && yes=true || yes=false
            echo $yes $(git rev-list $y ^$x); git merge-base --all $x $y | sort | tr '\\n' ' '; echo; done; done";
        let told = run(folder.path(), script);
        let mut told = told.lines();
        for old in &tips {
            for new in &tips {
                let mut words = told.next().unwrap().split(' ');
                let is_ancestor = words.next() == Some("true");
                assert_eq!(repository.walk_to_ancestor(*old, *new).unwrap(), Some(is_ancestor));
                let range = repository.walk_range(&[*new], &[*old]).unwrap().unwrap();
                let ids: Vec<String> = range.iter().map(|commit| commit.id.to_string()).collect();
                assert_eq!(ids, words.filter(|word| !word.is_empty()).collect::<Vec<_>>(), "{new} ^{old}");
                let mut bases = repository.walk_to_bases(*old, *new).unwrap().unwrap();
                bases.sort_by_key(ToString::to_string);
                let bases: Vec<String> = bases.iter().map(ToString::to_string).collect();
                assert_eq!(bases, told.next().unwrap().split_whitespace().collect::<Vec<_>>(), "{new} {old}");
            }
        }
    }

    #[test]
    fn a_walk_with_a_missing_commit_is_left_to_git() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("s"), SCRIPT).unwrap();
        run(folder.path(), "bash -e s");
        let repository = Repository::open_at(&folder.path().canonicalize().unwrap()).unwrap();
        let missing = Oid::of(ObjectKind::Commit, b"x", repository.format);
        let tip = repository.require_commit("a3").unwrap();
        assert_eq!(repository.walk_to_ancestor(missing, tip).unwrap(), None);
        assert!(repository.walk_range(&[tip], &[missing]).unwrap().is_none());
    }
}
