//! Real task lists, if a folder of them is named by `ARBORIST_CORPUS`: every line that a plain search would
//! call a task is a task of the plan, or is told as one that was not taken.

use std::{collections::BTreeSet, fs, path::PathBuf};

use arborist_core::plan::{Plan, PlanError};

/// Lines that begin as a box, by the plainest of means; those that name a task of the plan are no loss.
fn boxes(text: &str, plan: &Plan) -> BTreeSet<usize> {
    let repeats = |rest: &str| {
        let word = rest.trim_start().trim_start_matches("Task ").split([' ', ':']).next().unwrap_or_default();
        word.parse().is_ok_and(|id| plan.find(&id).is_some())
    };
    let looks_like_task = |line: &str| {
        let rest = line.trim_start().trim_start_matches(['-', '*', '+', ' ']);
        let Some(rest) = rest.strip_prefix('[') else { return false };
        let Some((mark, rest)) = rest.split_once(']') else { return false };
        mark.chars().count() == 1 && mark != "P" && !rest.trim().is_empty() && !repeats(rest)
    };
    text.lines().enumerate().filter(|(_, line)| looks_like_task(line)).map(|(at, _)| at + 1).collect()
}

fn lines_in_plan(plan: &Plan) -> BTreeSet<usize> {
    let tasks = plan.tasks.iter().filter_map(|task| task.source.as_ref()).map(|source| source.line);
    tasks.chain(plan.unread.iter().map(|unread| unread.problem.line)).collect()
}

#[test]
fn every_task_line_of_real_files_is_read_or_reported() {
    let Some(folder) = std::env::var_os("ARBORIST_CORPUS").map(PathBuf::from) else { return };
    let mut lost = Vec::new();
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        let label = file.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = fs::read(&file).unwrap();
        match Plan::read(label.as_str(), &bytes) {
            Ok(plan) => {
                let boxes = boxes(&String::from_utf8_lossy(&bytes), &plan);
                let missing: Vec<usize> = boxes.difference(&lines_in_plan(&plan)).copied().collect();
                println!(
                    "{label}: {} tasks, {} phases, {} unread, {} warnings",
                    plan.leaves().count(),
                    plan.tasks.len() - plan.leaves().count(),
                    plan.unread.len(),
                    plan.warnings.len()
                );
                // A check list is told in one line.
                let checks: usize = plan.unread.iter().map(|unread| unread.lines - 1).sum();
                if missing.len() > checks {
                    lost.extend(missing.into_iter().map(|line| format!("{label}:{line}")));
                }
            }
            Err(error @ PlanError::Wrong { .. }) => println!("{label}: refused\n  {error}"),
            Err(error) => panic!("{label}: {error}"),
        }
    }
    assert!(lost.is_empty(), "{lost:#?}");
}

/// Writes the order of each file to a folder named by `ARBORIST_CORPUS_OUT`, for reading beside the file.
#[test]
fn the_order_of_every_real_file_can_be_printed() {
    let Some(folder) = std::env::var_os("ARBORIST_CORPUS").map(PathBuf::from) else { return };
    let Some(out) = std::env::var_os("ARBORIST_CORPUS_OUT").map(PathBuf::from) else { return };
    fs::create_dir_all(&out).unwrap();
    let (mut refused, mut files) = (0, 0);
    for file in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        files += 1;
        let label = file.file_name().unwrap().to_string_lossy().into_owned();
        let text = match Plan::read("f.md", &fs::read(&file).unwrap()) {
            Ok(plan) => printed(&plan),
            Err(error) => {
                refused += 1;
                format!("REFUSED {error}\n")
            }
        };
        fs::write(out.join(label), text).unwrap();
    }
    println!("{refused} of {files} refused");
}

fn printed(plan: &Plan) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    for task in &plan.tasks {
        let waiting = plan.explain(&task.id);
        let reasons = waiting.first().map(|waiting| waiting.reasons).unwrap_or_default();
        let shown: Vec<String> = reasons
            .iter()
            .map(|reason| match reason.text {
                Some(_) => format!("{}!{}", reason.on, reason.line),
                None => format!("{}", reason.on),
            })
            .collect();
        let indent = if task.parent.is_some() { "  " } else { "" };
        let parallel = if task.parallel { " [P]" } else { "" };
        let name: String = task.name.chars().take(60).collect();
        let kind = if task.is_leaf() { "" } else { "# " };
        writeln!(text, "{indent}{kind}{}{parallel} < {}    ({name})", task.id, shown.join(" ")).unwrap();
    }
    for warning in &plan.warnings {
        writeln!(text, "WARN {warning}").unwrap();
    }
    let unread = plan.unread.iter().map(|unread| &unread.problem);
    unread.for_each(|problem| writeln!(text, "UNREAD {problem}").unwrap());
    text
}
