//! Finds out from a program's output which files the sandbox kept it from changing, and which limit it reached. The system reports this only to the
//! program itself, so it is known only if the program prints it.

use std::path::{Path, PathBuf};

use crate::process::{Confinement, ResourceLimits};

/// How many paths are named.
const MOST: usize = 3;

/// How many ends of a path are tried.
const MOST_ENDS: usize = 50;

/// What programs print if the system refuses something, in lower case.
const REFUSALS: [&str; 5] =
    ["permission denied", "eacces", "operation not permitted", "read-only file system", "erofs"];

/// What programs print if a file is too large, in lower case.
const TOO_LARGE: [&str; 3] = ["file size limit exceeded", "file too large", "efbig"];

/// What programs print if they cannot start another process or thread, in lower case.
const TOO_MANY: [&str; 4] = ["cannot fork", "can't fork", "resource temporarily unavailable", "eagain"];

/// What ends a path in a message, unless it is a space.
const ENDS: &str = "'\"`‘’:;,()[]<>";

/// What to say about the refusals that `output` mentions, in one line; `None` if there are none.
#[must_use]
pub fn describe_denials(output: &str, confinement: Option<&Confinement>) -> Option<String> {
    let confinement = confinement?;
    let files = describe_files(output, confinement);
    let notes: Vec<String> =
        files.into_iter().chain(describe_limits(output, confinement.resources())).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// The limits that a program has reached according to its output.
fn describe_limits(output: &str, limits: ResourceLimits) -> impl Iterator<Item = String> {
    let output = output.to_lowercase();
    let has_any = |words: &[&str]| words.iter().any(|word| output.contains(word));
    let file = limits.file_size.filter(|_| has_any(&TOO_LARGE)).map(|size| {
        format!("no file may become larger than {size} MB; to allow more, raise sandbox.max-file-size")
    });
    let processes = limits.processes.filter(|_| has_any(&TOO_MANY)).map(|most| {
        format!("at most {most} processes and threads may run; to allow more, raise sandbox.max-processes")
    });
    file.into_iter().chain(processes)
}

fn describe_files(output: &str, confinement: &Confinement) -> Option<String> {
    let confinement = Some(confinement).filter(|confinement| confinement.is_effective())?;
    let denied = find_denied(output, confinement);
    let paths: Vec<String> = denied.iter().map(|path| path.display().to_string()).collect();
    let them = if denied.len() == 1 { "it" } else { "them" };
    let allowable = denied.iter().find(|path| !confinement.is_closed(path));
    let advice = match allowable.and_then(|path| path.parent()) {
        Some(folder) => format!("to allow {them}, add \"{}\" to sandbox.write", folder.display()),
        None if denied.is_empty() => return None,
        None if !denied.iter().any(|path| path.iter().any(|name| name == ".git")) => {
            format!("no agent and no test may change {them}")
        }
        None => "git-arborist makes the commits, so agents and tests must not call 'git add' or 'git commit'"
            .to_owned(),
    };
    Some(format!("the sandbox allows no changes to {}; {advice}", paths.join(", ")))
}

/// Paths outside of the limits that a line with a refusal names.
fn find_denied(output: &str, confinement: &Confinement) -> Vec<PathBuf> {
    let is_refusal = |line: &&str| {
        let line = line.to_lowercase();
        REFUSALS.iter().any(|refusal| line.contains(refusal))
    };
    let lines = output.lines().filter(is_refusal).map(without_script);
    let paths = lines.flat_map(find_paths);
    let mut found: Vec<PathBuf> = Vec::new();
    for path in paths.filter(|path| !confinement.allows(path)) {
        if found.len() < MOST && !found.iter().any(|known| known == path) {
            found.push(path.to_owned());
        }
    }
    found
}

/// A shell's message without its own script and the number of the line in it: "/a/script.sh: line 3: ". The script is
/// named because it complains, not because it was changed.
fn without_script(line: &str) -> &str {
    let rest = line.split_once(": ").and_then(|(_, rest)| {
        let (number, rest) = rest.split_once(": ")?;
        let number = number.strip_prefix("line ").unwrap_or(number);
        (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(rest)
    });
    rest.unwrap_or(line)
}

/// The absolute paths in a line whose folders exist. A path may contain spaces, so the longest such text is taken.
fn find_paths(line: &str) -> impl Iterator<Item = &Path> {
    line.split(|c| ENDS.contains(c)).filter_map(|part| {
        // A slash inside of a word belongs to a relative path.
        let is_first = |at: usize| !part[..at].ends_with(|c: char| !c.is_whitespace() && c != '=');
        let part = &part[part.match_indices('/').map(|(at, _)| at).find(|at| is_first(*at))?..];
        let ends = part.match_indices(' ').map(|(end, _)| end).chain([part.len()]).take(MOST_ENDS);
        let paths = ends.map(|end| Path::new(&part[..end]));
        paths.filter(|path| path.parent().is_some_and(Path::is_dir)).last()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_outside_of_the_limits_are_named() {
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
        assert_eq!(
            find_denied(output, &confinement),
            ["/usr/new", "/etc/x.json", "/usr/bare"].map(PathBuf::from)
        );
    }
}
