//! Protected files: a task may add files, but it may change, move or delete a protected one only with permission. The
//! whole difference between the task and its base is judged, so that no order of attempts or turns avoids it. Settings of
//! the reviewers' programs are protected, too; of these, no file may be added either.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use crate::{
    agent::Runner,
    git::{GitError, Repository, TreeChange},
    history::RunStart,
    message::{self, Body, MessageReading, is_mistyped},
    name::{Oid, RepoName},
    pipeline::{PipelineError, TaskRun, checkout::other_repo::TaskRepo},
    plan::Task,
    process::shell_word,
    settings::{Settings, TEST_FILES},
};

/// The permission to run fewer tests, or to skip more, than before a task.
pub const FEWER_TESTS: &str = "fewer-tests";

/// The heading over protected files that a task changed with permission, in the commit of its implement step.
pub const CHANGED_WITH_PERMISSION: &str = "Protected files that were changed with permission:";

/// The heading over the lists of protected files, in the commit that starts a run, and in one that accepts changes. Each
/// line is a list, in JSON.
const PROTECTED_IN_RUN: &str = "Files that tasks may not change:";

/// The word that stands for usual test files.
const TESTS: &str = "tests";
/// The usual test files in the words of prompts.
const TESTS_IN_WORDS: &str = "test files and the configuration of test programs";
/// How many files a message names.
const MAX_NAMED: usize = 10;

/// What is protected in a run, and what the user has allowed on the command line.
#[derive(Debug, Clone, Default)]
pub struct Protection {
    /// The pathspecs as they were configured, one list for each source. Each list is matched alone, because an
    /// exclusion in one of them must take nothing from another.
    lists: Vec<Vec<String>>,
    /// The values of `--allow`.
    allowed: Vec<String>,
    /// The runners that review.
    reviewers: Vec<Runner>,
}

/// The protected files that a commit of a run lists. They count from this commit on.
#[derive(Debug)]
pub struct RecordedLists {
    /// The start of the run, or a commit that accepted changes.
    pub commit: Oid,
    lists: Vec<Vec<String>>,
}

/// The changes of a task, with the names that they have through links of its base.
struct NamedChanges<'r> {
    repository: &'r Repository,
    trees: (Oid, Oid),
    changes: Vec<TreeChange>,
    /// The names, and the paths of their changes.
    names: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>,
}

/// Protected files that a task has changed.
#[derive(Debug, Default)]
pub struct ProtectedChanges {
    /// Those without permission.
    pub refused: Vec<ProtectedChange>,
    /// Those with permission.
    pub allowed: Vec<ProtectedChange>,
}

/// A protected file that a task has changed.
#[derive(Debug)]
pub struct ProtectedChange {
    /// Its repository, unless it is the one with the plan.
    repo: Option<String>,
    pub(in crate::pipeline) change: TreeChange,
    /// The ref with the task's version, if the file was restored.
    kept: Option<String>,
}

impl Protection {
    /// Reads the settings. `allowed` are the values of `--allow`.
    #[must_use]
    pub fn new(settings: &Settings, allowed: &[String]) -> Self {
        Self { lists: settings.tests.protect.clone(), allowed: allowed.to_vec(), reviewers: Vec::new() }
    }

