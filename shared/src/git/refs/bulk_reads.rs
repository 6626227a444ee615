//! Reads many refs, commits and trees in few calls, for commands that look at thousands of branches.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
};

use crate::{
    git::{
        GitCommand, GitError, Ref, Repository,
        command::{checked, range_input},
        refs::notes::skip_ref,
    },
    name::{Oid, digest},
    process::BackgroundProgram,
};

/// A ref and facts about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefFacts {
    /// The full name.
    pub name: String,
    /// The object.
    pub target: Oid,
    /// The commit that the object is or, for a tag, points to.
    pub commit: Option<Oid>,
    /// When that was committed, in seconds since 1970.
    pub time: Option<i64>,
    /// The full name of its upstream, if it has one.
    pub upstream: Option<String>,
    /// The subject of the commit.
    pub subject: String,
    /// Whether its object is missing or cannot be read.
    pub is_damaged: bool,
}

/// A running list of refs.
#[derive(Debug)]
pub struct RefFactsReader {
    running: BackgroundProgram,
    repository: Repository,
}

/// A commit as in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Its parents.
    pub parents: Vec<Oid>,
    /// Its subject.
    pub subject: String,
}

/// A path that differs between two trees.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathChange {
    /// The path, as bytes of a file name.
    pub path: Vec<u8>,
    /// Mode and content afterwards; `None` if it is gone.
    pub after: Option<(u32, Oid)>,
}

const FIELDS: &str = "--format=%(objectname)%00%(objecttype)%00%(*objectname)%00%(*objecttype)%00%(committerdate:unix)%00%(*committerdate:unix)%00%(upstream)%00%(symref)%00%(refname)%00%(contents:subject)";

/// How many names of refs one git command gets.
const MAX_NAMES: usize = 1000;

impl RefFactsReader {
    /// Waits for the list. Symbolic refs are left out.
    pub fn finish(self) -> Result<Vec<RefFacts>, GitError> {
        match checked("for-each-ref", self.running.finish()?) {
            Ok(printed) => parse_refs(&printed),
            Err(GitError::Failed { .. }) => self.repository.survey_refs_in_parts(),
            Err(error) => Err(error),
        }
    }
}

/// The facts about a ref whose object cannot be read. The user is told about it.
fn damaged(Ref { name, target }: Ref) -> RefFacts {
    skip_ref(&name, &format!("the object {target} is missing or damaged"));
    RefFacts {
        name,
        target,
        commit: None,
        time: None,
        upstream: None,
        subject: String::new(),
        is_damaged: true,
    }
}

fn parse_refs(printed: &[u8]) -> Result<Vec<RefFacts>, GitError> {
    let text = String::from_utf8_lossy(printed);
    let mut found = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.splitn(10, '\0').collect();
        let [target, kind, inner, inner_kind, time, inner_time, upstream, symref, name, subject] = fields[..]
        else {
            return Err(GitError::unexpected("for-each-ref", line));
        };
        if !symref.is_empty() {
            continue;
        }
        let target: Oid = target.parse().map_err(|_| GitError::unexpected("for-each-ref", line))?;
        let commit = match (kind, inner_kind) {
            ("commit", _) => Some(target),
            ("tag", "commit") => inner.parse().ok(),
            _ => None,
        };
        found.push(RefFacts {
            name: name.to_owned(),
            target,
            commit,
            time: time.parse().or_else(|_| inner_time.parse()).ok(),
            upstream: (!upstream.is_empty()).then(|| upstream.to_owned()),
            subject: subject.to_owned(),
            is_damaged: false,
        });
    }
    Ok(found)
}

impl Repository {
    /// Starts to list all refs.
    #[must_use]
    pub fn start_surveying_refs(&self) -> RefFactsReader {
        let running = self.git("for-each-ref").arg(FIELDS).finish_in_background();
        RefFactsReader { running, repository: self.clone() }
    }

