//! The tool that searches files. Git lists the files; they are read like all others, so that links are not followed.

use std::time::{Duration, Instant};

use arborist_core::{process::Cancel, safe_files::InnerPath};
use regex::bytes::{Regex, RegexBuilder};

use super::{
    excerpt::is_binary,
    files::{ToolOutput, whole},
    offer::SearchArgs,
    root::Root,
};

/// The default and maximal number of lines.
const LINES: usize = 200;
/// The longest part of a line that is shown, in characters.
const LONGEST_EXCERPT: usize = 300;
/// The time limit of a search.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) fn search_code(root: &Root, args: &SearchArgs, stop: &Cancel) -> ToolOutput {
    let pattern = RegexBuilder::new(&args.pattern)
        .case_insensitive(args.ignore_case)
        .multi_line(true)
        .crlf(true)
        .build()
        .map_err(|error| format!("the pattern cannot be used: {error}"))?;
    let globs = args.glob.as_deref().map(globs_of).unwrap_or_default();
    let limit = args.limit.unwrap_or(LINES).clamp(1, LINES);
    let until = Instant::now() + SEARCH_TIMEOUT;
    let mut found = Found { lines: Vec::new(), limit };
    let mut note = None;
    for name in root.repository.list_files(&globs).map_err(|error| error.to_string())? {
        let name = name.map_err(|error| error.to_string())?;
        if stop.is_cancelled() {
            return Err("the search was stopped".into());
        }
        if Instant::now() > until {
            note = Some(format!(
                "the search stopped after {} s, before it had seen all files",
                SEARCH_TIMEOUT.as_secs()
            ));
            break;
        }
        search_file(root, &name, &pattern, &mut found);
        if found.lines.len() > limit {
            found.lines.truncate(limit);
            note = Some(format!("there are more than {limit} lines; narrow the pattern or the glob"));
            break;
        }
    }
    if found.lines.is_empty() && note.is_none() {
        note = Some("no line matches".into());
    }
    let text = (!found.lines.is_empty()).then(|| found.lines.join("\n"));
    Ok(text.into_iter().chain(note.map(|note| format!("[{note}]"))).collect())
}

/// Patterns for a glob: a name alone matches everywhere, as in .gitignore, and a directory means everything in it.
fn globs_of(glob: &str) -> Vec<String> {
    let glob = glob.trim_start_matches("./").trim_end_matches('/');
    if glob.contains('/') {
        vec![glob.trim_start_matches('/').to_owned(), format!("{}/**", glob.trim_start_matches('/'))]
    } else {
        vec![format!("**/{glob}"), format!("**/{glob}/**")]
    }
}

struct Found {
    lines: Vec<String>,
    limit: usize,
}

/// Searches a file. Files that are gone, too large or not text are skipped.
fn search_file(root: &Root, name: &str, pattern: &Regex, found: &mut Found) {
    let Some(bytes) = read(root, name).filter(|bytes| !is_binary(bytes)) else {
        return;
    };
    let (mut line, mut counted) = (1, 0);
    let mut next = 0;
    for hit in pattern.find_iter(&bytes) {
        if hit.start() < next {
            continue;
        }
        if hit.start() == bytes.len() && bytes.last().is_none_or(|last| *last == b'\n') {
            break;
        }
        line += bytes[counted..hit.start()].iter().filter(|byte| **byte == b'\n').count();
        counted = hit.start();
        let start = memchr::memrchr(b'\n', &bytes[..counted]).map_or(0, |at| at + 1);
        let end = memchr::memchr(b'\n', &bytes[counted..]).map_or(bytes.len(), |at| counted + at);
        next = end + 1;
        found.lines.push(format!("{name}:{line}: {}", shown(&bytes[start..end])));
        if found.lines.len() > found.limit {
            return;
        }
    }
}

fn read(root: &Root, name: &str) -> Option<Vec<u8>> {
    let path: InnerPath = name.parse().ok()?;
    whole(&path, root.enclosure.read(&path).ok()?).ok()
}

fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned();
    match text.char_indices().nth(LONGEST_EXCERPT) {
        Some((at, _)) => format!("{} [cut]", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_without_a_folder_matches_in_every_folder() {
        assert_eq!(globs_of("*.rs"), ["**/*.rs", "**/*.rs/**"]);
        assert_eq!(globs_of("src"), ["**/src", "**/src/**"]);
        assert_eq!(globs_of("./src/**/*.ts"), ["src/**/*.ts", "src/**/*.ts/**"]);
        assert_eq!(globs_of("src/"), ["**/src", "**/src/**"]);
    }
}
