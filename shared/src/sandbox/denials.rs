//! Finds out from a program's output what the sandbox kept it from doing, and which limit it reached. The system reports this
//! only to the program itself, so it is known only if the program prints it.

mod network;

use std::{
    borrow::Cow,
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};

use super::{folders, hidden::DENIED as KEYS, in_home};
use crate::{
    process::{Confinement, ResourceLimits, shell_word},
    safe_files,
};

/// How many paths are named.
const MAX_NAMED: usize = 3;

/// How many ends of a path are tried.
const MOST_ENDS: usize = 50;

/// How many lines before a refusal may name the path that it is about.
const LINES_BEFORE: usize = 4;

/// What programs print if the system refuses something, in lower case.
const REFUSALS: [&str; 5] =
    ["read-only file system", "erofs", "permission denied", "eacces", "operation not permitted"];

/// Those of them that closed folders cause in bubblewrap.
const READ_ONLY: &[&str] = REFUSALS.split_at(2).0;

/// What programs print if they do not find a file, in lower case.
const MISSING: [&str; 3] = ["no such file", "enoent", "does not exist"];

/// What programs print if they make a folder, in lower case.
const MAKES_FOLDER: [&str; 6] =
    ["mkdir", "makedirs", "create directory", "make directory", "tree dir", "create folder"];

/// What programs print if a file is too large, in lower case.
const TOO_LARGE: [&str; 3] = ["file size limit exceeded", "file too large", "efbig"];

/// What programs print if they cannot start another process or thread, in lower case.
const TOO_MANY: [&str; 4] = ["cannot fork", "can't fork", "resource temporarily unavailable", "eagain"];

/// What ends a path in a message, unless it is a space.
const ENDS: &str = "'\"`‘’:;,()[]<>";

/// Those of them that surround a whole path.
const QUOTES: &str = "'\"`‘’";

/// Folders in the home directory that many programs share. Writing to them would allow too much.
const SHARED: [&str; 6] = ["", ".cache", ".config", ".local", ".local/share", ".local/state"];

/// What to say about the refusals that `output` mentions, in one line; `None` if there are none.
#[must_use]
pub fn describe_denials(output: &str, confinement: Option<&Confinement>) -> Option<String> {
    let notes = list_denials(output, confinement);
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// What to say about the refusals that `output` mentions, and how to allow each.
#[must_use]
pub fn list_denials(output: &str, confinement: Option<&Confinement>) -> Vec<String> {
    let Some(confinement) = confinement else { return Vec::new() };
    let effective = Some(confinement).filter(|confinement| confinement.is_effective());
    let files = effective.into_iter().flat_map(|confinement| describe_files(output, confinement));
    let network = effective.and_then(|confinement| network::describe(output, confinement));
    files.chain(network).chain(describe_limits(output, confinement.resources)).collect()
}

/// Whether a refusal concerns what is always closed, such as the git directory. A program that needs it must not be run
/// outside of the sandbox either.
#[must_use]
pub fn names_closed_path(output: &str, confinement: Option<&Confinement>) -> bool {
    confinement.is_some_and(|confinement| {
        find_denied(output, confinement).iter().any(|refused| is_closed(&refused.path, confinement))
    })
}

/// The limits that a program has reached according to its output.
fn describe_limits(output: &str, limits: ResourceLimits) -> impl Iterator<Item = String> {
    let output = output.to_lowercase();
    let has_any = |words: &[&str]| words.iter().any(|word| output.contains(word));
    let file = limits
        .file_size
        .filter(|_| has_any(&TOO_LARGE))
        .map(|size| format!("no file may become larger than {size} MB (setting sandbox.max-file-size)"));
    let processes = limits
        .processes
        .filter(|_| has_any(&TOO_MANY))
        .map(|most| format!("at most {most} processes and threads may run (setting sandbox.max-processes)"));
    file.into_iter().chain(processes)
}

/// A path that a program could not change.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RefusedPath {
    path: PathBuf,
    /// Whether it is a folder, or was to become one.
    is_folder: bool,
}