    /// Lists all refs if the object of one cannot be read: git fails then for all refs that it is asked for. So they are
    /// halved until each damaged ref is alone.
    fn survey_refs_in_parts(&self) -> Result<Vec<RefFacts>, GitError> {
        let mut open: Vec<Vec<Ref>> =
            self.list_refs(&["refs/"])?.chunks(MAX_NAMES).map(<[Ref]>::to_vec).collect();
        let mut found = Vec::new();
        while let Some(mut refs) = open.pop() {
            let names = refs.iter().map(|found| found.name.as_str());
            match self.git("for-each-ref").arg(FIELDS).args(names).stdout() {
                Ok(printed) => found.extend(parse_refs(&printed)?),
                Err(GitError::Failed { .. }) if refs.len() > 1 => {
                    let rest = refs.split_off(refs.len() / 2);
                    open.extend([refs, rest]);
                }
                Err(GitError::Failed { .. }) => found.extend(refs.into_iter().map(damaged)),
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// The commits that are reachable from `tips` and not from `kept`, with their parents.
    pub fn loose_commits(&self, tips: &[Oid], kept: &[Oid]) -> Result<HashMap<Oid, Vec<Oid>>, GitError> {
        if tips.is_empty() {
            return Ok(HashMap::new());
        }
        let command = self.git("rev-list").args(["--parents", "--stdin"]);
        let text = command.text_with(&range_input(tips, kept))?;
        let parse = |line: &str| {
            let mut ids = line.split(' ').map(str::parse::<Oid>);
            let id = ids.next()?.ok()?;
            Some((id, ids.collect::<Result<Vec<Oid>, _>>().ok()?))
        };
        text.lines().map(|line| parse(line).ok_or_else(|| GitError::unexpected("rev-list", line))).collect()
    }

    /// The commits that are reachable from `tips` and not from `kept`, as in a log.
    pub fn log_between(&self, tips: &[Oid], kept: &[Oid]) -> Result<HashMap<Oid, LogLine>, GitError> {
        if tips.is_empty() {
            return Ok(HashMap::new());
        }
        let command = self.git("rev-list").args(["--no-commit-header", "--format=%H%x00%P%x00%s", "--stdin"]);
        let text = command.text_with(&range_input(tips, kept))?;
        let parse = |line: &str| {
            let mut fields = line.splitn(3, '\0');
            let id = fields.next()?.parse().ok()?;
            let parents = fields.next()?.split_whitespace().map(str::parse::<Oid>);
            let parents = parents.collect::<Result<Vec<Oid>, _>>().ok()?;
            Some((id, LogLine { parents, subject: fields.next()?.to_owned() }))
        };
        text.lines().map(|line| parse(line).ok_or_else(|| GitError::unexpected("rev-list", line))).collect()
    }

    /// The commits that were merged into these branches, each with the commit that it was merged onto; the newest
    /// `most` ones.
    pub fn merged_into(&self, branches: &[Oid], most: usize) -> Result<HashMap<Oid, Oid>, GitError> {
        if branches.is_empty() {
            return Ok(HashMap::new());
        }
        let command = self.git("rev-list").args(["--first-parent", "--min-parents=2", "--parents"]);
        let command = command.arg(format!("-n{most}")).args(branches.iter().map(ToString::to_string));
        let mut found = HashMap::new();
        for line in command.text()?.lines() {
            let mut parents = line.split(' ').skip(1).map(str::parse::<Oid>);
            let Some(Ok(onto)) = parents.next() else { return Err(GitError::unexpected("rev-list", line)) };
            found.extend(parents.flatten().map(|merged| (merged, onto)));
        }
        Ok(found)
    }

    /// The newest commits on the first-parent line of `tip` whose message contains `words`, at most `most`.
    pub fn find_commits_by_message(&self, tip: Oid, words: &str, most: usize) -> Result<Vec<Oid>, GitError> {
        let command = self.git("rev-list").args(["--first-parent", "--fixed-strings"]);
        let command = command.arg(format!("--grep={words}")).args([format!("-n{most}"), tip.to_string()]);
        let text = command.text()?;
        text.lines().map(|line| line.parse().map_err(|_| GitError::unexpected("rev-list", line))).collect()
    }

    /// The messages in the reflog of a ref, newest first.
    pub fn read_reflog(&self, name: &str) -> Result<Vec<String>, GitError> {
        let ended = self.git("reflog").args(["show", "--format=%gs", name, "--"]).finish()?;
        Ok(String::from_utf8_lossy(&ended.stdout).lines().map(str::to_owned).collect())
    }

    /// Whether a ref had this value, according to its reflog.
    pub fn is_in_reflog(&self, name: &str, value: Oid) -> Result<bool, GitError> {
        let ended = self.git("reflog").args(["show", "--format=%H", name, "--"]).finish()?;
        Ok(String::from_utf8_lossy(&ended.stdout).lines().any(|line| line == value.to_string()))
    }

    /// The newest commits of `tip` that are no merges, at most `most`.
    pub fn newest_commits(&self, tip: Oid, most: usize) -> Result<Vec<Oid>, GitError> {
        let command = self.git("rev-list").args(["--no-merges", &format!("-n{most}"), &tip.to_string()]);
        let text = command.text()?;
        text.lines().map(|line| line.parse().map_err(|_| GitError::unexpected("rev-list", line))).collect()
    }

    /// The changes of each of these commits, against its parent or against the commit that is given with it.
    pub fn changes_of(
        &self,
        commits: &[(Oid, Option<Oid>)],
    ) -> Result<HashMap<Oid, Vec<PathChange>>, GitError> {
        let mut found: HashMap<Oid, Vec<PathChange>> = HashMap::new();
        if commits.is_empty() {
            return Ok(found);
        }
        let command = self
            .git("diff-tree")
            .args(["--stdin", "--always", "--root", "-r", "-z", "--raw", "--no-renames", "--no-abbrev"]);
        let printed = command.stdout_with(&lines_of(commits))?;
        let mut fields = printed.split(|b| *b == 0);
        let mut current = None;
        while let Some(field) = fields.next() {
            if let Some(record) = field.strip_prefix(b":") {
                let path = fields.next().unwrap_or_default().to_vec();
                let after = parse_after(record)
                    .ok_or_else(|| GitError::unexpected("diff-tree", "a record of another form"))?;
                if let Some(changes) = current.and_then(|commit| found.get_mut(&commit)) {
                    changes.push(PathChange { path, after });
                }
            } else if let Some(commit) = Oid::from_hex(field.trim_ascii()) {
                current = Some(commit);
                found.entry(commit).or_default();
            }
        }
        match commits.iter().find(|(commit, _)| !found.contains_key(commit)) {
            Some((commit, _)) => Err(GitError::unexpected("diff-tree", format!("no answer about {commit}"))),
            None => Ok(found),
        }
    }

    /// A digest of each commit's patch: two are equal only if both add and remove the same bytes in the same context.
    /// Line numbers do not matter.
    pub fn patches_of(&self, commits: &[(Oid, Option<Oid>)]) -> Result<HashMap<Oid, String>, GitError> {
        if commits.is_empty() {
            return Ok(HashMap::new());
        }
        let known: HashSet<Oid> = commits.iter().map(|(commit, _)| *commit).collect();
        let command =
            self.git("diff-tree").args(["--stdin", "--root", "-r", "-p", "-U3", "--binary", "--full-index"]);
        let command = command.args(["--no-renames", "--no-ext-diff", "--no-textconv", "--no-color"]);
        let printed = command.stdout_with(&lines_of(commits))?;
        let mut patches: HashMap<Oid, Vec<u8>> = HashMap::new();
        let mut current = None;
        for line in printed.split_inclusive(|b| *b == b'\n') {
            match Oid::from_hex(line.trim_ascii_end()).filter(|id| known.contains(id)) {
                Some(commit) => current = Some(commit),
                None => {
                    if let Some(commit) = current {
                        patches.entry(commit).or_default().extend_from_slice(essence(line));
                    }
                }
            }
        }
        Ok(patches.into_iter().map(|(commit, patch)| (commit, digest(&patch))).collect())
    }

    /// Mode and content of every file of a commit.
    pub fn files_of(&self, commit: Oid) -> Result<HashMap<Vec<u8>, (u32, Oid)>, GitError> {
        let printed = self.git("ls-tree").args(["-r", "-z", "--full-tree", &commit.to_string()]).stdout()?;
        let parse = |record: &[u8]| {
            let at = record.iter().position(|b| *b == b'\t')?;
            let head = std::str::from_utf8(&record[..at]).ok()?;
            let mut words = head.split(' ');
            let mode = u32::from_str_radix(words.next()?, 8).ok()?;
            Some((record[at + 1..].to_vec(), (mode, words.nth(1)?.parse().ok()?)))
        };
        let records = printed.split(|b| *b == 0).filter(|record| !record.is_empty());
        records
            .map(|record| parse(record).ok_or_else(|| GitError::unexpected("ls-tree", "a record")))
            .collect()
    }

    /// The branches below `prefix` that are ahead of their upstream.
    pub fn unpushed(&self, prefix: &str) -> Result<HashSet<String>, GitError> {
        let command = self.git("for-each-ref").arg("--format=%(upstream:track,nobracket)%00%(refname)");
        let text = command.arg(prefix).text()?;
        let ahead = text.lines().filter_map(|line| line.split_once('\0'));
        Ok(ahead.filter(|(track, _)| track.contains("ahead")).map(|(_, name)| name.to_owned()).collect())
    }

    /// The tracked paths below `folder`, relative to it. The innermost repository is asked, which may be a submodule.
    pub fn list_tracked(&self, folder: &Path) -> Result<Vec<PathBuf>, GitError> {
        let command = GitCommand::reading("ls-files", folder).ignoring_environment();
        command.without_search_above(self.top()).args(["-z", "--cached"]).paths()
    }

    /// When each ref below a prefix was last written, in seconds since 1970, if git has a reflog of it.
    pub fn written_below(&self, prefix: &str) -> Result<HashMap<String, i64>, GitError> {
        let command = self.git("reflog").args(["show", "--ignore-missing", "--date=unix", "--format=%gD"]);
        let ended = command.arg(format!("--glob={prefix}*")).finish()?;
        let mut found = HashMap::new();
        for line in String::from_utf8_lossy(&ended.stdout).lines() {
            let entry = line.strip_suffix('}').and_then(|line| line.rsplit_once("@{"));
            if let Some((name, Ok(time))) = entry.map(|(name, time)| (name, time.parse())) {
                // The newest entry of each ref comes first.
                found.entry(name.to_owned()).or_insert(time);
            }
        }
        Ok(found)
    }
}

fn lines_of(commits: &[(Oid, Option<Oid>)]) -> Vec<u8> {
    let line = |(commit, base): &(Oid, Option<Oid>)| match base {
        Some(base) => format!("{commit} {base}\n"),
        None => format!("{commit}\n"),
    };
    commits.iter().map(line).collect::<String>().into_bytes()
}

/// Parses `mode mode id id status`, without the colon.
fn parse_after(record: &[u8]) -> Option<Option<(u32, Oid)>> {
    let mut words = std::str::from_utf8(record).ok()?.split(' ').skip(1);
    let mode = u32::from_str_radix(words.next()?, 8).ok()?;
    let id: Oid = words.nth(1)?.parse().ok()?;
    Some((mode != 0).then_some((mode, id)))
}

/// The part of a patch line that counts for the digest: no line numbers and no context of the hunk header.
fn essence(line: &[u8]) -> &[u8] {
    if line.starts_with(b"index ") {
        return b"";
    }
    if line.starts_with(b"@@ ") { b"@@\n" } else { line }
}
