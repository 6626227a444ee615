//! What plans say about order, row by row: sentences, drawings, waves and sections, and who then waits for whom.

use arborist_testkit::Garden;
use serde_json::Value;

/// What is said, and for some nodes what they wait for.
type Row = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// Stories with priorities.
const STORIES: &str = "\
## Phase 1: Setup
- [ ] T001 a
## Phase 2: Foundational
- [ ] T002 b
## Phase 3: User Story 1 - x (Priority: P1)
- [ ] T003 [US1] c
- [ ] T004 [P] [US1] d
## Phase 4: User Story 2 - y (Priority: P1)
- [ ] T005 [US2] e
## Phase 5: User Story 3 - z (Priority: P2)
- [ ] T006 [US3] f
## Phase 6: Isolation & Contract Parity
- [ ] T007 g
## Phase 7: Polish
- [ ] T008 h

## Dependencies

";

const SAID_OF_STORIES: &[Row] = &[
    (
        "stories of a priority",
        "- P1 stories before P2 stories\n",
        &[("phase-3", "phase-2"), ("phase-4", "phase-2"), ("phase-5", "phase-3 phase-4")],
    ),
    (
        "the priority order is advice",
        "- **User Stories**: All depend on Foundational\n  - Or sequentially in priority order (P1 US1 → P1 US2 → P2 US3)\n",
        &[("phase-4", "phase-2"), ("phase-5", "phase-2")],
    ),
    ("a part of a story", "- **US3**: depends on US1's request parser (T003)\n", &[("phase-5", "T003")]),
    (
        "a phase by some words of its title",
        "- **Isolation/Parity (P7)**: depends on US1–US2\n",
        &[("phase-6", "phase-3 phase-4")],
    ),
    (
        "what cannot be read is said again in brackets",
        "- T007 depends on the runner being functional (after Phase 3/4)\n",
        &[("T007", "phase-3 phase-4")],
    ),
    (
        "that a part of a story needs another",
        "- **US3**: Depends on Foundational - parallel with US1, but frontend components need US1's page\n",
        &[("phase-5", "phase-2")],
    ),
    (
        "a dash between parts of a sentence joins no range",
        "- **Phase 5**: Depends on T003 — T005 and T006 are small\n",
        &[("phase-5", "T003")],
    ),
    (
        "a phase that can be done at any time",
        "- **Phase 6**: Independent - can run anytime\n",
        &[("phase-6", "")],
    ),
    (
        "joints with empty lines, and a line that comes back",
        "```\nPhase 1 ───────────┐\n                   │\nPhase 2 ◄──────────┘\n  │\n  ├──► Phase 3 ──┐\n  │              │\n  \
         ├──► Phase 4 ──┼──► Phase 7\n  │              │\n  └──► Phase 5 ──┘\n```\n",
        &[("phase-2", "phase-1"), ("phase-4", "phase-2"), ("phase-7", "phase-3 phase-4 phase-5")],
    ),
    (
        "a drawing upside down",
        "```\n┌── Phase 3\n├── Phase 4\nPhase 5\n```\n",
        &[("phase-5", "phase-3 phase-4"), ("phase-4", "phase-2")],
    ),
    (
        "lines that leave another",
        "```\nPhase 2\n  |\\\n  | Phase 3\n  |\\\n  | Phase 4\n  |\nPhase 5\n```\n",
        &[("phase-3", "phase-2"), ("phase-4", "phase-2"), ("phase-5", "phase-2 phase-3 phase-4")],
    ),
    (
        "drawings side by side",
        "```\nPhase 3        Phase 2\n   │              │\n   ▼              ▼\nPhase 5        Phase 4\n```\n",
        &[("phase-5", "phase-3"), ("phase-4", "phase-2")],
    ),
    (
        "boxes",
        "```\n┌─────────┐     ┌─────────┐\n│ Phase 3 │     │ Phase 4 │\n└────┬────┘     └────┬────┘\n     └───────┬───────┘\n\
         \u{20}       ┌────▼────┐\n        │ Phase 5 │\n        └─────────┘\n```\n",
        &[("phase-5", "phase-3 phase-4"), ("phase-4", "phase-2")],
    ),
];

