//! Where the id of a task may stand, what looks like an id, and which lines beside the tasks are tasks too.

use super::plan_reading::{
    FormRow,
    Wanted::{Lacks, Needs, Says, Tasks, Warns},
    misses,
};
use arborist_testkit::TestRepo;

const ROWS: &[FormRow] = &[
    (
        "an id in a field below a heading, and the number of the heading",
        "## Wave 1\n### Task 1: a\n- **ID**: T-1\n- **Depends on**: none\n### Task 2: b\n- **ID**: T-2\n- **Depends on**: none\n### Task 3: c\n- **Depends on**: T-1\n- **ID**: T-3\n### Task 4: d\n- **ID**: T-4\n- **Depends on**: Task 2\n",
        &[Tasks("T-1 T-2 T-3 T-4"), Needs("T-2", ""), Needs("T-3", "T-1"), Needs("T-4", "T-2")],
    ),
    (
        "an id in a field below a heading without a number",
        "## Work\n### Schema\n**ID**: DB-1\n### Login\n**ID**: API-1\n**Depends on**: DB-1\n",
        &[Tasks("DB-1 API-1"), Needs("API-1", "DB-1")],
    ),
    (
        "ids of several parts",
        "## Setup\n#### T-001-000-001 : a\n- **Dependencies** : None\n#### T-001-P1-001-001 : b\n- **Dependencies** : T-001-000-001\n#### T-001-POLISH-002-001 : c\n- **Dependencies** : T-001-000-001\n",
        &[
            Tasks("T-001-000-001 T-001-P1-001-001 T-001-POLISH-002-001"),
            Needs("T-001-P1-001-001", "T-001-000-001"),
            Needs("T-001-POLISH-002-001", "T-001-000-001"),
        ],
    ),
    (
        "a table of fields below a heading",
        "## Phase 1: X\n### TSK-A-001: a\n| 項目 | 内容 |\n|---|---|\n| **依存関係** | なし（Phase 2 も可） |\n### TSK-A-002: b\n| k | v |\n|---|---|\n| Depends on | none |\n### TSK-A-003: c\n| k | v |\n|---|---|\n| **Zależności** | TSK-A-001 |\n## Phase 2: Y\n### TSK-B-001: d\n| Priority | Size | Prerequisites |\n|---|---|---|\n| P1 | S | TSK-A-002 |\n### TSK-B-002: e\n| **의존성** | TSK-A-001〜003 |\n|---|---|\n",
        &[
            Needs("TSK-A-001", ""),
            Needs("TSK-A-002", ""),
            Needs("TSK-A-003", "TSK-A-001"),
            Needs("TSK-B-001", "TSK-A-002"),
            Needs("TSK-B-002", "TSK-A-001 TSK-A-002 TSK-A-003"),
        ],
    ),
    (
        "headings and rows with the letters of tasks, in any section",
        "## Code review\n| ID | Title |\n|---|---|\n| TSK-R-001 | a |\n| TSK-R-002 | b |\n\n## Left over\n### TSK-R-003: c\n## Phase 1: X\n### TSK-A-001: d\n### TSK-A-002: e\n",
        &[Tasks("TSK-R-001 TSK-R-002 TSK-R-003 TSK-A-001 TSK-A-002"), Needs("TSK-R-002", "TSK-R-001")],
    ),
    (
        "risks and requirements beside headings that are tasks",
        "## Phase 1: X\n### TSK-001: a\n### TSK-002: b\n## Risks\n### RSK-001: c\n\n| ID | Text |\n|---|---|\n| REQ-001 | d |\n| REQ-002 | e |\n",
        &[Tasks("TSK-001 TSK-002")],
    ),
    (
        "a section that counts with letters beside numbers",
        "## Phase 1: X\n- [ ] 1.1 a\n- [ ] 1.2 b\n## Verification remediation\n- [ ] R1 c\n- [ ] R2 d\n",
        &[Tasks("1.1 1.2 R1 R2"), Needs("R2", "R1")],
    ),
    (
        "phases that count with numbers beside one with letters",
        "## Phase 1: X\n- [ ] R1.1. a\n- [ ] R1.2. b\n## Phase 2: Y\n- [ ] 0.1. c\n- [ ] 0.2. d\n",
        &[Tasks("R1.1 R1.2 0.1 0.2"), Needs("phase-2", "phase-1")],
    ),
    (
        "ids that begin as a priority does",
        "## Phase 6: X\n### P6.1 A\n- [ ] P6.1.1: a\n- [ ] P6.1.2: b\n### P6.2 B\n- [ ] P6.2.1: c\n",
        &[Tasks("P6.1.1 P6.1.2 P6.2.1"), Needs("P6.2.1", "P6.1.2")],
    ),
    (
        "a phase that is a table of numbers beside boxes",
        "## Phase 1: X\n- [ ] 1.1 a\n- [ ] 1.2 b\n## Phase 2: Y\n| # | Task | Status |\n|---|---|---|\n| 2.1 | c | ✅ |\n| 2.2 | d | open |\n",
        &[Tasks("1.1 1.2 2.1 2.2"), Needs("phase-2", "phase-1")],
    ),
    (
        "phases in Polish",
        "# Plan\n## FAZA 1: Schemat\nx\n## FAZA 2: Modele\ny\n",
        &[Tasks("faza-1-schemat faza-2-modele"), Needs("faza-2-modele", "faza-1-schemat")],
    ),
    (
        "a check list of work, and criteria",
        "## 3.2 各模块迁移检查清单\n#### User\n- [ ] Write user\n- [ ] Test user\n#### Auth\n- [ ] Write auth\n## 6. 验证标准\n### 6.1 功能验证\n- [ ] All green\n",
        &[
            Tasks("write-user test-user write-auth"),
            Needs("auth", "user"),
            Says("1 box under '6.1 功能验证'"),
        ],
    ),
    (
        "a check list of work beside a longer list of tasks",
        "## Tasks\n- [ ] Write a\n- [ ] Write b\n- [ ] Write c\n## Implementation checklist\n- [ ] All green\n- [ ] Docs\n",
        &[Tasks("write-a write-b write-c"), Says("2 boxes under 'Implementation checklist'")],
    ),
    (
        "every task has a field, and some of these hold only words",
        "## Phase 1: X\n### T-1: a\n- **Dépendances** : Aucune\n### T-2: b\n- **Dépendances** : Aucune\n## Phase 2: Y\n### T-3: c\n- **Dépendances** : T-1\n### T-4: d\n- **Dépendances** : Toutes les pages créées\n### T-5: e\n- **Dépendances** : T-1\n",
        &[Needs("T-2", ""), Needs("T-3", "T-1"), Needs("T-4", "T-3"), Needs("T-5", "T-1")],
    ),
    (
        "ranges of numbers with dots, and with a short end",
        "## Phase 1: X\n- [ ] 1.1 a\n- [ ] 1.2 b\n- [ ] 1.10 c\n## Phase 2: Y\n- [ ] 2.1 d\n\n## Dependencies\n```\n1.1 → 1.2 through 1.10 (parallel, all depend on 1.1)\n```\n",
        &[Needs("1.2", "1.1"), Needs("1.10", "1.1")],
    ),
    (
        "a missing task is reported once",
        "- [ ] T001 a (depends on T108)\n- [ ] T002 b (depends on T108)\n",
        &[Warns("tasks.md:1:26: a dependency names 'T108'"), Lacks("T001", "mark")],
    ),
];

