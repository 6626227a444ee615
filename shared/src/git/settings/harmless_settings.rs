//! Tells configurations that could run something from those that cannot: which settings name a program that git runs
//! by itself, and settings as git lists and writes them.

/// Settings that run nothing and lead git to no other file that could. An empty list means every key of the section.
const HARMLESS: [(&str, &[&str]); 10] = [
    ("advice", &[]),
    ("branch", &["merge", "rebase", "remote"]),
    ("commit", &["gpgsign"]),
    (
        "core",
        &[
            "autocrlf",
            "bare",
            "eol",
            "filemode",
            "ignorecase",
            "logallrefupdates",
            "precomposeunicode",
            "repositoryformatversion",
            "symlinks",
        ],
    ),
    ("extensions", &["objectformat", "refstorage"]),
    ("gc", &["auto"]),
    ("init", &["defaultbranch"]),
    ("remote", &["fetch", "tagopt", "url"]),
    ("submodule", &["active", "url"]),
    ("user", &["email", "name"]),
];

/// Whether a configuration contains only harmless settings. Everything that this simple reader does not understand
/// counts as harmful.
#[must_use]
pub fn runs_nothing(config: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(config) else { return false };
    let mut keys: Option<&[&str]> = None;
    text.split('\n').map(str::trim).all(|line| {
        if line.is_empty() || line.starts_with(['#', ';']) {
            return true;
        }
        if line.starts_with('[') {
            keys = find_keys(line);
            return keys.is_some();
        }
        // A backslash could continue the line.
        let key = line.split('=').next().unwrap_or(line).trim().to_ascii_lowercase();
        let is_key = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        let is_harmless = |keys: &[&str]| keys.is_empty() || keys.contains(&key.as_str());
        is_key && !line.contains('\\') && keys.is_some_and(is_harmless)
    })
}

/// The harmless keys of the section that a line such as `[core]` or `[remote "origin"]` begins.
fn find_keys(line: &str) -> Option<&'static [&'static str]> {
    let inner = line.strip_prefix('[')?.strip_suffix(']')?;
    let (section, rest) = inner.split_once(' ').unwrap_or((inner, "\"\""));
    let name = rest.strip_prefix('"')?.strip_suffix('"')?;
    let section = section.to_ascii_lowercase();
    let is_plain = !name.contains(['"', '\\']);
    HARMLESS.iter().find(|(known, _)| *known == section && is_plain).map(|(_, keys)| *keys)
}

/// Keys with one name.
const KEYS: [&str; 21] = [
    "core.alternaterefscommand",
    "core.askpass",
    "core.editor",
    "core.fsmonitor",
    "core.gitproxy",
    "core.pager",
    "core.sshcommand",
    "credential.helper",
    "diff.external",
    "gc.recentobjectshook",
    "gpg.program",
    "imap.tunnel",
    "interactive.difffilter",
    "sendemail.cccmd",
    "sendemail.headercmd",
    "sendemail.sendmailcmd",
    "sendemail.smtpserver",
    "sendemail.tocmd",
    "sequence.editor",
    "uploadpack.packobjectshook",
    "web.browser",
];

/// Keys with a name in the middle: the section, and the last part.
const NAMED: [(&str, &[&str]); 11] = [
    ("credential.", &[".helper"]),
    ("diff.", &[".command", ".textconv"]),
    ("filter.", &[".clean", ".smudge", ".process"]),
    ("gpg.", &[".program", ".defaultkeycommand"]),
    ("hook.", &[".command"]),
    ("lfs.", &[".clean", ".smudge", ".path"]),
    ("merge.", &[".driver"]),
    ("pager.", &[""]),
    ("remote.", &[".uploadpack", ".receivepack", ".vcs"]),
    ("tar.", &[".command"]),
    ("trailer.", &[".command", ".cmd"]),
];

/// Whether git runs the value of this setting as a program, without being asked for it by name as for an alias or a
/// diff tool.
#[must_use]
pub fn runs_program(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let is_named = |(section, ends): &(&str, &[&str])| {
        key.strip_prefix(section).is_some_and(|rest| ends.iter().any(|end| rest.ends_with(end)))
    };
    KEYS.contains(&key.as_str()) || NAMED.iter().any(is_named)
}