fn describe_files(output: &str, confinement: &Confinement) -> Vec<String> {
    let mut denied = find_denied(output, confinement);
    // What the user cannot change either is not refused by the sandbox.
    denied.retain(|refused| is_changeable(&refused.path));
    let hidden = find_hidden(output, confinement);
    let (closed, others): (Vec<RefusedPath>, Vec<RefusedPath>) =
        denied.into_iter().partition(|refused| is_closed(&refused.path, confinement));
    let changes = [(&others, advise(&others)), (&closed, advise_against(&closed))];
    let changes = changes.into_iter().filter(|(denied, _)| !denied.is_empty()).map(|(denied, advice)| {
        let paths: Vec<String> = denied.iter().map(|refused| refused.path.display().to_string()).collect();
        format!("the sandbox allows no changes to {}; {advice}", paths.join(", "))
    });
    let reads = (!hidden.is_empty()).then(|| {
        let paths: Vec<String> = hidden.iter().map(|path| path.display().to_string()).collect();
        let found = hidden.iter().filter_map(|path| confinement.find_hidden(path));
        let (folders, keys): (BTreeSet<String>, BTreeSet<&str>) =
            found.map(|(folder, key)| (format!("\"{}\"", folder.display()), key)).unzip();
        let (folders, keys) = (join(folders), join(keys.into_iter().map(str::to_owned)));
        format!(
            "the sandbox hides {}; to allow reading, set {keys} to a list without {folders}",
            paths.join(", ")
        )
    });
    changes.chain(reads).collect()
}

/// How to allow these changes.
fn advise(denied: &[RefusedPath]) -> String {
    let them = if denied.len() == 1 { "it" } else { "them" };
    let folders: BTreeSet<PathBuf> = denied.iter().filter_map(RefusedPath::folder_to_allow).collect();
    if folders.is_empty() {
        let folders: BTreeSet<&Path> = denied.iter().filter_map(|refused| refused.path.parent()).collect();
        let folders = join(folders.iter().map(|folder| folder.display().to_string()));
        return format!(
            "do not allow all of {folders}, where git and your agents have their settings; let the program use another folder, and add that folder to sandbox.write"
        );
    }
    let commands = folders.iter().map(|folder| {
        let word = shell_word(&folder.display().to_string());
        let first = if folder.exists() { String::new() } else { format!("mkdir -p {word} && ") };
        format!("{first}git config --add arborist.sandbox.write {word}")
    });
    format!("to allow {them}, run: {}", commands.collect::<Vec<_>>().join(" && "))
}

/// Why these changes are never allowed.
fn advise_against(closed: &[RefusedPath]) -> String {
    if closed.iter().any(|refused| is_of_git(&refused.path)) {
        return ".git is read-only for agents and tests, because git-arborist makes the commits".to_owned();
    }
    format!("agents and tests may never change {}", if closed.len() == 1 { "it" } else { "them" })
}

impl RefusedPath {
    /// The folder to grant so that this path can be changed; `None` if that would open the home directory or more.
    fn folder_to_allow(&self) -> Option<PathBuf> {
        let folder = if self.is_folder { self.path.as_path() } else { self.path.parent()? };
        // Only a folder that exists or can be made by one command is granted.
        let missing = folder.ancestors().take_while(|folder| !folder.exists()).last();
        let folder = missing.unwrap_or(folder);
        let (home, real) =
            (folders::home().map(|home| safe_files::resolved(&home)), safe_files::resolved(folder));
        let is_above = home.as_ref().is_some_and(|home| home.starts_with(&real));
        let is_shared = || home.iter().any(|home| SHARED.iter().any(|shared| home.join(shared) == real));
        // Whoever can write there can use the user's keys later.
        let has_keys = KEYS
            .iter()
            .filter_map(|keys| in_home(keys))
            .any(|keys| real.starts_with(safe_files::resolved(&keys)));
        (folder.parent().is_some() && !is_above && !is_shared() && !has_keys).then(|| folder.to_owned())
    }
}

fn is_closed(path: &Path, confinement: &Confinement) -> bool {
    confinement.is_kept(path) || is_of_git(path)
}

fn is_of_git(path: &Path) -> bool {
    path.iter().any(|name| name == ".git")
}

/// Whether the user can change or make a file at this path.
fn is_changeable(path: &Path) -> bool {
    let is_device = path.starts_with("/dev") && !path.starts_with("/dev/shm");
    if is_device || ["/proc", "/sys"].iter().any(|folder| path.starts_with(folder)) {
        return false;
    }
    let is_writable = |path: &Path| access(path, Access::WRITE_OK).is_ok();
    is_writable(path) || path.ancestors().skip(1).find(|folder| folder.exists()).is_some_and(is_writable)
}

