//! Talking to remotes: within limits, never by a prompt on the terminal, and with nothing that a URL could start.

use std::{ffi::OsStr, path::Path, time::Duration};

use super::{GitCommand, GitError, More, Repository, command::without_prefix, remote_ssh};
use crate::{
    failure::{Exit, Explain},
    message::visible,
    name::{BranchName, Oid},
    process::{Cancel, Ending, Limits, Supervised, SupervisedEnd},
};

/// How long an exchange may take in all, as a multiple of the silence that is borne.
const WHOLE: u32 = 30;
/// What is kept of an answer: a line for each ref.
const LONGEST: usize = 1 << 24;

/// So many lines of what a remote says are told, and so many characters of them.
const SAID: usize = 4;
const LONGEST_WORDS: usize = 300;

/// Transports that run a program that a URL names, and what would push more than was asked for.
const PINS: [&str; 5] = [
    "protocol.ext.allow=never",
    "protocol.fd.allow=never",
    "push.followTags=false",
    "push.gpgSign=false",
    "push.recurseSubmodules=no",
];

/// What a caller of git may have put into our environment to sign in with.
const SETTINGS: [&str; 2] = ["GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT"];

/// How it went wrong with a remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// It was given up: it said nothing, or took too long.
    Hung,
    /// It wants to know who asks.
    SignIn,
    /// Something else.
    Other,
}

impl Trouble {
    fn of(outcome: &SupervisedEnd, why: &str) -> Self {
        let wants_name =
            ["terminal prompts disabled", "Authentication failed", "Permission denied (publickey"];
        match outcome.ending {
            Ending::Silent { .. } | Ending::TimedOut { .. } => Self::Hung,
            _ if wants_name.iter().any(|words| why.contains(words)) => Self::SignIn,
            _ => Self::Other,
        }
    }

    /// What to try.
    #[must_use]
    pub const fn hint(self) -> Option<&'static str> {
        match self {
            Self::SignIn => Some(
                "nothing is asked on the terminal: sign in with a credential helper, an SSH agent or GIT_ASKPASS",
            ),
            Self::Hung | Self::Other => None,
        }
    }
}

/// Why a remote could not be used.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// It could not be reached, or refused.
    #[error("'{remote}' could not be reached: {why}")]
    Unreached {
        /// The remote, without secrets.
        remote: String,
        /// git's reason, in one line.
        why: String,
        /// How it went wrong.
        trouble: Trouble,
    },
    /// Something else failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Explain for RemoteError {
    fn exit(&self) -> Exit {
        match self {
            Self::Unreached { .. } => Exit::Fatal,
            Self::Git(error) => error.exit(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Unreached { trouble, .. } => trouble.hint().map(str::to_owned),
            Self::Git(error) => error.hint(),
        }
    }
}

/// How remotes are waited for.
#[derive(Debug, Clone)]
pub struct Network {
    /// How long one may say nothing.
    pub silence: Duration,
    /// The wish to stop.
    pub cancel: Cancel,
}

/// How much of a history is cloned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloneDepth {
    /// All of it.
    Whole,
    /// The last commits.
    Last(u64),
}

/// One ref to be pushed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Push {
    /// Its full name, here and there.
    pub name: String,
    /// What it shall point at.
    pub target: Oid,
}

/// What became of one ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pushed {
    /// Its full name.
    pub name: String,
    /// Why it was refused, if it was.
    pub refused: Option<String>,
    /// What the remote said to that, if anything.
    pub said: Option<String>,
}

impl Pushed {
    /// Why it was refused, with what the remote said.
    #[must_use]
    pub fn reason(&self) -> String {
        let why = self.refused.clone().unwrap_or_default();
        self.said.iter().fold(why, |why, said| format!("{why}: {said}"))
    }
}

impl Network {
    /// Clones `url` to `path`, which must not exist. No hook runs, and no tag comes with it.
    pub fn clone_to(
        &self,
        url: &str,
        path: &Path,
        (depth, branch): (CloneDepth, Option<&BranchName>),
    ) -> Result<(), RemoteError> {
        let dir = path.parent().unwrap_or(Path::new("."));
        let command = GitCommand::changing("clone", dir, &PINS).at_home();
        let mut command =
            command.args(["--progress", "--origin=origin", "--no-local", "--no-recurse-submodules"]);
        if let CloneDepth::Last(count) = depth {
            command = command.arg(format!("--depth={count}"));
        }
        if let Some(branch) = branch {
            command = command.args(["--branch", branch.as_str()]);
        }
        self.exchange(url, command.arg("--").arg(url).arg(path), None).map(drop)
    }

    /// Runs git to its end, within limits. Gives what it printed.
    fn exchange(
        &self,
        remote: &str,
        command: GitCommand,
        repository: Option<&Repository>,
    ) -> Result<String, RemoteError> {
        let outcome = self.supervise(command, repository, None)?;
        if outcome.ending.is_success() && !outcome.stdout.cut {
            return Ok(outcome.stdout.text);
        }
        let why = if outcome.stdout.cut { "its answer is too long".into() } else { reason(&outcome) };
        let trouble = Trouble::of(&outcome, &why);
        Err(RemoteError::Unreached { remote: shown_url(remote), why, trouble })
    }

