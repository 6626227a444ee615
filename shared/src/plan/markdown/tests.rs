//! Task lists as people write them, from the file to the plan.

use crate::{
    name::TaskId,
    plan::{Mark, Plan, Task, Why, apply_edits, plan_ids},
};

fn plan(text: &str) -> Plan {
    Plan::read("tasks.md", text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn complaint(text: &str) -> String {
    Plan::read("tasks.md", text.as_bytes()).unwrap_err().to_string()
}

fn task<'p>(plan: &'p Plan, id: &str) -> &'p Task {
    plan.find(&id.parse().unwrap()).unwrap_or_else(|| panic!("no {id}"))
}

fn shown<'a>(ids: impl IntoIterator<Item = &'a TaskId>) -> String {
    ids.into_iter().map(TaskId::as_str).collect::<Vec<_>>().join(" ")
}

/// What a node waits for, as one line.
fn needs(plan: &Plan, id: &str) -> String {
    shown(&task(plan, id).depends_on)
}

fn leaves(plan: &Plan) -> String {
    shown(plan.leaves().map(|task| &task.id))
}

#[test]
fn phases_run_in_sequence_and_stories_in_parallel() {
    let plan = plan(
        "# Tasks\n\n## Phase 1: Setup\n- [ ] T001 a\n\n## Phase 2: Foundational\n- [ ] T002 b\n\n\
         ## Phase 3: User Story 1 - x (Priority: P1)\n- [ ] T003 [US1] c\n\n## Phase 4: User Story 2 - y\n\
         - [ ] T004 [US2] d\n\n## Phase 5: Polish\n- [ ] T005 e\n",
    );
    assert_eq!(shown(plan.roots().map(|task| &task.id)), "phase-1 phase-2 phase-3 phase-4 phase-5");
    assert_eq!(needs(&plan, "phase-2"), "phase-1");
    assert_eq!(needs(&plan, "phase-3"), "phase-2");
    assert_eq!(needs(&plan, "phase-4"), "phase-2");
    assert_eq!(needs(&plan, "phase-5"), "phase-3 phase-4");
    let waves: Vec<String> =
        plan.waves(|_| false).iter().map(|wave| shown(wave.iter().map(|task| &task.id))).collect();
    assert_eq!(waves, ["T001", "T002", "T003 T004", "T005"]);
}

#[test]
fn a_serial_task_waits_for_all_before_it_and_a_parallel_one_for_the_last_serial_one() {
    let plan = plan("- [ ] T1 a\n- [ ] T2 [P] b\n- [ ] T3 [P] c\n- [ ] T4 d\n- [ ] T5 [P] e\n");
    for (id, wanted) in [("T1", ""), ("T2", "T1"), ("T3", "T1"), ("T4", "T2 T3"), ("T5", "T4")] {
        assert_eq!(needs(&plan, id), wanted, "{id}");
    }
}

#[test]
fn a_dependency_is_recognised_wherever_it_is_written() {
    for text in [
        "- [ ] T1 a\n- [ ] T2 [P] b\n- [ ] T3 [P] c (depends on T2)\n",
        "- [ ] T1 a\n- [ ] T2 [P] b\n- [ ] T3 [P] c\n  - **Depends on**: T2\n",
        "- [ ] T1 a\n- [ ] T2 [P] b\n- [ ] T3 [P] c\n\n## Dependencies\n- T3 depends on T2\n",
        "- [ ] T1 a\n- [ ] T2 [P] b\n- [ ] T3 [P] c\n\n## Dependencies\n- T2 blocks T3\n",
        "- [ ] T1 a\n- [ ] T2 [P] b\n- [ ] T3 [P] c\n\n## Dependencies & Execution Order\n```\nT2 → T3\n```\n",
        "- [ ] T1 a\n- [ ] T2 [P] b\n- [ ] T3 [P] c\n\n## Dependencies\nT3 -> T2\n",
        "- [ ] T1 a\n- [ ] T2 [P] b\n- [ ] T3 [P] c\n\n| ID | Depends on |\n|---|---|\n| T3 | T2 |\n",
    ] {
        assert_eq!(needs(&plan(text), "T3"), "T2 T1", "{text}");
    }
}

