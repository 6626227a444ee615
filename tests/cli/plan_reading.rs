//! Every form of a task list that is read, row by row: the text, and what the tree then holds.

use arborist_testkit::{Run, TestRepo};
use serde_json::Value;

/// What a row expects of the tree that a text is read as.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted {
    /// These leaves, in the order of the file.
    Tasks(&'static str),
    /// What a task waits for, as one line.
    Needs(&'static str, &'static str),
    /// A text at a key of a node, as JSON.
    Has(&'static str, &'static str, &'static str),
    /// A key that a node has not.
    Lacks(&'static str, &'static str),
    /// A word of a warning, which is an error under `--strict`.
    Warns(&'static str),
    /// A word of the summary.
    Says(&'static str),
    /// The plan is refused, with this word.
    Refused(&'static str),
}
use Wanted::{Has, Lacks, Needs, Refused, Says, Tasks, Warns};

/// What a form is called, a text in it, and what is expected.
pub(crate) type FormRow = (&'static str, &'static str, &'static [Wanted]);

const ROWS: &[FormRow] = &[
    (
        "headings with boxes, with and without ids",
        "## 阶段 1: A\n### - [x] 任务 1.1: a\n1. x\n   - [ ] step\n### - [ ] 任务 1.2: b\n## B\n### [ ] Write the docs\n",
        &[Tasks("1.1 1.2 write-the-docs"), Has("1.1", "mark", "\"done\""), Needs("1.2", "1.1")],
    ),
    (
        "ids of several words",
        "- [ ] SHARED-T001 a\n- [ ] BE-FOUND-T001 b\n- [ ] TEST-FE-US1-T002 [P] c\n- [ ] TEST-REGRESSION-T001 d (depends on BE-FOUND-T001)\n",
        &[
            Tasks("SHARED-T001 BE-FOUND-T001 TEST-FE-US1-T002 TEST-REGRESSION-T001"),
            Needs("TEST-FE-US1-T002", "BE-FOUND-T001"),
        ],
    ),
    (
        "headings that name issues, with boxes that are criteria",
        "## Issue 分割\n### #7 基盤\n受け入れ基準。\n- [ ] x\n### #8 計算\n受け入れ基準。\n- [ ] y\n",
        &[Tasks("7 8")],
    ),
    (
        "goals and standards of a prose plan in Chinese",
        "# 计划\n## Phase 1：一\n### 目标\n- 看到\n### 需要实现\n- `teachers` 表\n- `scenarios` 表\n### 成功标准\n- 至少三位\n",
        &[Tasks("teachers scenarios"), Warns("no box")],
    ),
    (
        "a dependency on a title that is not there",
        "- [ ] Write the intro\n  - Dependencies: None\n- [ ] Write the parser\n  - Dependencies: Write the intro\n- [ ] Ship\n  - Dependencies: Nowhere\n",
        &[Needs("write-the-parser", "write-the-intro"), Warns("names 'Nowhere'")],
    ),
    (
        "libraries are no titles",
        "- [ ] Write the intro\n  - Dependencies: React, Zod\n- [ ] Ship\n",
        &[Needs("ship", "write-the-intro")],
    ),
    (
        "a table of tasks with ids and titles in one cell, and a list of results",
        "## Phase 1: MVP\n### Group A\n| Feature | Status | Size |\n|---|---|---|\n| **A1: Schema** | ✅ Done | Low |\n| **A2: Login** | ❌ Needed | Low |\n### Group P\n| Feature | Status | Size |\n|---|---|---|\n| **P1: Goals** | ❌ Needed | Low |\n| **P2: Streaks** | ❌ Needed | Low |\n\n**Deliverables:**\n- ⬜ Users can log in\n- ⬜ Goals work\n",
        &[Tasks("A1 A2 P1 P2"), Has("A1", "mark", "\"done\""), Needs("A2", "A1"), Needs("P1", "A2")],
    ),
    (
        "a table with a column of ids",
        "| ID | What | Depends on |\n|---|---|---|\n| DB-1 | table | - |\n| DB-2 | index | DB-1 |\n| API-1 | route | DB-1 |\n",
        &[Tasks("DB-1 DB-2 API-1"), Needs("DB-2", "DB-1"), Needs("API-1", "DB-1")],
    ),
    (
        "a table of requirements beside boxes is no list of tasks",
        "- [ ] Add the table\n- [ ] Add the page\n\n| ID | What | Status |\n|---|---|---|\n| FR-001 | x | Done |\n| FR-002 | y | Done |\n| FR-003 | z | Done |\n",
        &[Tasks("add-the-table add-the-page")],
    ),
    (
        "a short table of modules beside a longer list of boxes is an overview",
        "| ID | What | Status |\n|---|---|---|\n| M1 | x | Done |\n| M2 | y | open |\n\n- [ ] Add the table\n- [ ] Add the page\n- [ ] Ship\n",
        &[Tasks("add-the-table add-the-page ship")],
    ),
    (
        "phases told in prose, beside a list of checks",
        "# Migration plan\n## Steps\n### Phase 0: Schema\n\n**Step 0.1 — Add the schema**\nRules:\n- `uuid` stays\n- `text` stays\n\n**Step 0.2 — Generate**\nRun it.\n\n### Phase 1: Docs\nTell it.\n\n## Verification checklist\n- [ ] It builds\n- [ ] It runs\n",
        &[
            Tasks("step-0-1 step-0-2 phase-1-docs"),
            Needs("step-0-2", "step-0-1"),
            Warns("without boxes are taken as tasks"),
        ],
    ),
    (
        "check lists that are all of a plan are its tasks",
        "# Release\n## Phase 1: Checklist\n- [ ] Build\n- [ ] Test\n## Phase 2: Checklist\n- [ ] Ship\n- [ ] Tell\n",
        &[Tasks("build test ship tell")],
    ),
    (
        "headings of a phase with ids of their own, beside boxes",
        "## Phase 0: Planning\n### ✅ P001: Analysis\nLook.\n### ✅ P002: Research\n**Dependencies**: P001\n## Phase 1: Setup\n- [ ] T001 a\n## Success criteria\n### SC-001: Fast\n### SC-002: Small\n",
        &[
            Tasks("P001 P002 T001"),
            Has("P001", "mark", "\"done\""),
            Needs("P002", "P001"),
            Needs("phase-1", "phase-0"),
        ],
    ),
    (
        "steps of phases below an order of work, beside criteria with boxes",
        "# Refactoring plan\n## 1. Implementation Order\n### Phase 1: Base\n1. Add the theme\n2. Add the tokens\n### Phase 2: Use\n1. Wrap the app\n## 2. Success Criteria\n- [ ] All colours are tokens\n- [ ] All tests pass\n",
        &[
            Tasks("add-the-theme add-the-tokens wrap-the-app"),
            Needs("phase-2", "phase-1"),
            Warns("without boxes"),
        ],
    ),
    (
        "phases with plain lists beside one with boxes",
        "# Plan\n## Phase 1: Base\n- Add the schema\n- Add the table\n\nExit criteria:\n- It builds\n## Phase 2: Page\n- Add the page\n## Phase 3: Sign-off\n- [x] Deploy\n- [ ] Audit\n",
        &[
            Tasks("add-the-schema add-the-table add-the-page deploy audit"),
            Needs("audit", "deploy"),
            Warns("without boxes"),
        ],
    ),
    (
        "phases that are done and told in words stay out",
        "# Plan\n## Phase 1: Base ✅\n- Added the schema\n## Phase 2: Page (completed)\n- Added the page\n## Phase 3: Ship\n- [ ] Deploy\n- [ ] Audit\n",
        &[Tasks("deploy audit")],
    ),
    (
        "headings with ids below tasks of another kind",
        "## Tasks\n### T-001: a\n**Depends-on:** —\n### T-002: b\n**Depends-on:** T-001\n### T-003: c\n**Depends-on:** T-001\n## Validation Tasks\n### V-001: Lint\n- [ ] clean\n### V-002: Look\n- [ ] fine\n",
        &[Tasks("T-001 T-002 T-003 V-001 V-002"), Needs("T-003", "T-001"), Needs("V-002", "V-001")],
    ),
    (
        "headings that count groups with the ids of boxes",
        "## Phase 1: Setup\n### T001: Structure\n- [ ] T001 a\n- [ ] T002 b\n### T002: Environment\n- [ ] T003 c\n## Phase 2: Types\n### T003: Types\n- [ ] T004 d\n",
        &[
            Tasks("T001 T002 T003 T004"),
            Needs("T002", "T001"),
            Needs("T003", "T002"),
            Warns("headings and boxes have the same ids"),
        ],
    ),
    (
        "headings that tell more of the boxes with their ids",
        "- [ ] T001 Add the table\n- [ ] T002 Add the page\n### T001: Table\n- [ ] columns\n### T002: Page\n- [ ] title\n",
        &[Tasks("T001 T002"), Needs("T002", "T001")],
    ),
    ("numbers are ids", "- [ ] 1.2 a\n- [ ] 1.3 b\n", &[Tasks("1.2 1.3")]),
    (
        "a box without an id is named after its text",
        "- [ ] Add login\n- [ ] Write the docs\n",
        &[Tasks("add-login write-the-docs")],
    ),
    (
        "ids with letters of their own",
        "- [ ] A1 Create the schema\n- [ ] A2 [P] Write (depends on A1)\n- [ ] **DB-1**: Fill it\n- [ ] DB-2 [P] Check, once A1 is done\n",
        &[Tasks("A1 A2 DB-1 DB-2"), Needs("A2", "A1"), Needs("DB-1", "A2"), Needs("DB-2", "A1 DB-1")],
    ),
    (
        "a word that only looks like such an id",
        "- [ ] SHA-256 for passwords\n- [ ] Write the docs\n- [ ] Ship it\n",
        &[Tasks("sha-256-for-passwords write-the-docs ship-it")],
    ),
    (
        "a task that waits for another once that is done",
        "- [ ] T001 [P] a\n- [ ] T002 [P] b\n- [ ] T003 [P] Wire it up once T001 is done\n",
        &[Needs("T003", "T001")],
    ),
    (
        "a dependency of a task that cannot be read",
        "- [ ] T001 a\n- [ ] T002 b (depends on the schema)\n",
        &[Tasks("T001 T002"), Warns("tasks.md:2:")],
    ),
    (
        "a part of a title that speaks of something else",
        "- [ ] T001 Remove the view that depends on the store\n",
        &[Tasks("T001")],
    ),
    (
        "a dependency in the middle of a sentence that cannot be read",
        "- [ ] T001 a\n- [ ] T002 The parser depends on the schema being there\n",
        &[Tasks("T001 T002"), Warns("tasks.md:2:")],
    ),
    (
        "a dependency that a note below a task states in other words",
        "- [ ] T001 a\n- [ ] T002 b\n  - This depends on the schema\n",
        &[Tasks("T001 T002"), Warns("tasks.md:3:")],
    ),
    (
        "a dependency of a phase that cannot be read",
        "## Phase 1: a\n- [ ] T001 a\n## Phase 2: b\n\n**Depends on**: the database team\n\n- [ ] T002 b\n",
        &[Tasks("T001 T002"), Warns("tasks.md:5:")],
    ),
    (
        "a sentence of a section whose subject is not in the plan",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n\n## Dependencies\n\n- The API layer depends on T001\n- Views depend on view models\n",
        &[Tasks("T001 T002"), Warns("tasks.md:7:"), Warns("tasks.md:8:")],
    ),
    (
        "boxes of a legend are no tasks",
        "# Tasks\n\n- [ ] Not started\n- [~] In progress\n- [x] Done\n\n## Work\n- [ ] Add login\n- [x] Write the docs\n",
        &[Tasks("add-login write-the-docs")],
    ),
    (
        "boxes below a heading that is a legend are no tasks",
        "## Legend\n- [ ] means to be done\n- [x] means that it is there\n\n## Work\n- [ ] T001 a\n- [ ] T002 b\n",
        &[Tasks("T001 T002")],
    ),
    (
        "sections of checks below verification tasks hold tasks",
        "## Build\n- [ ] Write it\n\n## Verification tasks\n\n### UI verification\n- [ ] Look at it\n",
        &[Tasks("write-it look-at-it")],
    ),
    (
        "a list of ticks and crosses",
        "# Work\n\n- ✅ Add login\n- ✔ Write docs\n- ❌ Ship it\n- 🚧 Measure it\n- Clean up\n",
        &[
            Tasks("add-login write-docs ship-it measure-it clean-up"),
            Has("add-login", "mark", "\"done\""),
            Lacks("ship-it", "mark"),
            Has("measure-it", "mark", "\"partial\""),
            Needs("measure-it", "ship-it"),
            Warns("no box and no id"),
        ],
    ),
    (
        "lines that begin with ticks",
        "✅ Add login\n✅ Write docs\n⬜ Ship it\n",
        &[
            Tasks("add-login write-docs ship-it"),
            Has("write-docs", "mark", "\"done\""),
            Lacks("ship-it", "mark"),
        ],
    ),
    (
        "steps as headings",
        "# Move the mail\n\nSome words.\n\n## Step 1: Copy it\n\n- by hand\n\n## Step 2: Check it\n\n## Step 3: Delete it (after step 1)\n",
        &[Tasks("1 2 3"), Needs("2", "1"), Warns("3 steps are taken as tasks")],
    ),
    (
        "a numbered list",
        "# Move the mail\n\n1. Copy it\n   - by hand\n2. Check it\n3. Delete it\n",
        &[Tasks("1 2 3"), Needs("3", "2")],
    ),
    (
        "a numbered list whose steps have boxes",
        "# Update the readme\n\n1. **Fix it** ✅\n2. **Try it**: each way\n   - [x] by hand\n   - [ ] by script\n3. **Ship it**\n",
        &[Tasks("1 2 3"), Has("1", "mark", "\"done\""), Needs("3", "2")],
    ),
    (
        "lists below headings that speak of work",
        "# Mail\n\n## Goals\n- fast\n- small\n\n## Tasks\n- Copy it\n- Check it\n\n## Risks\n1. Loss\n2. Noise\n",
        &[Tasks("copy-it check-it"), Needs("check-it", "copy-it")],
    ),
    (
        "a list in a file of things to do",
        "# TODO\n\n## Page\n- Copy it\n* Check it\n\n## Done\n- Old thing\n",
        &[Tasks("copy-it check-it old-thing"), Has("old-thing", "mark", "\"done\"")],
    ),
    (
        "things to do that are told in words",
        "# TODO\n\n## Metrics port\n\nChange the port. Update in:\n- `a.py`\n- `b.py`\n\n## Titles\n\nMake them tell more. Ways:\n- one\n- two\n",
        &[Tasks("metrics-port titles"), Needs("titles", "metrics-port")],
    ),
    (
        "numbered headings of a plan",
        "# Implementation plan\n\n## Changes\n\n### 1. Add the table\n- a\n\n### 2. Fill it\n\n### 3. Show it\n",
        &[Tasks("1 2 3"), Needs("3", "2")],
    ),
    (
        "phases with lists, and one without",
        "# Plan\n\n## Phase 1: Copy\n- Copy it\n- Check it\n\n**Risks:**\n- Loss\n\n## Phase 2: Ship it\n\nJust ship.\n",
        &[Tasks("copy-it check-it phase-2-ship-it"), Needs("phase-2-ship-it", "phase-1")],
    ),
    (
        "prose without steps is refused, and why",
        "# Thoughts\n\nWe could move the mail.\n\n## Goals\n- fast\n- small\n",
        &[Refused("no tasks were found")],
    ),
    (
        "a section of verification tasks holds tasks",
        "## Build\n- [ ] Write it\n\n## Verification tasks\n- [ ] Measure it\n",
        &[Tasks("write-it measure-it")],
    ),
    (
        "a heading with a box behind a dash",
        "## Phase 1: a\n\n### - [ ] T001 a\n\n### - [x] T002 [P] b\n\n### - [ ] T003 [P] c\n",
        &[Tasks("T001 T002 T003"), Has("T002", "mark", "\"done\""), Needs("T003", "T001")],
    ),
    (
        "a box with a star, also one that a formatter has escaped",
        "- [ ] 1. a\n- [ ]* 2. b\n- [ ]\\* 3. c\n- [ ] 4. d\n",
        &[Tasks("1 2 3 4"), Needs("4", "3")],
    ),
    (
        "an inserted line moves no id",
        "- [ ] Something new\n- [ ] Add login\n- [ ] Write the docs\n",
        &[Tasks("something-new add-login write-the-docs")],
    ),
    (
        "a section without ids beside one with ids holds tasks, and that is told",
        "## Backend\n- [ ] T001 a\n- [ ] T002 b\n\n## Frontend\n- [ ] Build the page\n- [ ] Style it\n",
        &[
            Tasks("T001 T002 build-the-page style-it"),
            Needs("style-it", "build-the-page"),
            Needs("frontend", "backend"),
            Warns("2 boxes without ids under 'Frontend' taken as tasks"),
        ],
    ),
    (
        "a part of a word makes no check list",
        "## Backend\n- [ ] T001 a\n\n## Payment gateway\n- [ ] Charge\n\n## Preview\n- [ ] Show\n",
        &[Tasks("T001 charge show")],
    ),
    (
        "a paragraph with such a word in its middle makes no check list",
        "## Backend\n\nGoal: users review their orders\n\n- [ ] Build\n- [ ] Ship\n\n## Frontend\n- [ ] Page\n",
        &[Tasks("build ship page")],
    ),
    (
        "a sentence below the heading of a phase leads to no checks",
        "## Phase 1: Build - [Done]\nBuild it.\n\n- [x] **Server**\n\n## Phase 2: Testing\nEnsure reliability and developer readiness.\n\n- [x] **Suite**\n- [ ] **Docs**\n",
        &[Tasks("server suite docs"), Needs("phase-2", "phase-1")],
    ),
    (
        "a box with an unknown mark and without an id",
        "- [x] First\n- [v] Second\n- [ ] Third\n\n- [P] means parallel\n",
        &[Tasks("first second third"), Warns("'v' is not a known mark")],
    ),
    (
        "checks beside tasks with ids are none",
        "## Backend\n- [ ] T001 a\n\n## Validation\n- [ ] All tests pass\n",
        &[Tasks("T001"), Says("1 box under 'Validation' taken as checks")],
    ),
    (
        "a phase of validation without ids holds tasks",
        "## Phase 1: Build\n- [ ] Make it\n\n## Phase 2: Validation\n- [ ] Try it\n",
        &[Tasks("make-it try-it")],
    ),
    (
        "boxes behind a paragraph of a list with ids are checks in doubt",
        "## Backend\n- [ ] T001 a\n\nDeliverables:\n\n- [ ] It runs\n",
        &[Tasks("T001"), Warns("1 box without ids under 'Backend' taken as checks")],
    ),
    (
        "what is left for another time is no task, in doubt",
        "## Backend\n- [ ] T001 a\n\n## Next (v2)\n- [ ] Rewrite it\n",
        &[Tasks("T001"), Warns("under 'Next (v2)' taken as checks")],
    ),
    (
        "a known id in a summary is a reference",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n\n## Summary\n- [ ] T001 see above\n",
        &[Tasks("T001 T002")],
    ),
    (
        "a real duplicate gets a suffix",
        "## Phase 1: a\n- [ ] T001 make a\n## Phase 2: b\n- [ ] T001 quite another thing\n- [ ] T002 c\n",
        &[Tasks("T001 T001-2 T002"), Warns("'T001-2'")],
    ),
    (
        "a dependency on a duplicate means the one in its own phase",
        "## Phase 1: a\n- [ ] T001 make a\n- [ ] T003 b (depends on T001)\n## Phase 2: b\n- [ ] T001 quite another thing\n- [ ] T002 [P] c (depends on T001)\n",
        &[Needs("T002", "T001-2"), Needs("T003", "T001"), Warns("two tasks")],
    ),
    (
        "a sentence about a duplicate means the one in the phase that it speaks of",
        "## Phase 1: a\n- [ ] T001 make a\n## Phase 2: b\n- [ ] T001 quite another thing\n- [ ] T002 [P] c\n\n## Dependencies\n\n- T002 depends on T001\n",
        &[Needs("T002", "T001-2"), Warns("two tasks")],
    ),
    (
        "a dependency on a duplicate of another phase is refused",
        "## Phase 1: a\n- [ ] T001 make a\n## Phase 2: b\n- [ ] T001 quite another thing\n## Phase 3: c\n- [ ] T002 c (depends on T001)\n",
        &[Refused("two tasks")],
    ),
    (
        "a tag that says in words that a task runs in parallel",
        "- [ ] T001 [SEQUENTIAL] a\n- [ ] T002 [PARALLEL-GROUP-1] b\n- [ ] T003 [PARALLEL-GROUP-1] c\n- [ ] T004 [NOT PARALLEL] d\n",
        &[Needs("T003", "T001"), Needs("T004", "T002 T003")],
    ),
    (
        "a plan that stands in a fence as a whole",
        "```markdown\n# Tasks\n\n- [ ] T001 a\n- [ ] T002 [P] b\n\n```bash\nmake\n```\n\n- [ ] T003 c\n```\n",
        &[Tasks("T001 T002 T003"), Needs("T003", "T002"), Warns("code fence")],
    ),
    (
        "an overview with numbers beside a longer list of boxes",
        "## A\n- [ ] add the table\n- [ ] add the index\n- [ ] add the page\n\n## Matrix\n\n| # | Feature | Status |\n|---|---|---|\n| 001 | Table | planned |\n| 002 | Page | planned |\n",
        &[Tasks("add-the-table add-the-index add-the-page")],
    ),
    (
        "ids that end with a letter behind a dash",
        "### TASK-001-A: Rewrite the tokens [P]\n\nx\n\n### TASK-001-B: Check them\n\ny\n",
        &[Tasks("TASK-001-A TASK-001-B"), Needs("TASK-001-B", "TASK-001-A")],
    ),
    (
        "a story that is about polish is a story",
        "## Phase 1: Foundational\n- [ ] T001 a\n## Phase 2: User Story 1 - Login\n- [ ] T002 [US1] b\n## Phase 3: User Story 2 - Repository Polish\n- [ ] T003 [US2] c\n",
        &[Needs("phase-3", "phase-1")],
    ),
    (
        "numbers that only count the sections of a plan with phases",
        "# Plan\n\n## 1. Goal\n\n### 1.1 Why\n\nx\n\n### 1.2 What\n\ny\n\n## 2. Phases\n\n### Phase 1: Schema\n\n- add the table\n- add the index\n\n### Phase 2: Page\n\n- add the form\n",
        &[Tasks("add-the-table add-the-index add-the-form"), Needs("phase-2", "phase-1")],
    ),
    (
        "sections that count with a letter and a number",
        "# Plan\n\n### E0 — Backlog\n\n- close the tickets\n\n### E1 — Install *(the gate)*\n\n- write the installer\n\n### E2 — Demo\n\n- record it\n",
        &[Tasks("close-the-tickets write-the-installer record-it"), Needs("e2-demo", "e1-install-the-gate")],
    ),
    (
        "phases that are named once more below the order of the files",
        "# Plan\n\n## Phase 1 — a\n\n### Tasks\n\n1. init\n2. parse\n\n## Phase 2 — b\n\n### Tasks\n\n1. draw\n\n## File-by-file implementation order\n\n### Phase 1\n\n1. main.rs\n\n### Phase 2\n\n1. draw.rs\n",
        &[Tasks("init parse draw")],
    ),
    (
        "a base id names its group",
        "- [ ] T056a a\n- [ ] T056b [P] b\n- [ ] T056c [P] c\n- [ ] T057 [P] d (depends on T056)\n",
        &[Needs("T057", "T056a T056b T056c")],
    ),
    (
        "the majority of arrows wins",
        "- [ ] T001 [P] a\n- [ ] T002 [P] b\n- [ ] T003 [P] c\n- [ ] T004 [P] d\n\n## Dependencies\n\nT001 → T002\nT002 → T003\nT004 → T003\n",
        &[Needs("T002", "T001"), Warns("points against the order of the file")],
    ),
    (
        "arrow pairs are parted by commas",
        "- [ ] T001 [P] a\n- [ ] T002 [P] b\n- [ ] T003 [P] c\n- [ ] T004 [P] d\n\n## Dependencies\n\nT001 → T002, T003 → T004\n",
        &[Needs("T002", "T001"), Needs("T003", ""), Needs("T004", "T003")],
    ),
    (
        "an unknown mark is a warning and read as to do",
        "- [%] T001 a\n- [ ] T002 b\n",
        &[Tasks("T001 T002"), Lacks("T001", "mark"), Warns("'%'")],
    ),
    (
        "an order sentence that cannot be read is a warning",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n\n## Dependencies\n\n- T002 depends on the weather\n",
        &[Tasks("T001 T002"), Warns(":7:")],
    ),
    (
        "tags without a space between them",
        "- [ ] T001 a\n- [ ] T002 [US1][P] b\n",
        &[Has("T002", "parallel", "true"), Has("T002", "tags", "[\"US1\"]")],
    ),
    (
        "Chinese, simplified",
        "- [ ] T031 a\n- [ ] T032 [P] b\n- [ ] T033 [P] c，依赖T032\n",
        &[Needs("T033", "T031 T032")],
    ),
    (
        "Chinese, traditional",
        "- [ ] T031 a\n- [ ] T032 [P] b\n- [ ] T033 [P] c（依賴 T032）\n",
        &[Needs("T033", "T031 T032")],
    ),
    (
        "French",
        "- [ ] T031 a\n- [ ] T032 [P] b\n- [ ] T033 [P] c (dépend de T032)\n",
        &[Needs("T033", "T031 T032")],
    ),
    (
        "Polish",
        "- [ ] T031 a\n- [ ] T032 [P] b\n- [ ] T033 [P] c (zależy od T032)\n",
        &[Needs("T033", "T031 T032")],
    ),
    (
        "Japanese",
        "- [ ] T031 a\n- [ ] T032 [P] b\n- [ ] T033 [P] c（T032に依存）\n",
        &[Needs("T033", "T031 T032")],
    ),
    (
        "a line in italics",
        "- [ ] T001 a\n- [ ] T002 [P] b\n- [ ] T003 [P] c\n  _Depends: T002_\n",
        &[Needs("T003", "T001 T002")],
    ),
    ("an id in letters", "- [ ] **T-NEW-A** a\n- [ ] **T-NEW-B** b\n", &[Tasks("T-NEW-A T-NEW-B")]),
    (
        "a heading that is a task tells its status",
        "## T001: a\n\nStatus: ✅ DONE\n\n## T002: b\n\nStatus: open\n",
        &[Tasks("T001 T002"), Has("T001", "mark", "\"done\""), Lacks("T002", "mark")],
    ),
    (
        "a product is no file",
        "- [ ] T001 Install Node.js and edit `src/app.js`\n",
        &[Has("T001", "files", "[\"src/app.js\"]")],
    ),
    (
        "rows of a change log are no tasks",
        "- [ ] T001 a\n\n## Change Log\n\n| Task | Change |\n|---|---|\n| T002 | added |\n",
        &[Tasks("T001")],
    ),
    (
        "check lists are reported once for each section",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n\n## Validation\n- [ ] all green\n- [ ] no warnings\n- [ ] docs\n",
        &[Tasks("T001 T002"), Says("3 boxes under 'Validation'")],
    ),
    (
        "a number is the parent of its parts, also as siblings",
        "- [ ] 3. whole\n- [ ] 3.1 part\n- [ ] 3.2 part\n",
        &[Tasks("3.1 3.2"), Has("3.1", "parent", "\"3\"")],
    ),
];

fn joined(value: &Value) -> String {
    let ids = value.as_array().cloned().unwrap_or_default();
    let mut ids: Vec<&str> = ids.iter().filter_map(Value::as_str).collect();
    ids.sort_unstable();
    ids.join(" ")
}

/// What is wrong with one expectation, if anything.
fn miss(repo: &TestRepo, run: &Run, wanted: Wanted) -> Option<String> {
    if let Refused(word) = wanted {
        return (run.code() == 0 || !run.stderr().contains(word))
            .then(|| format!("not refused: {}", run.stderr()));
    }
    let stderr = run.stderr();
    let Ok(tree) = serde_json::from_str::<Value>(&run.stdout()) else {
        return Some(format!("no tree: {stderr}"));
    };
    let nodes = &tree["nodes"];
    let differs =
        |found: String, wanted: &str| (found != wanted).then(|| format!("{found} instead of {wanted}"));
    match wanted {
        Tasks(ids) => {
            let leaves =
                nodes.as_object()?.iter().filter(|(_, node)| node["children"] == serde_json::json!([]));
            let mut leaves: Vec<(u64, &str)> = leaves
                .map(|(id, node)| (node["source_line"].as_u64().unwrap_or_default(), id.as_str()))
                .collect();
            leaves.sort_unstable();
            differs(leaves.into_iter().map(|(_, id)| id).collect::<Vec<_>>().join(" "), ids)
        }
        Needs(id, ids) => differs(joined(&nodes[id]["depends_on"]), ids),
        Has(id, key, value) => differs(nodes[id][key].to_string(), value),
        Lacks(id, key) => nodes[id].get(key).map(|value| format!("{key} is {value}")),
        Warns(word) => {
            let strict = plan(repo, &["--strict"]).code();
            (!stderr.contains(word) || strict == 0)
                .then(|| format!("warned of {stderr}, --strict exits with {strict}"))
        }
        Says(word) => (!stderr.contains(word)).then(|| format!("said {stderr}")),
        Refused(_) => None,
    }
}

/// What is not as some rows expect it, a line for each.
/// The command without git and the dispatcher in front of it: there are many rows.
fn plan(repo: &TestRepo, args: &[&str]) -> Run {
    Run::of(repo.command("git-arborist-plan", &repo.path("")).args(args), b"")
}

pub(crate) fn misses(rows: &[FormRow]) -> Vec<String> {
    let repo = TestRepo::init();
    let mut misses = Vec::new();
    for (form, text, wanted) in rows {
        repo.write("tasks.md", text);
        let run = plan(&repo, &["--format", "json"]);
        let miss = |wanted: &Wanted| Some(format!("{form}: {wanted:?}: {}", miss(&repo, &run, *wanted)?));
        misses.extend(wanted.iter().filter_map(miss));
    }
    misses
}

#[test]
fn every_form_of_a_task_list_is_read() {
    let misses = misses(ROWS);
    assert!(misses.is_empty(), "{}", misses.join("\n"));
}

#[test]
fn a_model_name_that_looks_like_an_option_is_refused() {
    let plan = r#"{"nodes": {"T1": {"id": "T1", "name": "a", "model": "--yolo"}}, "root_ids": ["T1"]}"#;
    let repo = TestRepo::planned("task-tree.json", plan, "echo x > a.txt");
    let run = repo.arborist(["gardener"]);
    assert_ne!(run.code(), 0, "{}", run.report());
    assert!(run.stderr().contains("'--yolo'"), "{}", run.report());
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 a\n", "echo x > a.txt");
    repo.write(".arborist/config.toml", "model = \"-x\"\n");
    repo.commit("a model\n");
    let run = repo.arborist(["gardener"]);
    assert_ne!(run.code(), 0, "{}", run.report());
    assert!(run.stderr().contains("'-x'"), "{}", run.report());
    assert_eq!(repo.calls(), 0);
}
