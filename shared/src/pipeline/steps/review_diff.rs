//! The diff that a reviewer is shown, cut to a length that fits into a prompt, and the command that shows all of it. Pure.

use std::fmt::Write;

use crate::{git::Difference, name::Oid};

/// The command that shows a reviewer all of a difference, after the options of `git` itself. Neither the user's
/// settings nor attributes and `.gitmodules` of the change decide what it shows.
#[must_use]
pub fn diff_command(options: &str, from: Oid, to: Oid) -> String {
    format!(
        "git {options}diff --text --no-textconv --no-ext-diff --no-color --submodule=short --ignore-submodules=none {from} {to}"
    )
}

/// The longest list of changed files, in characters. The rest is only counted.
const LONGEST_LIST: usize = 20_000;

/// What a task has changed in one repository.
#[derive(Debug)]
pub struct RepoDiff {
    /// The name of the repository, unless it is the one with the plan.
    pub repository: Option<String>,
    /// The changes.
    pub difference: Difference,
    /// The command that shows all of them.
    pub command: String,
}

impl RepoDiff {
    fn heading(&self) -> String {
        self.repository.as_ref().map(|name| format!("\nIn the repository {name}:\n")).unwrap_or_default()
    }
}

/// Renders the changes for a prompt, in about `longest` characters.
#[must_use]
pub fn render_diff(sections: &[RepoDiff], longest: usize) -> String {
    let files = || sections.iter().flat_map(|section| &section.difference.files);
    let sizes: Vec<usize> = files().map(|file| file.chars().count()).collect();
    if sizes.is_empty() {
        return "(no file was changed)".to_owned();
    }
    if sizes.iter().sum::<usize>() <= longest {
        return sections
            .iter()
            .map(|section| section.heading() + &section.difference.files.concat())
            .collect();
    }
    let mut shares = shares(&sizes, longest).into_iter();
    let mut text = String::from(
        "[The diff is too long to show here and is cut below. Read all of it before you decide:]\n",
    );
    for section in sections {
        let _ = writeln!(text, "{}", section.command);
    }
    for section in sections {
        text += &section.heading();
        for file in &section.difference.files {
            text += &cut(file, shares.next().unwrap_or(0));
        }
    }
    text + &list(sections)
}

/// How much of each file is shown. Short files are shown completely; long ones share the rest equally.
pub(super) fn shares(sizes: &[usize], longest: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|at| sizes[*at]);
    let mut shares = vec![0; sizes.len()];
    let mut left = longest;
    for (done, at) in order.into_iter().enumerate() {
        shares[at] = sizes[at].min(left / (sizes.len() - done));
        left -= shares[at];
    }
    shares
}

/// The first lines of a file's diff, and how many follow.
fn cut(file: &str, longest: usize) -> String {
    if file.chars().count() <= longest {
        return file.to_owned();
    }
    let kept: String = file.chars().take(longest).collect();
    let kept = kept.rfind('\n').map_or("", |end| &kept[..=end]);
    if kept.is_empty() {
        return String::new();
    }
    let more = file[kept.len()..].lines().count();
    format!("{kept}[the diff was cut here: {more} more lines of this file]\n")
}

/// Lists all files with their numbers of added and removed lines.
fn list(sections: &[RepoDiff]) -> String {
    let count: usize = sections.iter().map(|section| section.difference.list.len()).sum();
    let mut text = format!("\nAll {count} changed files, with the lines added and removed:\n");
    let mut listed = 0;
    for section in sections {
        text += &section.heading();
        for line in &section.difference.list {
            if text.len() + line.len() > LONGEST_LIST {
                let _ = writeln!(text, "[{} more changed files are not listed]", count - listed);
                return text;
            }
            listed += 1;
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(files: &[String]) -> RepoDiff {
        let list = (0..files.len()).map(|at| format!("+1 -0 file{at}")).collect();
        let difference = Difference { files: files.to_vec(), list };
        RepoDiff { repository: None, difference, command: "git diff a b".into() }
    }

    #[test]
    fn a_short_diff_is_shown_unchanged() {
        assert_eq!(render_diff(&[section(&["+one\n".into(), "+two\n".into()])], 100), "+one\n+two\n");
        assert_eq!(render_diff(&[section(&[])], 100), "(no file was changed)");
    }

    #[test]
    fn a_file_after_many_others_is_still_shown() {
        let harmless = "+harmless\n".repeat(2000);
        let text = render_diff(&[section(&[harmless.clone(), harmless, "+evil\n".into()])], 4000);
        assert!(text.contains("+evil\n") && text.contains("git diff a b\n"), "{text}");
        assert!(text.contains("more lines of this file") && text.len() < 5000, "{text}");
        assert!(text.contains("All 3 changed files") && text.contains("+1 -0 file2\n"), "{text}");
    }

    #[test]
    fn a_list_that_is_too_long_says_how_many_files_it_leaves_out() {
        let text = render_diff(&[section(&vec!["+x\n+y\n".to_owned(); 5000])], 100);
        let listed = text.lines().filter(|line| line.starts_with("+1 -0 ")).count();
        assert!(text.contains(&format!("[{} more changed files are not listed]", 5000 - listed)), "{text}");
    }
}