    /// Also protects the settings of these runners' programs in the repository.
    #[must_use]
    pub fn with_reviewers<'r>(self, reviewers: impl Iterator<Item = &'r Runner>) -> Self {
        Self { reviewers: reviewers.cloned().collect(), ..self }
    }

    /// The lists as a section of the commit that starts a run. Those of the user's own configuration are in no other commit.
    #[must_use]
    pub fn quoted(&self) -> Body {
        if self.lists.is_empty() { Body::default() } else { self.quoted_again() }
    }

    /// The lists as a section of a commit that accepts changes. Without any, it says that nothing is protected any more.
    #[must_use]
    pub fn quoted_again(&self) -> Body {
        let none = [Vec::new()];
        let lists = if self.lists.is_empty() { &none[..] } else { &self.lists };
        let lists: Vec<String> = lists.iter().filter_map(|list| serde_json::to_string(list).ok()).collect();
        Body::new(PROTECTED_IN_RUN, &lists.join("\n"))
    }

    /// The same without the lists that `own` has.
    #[must_use]
    pub fn without(mut self, own: &Self) -> Self {
        self.lists.retain(|list| !own.lists.contains(list));
        self
    }

    /// Also protects what a commit of the run lists.
    #[must_use]
    pub fn with_recorded(mut self, recorded: &RecordedLists) -> Self {
        let new = recorded.lists.iter().filter(|list| !list.is_empty() && !self.lists.contains(list));
        let new: Vec<Vec<String>> = new.cloned().collect();
        self.lists.extend(new);
        self
    }

    /// The pathspecs that are not in the lists of `other`.
    #[must_use]
    pub fn list_beyond(&self, other: &Self) -> Vec<&str> {
        let mut beyond: Vec<&str> = Vec::new();
        for pathspec in
            self.lists.iter().flatten().filter(|it| !other.lists.iter().flatten().any(|o| o == *it))
        {
            if !beyond.contains(&pathspec.as_str()) {
                beyond.push(pathspec);
            }
        }
        beyond
    }

    /// Also allows these values of `--allow`.
    #[must_use]
    pub fn with_allowed(mut self, allowed: &[String]) -> Self {
        self.allowed.extend_from_slice(allowed);
        self
    }

    /// Returns what is wrong with a configured pathspec, or with one that is allowed for all tasks or for one of these.
    #[must_use]
    pub fn find_mistake<'t>(
        &self,
        repository: &Repository,
        tasks: impl Iterator<Item = &'t Task>,
    ) -> Option<String> {
        let configured = self.lists.iter().flatten().map(|pathspec| ("'protect'".to_owned(), pathspec));
        let given = self.allowed.iter().map(|pathspec| ("'--allow'".to_owned(), pathspec));
        let planned = tasks.flat_map(|task| {
            task.allow.iter().map(|pathspec| (format!("[allow:{pathspec}] of task '{}'", task.id), pathspec))
        });
        let permits: Vec<(String, &String)> = given.chain(planned).collect();
        let wrong =
            permits.iter().find_map(|(place, pathspec)| Some((place, find_permit_mistake(pathspec)?)));
        if let Some((place, mistake)) = wrong {
            return Some(format!("{place}: {mistake}"));
        }
        let all: Vec<(String, &String)> = configured.chain(permits).collect();
        // One git answers for all of them. Only if it refuses, each is tried alone.
        let pathspecs: Vec<&str> = all.iter().map(|(_, pathspec)| pathspec.as_str()).collect();
        if pathspecs.is_empty() || find_mistake(repository, &pathspecs).is_none() {
            return None;
        }
        all.iter().find_map(|(place, pathspec)| {
            Some(format!("{place}: {}", find_mistake(repository, &[pathspec.as_str()])?))
        })
    }

    /// The protected files that differ between two trees. New files are among them only if a reviewer reads them as
    /// settings.
    pub fn find_changes(
        &self,
        repository: &Repository,
        (from, to): (Oid, Oid),
        task_allows: &[String],
    ) -> Result<ProtectedChanges, GitError> {
        let mut found = ProtectedChanges::default();
        if from == to || (self.lists.is_empty() && self.reviewers.is_empty()) {
            return Ok(found);
        }
        let named = NamedChanges::find(repository, (from, to))?;
        let mut protected = named.find_settings(&self.reviewers);
        for list in &self.lists {
            let listed = named.find_matching(&expanded(list))?;
            let existed = named.changes.iter().filter(|change| change.before.is_some());
            let existed = existed.map(|change| &change.path).filter(|path| listed.contains(*path));
            protected.extend(existed.cloned());
        }
        if protected.is_empty() {
            return Ok(found);
        }
        let allowed: Vec<String> = self.allowed.iter().chain(task_allows).cloned().collect();
        let allowed = named.find_matching(&allowed)?;
        for change in named.changes.into_iter().filter(|change| protected.contains(&change.path)) {
            let is_allowed = allowed.contains(&change.path);
            let list = if is_allowed { &mut found.allowed } else { &mut found.refused };
            list.push(ProtectedChange { repo: None, change, kept: None });
        }
        Ok(found)
    }

    /// Whether fewer tests may run after a task with these permissions.
    #[must_use]
    pub fn allows_fewer_tests(&self, task_allows: &[String]) -> bool {
        self.allowed.iter().chain(task_allows).any(|allowed| allowed == FEWER_TESTS)
    }

    /// The rule for an agent, or an empty text if nothing is protected.
    #[must_use]
    pub fn rule(&self, task: &Task) -> String {
        let mut words: Vec<&str> = Vec::new();
        for word in self.lists.iter().flatten() {
            let word = if word == TESTS { TESTS_IN_WORDS } else { word };
            if !words.contains(&word) {
                words.push(word);
            }
        }
        if words.is_empty() {
            return String::new();
        }
        let paths = |allowed: &&String| *allowed != FEWER_TESTS;
        let allowed: Vec<&str> =
            self.allowed.iter().chain(&task.allow).filter(paths).map(String::as_str).collect();
        let except = match allowed.is_empty() {
            true => String::new(),
            false => format!(" This task may change these of them: {}.", allowed.join(", ")),
        };
        format!(
            "Protected files, which you must not change, move or delete (new files are allowed): {}.{except}\n",
            words.join(", ")
        )
    }
}

