//! How long it takes to read a plan, and whether that grows with its size alone.
//!
//! `cargo bench --bench plan` prints milliseconds for 1,000, 10,000 and 100,000 tasks, the best of a few runs, and
//! how much longer each takes than a tenth of it.

use std::{fmt::Write, time::Instant};

use arborist_core::plan::Plan;

/// A task list as spec-kit writes it: phases of fifty tasks, wrapped lines, stories, dependencies.
fn markdown(tasks: usize) -> String {
    let mut text = String::from("# Tasks: bench\n\n");
    for task in 1..=tasks {
        if task % 50 == 1 {
            let phase = task / 50 + 1;
            let story = if phase % 3 == 0 { format!("User Story {phase}") } else { "Work".into() };
            let _ = write!(text, "\n## Phase {phase}: {story}\n\n**Goal**: something that can be tested\n\n");
        }
        let parallel = if task % 3 == 0 { " [P]" } else { "" };
        let needs = if task % 10 == 5 { format!(" (depends on T{:06})", task - 3) } else { String::new() };
        let _ = writeln!(
            text,
            "- [ ] T{task:06}{parallel} [US1] Implement the part number {task} in `src/part{task}/mod.rs`{needs}\n  \
             with a line that goes on, and on"
        );
    }
    text
}

/// The best of a few runs, in milliseconds.
fn best(label: &str, bytes: &[u8]) -> f64 {
    let runs = (0..7).map(|_| {
        let start = Instant::now();
        let plan = Plan::read(label, bytes).map(|plan| plan.order().len());
        assert!(plan.is_ok_and(|tasks| tasks > 0));
        start.elapsed().as_secs_f64() * 1000.0
    });
    runs.fold(f64::INFINITY, f64::min)
}

fn compare(kind: &str, label: &str, texts: &[(usize, Vec<u8>)]) {
    let mut before: Option<f64> = None;
    for (tasks, bytes) in texts {
        let milliseconds = best(label, bytes);
        let ratio = before.map(|before| format!("  x{:.1}", milliseconds / before)).unwrap_or_default();
        println!("{kind:<9} {tasks:>7} tasks {:>9} bytes {milliseconds:>9.2} ms{ratio}", bytes.len());
        before = Some(milliseconds);
    }
}

fn main() {
    let sizes = [1_000, 10_000, 100_000];
    let texts: Vec<(usize, Vec<u8>)> =
        sizes.iter().map(|tasks| (*tasks, markdown(*tasks).into_bytes())).collect();
    compare("markdown", "tasks.md", &texts);
    let trees: Vec<(usize, Vec<u8>)> = texts.iter().map(|(tasks, text)| (*tasks, tree(text))).collect();
    compare("json", "tree.json", &trees);
}

/// The same plan as a tree file.
fn tree(text: &[u8]) -> Vec<u8> {
    let plan = Plan::read("tasks.md", text);
    plan.ok()
        .and_then(|plan| serde_json::to_vec(&arborist_core::plan::TreeDocument::from(&plan)).ok())
        .unwrap_or_default()
}