#[test]
fn a_task_that_depends_on_a_later_one_leaves_the_order_of_its_phase() {
    let plan = plan(
        "## Phase 1: a\n- [ ] T1 a\n- [ ] T2 b (depends on T5)\n- [ ] T3 c\n## Phase 2: b\n- [ ] T4 d\n- [ ] T5 e\n",
    );
    assert_eq!(shown(plan.order().iter().map(|task| &task.id)), "T1 T3 T4 T5 T2");
    assert_eq!(needs(&plan, "T3"), "T1");
    assert_eq!(needs(&plan, "phase-2"), "T1 T3");
}

#[test]
fn the_direction_of_arrows_is_decided_by_the_majority() {
    let odd = plan(
        "- [ ] T1 [P] a\n- [ ] T2 [P] b\n- [ ] T3 [P] c\n- [ ] T4 [P] d\n\n## Dependencies\n- T1 -> T2\n- T2 -> T3\n- T4 -> T1\n",
    );
    assert_eq!(needs(&odd, "T1"), "T4");
    assert_eq!(needs(&odd, "T3"), "T2");
    assert!(odd.warnings[0].to_string().starts_with("tasks.md:9:3: the arrow 'T4 → T1' points against"));
    let both =
        plan("- [ ] T1 [P] a\n- [ ] T2 [P] b\n- [ ] T3 [P] c\n\n## Dependencies\n- T1 -> T2\n- T3 -> T2\n");
    assert_eq!((needs(&both, "T2").as_str(), needs(&both, "T3").as_str()), ("", ""));
    assert!(both.warnings[0].to_string().contains("arrows point both ways"));
    let pairs = plan(
        "- [ ] T1 [P] a\n- [ ] T2 [P] b\n- [ ] T3 [P] c\n- [ ] T4 [P] d\n\n## Dependencies\n- T1 -> T2, T3 -> T4\n",
    );
    assert_eq!((needs(&pairs, "T2").as_str(), needs(&pairs, "T3").as_str()), ("T1", ""));
    assert_eq!(needs(&pairs, "T4"), "T3");
}

#[test]
fn cycles_and_contradictions_report_every_line() {
    assert_eq!(
        complaint("- [ ] T1 a (depends on T2)\n- [ ] T2 b (depends on T1)\n"),
        "tasks.md:1:24: tasks wait for each other: T1 (tasks.md:1) → T2 (tasks.md:2) → T1 (tasks.md:1)"
    );
}

#[test]
fn duplicate_ids_are_renamed_and_refused_only_if_a_dependency_names_them() {
    let twice = plan("- [ ] T1 a\n\n- [ ] T1 b\n- [ ] T2 c\n");
    assert_eq!(leaves(&twice), "T1 T1-2 T2");
    assert_eq!(
        twice.warnings[0].to_string(),
        "tasks.md:3:3: the id 'T1' is already used on line 1; this task gets the id 'T1-2'"
    );
    assert_eq!(
        complaint("- [ ] T1 a\n\n- [ ] T1 b\n- [ ] T2 c (depends on T1)\n"),
        "tasks.md:4:24: a dependency names 'T1', which is the id of two tasks, in lines 1 and 3"
    );
    assert_eq!(leaves(&plan("- [ ] T1a x\n- [ ] T1A y\n")), "T1a T1A-2");
}

#[test]
fn a_known_id_in_a_summary_is_the_same_task() {
    let plan = plan(
        "## Phase 1: a\n- [ ] T1 make it\n- [ ] T2 b\n## Validation\n- [ ] T1 was made\n## Phase 2: c\n- [ ] T2 b\n- [ ] T3 d\n",
    );
    assert_eq!(leaves(&plan), "T1 T2 T3");
    assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
}

#[test]
fn an_unknown_checkbox_mark_causes_a_warning_and_counts_as_to_do() {
    let plan = plan("- [%] T1 x\n- [] T2 y\n");
    assert_eq!((task(&plan, "T1").mark, task(&plan, "T2").mark), (Mark::Todo, Mark::Todo));
    assert!(plan.warnings[0].to_string().starts_with("tasks.md:1:4: '%' is not a known mark"));
    assert!(plan.warnings[1].to_string().starts_with("tasks.md:2:3: the box of 'T2' does not contain"));
}