#[test]
fn tasks_are_found_at_every_supported_position_of_their_ids() {
    let misses = misses(ROWS);
    assert!(misses.is_empty(), "{}", misses.join("\n"));
}

fn checked(text: &str) -> String {
    let repo = TestRepo::init();
    repo.write("tasks.md", text);
    let run = repo.arborist(["plan", "--check"]);
    format!("{}{}", run.stdout(), run.stderr())
}

#[test]
fn lines_that_look_like_tasks_but_are_not_read_as_tasks_are_reported() {
    let tasks = "## Phase 1: X\n- [ ] DB-1 a\n- [ ] DB-2 b\n";
    for line in
        ["### DB-3: c\n", "**DB-3**: c\n", "- **DB-3** c\n", "| ID | What |\n|---|---|\n| DB-3 | c |\n"]
    {
        let said = checked(&format!("{tasks}\n## More\n\n{line}"));
        assert!(said.contains("looks like a task but was not read as a task"), "{line}: {said}");
    }
    for line in [
        "## Summary\n\n- **DB-3** c\n",
        "## Notes\n\n**DB-1** is small.\n",
        "## Notes\n\n**DB-9 done when:** all is green\n",
        "## Risks\n\n### RSK-1: c\n",
    ] {
        let said = checked(&format!("{tasks}\n{line}"));
        assert!(!said.contains("looks like a task"), "{line}: {said}");
    }
}

#[test]
fn a_missing_task_and_an_ambiguous_id_are_each_reported_once() {
    let said = checked("- [ ] T001 a (depends on T108)\n- [ ] T002 b (depends on T108)\n");
    assert_eq!(said.matches("names 'T108'").count(), 1, "{said}");
    let twice = "- [ ] T1 a\n- [ ] T2 x\n- [ ] T1 b\n- [ ] T3 x\n- [ ] T1 c\n- [ ] T4 x\n- [ ] T1 d\n";
    let said = checked(&format!("{twice}- [ ] T5 e (depends on T1)\n- [ ] T6 f (depends on T1)\n"));
    assert_eq!(said.matches("a dependency names 'T1'").count(), 1, "{said}");
    assert!(said.contains("the id of 4 tasks, in lines 1 and 3 and 5 and 1 more"), "{said}");
}

#[test]
fn sentences_about_dependencies_of_other_things_than_tasks_are_not_reported() {
    for text in [
        "- [ ] T001 a\n  - `pyproject.toml` depends on: fastapi>=0.115\n",
        "- [ ] T001 a\n  - `api` depends on postgres (service_healthy)\n",
        "## 1. Strictness (foundation — other components depend on results)\n- [ ] 1.1 a\n",
        "- [ ] T001 a\n\n### 1.3 依赖关系\n\n**当前 app.go 依赖的旧模块：**\n1. x\n",
        "- [ ] T001 a\n- [ ] T002 b\n\n## Dependencies\n```bash\n# Then the wrapper (depends on all pages):\nTask T002: b\n```\n",
    ] {
        let said = checked(text);
        assert!(!said.contains("could not be understood"), "{text}: {said}");
    }
    let said = checked("- [ ] T001 a (depends on the schema)\n");
    assert!(said.contains("could not be understood"), "{said}");
}