/// Settings that are not copied: included files are copied by their content, and each command is told where the
/// worktree is.
const NOT_REPEATED: [&str; 3] = ["core.bare", "core.worktree", "extensions.worktreeconfig"];

/// One setting, as `git config --list -z` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::git) struct SettingEntry {
    /// Section and variable in lower case, a subsection as written.
    pub(in crate::git) key: Vec<u8>,
    pub(in crate::git) value: Option<Vec<u8>>,
}

impl SettingEntry {
    pub(in crate::git) fn parse(setting: &[u8]) -> Self {
        match memchr::memchr(b'\n', setting) {
            Some(end) => Self { key: setting[..end].to_vec(), value: Some(setting[end + 1..].to_vec()) },
            None => Self { key: setting.to_vec(), value: None },
        }
    }

    fn is_include(&self) -> bool {
        self.key.starts_with(b"include.") || self.key.starts_with(b"includeif.")
    }

    /// Whether it can make settings differ between worktrees.
    pub(in crate::git) fn makes_variants(&self) -> bool {
        self.key.starts_with(b"includeif.") || self.key == b"extensions.worktreeconfig"
    }

    pub(in crate::git) fn is_kept(&self) -> bool {
        !self.is_include() && !NOT_REPEATED.iter().any(|key| key.as_bytes() == self.key)
    }

    pub(in crate::git) fn is_true(&self) -> bool {
        let value = self.value.as_deref().unwrap_or(b"true").to_ascii_lowercase();
        !matches!(&*value, b"" | b"0" | b"false" | b"no" | b"off")
    }

    /// The lines of a settings file; `None` for a key without a section.
    pub(in crate::git) fn to_lines(&self) -> Option<Vec<u8>> {
        let first = memchr::memchr(b'.', &self.key)?;
        let last = memchr::memrchr(b'.', &self.key)?;
        let mut text = b"[".to_vec();
        text.extend(&self.key[..first]);
        if last > first {
            text.extend(b" \"");
            text.extend(escaped(&self.key[first + 1..last], false));
            text.push(b'"');
        }
        text.extend(b"]\n\t");
        text.extend(&self.key[last + 1..]);
        if let Some(value) = &self.value {
            text.extend(b" = \"");
            text.extend(escaped(value, true));
            text.push(b'"');
        }
        text.push(b'\n');
        Some(text)
    }
}

/// Escapes a quoted text. In a subsection only quotes and backslashes are escaped.
fn escaped(text: &[u8], is_value: bool) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            b'"' | b'\\' => escaped.extend([b'\\', *byte]),
            b'\n' if is_value => escaped.extend(b"\\n"),
            _ => escaped.push(*byte),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::{runs_program, *};

    #[test]
    fn the_config_of_a_new_clone_is_harmless() {
        let clone =
            b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n[remote \"origin\"]\n\turl = /a b\n\
            \tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"a\"]\n\tremote = origin\n# end\n";
        assert!(runs_nothing(clone) && runs_nothing(b""));
    }

    #[test]
    fn git_config_that_could_run_a_program_is_detected() {
        for text in [
            "[core]\n\tfsmonitor = x\n",
            "[core]\nbare = a \\\n\n[alias]\nx = y",
            "[core] fsmonitor = a]",
            "[remote \"a\"] vcs = \"b]",
            "[remote \"a\"]\nuploadpack = x",
            "[include]\npath = x",
            "[core \"a\"]\nhooksPath = x",
            "bare = true",
            "[submodule \"a\"]\nupdate = !x",
            "\u{feff}[core]\n",
        ] {
            assert!(!runs_nothing(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn keys_that_run_programs_are_distinguished_from_others() {
        for key in ["filter.x.clean", "gpg.program", "gpg.ssh.program", "core.fsmonitor", "diff.My.textconv"]
        {
            assert!(runs_program(key), "{key}");
        }
        for key in
            ["core.bare", "alias.x", "difftool.x.cmd", "commit.template", "remote.origin.url", "user.name"]
        {
            assert!(!runs_program(key), "{key}");
        }
    }
}