    /// A setting is pinned by the environment where its key may have a `=` in it, which `-c` would split at.
    fn supervise(
        &self,
        command: GitCommand,
        repository: Option<&Repository>,
        pin: Option<(String, &str)>,
    ) -> Result<SupervisedEnd, GitError> {
        let command = match remote_ssh::command(repository)? {
            Some(ssh) => command.env("GIT_SSH_COMMAND", ssh),
            None => command,
        };
        command.require_homes()?;
        let mut program = command.env("GCM_INTERACTIVE", "never").into_program();
        for (name, value) in std::env::vars_os().filter(|(name, _)| is_setting(name)) {
            program = program.env(name, value);
        }
        if let Some((key, value)) = pin {
            let known =
                std::env::var("GIT_CONFIG_COUNT").ok().and_then(|count| count.parse().ok()).unwrap_or(0);
            program = program.env("GIT_CONFIG_COUNT", (known + 1_usize).to_string());
            program = program.env(format!("GIT_CONFIG_KEY_{known}"), key);
            program = program.env(format!("GIT_CONFIG_VALUE_{known}"), value);
        }
        let limits =
            Limits { whole: Some(self.silence * WHOLE), silence: Some(self.silence), ..Limits::default() };
        Ok(Supervised::new(program).limits(limits).until(&self.cancel).tail(LONGEST).run(|_| ()))
    }
}

impl Repository {
    /// Fetches `refspecs` from a remote, by its name or its URL, and nothing else.
    pub fn fetch_refs(
        &self,
        (remote, refspecs): (&str, &[String]),
        more: More,
        network: &Network,
    ) -> Result<(), RemoteError> {
        // A pattern ends in a star, and names are looked for from their last folder on.
        let places = refspecs.iter().filter_map(|spec| spec.split_once(':')?.1.split('*').next());
        let places = places.map(|place| place.trim_end_matches('/')).filter(|place| !place.is_empty());
        self.remove_links_below(&places.collect::<Vec<_>>())?;
        let command =
            self.change_with("fetch", &PINS).args(["--progress", "--no-tags", "--no-write-fetch-head"]);
        let mut command = command.args(["--no-recurse-submodules", "--no-auto-maintenance"]);
        match more {
            More::Newer => {}
            More::Commits(count) => command = command.arg("--refmap=").arg(format!("--deepen={count}")),
            More::Everything => command = command.args(["--refmap=", "--unshallow"]),
        }
        network.exchange(remote, command.args(["--", remote]).args(refspecs), Some(self)).map(drop)
    }

    /// The refs of a remote that match `patterns`.
    pub fn list_remote_refs(
        &self,
        (remote, patterns): (&str, &[&str]),
        network: &Network,
    ) -> Result<Vec<(String, Oid)>, RemoteError> {
        let command = self.change_with("ls-remote", &PINS).args(["--refs", "--", remote]).args(patterns);
        let printed = network.exchange(remote, command, Some(self))?;
        let parse = |line: &str| {
            let (oid, name) = line.split_once('\t')?;
            Some((name.to_owned(), oid.parse().ok()?))
        };
        Ok(printed.lines().filter_map(parse).collect())
    }

    /// The branch that a remote calls its own.
    pub fn ask_default_branch(
        &self,
        remote: &str,
        network: &Network,
    ) -> Result<Option<BranchName>, RemoteError> {
        let command = self.change_with("ls-remote", &PINS).args(["--symref", "--", remote, "HEAD"]);
        let printed = network.exchange(remote, command, Some(self))?;
        let named = |line: &str| {
            line.strip_prefix("ref: refs/heads/")?.strip_suffix("\tHEAD")?.parse::<BranchName>().ok()
        };
        Ok(printed.lines().find_map(named))
    }

    /// Pushes exactly these refs, each to its own name, by fast-forward only. Refs that are refused do not keep others back.
    pub fn push_refs(
        &self,
        (remote, pushes): (&str, &[Push]),
        network: &Network,
    ) -> Result<Vec<Pushed>, RemoteError> {
        let refspecs = pushes.iter().map(|push| format!("{}:{}", push.target, push.name));
        self.push((remote, &[], refspecs.collect()), network)
    }

