//! Talks to remotes: with time limits, without prompts on the terminal, and without transports that run a program from
//! a URL.

pub(super) mod remote_ssh;
pub(super) mod remotes;
pub(super) mod shallow;
pub(super) mod upstream;

use std::{ffi::OsStr, path::Path, time::Duration};

use crate::{
    failure::{Exit, Explain, Explanation},
    git::{FetchDepth, GitCommand, GitError, Repository, command::without_prefix},
    message::visible,
    name::{BranchName, Oid},
    process::{Cancel, Ending, Limits, Supervised, SupervisedEnd},
};

/// The time limit for one exchange, as a multiple of the time without output.
const TIMEOUT_FACTOR: u32 = 30;
/// How much output is kept: one line for each ref.
const MAX_OUTPUT: usize = 1 << 24;

/// How many lines of a remote's message are shown, and how many characters.
const MAX_MESSAGE_LINES: usize = 4;
const MAX_MESSAGE_CHARS: usize = 300;

/// Forbids transports that run a program named by a URL, and settings that push more than was asked for.
const PINS: [&str; 5] = [
    "protocol.ext.allow=never",
    "protocol.fd.allow=never",
    "push.followTags=false",
    "push.gpgSign=false",
    "push.recurseSubmodules=no",
];

/// Variables with which the caller of git may have passed credentials.
const CREDENTIAL_VARIABLES: [&str; 2] = ["GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT"];

/// How an exchange with a remote failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteFailure {
    /// It timed out, or was silent for too long.
    Hung,
    /// It needs credentials.
    SignIn,
    /// Anything else.
    Other,
}

impl RemoteFailure {
    fn of(outcome: &SupervisedEnd, why: &str) -> Self {
        let credential_errors =
            ["terminal prompts disabled", "Authentication failed", "Permission denied (publickey"];
        match outcome.ending {
            Ending::Silent { .. } | Ending::TimedOut { .. } => Self::Hung,
            _ if credential_errors.iter().any(|words| why.contains(words)) => Self::SignIn,
            _ => Self::Other,
        }
    }

    /// A hint for the user.
    #[must_use]
    pub const fn hint(self) -> Option<&'static str> {
        match self {
            Self::SignIn => Some(
                "git is not allowed to ask on the terminal: sign in with a credential helper, an SSH agent or GIT_ASKPASS",
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
        /// How it failed.
        trouble: RemoteFailure,
    },
    /// Something else failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Explain for RemoteError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Unreached { trouble, .. } => {
                Explanation { exit: Exit::Fatal, hint: trouble.hint().map(str::to_owned) }
            }
            Self::Git(error) => error.explain(),
        }
    }
}

/// How to wait for remotes.
#[derive(Debug, Clone)]
pub struct Network {
    /// How long a remote may be silent.
    pub silence: Duration,
    /// Cancels the exchange.
    pub cancel: Cancel,
}

/// How much history is cloned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloneDepth {
    /// All of it.
    Whole,
    /// Only the last commits.
    Last(u64),
}

/// One ref to push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Push {
    /// Its full name, both here and at the remote.
    pub name: String,
    /// The object that it should point to.
    pub target: Oid,
}

/// The result for one pushed ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pushed {
    /// Its full name.
    pub name: String,
    /// Why it was refused, if it was.
    pub refused: Option<String>,
    /// The message of the remote about it, if any.
    pub remote_text: Option<String>,
}

impl Pushed {
    /// Why it was refused, with the message of the remote.
    #[must_use]
    pub fn reason(&self) -> String {
        let why = self.refused.clone().unwrap_or_default();
        self.remote_text.iter().fold(why, |why, remote_text| format!("{why}: {remote_text}"))
    }
}

impl Network {
    /// Clones `url` to `path`, which must not exist. No hook runs, and no tags are fetched.
    pub fn clone_to(
        &self,
        url: &str,
        path: &Path,
        depth: CloneDepth,
        branch: Option<&BranchName>,
    ) -> Result<(), RemoteError> {
        let dir = path.parent().unwrap_or(Path::new("."));
        let command = GitCommand::changing("clone", dir, &PINS).ignoring_environment();
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

    /// Runs git with time limits, and returns its output.
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
        let trouble = RemoteFailure::of(&outcome, &why);
        Err(RemoteError::Unreached { remote: shown_url(remote), why, trouble })
    }

