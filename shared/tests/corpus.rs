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

fn told(plan: &Plan) -> BTreeSet<usize> {
    let tasks = plan.tasks.iter().filter_map(|task| task.source.as_ref()).map(|source| source.line);
    tasks.chain(plan.unread.iter().map(|unread| unread.problem.line)).collect()
}

#[test]
fn no_line_of_a_real_file_is_lost() {
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
                let missing: Vec<usize> = boxes.difference(&told(&plan)).copied().collect();
                println!(
                    "{label}: {} tasks, {} phases, {} unread, {} warnings",
                    plan.leaves().count(),
                    plan.tasks.len() - plan.leaves().count(),
                    plan.unread.len(),
                    plan.warnings.len()
                );
                lost.extend(missing.into_iter().map(|line| format!("{label}:{line}")));
            }
            Err(error @ PlanError::Wrong(_)) => println!("{label}: refused\n  {error}"),
            Err(error) => panic!("{label}: {error}"),
        }
    }
    assert!(lost.is_empty(), "{lost:#?}");
}