impl RecordedLists {
    /// What the commits of a run list, oldest first. The first is the start of the run.
    pub fn of_run(repository: &Repository, start: &RunStart) -> Result<Vec<Self>, GitError> {
        let mut found = Vec::new();
        for commit in std::iter::once(&start.commit).chain(&start.changes) {
            let message = repository.load_commits(&[*commit])?.pop();
            let reading = message.map(|loaded| message::read(loaded.message()));
            let lists = match reading {
                Some(MessageReading::WellFormed(message)) => Self::read(&Body::parse(&message.body)),
                _ => None,
            };
            if lists.is_some() || *commit == start.commit {
                found.push(Self { commit: *commit, lists: lists.unwrap_or_default() });
            }
        }
        Ok(found)
    }

    fn read(body: &Body) -> Option<Vec<Vec<String>>> {
        let section = body.sections.iter().find(|section| section.heading == PROTECTED_IN_RUN)?;
        Some(section.text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }
}

/// Why a run cannot use these pathspecs. Attributes are refused: a task could change them.
fn find_mistake(repository: &Repository, pathspecs: &[&str]) -> Option<String> {
    let depends_on_attributes = |pathspec: &&&str| {
        let magic = pathspec.strip_prefix(":(").and_then(|rest| rest.split(')').next()).unwrap_or_default();
        magic.split(',').any(|word| word.starts_with("attr"))
    };
    if let Some(pathspec) = pathspecs.iter().find(depends_on_attributes) {
        return Some(format!("'{pathspec}' uses git attributes, which a task can change"));
    }
    let empty = repository.empty_tree().ok()?;
    let checked = repository.touches(empty, empty, pathspecs);
    checked
        .err()
        .map(|_| format!("'{}' is not a pathspec of files in this repository", pathspecs.join("', '")))
}

/// Returns what is wrong with a permission, without looking at any file.
#[must_use]
pub fn find_permit_mistake(pathspec: &str) -> Option<String> {
    if pathspec != FEWER_TESTS && is_mistyped(pathspec, FEWER_TESTS) {
        return Some(format!(
            "'{pathspec}' is probably a typing error; write {FEWER_TESTS}, or ./{pathspec} if a path is meant"
        ));
    }
    let leaves_top = pathspec.starts_with('/') || pathspec.split(['/', ')']).any(|name| name == "..");
    if leaves_top {
        return Some(format!("'{pathspec}' must be a path from the top of the repository, without '..'"));
    }
    names_no_path(pathspec).then(|| {
        format!("'{pathspec}' names no path; name the files or folders that may be changed, such as tests/")
    })
}

/// Whether a pathspec matches everything, or everything but something. A permission must name what it is for.
fn names_no_path(pathspec: &str) -> bool {
    let (magic, path) = match (pathspec.strip_prefix(":("), pathspec.strip_prefix(':')) {
        (Some(long), _) => long.split_once(')').unwrap_or((long, "")),
        (None, Some(short)) => {
            let path = short.trim_start_matches(['!', '^', '/']);
            (&short[..short.len() - path.len()], path.strip_prefix(':').unwrap_or(path))
        }
        (None, None) => ("", pathspec),
    };
    let is_negative = magic.contains(['!', '^']) || magic.split(',').any(|word| word == "exclude");
    let mut literal = String::new();
    let mut rest = path;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            // A class of characters. The first one in it may be a bracket.
            '[' => {
                let inner = rest.trim_start_matches(['!', '^']);
                let first = inner.chars().next().map_or(0, char::len_utf8);
                rest = inner[first..].split_once(']').map_or("", |(_, after)| after);
            }
            '*' | '?' | '/' | '.' => {}
            other => literal.push(other),
        }
    }
    is_negative || literal.is_empty()
}

