//! Tells configurations that could run something from those that cannot.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_clone_runs_nothing() {
        let clone =
            b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n[remote \"origin\"]\n\turl = /a b\n\
            \tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"a\"]\n\tremote = origin\n# end\n";
        assert!(runs_nothing(clone) && runs_nothing(b""));
    }

    #[test]
    fn what_could_run_something_is_found() {
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
}