#[test]
fn a_dependency_on_a_missing_task_is_a_warning() {
    for text in [
        "- [ ] T001 a\n- [ ] T002 b (depends on T01)\n",
        "- [ ] T001 a\n- [ ] T002 b\n## Dependencies\n- T001 needs T01\n",
    ] {
        let plan = plan(text);
        assert!(plan.warnings[0].to_string().contains("a dependency names 'T01', which is not in the plan"));
        assert!(plan.warnings[0].fix.contains("did you mean 'T001'?"));
    }
    let open = plan("- [ ] T001 a\n- [ ] T002 b\n- [ ] T009 [P] c (after T001-T005)\n");
    assert_eq!(needs(&open, "T009"), "T001 T002");
    assert_eq!(open.warnings.len(), 1);
}

#[test]
fn small_markdown_mistakes_are_tolerated() {
    let plan = plan("Phase 1: Setup\n---\n- [ ]T1 a\n-[x] T2 b\n• [ ] T3 c\n[ ] T4 d\n+ [ ] T5 e\n");
    assert_eq!(leaves(&plan), "T1 T2 T3 T4 T5");
    assert_eq!((task(&plan, "T2").mark, plan.unread.len()), (Mark::Done, 0));
    assert_eq!(shown(plan.roots().map(|task| &task.id)), "phase-1");
}

#[test]
fn items_without_checkboxes_are_tasks_if_there_are_no_others() {
    let plan = plan("## Phase 1: a\n- **T1** do it\n- ✅ T2 done\n## Dependencies\n- T2 depends on T1\n");
    assert_eq!(leaves(&plan), "T1 T2");
    assert_eq!(task(&plan, "T2").mark, Mark::Done);
}

#[test]
fn checkbox_marks_and_strikethrough_give_the_task_status() {
    let plan = plan(
        "- [ ] T1 a\n- [x] T2 b\n- [X] T3 c\n- [-] T4 d\n- [~] T5 e\n- [!] T6 f\n- [ ] ~~T7 g~~\n- [x] ~~T8~~ h\n",
    );
    let marks: Vec<Mark> = plan.tasks.iter().map(|task| task.mark).collect();
    use Mark::{Blocked, Done, Partial, Skipped, Todo};
    assert_eq!(marks, [Todo, Done, Done, Skipped, Partial, Blocked, Skipped, Done]);
}

#[test]
fn continuation_lines_and_nested_bullets_belong_to_the_task() {
    let plan = plan(
        "- [ ] T1 first line\r\n  goes on in `src/a.rs`\r\n  - Given x\r\n    - deeper\r\n\r\n  and later\r\n- [ ] T2 b\r\n**Checkpoint**: no\r\n",
    );
    let first = task(&plan, "T1");
    assert_eq!(first.name, "first line goes on in `src/a.rs`");
    assert_eq!(first.description, "first line\ngoes on in `src/a.rs`\n- Given x\n  - deeper\n\nand later");
    assert_eq!(first.files, ["src/a.rs"]);
    assert_eq!(task(&plan, "T2").description, "b");
}

#[test]
fn headings_can_be_tasks_and_their_checkboxes_give_the_status() {
    let plan = plan(
        "## Phase 1: a\n### T001: Make it\n**Preconditions**: none\n- [x] one\n- [ ] two\n### T002: Then\n**Preconditions**: T001 complete\n- [x] all\n\
         ### ✅ T003: Done\n",
    );
    assert_eq!(leaves(&plan), "T001 T002 T003");
    let marks: Vec<Mark> = plan.leaves().map(|task| task.mark).collect();
    assert_eq!(marks, [Mark::Partial, Mark::Done, Mark::Done]);
    assert_eq!(plan.unread.iter().filter(|unread| unread.why == Why::Step).count(), 3);
    assert!(task(&plan, "T001").description.contains("- [ ] two"));
}

#[test]
fn a_heading_task_and_its_checkbox_in_a_list_are_one_task() {
    let plan = plan("### Task 1.1: Make it\n- [ ] a step\n\n## Checklist\n- [x] Task 1.1: Make it\n");
    assert_eq!(leaves(&plan), "1.1");
    assert_eq!(task(&plan, "1.1").mark, Mark::Done);
}

#[test]
fn table_rows_are_tasks_if_there_are_no_others() {
    let plan = plan(
        "## 1. Setup\n| ID | Task | Depends on | Status |\n|---|---|---|---|\n| T001 | Make it | - | ✅ |\n\
         ## 2. Core\n| ID | Task | Depends on |\n|---|---|---|\n| T002 | Go on | T001 |\n",
    );
    assert_eq!(leaves(&plan), "T001 T002");
    assert_eq!((task(&plan, "T001").mark, task(&plan, "T001").name.as_str()), (Mark::Done, "Make it"));
    assert_eq!(needs(&plan, "T002"), "T001");
    assert_eq!(shown(plan.roots().map(|task| &task.id)), "1-setup 2-core");
}

