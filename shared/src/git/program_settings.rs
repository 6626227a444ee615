//! Tells which settings name a program that git runs by itself.

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

#[cfg(test)]
mod tests {
    use super::runs_program;

    #[test]
    fn programs_are_told_from_other_values() {
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