    /// Runs git with time limits. `pin` is a setting that is passed by the environment, because its key may contain a
    /// `=`, at which `-c` would split it.
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
        command.require_runnable()?;
        let mut program = command.env("GCM_INTERACTIVE", "never").into_program();
        for (name, value) in std::env::vars_os().filter(|(name, _)| is_credential_variable(name)) {
            program = program.env(name, value);
        }
        if let Some((key, value)) = pin {
            let known =
                std::env::var("GIT_CONFIG_COUNT").ok().and_then(|count| count.parse().ok()).unwrap_or(0);
            program = program.env("GIT_CONFIG_COUNT", (known + 1_usize).to_string());
            program = program.env(format!("GIT_CONFIG_KEY_{known}"), key);
            program = program.env(format!("GIT_CONFIG_VALUE_{known}"), value);
        }
        let limits = Limits {
            whole: Some(self.silence * TIMEOUT_FACTOR),
            silence: Some(self.silence),
            ..Limits::default()
        };
        Ok(Supervised::new(program).limits(limits).until(&self.cancel).tail(MAX_OUTPUT).run(|_| ()))
    }
}

impl Repository {
    /// Fetches exactly `refspecs` from a remote, by its name or URL.
    pub fn fetch_refs(
        &self,
        remote: &str,
        refspecs: &[String],
        more: FetchDepth,
        network: &Network,
    ) -> Result<(), RemoteError> {
        // A pattern ends in a star. Refs are searched from their last folder on.
        let places = refspecs.iter().filter_map(|spec| spec.split_once(':')?.1.split('*').next());
        let places = places.map(|place| place.trim_end_matches('/')).filter(|place| !place.is_empty());
        self.remove_symbolic_refs_below(&places.collect::<Vec<_>>())?;
        let command =
            self.change_with("fetch", &PINS).args(["--progress", "--no-tags", "--no-write-fetch-head"]);
        let mut command = command.args(["--no-recurse-submodules", "--no-auto-maintenance"]);
        match more {
            FetchDepth::Newer => {}
            FetchDepth::Commits(count) => command = command.arg("--refmap=").arg(format!("--deepen={count}")),
            FetchDepth::Everything => command = command.args(["--refmap=", "--unshallow"]),
        }
        network.exchange(remote, command.args(["--", remote]).args(refspecs), Some(self)).map(drop)
    }

    /// The refs of a remote that match `patterns`.
    pub fn list_remote_refs(
        &self,
        remote: &str,
        patterns: &[&str],
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

    /// The value of the ref with this full name at a remote, if it exists there.
    pub fn find_remote_ref(
        &self,
        remote: &str,
        name: &str,
        network: &Network,
    ) -> Result<Option<Oid>, RemoteError> {
        // A pattern also matches the end of a longer name.
        let listed = self.list_remote_refs(remote, &[name], network)?;
        Ok(listed.into_iter().find(|(found, _)| found == name).map(|(_, target)| target))
    }

    /// The default branch of a remote.
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

    /// Pushes exactly these refs, each to its own name, by fast-forward only. Refused refs do not affect the others.
    pub fn push_refs(
        &self,
        remote: &str,
        pushes: &[Push],
        network: &Network,
    ) -> Result<Vec<Pushed>, RemoteError> {
        let refspecs = pushes.iter().map(|push| format!("{}:{}", push.target, push.name));
        self.push(remote, &[], refspecs.collect(), network)
    }

    /// Pushes exactly these refspecs. Refused ones do not affect the others.
    pub(in crate::git) fn push(
        &self,
        remote: &str,
        options: &[String],
        refspecs: Vec<String>,
        network: &Network,
    ) -> Result<Vec<Pushed>, RemoteError> {
        let configured = self.find_remote(remote)?.filter(|name| name == remote);
        let pin = configured.map(|name| (format!("remote.{name}.mirror"), "false"));
        let command = self.change_with("push", &PINS).args(["--porcelain", "--progress", "--no-verify"]);
        let command = command.args(options).args(["--", remote]).args(refspecs);
        let outcome = network.supervise(command, Some(self), pin)?;
        let mut rows: Vec<Pushed> = outcome.stdout.text.lines().filter_map(parse_row).collect();
        let remote_text = remote_message(&outcome.stderr.text);
        // If git itself refuses a ref, the remote's message is not about it.
        let is_refused_by_remote =
            |row: &&mut Pushed| row.refused.as_ref().is_some_and(|why| why.contains("remote"));
        rows.iter_mut().filter(is_refused_by_remote).for_each(|row| row.remote_text.clone_from(&remote_text));
        // If single refs are refused, the exit code is 1 and there is a row for each; anything else is a failure.
        if outcome.ending.is_success() || (!rows.is_empty() && matches!(outcome.ending, Ending::Exited(1))) {
            return Ok(rows);
        }
        let why = reason(&outcome);
        let trouble = RemoteFailure::of(&outcome, &why);
        Err(RemoteError::Unreached { remote: shown_url(remote), why, trouble })
    }
}

/// Parses `FLAG TAB FROM:TO TAB SUMMARY`.
fn parse_row(line: &str) -> Option<Pushed> {
    let mut fields = line.splitn(3, '\t');
    let (flag, refs, summary) = (fields.next()?, fields.next()?, fields.next()?);
    let (_, name) = refs.split_once(':')?;
    let refused = (flag == "!").then(|| visible(summary));
    (flag.chars().count() == 1).then(|| Pushed { name: name.to_owned(), refused, remote_text: None })
}

/// The message of a remote about a push, in one line, without progress and decoration.
fn remote_message(printed: &str) -> Option<String> {
    let words = |line: &str| {
        let line = line.strip_prefix("remote:")?.replace("\u{1b}[K", "");
        let line = visible(line.trim());
        let is_progress = line.contains("% (") || line.starts_with("Total ");
        (line.contains(char::is_alphanumeric) && !is_progress).then_some(line)
    };
    let remote_text: Vec<String> =
        printed.split(['\n', '\r']).filter_map(words).take(MAX_MESSAGE_LINES).collect();
    (!remote_text.is_empty()).then(|| remote_text.join(" ").chars().take(MAX_MESSAGE_CHARS).collect())
}

fn is_credential_variable(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    CREDENTIAL_VARIABLES.contains(&&*name)
        || ["GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"].iter().any(|prefix| name.starts_with(prefix))
}

/// Why git failed, in one line and without secrets. The first error message is the cause.
fn reason(outcome: &SupervisedEnd) -> String {
    if outcome.ending.code().is_none() {
        return match outcome.ending {
            Ending::Silent { after } => format!("no answer for {} s", after.as_secs()),
            _ => format!("git {}", outcome.ending),
        };
    }
    let is_cause = |line: &&str| line.starts_with("fatal: ") || line.starts_with("error: ");
    let lines = || outcome.stderr.text.lines().filter(|line| !line.trim().is_empty());
    let line = lines().find(is_cause).or_else(|| lines().next_back()).unwrap_or_default();
    visible(&without_prefix(line).split(' ').map(without_secret).collect::<Vec<_>>().join(" "))
}

/// A URL for display, without password or token.
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

/// One ref of an atomic push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeasedPush {
    /// Its full name at the remote.
    pub name: String,
    /// Its new value; `None` to delete it.
    pub new: Option<Oid>,
    /// The value that the remote must have; `None` if it must not exist.
    pub old: Option<Oid>,
}