#[test]
fn numbered_lists_are_nested_by_indentation() {
    let plan = plan(
        "## 1. Setup\n- [ ] 1.1 a\n- [x] 1.2 b\n## 2. Core\n- [ ] 2. Parent\n  - [ ] 2.1 (P) c\n    - a note\n  - [ ] 2.2 d, depends on 1.1\n",
    );
    assert_eq!(leaves(&plan), "1.1 1.2 2.1 2.2");
    assert_eq!(task(&plan, "2.2").parent, Some("2".parse().unwrap()));
    assert!(task(&plan, "2.1").parallel);
    assert!(needs(&plan, "2.2").contains("1.1"));
}

#[test]
fn lines_that_only_look_like_tasks_are_reported_and_not_read() {
    let plan = plan(
        "---\ntitle: x\n---\n- [ ] T001 a\n- [ ] no id\n- [P] tasks = different files\n- T009 no box\n> - [ ] T010 quoted\n\n\
         ```\n- [ ] T001 again\n- [ ] T011 code\n```\n<!--\n- [ ] T012 comment\n-->\n- [ ] 3. a number\n",
    );
    assert_eq!(leaves(&plan), "T001 no-id");
    let why: Vec<(usize, Why)> = plan.unread.iter().map(|unread| (unread.problem.line, unread.why)).collect();
    assert_eq!(
        why,
        [(7, Why::NoBox), (8, Why::Quoted), (12, Why::InCode), (15, Why::InComment), (17, Why::Number)]
    );
}

#[test]
fn an_unclosed_fence_is_reported() {
    let plan = plan("- [ ] T001 a\n```\n- [ ] T002 b\n- [ ] T003 c\n");
    assert_eq!(
        plan.warnings[0].to_string(),
        "tasks.md:2:1: this code fence is never closed, so the 2 lines below it are not read"
    );
    assert_eq!(plan.unread.len(), 2);
}

#[test]
fn phases_are_named_by_their_label_and_keep_their_name_when_the_file_grows() {
    let before = "## Phase 1: a\n- [ ] T1 a\n## Phase 3.1: b\n- [ ] T2 b\n## 阶段一：x\n- [ ] T3 c\n## Phase N: Convergence\n- [ ] T4 d\n";
    let after = format!("{before}## Phase N: Convergence\n- [ ] T5 e\n### Phase 9: no task\n");
    assert_eq!(shown(plan(before).roots().map(|task| &task.id)), "phase-1 phase-3.1 phase-3 phase-n");
    assert_eq!(
        shown(plan(&after).roots().map(|task| &task.id)),
        "phase-1 phase-3.1 phase-3 phase-n phase-n-2"
    );
}

#[test]
fn several_files_make_one_plan() {
    let plan = Plan::read_all(&[
        ("a.md", b"- [ ] T1 a\n"),
        ("b.md", b"- [ ] T2 [P] b (depends on T1)\n"),
        ("c.md", b"# none\n"),
    ])
    .unwrap();
    assert_eq!(leaves(&plan), "T1 T2");
    assert_eq!(task(&plan, "T2").source.as_ref().unwrap().file, "b.md");
    assert!(plan.warnings[0].to_string().starts_with("c.md:1:1: no tasks were found"));
    let twice = Plan::read_all(&[("a.md", b"- [ ] T1 a\n"), ("b.md", b"- [ ] T1 b\n")]).unwrap_err();
    assert_eq!(twice.to_string(), "b.md:1:3: the id 'T1' is already used, at a.md:1");
}

#[test]
fn checkboxes_without_ids_get_the_next_free_ids() {
    let text =
        "## Phase 1: a\n- [ ] T007 a\n- [ ] b\n  - [ ] a step\n- [x]   c\r\n## Checklist\n- [ ] all good\n";
    let edits = plan_ids(&[("tasks.md", text.as_bytes())]).unwrap();
    let changed = String::from_utf8(apply_edits(text.as_bytes(), &edits)).unwrap();
    assert_eq!(
        changed,
        "## Phase 1: a\n- [ ] T007 a\n- [ ] T008 b\n  - [ ] a step\n- [x]   T009 c\r\n## Checklist\n- [ ] all good\n"
    );
    let bare = plan_ids(&[("tasks.md", b"- [ ] a\n- [ ] b\n")]).unwrap();
    assert_eq!(shown(bare.iter().map(|edit| &edit.task)), "T001 T002");
}