fn join(words: impl IntoIterator<Item = String>) -> String {
    words.into_iter().collect::<Vec<_>>().join(" and ")
}

/// Paths outside of the limits that a line with a refusal names.
fn find_denied(output: &str, confinement: &Confinement) -> Vec<RefusedPath> {
    let output = unquoted(output);
    let lines: Vec<&str> = output.lines().collect();
    let refusals = if confinement.is_bwrap() { READ_ONLY } else { &REFUSALS };
    let mut found: Vec<RefusedPath> = Vec::new();
    let is_refusal = |line: &str| has_any(line, refusals) || says_missing_of_new_folder(line);
    for (number, line) in lines.iter().enumerate().filter(|(_, line)| is_refusal(line)) {
        let before = &lines[number.saturating_sub(LINES_BEFORE)..number];
        let (mut said, mut paths) = (*line, find_paths(without_speaker(line), confinement));
        if paths.is_empty() && is_reason_alone(line) {
            // Cargo prints the path first, and then what caused the error.
            let mut others = before.iter().rev().map(|line| (*line, find_paths(line, confinement)));
            (said, paths) = others.find(|(_, paths)| !paths.is_empty()).unwrap_or_default();
        }
        // Python prints the call before the error.
        let calls = before.iter().rev().take(2).any(|line| has_any(line, &MAKES_FOLDER[..2]));
        let makes_folder = calls || has_any(said, &MAKES_FOLDER) || makes_directory(said);
        if !has_any(line, refusals) {
            paths.retain(|path| !path.exists() && path.parent().is_some_and(Path::is_dir));
        }
        for path in paths {
            let is_new = !found.iter().any(|known| known.path == path);
            let is_allowed = confinement.allows(&path) || confinement.allows(&safe_files::resolved(&path));
            let is_denied = !is_allowed && confinement.find_hidden(&path).is_none();
            if found.len() < MAX_NAMED && is_new && is_denied {
                let is_folder = if path.exists() { path.is_dir() } else { makes_folder };
                found.push(RefusedPath { path, is_folder });
            }
        }
    }
    found
}

/// Hidden paths that a line names because they could not be read.
fn find_hidden(output: &str, confinement: &Confinement) -> Vec<PathBuf> {
    let is_failure = |line: &&str| has_any(line, &MISSING) || has_any(line, &REFUSALS);
    let mut found: Vec<PathBuf> = Vec::new();
    for line in unquoted(output).lines().filter(is_failure) {
        for path in find_paths(without_speaker(line), confinement) {
            // What does not exist was not hidden, unless it was to be written.
            let is_there = path.symlink_metadata().is_ok() || has_any(line, &REFUSALS);
            let is_new = found.len() < MAX_NAMED && !found.contains(&path);
            if is_new && is_there && confinement.find_hidden(&path).is_some() {
                found.push(path);
            }
        }
    }
    found
}

/// Whether a line says that something is missing when a folder is made. node says so if it makes folders on a read-only file
/// system. It is a refusal if the folder above is there.
fn says_missing_of_new_folder(line: &str) -> bool {
    has_any(line, &MISSING) && has_any(line, &MAKES_FOLDER[..1])
}

/// Whether a message is about a folder that was to be made: "could not create home directory".
fn makes_directory(line: &str) -> bool {
    let line = line.to_lowercase().replace("file or directory", "");
    line.contains("directory") && (line.contains("creat") || line.contains("make"))
}

/// Messages with the characters that GNU programs write as numbers, because they take them for unprintable:
/// `'/a '$'\303\251'' b'` and `'/a \303\251 b'`.
fn unquoted(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return text.into();
    }
    let mut plain = Vec::with_capacity(text.len());
    let (mut rest, mut is_escaped) = (text.as_bytes(), false);
    while let Some(first) = rest.first() {
        let (byte, length) = match rest {
            [b'\'', b'$', b'\'', b'\\', ..] if !is_escaped => {
                is_escaped = true;
                (None, 3)
            }
            [b'\'', b'\'', ..] if is_escaped => {
                is_escaped = false;
                (None, 2)
            }
            [b'\\', digits @ ..] => match digits.first_chunk::<3>().and_then(octal) {
                Some(byte) => (Some(byte), 4),
                None => (Some(b'\\'), 1),
            },
            _ => {
                is_escaped &= *first != b'\'' && *first != b'\n';
                (Some(*first), 1)
            }
        };
        plain.extend(byte);
        rest = &rest[length..];
    }
    String::from_utf8(plain).map_or_else(|_| text.into(), Cow::Owned)
}

