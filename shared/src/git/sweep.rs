//! Many refs, commits and trees in few calls, for one who looks at thousands of branches at once.

use std::{
    collections::{HashMap, HashSet},
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{GitCommand, GitError, Repository, command::checked};
use crate::{
    name::{Oid, digest},
    process::Awaited,
};

/// A ref with what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefFacts {
    /// The full name.
    pub name: String,
    /// The object.
    pub target: Oid,
    /// The commit that the object is or, as a tag, names.
    pub commit: Option<Oid>,
    /// When that was committed, in seconds since 1970.
    pub time: Option<i64>,
    /// The full name of the ref that it follows, if it does.
    pub upstream: Option<String>,
    /// The first line of what the commit says.
    pub subject: String,
}

/// Refs that are being looked at.
#[derive(Debug)]
pub struct RefFactsReader(Awaited);

/// A commit as a log shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// What it follows.
    pub parents: Vec<Oid>,
    /// The first line of what it says.
    pub subject: String,
}

/// What one path is in two trees.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathChange {
    /// The path, as bytes of a file name.
    pub path: Vec<u8>,
    /// Mode and content afterwards; `None` if it is gone.
    pub after: Option<(u32, Oid)>,
}

const FIELDS: &str = "--format=%(objectname)%00%(objecttype)%00%(*objectname)%00%(*objecttype)%00%(committerdate:unix)%00%(*committerdate:unix)%00%(upstream)%00%(symref)%00%(refname)%00%(contents:subject)";

impl RefFactsReader {
    /// Waits for them. Refs that only name another ref are left out.
    pub fn finish(self) -> Result<Vec<RefFacts>, GitError> {
        let printed = checked("for-each-ref", self.0.finish()?)?;
        let text = String::from_utf8_lossy(&printed);
        let mut found = Vec::new();
        for line in text.lines() {
            let fields: Vec<&str> = line.splitn(10, '\0').collect();
            let [target, kind, inner, inner_kind, time, inner_time, upstream, symref, name, subject] =
                fields[..]
            else {
                return Err(strange("for-each-ref", line));
            };
            if !symref.is_empty() {
                continue;
            }
            let target: Oid = target.parse().map_err(|_| strange("for-each-ref", line))?;
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
            });
        }
        Ok(found)
    }
}

impl Repository {
    /// Begins to look at all refs there are.
    #[must_use]
    pub fn start_surveying_refs(&self) -> RefFactsReader {
        RefFactsReader(self.git("for-each-ref").arg(FIELDS).finish_later())
    }

    /// The commits that `tips` lead to and `kept` do not, each with its parents.
    pub fn loose_commits(&self, tips: &[Oid], kept: &[Oid]) -> Result<HashMap<Oid, Vec<Oid>>, GitError> {
        if tips.is_empty() {
            return Ok(HashMap::new());
        }
        let tips = tips.iter().map(|tip| format!("{tip}\n"));
        let input: String = tips.chain(kept.iter().map(|kept| format!("^{kept}\n"))).collect();
        let command = self.git("rev-list").args(["--parents", "--stdin"]);
        let printed = checked("rev-list", command.finish_with(&input.into_bytes())?)?;
        let text = String::from_utf8_lossy(&printed);
        let parse = |line: &str| {
            let mut ids = line.split(' ').map(str::parse::<Oid>);
            let id = ids.next()?.ok()?;
            Some((id, ids.collect::<Result<Vec<Oid>, _>>().ok()?))
        };
        text.lines().map(|line| parse(line).ok_or_else(|| strange("rev-list", line))).collect()
    }