#[test]
fn a_tag_names_the_repositories_of_a_task() {
    let plan = plan(
        "## Phase 1: Setup\n- [ ] T001 [repo:backend] [US1] a\n- [ ] T002 [P] [repo:web, backend] b\n- [ ] T003 c\n",
    );
    assert_eq!(task(&plan, "T001").repos, ["backend"]);
    assert_eq!(task(&plan, "T001").tags, ["US1"]);
    assert_eq!(task(&plan, "T002").repos, ["web", "backend"]);
    assert_eq!((task(&plan, "T002").name.as_str(), task(&plan, "T003").repos.len()), ("b", 0));
}

#[test]
fn a_red_tag_marks_a_task_whose_tests_must_fail() {
    let plan = plan(
        "# Tasks\n\n- [ ] T001 [P] [red] write the tests\n- [ ] T002 [RED] more\n- [ ] T003 make them pass\n",
    );
    let reds: Vec<bool> = ["T001", "T002", "T003"].iter().map(|id| task(&plan, id).red).collect();
    assert_eq!(reds, [true, true, false]);
    assert!(task(&plan, "T001").tags.is_empty());
}

#[test]
fn checkboxes_without_ids_are_tasks_with_ids_derived_from_their_text() {
    let text = "# Plan\n## Phase 1: a\n- [ ] Write the parser (fast)\n  - [ ] a step\n- [x] **Test** it\n- [ ] 写解析器\n## Validation\n- [ ] all good\n- [ ] really\n";
    let before = plan(text);
    assert_eq!(
        leaves(&before),
        "write-the-parser test-it task-b5c0b8e1".replace("task-b5c0b8e1", before.tasks[3].id.as_str())
    );
    assert_eq!(task(&before, "test-it").mark, Mark::Done);
    assert!(task(&before, "write-the-parser").description.contains("- [ ] a step"));
    let checks: Vec<String> = before
        .unread
        .iter()
        .filter(|unread| unread.why == Why::Check)
        .map(|unread| unread.problem.what.clone())
        .collect();
    assert_eq!(checks, ["2 boxes under 'Validation' taken as checks"]);
    let after = plan(&text.replace("- [ ] Write", "- [ ] First of all\n- [ ] Write"));
    assert_eq!(
        leaves(&after),
        format!("first-of-all {}", leaves(&before)),
        "ids stay where lines are inserted"
    );
}

#[test]
fn a_numbered_task_is_the_parent_of_its_parts_on_the_same_level() {
    let plan = plan("- [ ] 1. a\n- [ ] 2. b\n- [ ] 2.1 c\n- [ ] 2.2 d\n- [ ] 3. e\n");
    assert_eq!(leaves(&plan), "1 2.1 2.2 3");
    assert_eq!(task(&plan, "2.2").parent, Some("2".parse().unwrap()));
    assert_eq!(needs(&plan, "3"), "2");
}

#[test]
fn headings_with_a_status_are_tasks_and_rows_of_a_change_log_are_not() {
    let plan = plan(
        "### T001: Make it\n**Status**: ✅ DONE\n### T002: Then\nStatus: pending\n## Change Log\n| Version | Date |\n|---|---|\n| 1.0 | today |\n",
    );
    assert_eq!(leaves(&plan), "T001 T002");
    assert_eq!((task(&plan, "T001").mark, task(&plan, "T002").mark), (Mark::Done, Mark::Todo));
}

#[test]
fn a_priority_selects_only_its_own_stories() {
    let plan = plan(
        "## Phase 1: Setup\n- [ ] T1 a\n## Phase 2: User Story 1\n- [ ] T2 b\n## Phase 3: User Story 2\n- [ ] T3 c\n\
         ## Dependencies\n- US1 is P1 priority - complete before P2 stories\n- US2 can proceed after all P1 stories\n",
    );
    assert_eq!((needs(&plan, "phase-2").as_str(), needs(&plan, "phase-3").as_str()), ("phase-1", "phase-1"));
}