fn octal(digits: &[u8; 3]) -> Option<u8> {
    let number = digits.iter().all(u8::is_ascii_digit).then(|| std::str::from_utf8(digits).ok())??;
    u8::from_str_radix(number, 8).ok()
}

fn has_any(line: &str, words: &[&str]) -> bool {
    let line = line.to_lowercase();
    words.iter().any(|word| line.contains(word))
}

/// Whether a line has nothing but a refusal: "  Read-only file system (os error 30)".
fn is_reason_alone(line: &str) -> bool {
    let line = line.trim_start().to_lowercase();
    REFUSALS.iter().any(|refusal| line.starts_with(refusal))
}

/// A message without the program that complains, and the number of the line in its script: "/usr/bin/sh: 1: ",
/// "/a/script.sh: line 3: ". It is named because it complains, not because it was changed.
fn without_speaker(line: &str) -> &str {
    let Some((speaker, rest)) = line.split_once(": ") else { return line };
    // A path alone before the reason is what was refused.
    if speaker.contains(char::is_whitespace) || is_reason_alone(rest) {
        return line;
    }
    let after_number = rest.split_once(": ").and_then(|(number, rest)| {
        let number = number.strip_prefix("line ").unwrap_or(number);
        (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(rest)
    });
    after_number.unwrap_or(rest)
}

/// The paths in a line: absolute ones, those in the home directory, and those in the git directory.
fn find_paths(line: &str, confinement: &Confinement) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let (mut start, mut is_quoted) = (0, false);
    let ends = line.char_indices().filter(|(_, c)| ENDS.contains(*c));
    for (at, end) in ends.chain([(line.len(), ' ')]) {
        found.extend(find_path(&line[start..at], is_quoted, confinement));
        start = (at + end.len_utf8()).min(line.len());
        is_quoted = QUOTES.contains(end);
    }
    found
}

fn find_path(part: &str, is_quoted: bool, confinement: &Confinement) -> Option<PathBuf> {
    // A slash inside of a word belongs to a relative path.
    let is_first = |at: &usize| !part[..*at].ends_with(|c: char| !c.is_whitespace() && c != '=');
    let find = |words: &str| part.match_indices(words).map(|(at, _)| at).find(is_first);
    if let Some(at) = find("/") {
        return choose_end(&part[at..], is_quoted);
    }
    if let Some(at) = find("~/") {
        let path = folders::home()?.join(&part[at + 2..]);
        return choose_end(path.to_str()?, is_quoted);
    }
    let at = find(".git/")?;
    let path = confinement.find_git()?.join(&part[at + 5..]);
    choose_end(path.to_str()?, is_quoted)
}