    /// The commits that `tips` lead to and `kept` do not, as a log shows them.
    pub fn commits_beyond(&self, tips: &[Oid], kept: &[Oid]) -> Result<HashMap<Oid, LogLine>, GitError> {
        if tips.is_empty() {
            return Ok(HashMap::new());
        }
        let tips = tips.iter().map(|tip| format!("{tip}\n"));
        let input: String = tips.chain(kept.iter().map(|kept| format!("^{kept}\n"))).collect();
        let command = self.git("rev-list").args(["--no-commit-header", "--format=%H%x00%P%x00%s", "--stdin"]);
        let printed = checked("rev-list", command.finish_with(&input.into_bytes())?)?;
        let text = String::from_utf8_lossy(&printed);
        let parse = |line: &str| {
            let mut fields = line.splitn(3, '\0');
            let id = fields.next()?.parse().ok()?;
            let parents = fields.next()?.split_whitespace().map(str::parse::<Oid>);
            let parents = parents.collect::<Result<Vec<Oid>, _>>().ok()?;
            Some((id, LogLine { parents, subject: fields.next()?.to_owned() }))
        };
        text.lines().map(|line| parse(line).ok_or_else(|| strange("rev-list", line))).collect()
    }

    /// What was merged into these branches, each with the commit that it was merged onto; at most so many of the newest.
    pub fn merged_into(&self, branches: &[Oid], most: usize) -> Result<HashMap<Oid, Oid>, GitError> {
        if branches.is_empty() {
            return Ok(HashMap::new());
        }
        let command = self.git("rev-list").args(["--first-parent", "--min-parents=2", "--parents"]);
        let command = command.arg(format!("-n{most}")).args(branches.iter().map(ToString::to_string));
        let printed = command.stdout()?;
        let mut found = HashMap::new();
        for line in String::from_utf8_lossy(&printed).lines() {
            let mut parents = line.split(' ').skip(1).map(str::parse::<Oid>);
            let Some(Ok(onto)) = parents.next() else { return Err(strange("rev-list", line)) };
            found.extend(parents.flatten().map(|merged| (merged, onto)));
        }
        Ok(found)
    }

    /// The newest commits of the line of `tip` whose message has this in it, at most so many.
    pub fn commits_saying(&self, tip: Oid, words: &str, most: usize) -> Result<Vec<Oid>, GitError> {
        let command = self.git("rev-list").args(["--first-parent", "--fixed-strings"]);
        let command = command.arg(format!("--grep={words}")).args([format!("-n{most}"), tip.to_string()]);
        let printed = command.stdout()?;
        let text = String::from_utf8_lossy(&printed);
        text.lines().map(|line| line.parse().map_err(|_| strange("rev-list", line))).collect()
    }

    /// What the log of a ref says of each time that it was written, newest first.
    pub fn read_reflog(&self, name: &str) -> Result<Vec<String>, GitError> {
        let ended = self.git("reflog").args(["show", "--format=%gs", name, "--"]).finish()?;
        Ok(String::from_utf8_lossy(&ended.stdout).lines().map(str::to_owned).collect())
    }

    /// The newest commits of `tip` that are no merges, at most so many.
    pub fn newest_commits(&self, tip: Oid, most: usize) -> Result<Vec<Oid>, GitError> {
        let command = self.git("rev-list").args(["--no-merges", &format!("-n{most}"), &tip.to_string()]);
        let printed = command.stdout()?;
        let text = String::from_utf8_lossy(&printed);
        text.lines().map(|line| line.parse().map_err(|_| strange("rev-list", line))).collect()
    }

    /// What each of these commits changed, against its parent or against the commit that is named with it.
    pub fn changes_of(
        &self,
        commits: &[(Oid, Option<Oid>)],
    ) -> Result<HashMap<Oid, Vec<PathChange>>, GitError> {
        let mut found: HashMap<Oid, Vec<PathChange>> = HashMap::new();
        if commits.is_empty() {
            return Ok(found);
        }
        let command = self.git("diff-tree").args([
            "--stdin",
            "--always",
            "--root",
            "-r",
            "-z",
            "--raw",
            "--no-renames",
            "--no-abbrev",
        ]);
        let printed = checked("diff-tree", command.finish_with(&lines_of(commits))?)?;
        let mut fields = printed.split(|b| *b == 0);
        let mut current = None;
        while let Some(field) = fields.next() {
            if let Some(record) = field.strip_prefix(b":") {
                let path = fields.next().unwrap_or_default().to_vec();
                let after =
                    parse_after(record).ok_or_else(|| strange("diff-tree", "a record of another form"))?;
                if let Some(changes) = current.and_then(|commit| found.get_mut(&commit)) {
                    changes.push(PathChange { path, after });
                }
            } else if let Some(commit) = Oid::from_hex(field.trim_ascii()) {
                current = Some(commit);
                found.entry(commit).or_default();
            }
        }
        match commits.iter().find(|(commit, _)| !found.contains_key(commit)) {
            Some((commit, _)) => Err(strange("diff-tree", &format!("no answer about {commit}"))),
            None => Ok(found),
        }
    }