    /// Pushes exactly these refspecs. What is refused does not keep others back.
    pub(super) fn push(
        &self,
        (remote, options, refspecs): (&str, &[String], Vec<String>),
        network: &Network,
    ) -> Result<Vec<Pushed>, RemoteError> {
        let configured = self.find_remote(remote)?.filter(|name| name == remote);
        let pin = configured.map(|name| (format!("remote.{name}.mirror"), "false"));
        let command = self.change_with("push", &PINS).args(["--porcelain", "--progress", "--no-verify"]);
        let command = command.args(options).args(["--", remote]).args(refspecs);
        let outcome = network.supervise(command, Some(self), pin)?;
        let mut rows: Vec<Pushed> = outcome.stdout.text.lines().filter_map(parse_row).collect();
        let said = remote_words(&outcome.stderr.text);
        // What git itself refuses the remote has not heard of.
        let is_theirs = |row: &&mut Pushed| row.refused.as_ref().is_some_and(|why| why.contains("remote"));
        rows.iter_mut().filter(is_theirs).for_each(|row| row.said.clone_from(&said));
        // A refusal of single refs is exit code 1 with a row for each; anything else is no answer.
        if outcome.ending.is_success() || (!rows.is_empty() && matches!(outcome.ending, Ending::Exited(1))) {
            return Ok(rows);
        }
        let why = reason(&outcome);
        let trouble = Trouble::of(&outcome, &why);
        Err(RemoteError::Unreached { remote: shown_url(remote), why, trouble })
    }
}

/// `FLAG TAB FROM:TO TAB SUMMARY`.
fn parse_row(line: &str) -> Option<Pushed> {
    let mut fields = line.splitn(3, '\t');
    let (flag, refs, summary) = (fields.next()?, fields.next()?, fields.next()?);
    let (_, name) = refs.split_once(':')?;
    let refused = (flag == "!").then(|| visible(summary));
    (flag.chars().count() == 1).then(|| Pushed { name: name.to_owned(), refused, said: None })
}

/// What a remote said to a push, in one line: not how far it has come, nor what only frames the words.
fn remote_words(printed: &str) -> Option<String> {
    let words = |line: &str| {
        let line = line.strip_prefix("remote:")?.replace("\u{1b}[K", "");
        let line = visible(line.trim());
        let is_progress = line.contains("% (") || line.starts_with("Total ");
        (line.contains(char::is_alphanumeric) && !is_progress).then_some(line)
    };
    let said: Vec<String> = printed.split(['\n', '\r']).filter_map(words).take(SAID).collect();
    (!said.is_empty()).then(|| said.join(" ").chars().take(LONGEST_WORDS).collect())
}

fn is_setting(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    SETTINGS.contains(&&*name)
        || ["GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"].iter().any(|prefix| name.starts_with(prefix))
}

/// Why git ended as it did, in one line and without secrets. The first complaint is the cause.
fn reason(outcome: &SupervisedEnd) -> String {
    if outcome.ending.code().is_none() {
        return match outcome.ending {
            Ending::Silent { after } => format!("it said nothing for {} s", after.as_secs()),
            _ => format!("git {}", outcome.ending),
        };
    }
    let is_cause = |line: &&str| line.starts_with("fatal: ") || line.starts_with("error: ");
    let lines = || outcome.stderr.text.lines().filter(|line| !line.trim().is_empty());
    let line = lines().find(is_cause).or_else(|| lines().next_back()).unwrap_or_default();
    visible(&without_prefix(line).split(' ').map(without_secret).collect::<Vec<_>>().join(" "))
}

/// A URL as it may be shown: without the password or token in it.
#[must_use]
pub fn shown_url(url: &str) -> String {
    visible(&without_secret(url))
}

fn without_secret(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else {
        return word.to_owned();
    };
    let end = rest.find('/').unwrap_or(rest.len());
    match rest[..end].rsplit_once('@') {
        Some((user, host)) if !scheme.ends_with("ssh") || user.contains(':') => {
            format!("{scheme}://…@{host}{}", &rest[end..])
        }
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_of_a_url_is_shown() {
        assert_eq!(shown_url("https://ada:token@example.com/a@b.git"), "https://…@example.com/a@b.git");
        assert_eq!(shown_url("https://token@example.com"), "https://…@example.com");
        for url in
            ["https://example.com/a.git", "git@example.com:a.git", "ssh://git@example.com/a", "../a.git"]
        {
            assert_eq!(shown_url(url), url);
        }
    }

    #[test]
    fn rows_of_a_push_are_read() {
        let row = parse_row("!\tabc:refs/heads/x\t[rejected] (non-fast-forward)").unwrap();
        assert_eq!(row.refused.as_deref(), Some("[rejected] (non-fast-forward)"));
        let row = parse_row("*\tabc:refs/heads/x\t[new branch]").unwrap();
        assert_eq!((row.name.as_str(), row.refused), ("refs/heads/x", None));
        let said = "remote: \u{1b}[K\nremote: ====\rremote: Resolving deltas: 100% (1/1)\u{1b}[K\nremote: GitLab: no.   \nTo x\n";
        assert_eq!(remote_words(said).as_deref(), Some("GitLab: no."));
        assert_eq!(remote_words("To x\nremote: \n"), None);
        assert_eq!(parse_row("To ../remote.git"), None);
        assert_eq!(parse_row("Done"), None);
    }
}