fn expanded(list: &[String]) -> Vec<String> {
    let expand = |word: &String| match word == TESTS {
        true => TEST_FILES.iter().map(|pathspec| (*pathspec).to_owned()).collect(),
        false => vec![word.clone()],
    };
    list.iter().flat_map(expand).collect()
}

impl<'r> NamedChanges<'r> {
    fn find(repository: &'r Repository, trees: (Oid, Oid)) -> Result<Self, GitError> {
        let changes = repository.changes(trees.0, trees.1)?;
        let mut names: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>> = BTreeMap::new();
        if !changes.is_empty() {
            let links = repository.list_links_of(trees.0)?;
            for change in changes.iter().filter(|_| !links.is_empty()) {
                for name in repository.linked_names(trees.0, &links, change)? {
                    names.entry(name).or_default().insert(change.path.clone());
                }
            }
        }
        Ok(Self { repository, trees, changes, names })
    }

    /// The paths that one of these runners reads as settings.
    fn find_settings(&self, reviewers: &[Runner]) -> BTreeSet<Vec<u8>> {
        let is_setting = |name: &[u8]| {
            let name = std::str::from_utf8(name);
            name.is_ok_and(|name| reviewers.iter().any(|runner| runner.reads_settings(name)))
        };
        let own = self.changes.iter().map(|change| &change.path).filter(|path| is_setting(path));
        let linked = self.names.iter().filter(|(name, _)| is_setting(name)).flat_map(|(_, paths)| paths);
        own.chain(linked).cloned().collect()
    }

    /// The paths that match one of these pathspecs, by their own name or through a link.
    fn find_matching(&self, pathspecs: &[String]) -> Result<BTreeSet<Vec<u8>>, GitError> {
        if pathspecs.is_empty() {
            return Ok(BTreeSet::new());
        }
        let matching = self.repository.changes_matching(self.trees, pathspecs)?;
        let mut found: BTreeSet<Vec<u8>> = matching.into_iter().map(|change| change.path).collect();
        if self.names.is_empty() {
            return Ok(found);
        }
        // Only git knows what a pathspec matches, so the names become files of a tree.
        let empty = self.repository.empty_tree()?;
        for is_before in [true, false] {
            let there = |path: &Vec<u8>| {
                let at = self.changes.binary_search_by(|change| change.path.cmp(path)).ok()?;
                if is_before { self.changes[at].before } else { self.changes[at].after }
            };
            let file_at = |(name, paths): (&Vec<u8>, &BTreeSet<Vec<u8>>)| {
                let after = Some(paths.iter().find_map(there)?);
                Some(TreeChange { path: name.clone(), before: None, after })
            };
            let files: Vec<TreeChange> = self.names.iter().filter_map(file_at).collect();
            let named = self.repository.tree_with(empty, &files)?;
            for change in self.repository.changes_matching((empty, named), pathspecs)? {
                found.extend(self.names.get(&change.path).into_iter().flatten().cloned());
            }
        }
        Ok(found)
    }
}