/// The path at the beginning of a text. It may contain spaces, so the longest one whose folder exists is taken. The
/// folder of a path may be missing, too, if a folder above it exists.
fn choose_end(part: &str, is_quoted: bool) -> Option<PathBuf> {
    let ends = part.match_indices(' ').map(|(end, _)| end).chain([part.len()]).take(MOST_ENDS);
    let paths: Vec<&Path> = ends.map(|end| Path::new(&part[..end])).collect();
    let with_folder = paths.iter().rev().find(|path| path.parent().is_some_and(Path::is_dir));
    let guessed = if is_quoted { Path::new(part) } else { paths[0] };
    let is_below_folder = |path: &&Path| {
        let above = path.ancestors().skip(1).find(|folder| folder.is_dir());
        above.is_some_and(|folder| folder.parent().is_some())
    };
    with_folder.copied().or(Some(guessed).filter(is_below_folder)).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::process::ConfinementBackend;

    #[test]
    fn denied_paths_outside_the_writable_folders_are_reported() {
        let confinement = Confinement::new([PathBuf::from("/tmp/lane")]);
        let output = "mkdir: cannot create directory '/usr/new': Permission denied\n\
                      Error: EACCES: permission denied, open '/etc/x.json'\n\
                      /usr/fine is only mentioned\n\
                      touch: cannot touch /usr/bare: Permission denied\n\
                      touch: cannot touch '/tmp/lane/x': Permission denied\n\
                      /usr/script.sh: 3: cannot create ../outside: Permission denied\n\
                      /usr/script.sh: line 4: ../outside: Permission denied\n\
                      touch: cannot touch src/usr/relative: Permission denied\n\
                      touch: cannot touch '/nowhere/at/all': Permission denied\n";
        let found = find_denied(output, &confinement).into_iter().map(|refused| refused.path);
        assert_eq!(found.collect::<Vec<_>>(), ["/usr/new", "/etc/x.json", "/usr/bare"].map(PathBuf::from));
    }

    #[test]
    fn denied_paths_are_read_from_messages_of_common_programs() {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().canonicalize().unwrap();
        fs::create_dir(real.join("a b")).unwrap();
        let confinement = Confinement::new([PathBuf::from("/tmp/lane")]);
        let in_bwrap = confinement.clone().enforced_by(ConfinementBackend::Bwrap);
        for (message, is_folder) in [
            ("/usr/bin/sh: 1: cannot create PATH: Read-only file system", false),
            ("/usr/bin/sh: cannot create PATH: Read-only file system", false),
            ("/usr/bin/bash: line 1: PATH: Read-only file system", false),
            ("bash: PATH: Permission denied", false),
            ("mkdir: cannot create directory ‘PATH’: Read-only file system", true),
            ("touch: cannot touch 'PATH': Read-only file system", false),
            ("cp: cannot create regular file 'PATH': Read-only file system", false),
            ("mv: cannot move '/tmp/lane/x' to 'PATH': Read-only file system", false),
            ("OSError: [Errno 30] Read-only file system: 'PATH'", false),
            ("    os.makedirs(name)\nPermissionError: [Errno 13] Permission denied: 'PATH'", true),
            ("Error: EROFS: read-only file system, open 'PATH'", false),
            ("npm error rofs EROFS: read-only file system, mkdir 'PATH'", true),
            ("error: failed to write `PATH`\n\nCaused by:\n  Read-only file system (os error 30)", false),
            (
                "error: failed to create directory `PATH`\n\nCaused by:\n  Permission denied (os error 13)",
                true,
            ),
            ("fatal: could not create work tree dir 'PATH': Read-only file system", true),
            ("open PATH: read-only file system", false),
            ("error: could not create home directory: 'PATH': Permission denied (os error 13)", true),
            ("PATH: Permission denied", false),
            ("tee: PATH: Read-only file system", false),
        ] {
            for name in ["new", "a b/new", "missing/new"] {
                let path = real.join(name);
                let output = message.replace("PATH", path.to_str().unwrap());
                let refused = RefusedPath { path, is_folder };
                assert_eq!(find_denied(&output, &confinement), [refused], "{output}");
                // There, only closed folders are read-only, and nothing else is refused.
                let is_refused = !find_denied(&output, &in_bwrap).is_empty();
                assert_eq!(is_refused, has_any(&output, READ_ONLY), "{output}");
            }
        }
    }

    #[test]
    fn quoted_characters_in_denied_paths_are_decoded() {
        for quoted in [r"touch: cannot touch '/a '$'\303\251'' b': x", r"mkdir: '/a \303\251 b': x"] {
            assert!(unquoted(quoted).contains("'/a é b': x"), "{quoted}");
        }
        for plain in [r"C:\folder and '$HOME'", "no such thing", r"\9 \07"] {
            assert_eq!(unquoted(plain), plain);
        }
    }

    #[test]
    fn no_folder_that_contains_the_home_directory_is_proposed() {
        let home = safe_files::resolved(&folders::home().unwrap());
        let folder = |path: PathBuf, is_folder| RefusedPath { path, is_folder }.folder_to_allow();
        for (path, is_folder) in [(home.join(".x-new"), false), (home.clone(), true), ("/x".into(), false)] {
            assert_eq!(folder(path, is_folder), None);
        }
        assert_eq!(folder(home.join(".x-new"), true), Some(home.join(".x-new")));
        assert_eq!(folder(home.join(".x-new/cache/file"), false), Some(home.join(".x-new")));
        assert_eq!(folder("/usr/bin/x".into(), false), Some("/usr/bin".into()));
    }

    #[test]
    fn git_directories_are_recognised_by_relative_paths() {
        let mut confinement = Confinement::new([PathBuf::from("/tmp/lane")]);
        confinement.closed.push("/tmp/lane/.git".into());
        let output = "error: could not lock config file .git/config: Read-only file system\n";
        // The folder need not exist here.
        let found = find_paths(without_speaker(output), &confinement);
        assert_eq!(found, [PathBuf::from("/tmp/lane/.git/config")]);
    }
}