impl Repository {
    /// Pushes all of these refs or none of them. Returns the refused ones; if there are none, all were moved.
    pub fn push_leased(
        &self,
        remote: &str,
        pushes: &[LeasedPush],
        network: &Network,
    ) -> Result<Vec<Pushed>, RemoteError> {
        let mut options = vec!["--atomic".to_owned()];
        let mut refspecs = Vec::new();
        for LeasedPush { name, new, old } in pushes {
            let old = old.map(|old| old.to_string()).unwrap_or_default();
            options.push(format!("--force-with-lease={name}:{old}"));
            let new = new.map(|new| new.to_string()).unwrap_or_default();
            refspecs.push(format!("{new}:{name}"));
        }
        let mut rows = self.push(remote, &options, refspecs, network)?;
        rows.retain(|row| row.refused.is_some());
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_urls_are_not_shown() {
        assert_eq!(shown_url("https://ada:token@example.com/a@b.git"), "https://…@example.com/a@b.git");
        assert_eq!(shown_url("https://token@example.com"), "https://…@example.com");
        for url in
            ["https://example.com/a.git", "git@example.com:a.git", "ssh://git@example.com/a", "../a.git"]
        {
            assert_eq!(shown_url(url), url);
        }
    }

    #[test]
    fn porcelain_output_of_git_push_is_parsed() {
        let row = parse_row("!\tabc:refs/heads/x\t[rejected] (non-fast-forward)").unwrap();
        assert_eq!(row.refused.as_deref(), Some("[rejected] (non-fast-forward)"));
        let row = parse_row("*\tabc:refs/heads/x\t[new branch]").unwrap();
        assert_eq!((row.name.as_str(), row.refused), ("refs/heads/x", None));
        let remote_text = "remote: \u{1b}[K\nremote: ====\rremote: Resolving deltas: 100% (1/1)\u{1b}[K\nremote: GitLab: no.   \nTo x\n";
        assert_eq!(remote_message(remote_text).as_deref(), Some("GitLab: no."));
        assert_eq!(remote_message("To x\nremote: \n"), None);
        assert_eq!(parse_row("To ../remote.git"), None);
        assert_eq!(parse_row("Done"), None);
    }
}