impl fmt::Display for ProtectedChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(repo) = &self.repo {
            write!(f, "{repo}: ")?;
        }
        let deleted = if self.change.after.is_none() { " (deleted)" } else { "" };
        write!(f, "{}{deleted}", self.change.shown())
    }
}

impl ProtectedChanges {
    /// The same changes as those in this repository; `None` for the one with the plan.
    pub(in crate::pipeline) fn in_repo(mut self, repo: Option<&RepoName>) -> Self {
        for change in self.refused.iter_mut().chain(&mut self.allowed) {
            change.repo = repo.map(ToString::to_string);
        }
        self
    }

    pub(in crate::pipeline) fn add(&mut self, more: Self) {
        self.refused.extend(more.refused);
        self.allowed.extend(more.allowed);
    }

    /// Whether the file at this path was changed without permission.
    #[must_use]
    pub fn has_refused(&self, path: &[u8]) -> bool {
        self.refused.iter().any(|file| file.change.path == path)
    }

    /// The files without permission were restored, and the task's versions are in the ref `kept`.
    pub(in crate::pipeline) fn restored(&mut self, kept: &str) {
        self.refused.iter_mut().for_each(|change| change.kept = Some(kept.to_owned()));
    }

    /// Why the step fails, if it does, in one line.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        if self.refused.is_empty() {
            return None;
        }
        let mut names: Vec<String> = self.refused.iter().take(MAX_NAMED).map(ToString::to_string).collect();
        let more = self.refused.len().saturating_sub(MAX_NAMED);
        names.extend((more > 0).then(|| format!("and {more} more")));
        let paths: Vec<String> =
            self.refused.iter().take(MAX_NAMED).map(|change| change.change.shown()).collect();
        let options: Vec<String> = paths.iter().map(|path| format!("--allow {}", shell_word(path))).collect();
        let marks: Vec<String> = paths.iter().map(|path| format!("[allow:{path}]")).collect();
        let kept: BTreeSet<&str> = self.refused.iter().filter_map(|change| change.kept.as_deref()).collect();
        let kept: Vec<&str> = kept.into_iter().collect();
        let restored = match kept.is_empty() {
            true => String::new(),
            false => format!("; they were restored, and the task's versions are in {}", kept.join(", ")),
        };
        // A summary shows only the beginning.
        Some(format!(
            "protected files were changed: {}{restored}; to allow this: {}, or {} in the plan",
            names.join(", "),
            options.join(" "),
            marks.join(" ")
        ))
    }

    /// The section of a commit about changes with permission.
    pub(in crate::pipeline) fn describe_allowed(&self) -> Option<Body> {
        let lines: Vec<String> = self.allowed.iter().map(ToString::to_string).collect();
        (!lines.is_empty()).then(|| Body::new(CHANGED_WITH_PERMISSION, &lines.join("\n")))
    }

    /// The part of a reviewer's prompt about changes with permission.
    pub(in crate::pipeline) fn review_words(&self) -> String {
        let lines: Vec<String> = self.allowed.iter().map(|change| format!("- {change}")).collect();
        match lines.is_empty() {
            true => String::new(),
            false => format!(
                "\n\nThe task changed protected files, and has permission to do so. Check that it weakens no test:\n{}",
                lines.join("\n")
            ),
        }
    }
}

impl TaskRun<'_, '_, '_> {
    /// The protected files that the commits under review change.
    pub(in crate::pipeline) fn find_protected_in_review(&self) -> Result<ProtectedChanges, PipelineError> {
        let (protection, allow) = (&self.context.run.options.protection, &self.task.allow);
        let mut found = ProtectedChanges::default();
        for TaskRepo { name, repository, base, tip, .. } in self.repos() {
            let changes = protection.find_changes(repository, (base, tip.tree), allow)?;
            found.add(changes.in_repo(name));
        }
        Ok(found)
    }
}