/// Tasks of one phase.
const TASKS: &str = "\
## Phase 1: a
- [ ] T001 a
- [ ] T002 [P] b
- [ ] T003 [P] c
- [ ] T004 d
- [ ] T005 [P] e
";

const SAID_OF_TASKS: &[Row] = &[
    (
        "bars",
        "## Dependencies\n- T001 ∥ T002\n",
        &[("T002", ""), ("T003", "T001"), ("T004", "T001 T002 T003")],
    ),
    ("all before an arrow", "## Dependencies\nAll → T005\n", &[("T005", "T001 T002 T003 T004")]),
    (
        "a task beside those that another waits for",
        "## Dependencies\n- T002, T003, T005 can run in parallel\n",
        &[("T005", "T001"), ("T004", "T002 T003")],
    ),
    (
        "Portuguese",
        "## Dependências\n- T001, T002 (paletas) podem rodar em paralelo\n",
        &[("T002", ""), ("T004", "T001 T002 T003")],
    ),
    (
        "a section about parallel work outside of the dependencies",
        "## Parallel Execution\n\n| Phase | Tasks |\n|---|---|\n| Phase 1 | T001 ∥ T002 |\n",
        &[("T002", "")],
    ),
    (
        "two tasks beside a third",
        "## Parallel work\n- While T001 is done, somebody can do T002/T004 in parallel\n",
        &[("T004", "T002 T003")],
    ),
    (
        "a whole group that waits for a phase",
        "## Phase 2: b\n- [ ] T006 f\n- [ ] T007 g (depends on T001)\n- [ ] T008 h (depends on T001)\n- [ ] T009 i (depends on T001)\n\n\
         ## Dependencies\n- Phase 1 must be complete before T006..T009\n",
        &[("T007", "T001 T006 phase-1")],
    ),
    ("a task that can be done at any time", "## Dependencies\n- T005 can be done anytime\n", &[("T005", "")]),
];