    /// The patch of each of these commits as a digest of its very lines: two are equal only if both add and remove the
    /// same bytes in the same surroundings. Where in a file that is does not matter.
    pub fn patches_of(&self, commits: &[(Oid, Option<Oid>)]) -> Result<HashMap<Oid, String>, GitError> {
        if commits.is_empty() {
            return Ok(HashMap::new());
        }
        let known: HashSet<Oid> = commits.iter().map(|(commit, _)| *commit).collect();
        let command =
            self.git("diff-tree").args(["--stdin", "--root", "-r", "-p", "-U3", "--binary", "--full-index"]);
        let command = command.args(["--no-renames", "--no-ext-diff", "--no-textconv", "--no-color"]);
        let printed = checked("diff-tree", command.finish_with(&lines_of(commits))?)?;
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
        records.map(|record| parse(record).ok_or_else(|| strange("ls-tree", "a record"))).collect()
    }

    /// Of the branches below `prefix` that follow another, those that have something that it has not.
    pub fn unpushed(&self, prefix: &str) -> Result<HashSet<String>, GitError> {
        let command = self.git("for-each-ref").arg("--format=%(upstream:track,nobracket)%00%(refname)");
        let printed = command.arg(prefix).stdout()?;
        let text = String::from_utf8_lossy(&printed);
        let ahead = text.lines().filter_map(|line| line.split_once('\0'));
        Ok(ahead.filter(|(track, _)| track.contains("ahead")).map(|(_, name)| name.to_owned()).collect())
    }

    /// The paths below `folder` that git tracks, seen from there. The innermost repository is asked: it may be a submodule.
    pub fn list_tracked(&self, folder: &Path) -> Result<Vec<PathBuf>, GitError> {
        let printed = GitCommand::reading("ls-files", folder).at_home().not_above(self.top());
        let printed = printed.args(["-z", "--cached"]).stdout()?;
        let names = printed.split(|b| *b == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect())
    }

    /// When each of these refs was last written, as its log says, in seconds since 1970.
    pub fn written_at(&self, names: &[String]) -> Result<HashMap<String, i64>, GitError> {
        let mut found = HashMap::new();
        for name in names {
            let command = self.git("reflog").args(["show", "-n1", "--date=unix", "--format=%gD"]);
            let ended = command.arg(name).arg("--").finish()?;
            let text = String::from_utf8_lossy(&ended.stdout).into_owned();
            let time = text.trim().strip_suffix('}').and_then(|text| text.rsplit_once("@{"));
            if let Some(time) = time.and_then(|(_, time)| time.parse().ok()) {
                found.insert(name.clone(), time);
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

/// `mode mode id id status`, without the colon.
fn parse_after(record: &[u8]) -> Option<Option<(u32, Oid)>> {
    let mut words = std::str::from_utf8(record).ok()?.split(' ').skip(1);
    let mode = u32::from_str_radix(words.next()?, 8).ok()?;
    let id: Oid = words.nth(1)?.parse().ok()?;
    Some((mode != 0).then_some((mode, id)))
}

/// What counts of a line of a patch: not where it is, nor what the rest of the file is.
fn essence(line: &[u8]) -> &[u8] {
    if line.starts_with(b"index ") {
        return b"";
    }
    if line.starts_with(b"@@ ") { b"@@\n" } else { line }
}

fn strange(command: &str, what: &str) -> GitError {
    GitError::Strange { command: command.into(), what: what.to_owned() }
}