const WHOLE_PLANS: &[Row] = &[
    (
        "waves in JSON",
        "- [ ] 1. a\n  - [ ] 1.1 b\n  - [ ] 1.2 c\n- [ ] 2. d\n  - [ ] 2.1 e\n  - [ ] 2.2 f\n- [ ] 3. g\n\n## Task Dependency Graph\n\n\
         ```json\n{ \"waves\": [\n  { \"id\": 0, \"tasks\": [\"1.1\", \"2.1\"] },\n  { \"id\": 1, \"tasks\": [\"1.2\", \"2.2\"] }\n] }\n```\n",
        &[("1.1", ""), ("2.1", ""), ("1.2", "1.1 2.1"), ("2.2", "1.1 2.1"), ("2", "")],
    ),
    (
        "sections by their numbers",
        "## 1. Data\n- [ ] 1.1 a\n## 2. Client (parallel with 1)\n- [ ] 2.1 b\n## 3. Service (depends on 1, 2)\n- [ ] 3.1 c\n\
         ## 4. Page (no deps, parallel with all)\n- [ ] 4.1 d\n## 5. Docs (depends on all)\n- [ ] 5.1 e\n",
        &[
            ("2-client-parallel-with-1", ""),
            ("3-service-depends-on-1-2", "1-data 2-client-parallel-with-1"),
            ("4-page-no-deps-parallel-with-all", ""),
        ],
    ),
    (
        "groups",
        "## Group 1 — a\n- [ ] T001 a\n## Group 2 — b\n- [ ] T002 b\n## Group 3 — c\n\n> Depends on Groups 1 and 2.\n\n- [ ] T003 c\n\
         ## Group 4 — d\n\n> `[depends: T001]` — needs the protocol\n\n- [ ] T004 d\n",
        &[("group-3-c", "group-1-a group-2-b"), ("group-4-d", "T001")],
    ),
    (
        "a phase that is independent of others",
        "## Phase 1: a\n- [ ] T001 a\n## Phase 2: b\n- [ ] T002 b\n## Phase 3: c\n> Independent of Phases 1-2 (can start in parallel)\n\n- [ ] T003 c\n",
        &[("phase-2", "phase-1"), ("phase-3", "")],
    ),
    (
        "sections with signs before their numbers",
        "## §1.1 a\n- [ ] §1.1\n  - **Depends on:** none\n## §1.2 b\n- [ ] §1.2\n  - **Depends on:** none\n## §2.1 c\n- [ ] §2.1\n  - **Depends on:** §1.1, §1.2\n",
        &[("1.2", ""), ("2.1", "1.1 1.2")],
    ),
    (
        "boxes without ids in a phase of their own",
        "## Phase 1: Setup\n- [ ] Read the brief\n## Phase 2: Work\n### Task 2.1: a\n**Depends on:** None\n### Task 2.2: b\n\
         **Depends on:** None\n### Task 2.3: c\n**Depends on:** 2.1\n## Phase 3: Code Review\n- [ ] Run the review\n",
        &[("2.2", ""), ("2.3", "2.1"), ("phase-3", "phase-1 phase-2")],
    ),
    (
        "everything above",
        "### Task 1.1: a\n**Depends on:** None\n### Task 1.2: b\n**Depends on:** None\n### Task 1.3: c\n**Depends on:** 1.1\n\
         ### Task 1.4: d\n**Depends on:** All above\n",
        &[("1.2", ""), ("1.3", "1.1"), ("1.4", "1.1 1.2 1.3")],
    ),
    (
        "headings that are issues, in Portuguese",
        "## Issue 1 — a\n- **Dependências:** nenhuma\n## Issue 2 — b\n- **Dependências:** nenhuma\n## Issue 3 — c\n\
         - **Dependências:** Issues 1 e 2\n",
        &[("1", ""), ("2", "")],
    ),
    (
        "numbers alone are tasks where there are no others",
        "## Phase 1: a\n#### 1.1 Add the table\ntext\n#### 1.2 Use it\n## Phase 2: b\n#### 2.1 Show it\n",
        &[("1.1", ""), ("1.2", "1.1"), ("phase-2", "phase-1")],
    ),
    (
        "paragraphs with numbers",
        "## Phase 1: a\n\n1.1 **Add the table**\n- File: `a.sql`\n\n1.2 **Use it**\n- File: `a.rs`\n",
        &[("1.1", ""), ("1.2", "1.1")],
    ),
    (
        "a section whose tasks have lost their boxes",
        "## Group 1 — a\n- [x] **T-01** a\n- [ ] **T-02** b\n## Group 2 — Validation\n-    **T-03** — c\n-    **T-04** — d\n",
        &[("T-02", "T-01"), ("T-04", "T-03"), ("group-2-validation", "group-1-a")],
    ),
];

/// What is wrong with the order of a plan.
fn misses(garden: &Garden, text: &str, (what, _, wanted): &Row) -> Vec<String> {
    garden.write("tasks.md", text);
    let run = garden.arborist(["plan", "--format", "json"]);
    let tree: Value =
        serde_json::from_str(&run.stdout()).unwrap_or_else(|_| panic!("{what}: {}", run.stderr()));
    let needs = |id: &str| {
        let ids =
            tree["nodes"][id]["depends_on"].as_array().unwrap_or_else(|| panic!("{what}: no node '{id}'"));
        let mut ids: Vec<&str> = ids.iter().filter_map(Value::as_str).collect();
        ids.sort_unstable();
        ids.join(" ")
    };
    let differs = |(id, wanted): &&(&str, &str)| needs(id) != *wanted;
    let told =
        |(id, wanted): &(&str, &str)| format!("{what}: {id} waits for '{}' instead of '{wanted}'", needs(id));
    wanted.iter().filter(differs).map(told).collect()
}

#[test]
fn statements_about_order_become_the_edges_that_they_mean() {
    let garden = Garden::sprout();
    let of_stories = SAID_OF_STORIES.iter().map(|row| (format!("{STORIES}{}", row.1), row));
    let of_tasks = SAID_OF_TASKS.iter().map(|row| (format!("{TASKS}\n{}", row.1), row));
    let whole = WHOLE_PLANS.iter().map(|row| (row.1.to_owned(), row));
    let misses: Vec<String> =
        of_stories.chain(of_tasks).chain(whole).flat_map(|(text, row)| misses(&garden, &text, row)).collect();
    assert!(misses.is_empty(), "{}", misses.join("\n"));
}
