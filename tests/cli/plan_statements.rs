//! What plans say about order, row by row: sentences, drawings, waves and sections, and who then waits for whom.

use arborist_core::plan::{Plan, TreeDocument};
use arborist_testkit::TestRepo;
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
    ("a phase by a word of its title", "- **US3**: after the Parity phase\n", &[("phase-5", "phase-6")]),
    (
        "a phase by a word of its title, in Spanish",
        "- **US3** depende de la fase de Parity\n",
        &[("phase-5", "phase-6")],
    ),
    (
        "a phase by the first word of its title",
        "- **Polish**: Depende de Isolation\n",
        &[("phase-7", "phase-6")],
    ),
    ("what must be complete", "- **US3**: Foundational must be complete\n", &[("phase-5", "phase-2")]),
    (
        "all stories in Chinese",
        "- **Polish (Phase 7)**: 依赖所有目标用户故事完成\n",
        &[("phase-7", "phase-3 phase-4 phase-5 phase-6")],
    ),
    (
        "words against a drawing",
        "```\nPhase 3\n   ↓\nPhase 4\n```\n\n- US1 depends on US2\n",
        &[("phase-3", "phase-4"), ("phase-4", "phase-2")],
    ),
    (
        "stories with their priority in brackets",
        "- **User Story 3 (P2)**: Can start after Core Stories (P1) - x\n",
        &[("phase-4", "phase-2"), ("phase-5", "phase-3 phase-4")],
    ),
    (
        "a story that follows another but is independent",
        "- **User Story 2 (P1)**: Can start after Foundational (Phase 2) - Logically follows US1 but technically independent\n",
        &[("phase-4", "phase-2")],
    ),
    (
        "a story that relies on others but is independent",
        "- **User Story 3 (P2)**: Can start after Foundational (Phase 2) – relies on lists and flows from US1/US2\n  for a smooth page, but its own logic is largely independent.\n",
        &[("phase-5", "phase-2")],
    ),
    (
        "a task that runs beside phases before its own",
        "- **Phase 7**: T008 can run in parallel with Phases 3-6\n",
        &[("phase-7", ""), ("T008", "phase-2")],
    ),
    (
        "a task that runs beside any phase",
        "- **T008** (docs) can proceed in parallel with any implementation phase\n",
        &[("phase-7", ""), ("T008", "")],
    ),
    (
        "a task that waits only for an earlier phase",
        "- T008 depends only on Phase 2\n",
        &[("phase-7", ""), ("T008", "phase-2")],
    ),
    (
        "phases that a double arrow parts",
        "```\nPhase 2 (Foundational)\n    ↓\nPhase 3 (US1) ←→ Phase 4 (US2)\n```\n",
        &[("phase-3", "phase-2"), ("phase-4", "phase-2")],
    ),
    (
        "a column of stories that can be parallelized",
        "| Story | Depends on | Can Parallelize With |\n|---|---|---|\n| US1 | Phase 2 | US2 |\n| US2 | Phase 2 | US1 |\n\n```\nPhase 3 → Phase 4 → Phase 5\n```\n",
        &[("phase-4", "phase-2"), ("phase-5", "phase-4")],
    ),
    (
        "what a line of a drawing waits for only, in brackets behind its tasks",
        "```\nT001\n └─→ T002 (Foundational)\n      ├─→ US1: T003 → T004\n      └─→ US2: T005 → T005（仅依赖 T001，可与 Foundational 并行）\n```\n",
        &[("phase-3", "T002"), ("phase-4", "T001")],
    ),
    (
        "stories of a priority",
        "- P1 stories before P2 stories\n",
        &[("phase-3", "phase-2"), ("phase-4", "phase-2"), ("phase-5", "phase-2 phase-3 phase-4")],
    ),
    (
        "the priority order is advice",
        "- **User Stories**: All depend on Foundational\n  - Or sequentially in priority order (P1 US1 → P1 US2 → P2 US3)\n",
        &[("phase-4", "phase-2"), ("phase-5", "phase-2")],
    ),
    (
        "a thing that comes from another story",
        "- **User Story 3 (Phase 5)**: Depends on Foundational + Recipe entity from US1\n",
        &[("phase-5", "phase-2 phase-3")],
    ),
    (
        "one task beside another, behind the name of their phase",
        "- Phase 3: T003 in parallel with T004\n",
        &[("T004", "")],
    ),
    (
        "a denial that is a part of a word",
        "- **US3**: Foundational 完成後可開始 - **無其他用戶故事依賴（獨立）**，但需整合到 US1, US2\n",
        &[("phase-5", "phase-2")],
    ),
    (
        "stories in the order of their priorities",
        "- **User Stories (Phase 3–5)**: depend on Foundational. **Sequential P1 → P2** because they edit the same file.\n",
        &[("phase-3", "phase-2"), ("phase-5", "phase-2 phase-3 phase-4")],
    ),
    (
        "a list below a line that recommends it",
        "- US3 depends on Foundational\n\n**Sequential Implementation (Recommended for Solo Dev)**:\n1. Phase 3 → Phase 4 → Phase 5\n2. Then Phase 6\n\n**Parallel Implementation (Team of 2)**:\n- Dev 1: Phase 3 → Phase 5\n",
        &[("phase-4", "phase-2"), ("phase-5", "phase-2")],
    ),
    (
        "nothing but what a story waits for",
        "- **US1 (P1)**: Foundation only - first (requires care)\n- **US3 (P2)**: Foundation + US2 - last\n",
        &[("phase-3", "phase-2"), ("phase-5", "phase-2 phase-4")],
    ),
    (
        "Russian",
        "- **US2 (Phase 4)**: После US1\n- **US3**: зависит от US2\n",
        &[("phase-4", "phase-3"), ("phase-5", "phase-4")],
    ),
    (
        "what a drawing shows beside a firm word",
        "- **US3 (Phase 5)**: Depends on Foundational only\n\n```\nUS2 (Phase 4)\n  ↓\nUS3 (Phase 5)\n```\n",
        &[("phase-5", "phase-2")],
    ),
    (
        "soft dependencies",
        "| Story | Can start after | Soft Dependencies |\n|---|---|---|\n| US3 (P2) | Phase 2 | US1 (needs data) |\n",
        &[("phase-5", "phase-2")],
    ),
    (
        "a section that only recommends",
        "- US3 depends on Foundational\n\n### Recommended Sequential Order\n\n- Phase 3 → Phase 4 → Phase 5\n",
        &[("phase-4", "phase-2"), ("phase-5", "phase-2")],
    ),
    (
        "all that the stories make",
        "- **Phase 6**: Depends on all user story entities being complete\n",
        &[("phase-6", "phase-3 phase-4 phase-5")],
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
        &[("phase-2", "phase-1"), ("phase-4", "phase-2"), ("phase-7", "phase-3 phase-4 phase-5 phase-6")],
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
        "a chain told in one sentence",
        "## Dependencies\n\n- T005 depends on T003, which depends on T002\n",
        &[("T003", "T001 T002"), ("T005", "T003 T004")],
    ),
    (
        "tasks that do not depend on each other in Chinese",
        "## Dependencies\n\n- T003 和 T004 互不依赖，可并行\n",
        &[("T004", "T001 T002")],
    ),
    (
        "tasks that do not depend on each other in Japanese",
        "## Dependencies\n\n- T003とT004は互いに依存しない\n",
        &[("T004", "T001 T002")],
    ),
    (
        "tasks that are independent of each other in Chinese",
        "## Dependencies\n\n- T003、T004 相互独立\n",
        &[("T004", "T001 T002")],
    ),
    (
        "a range that runs in parallel before an arrow",
        "## Dependencies\n```\nT001 ～ T004（並行可能） → T005\n```\n",
        &[("T004", ""), ("T005", "T001 T002 T003 T004")],
    ),
    (
        "a line of a drawing that puts a task beside several others",
        "## Dependencies\n```\nT002 (routes)  ─ 依賴 T001\nT003 (page)    ─ 可與 T001/T002 平行進行\n```\n",
        &[("T002", "T001"), ("T003", "")],
    ),
    (
        "a task beside several others in Korean",
        "## Dependencies\n\n- T004는 T002, T003과 병렬 가능\n",
        &[("T004", "T001")],
    ),
    (
        "a line of a batch whose tasks are sequential",
        "## Parallel work\n```\n# Can run in parallel (two files):\nT004 + T005: a.ts\nT001 + T002 + T003: b.ts (sequential - same file)\n```\n",
        &[("T002", "T001"), ("T004", ""), ("T005", "T004")],
    ),
    (
        "one line of tasks below a label that says that they are parallel",
        "## Parallel work\n```\n# Parallel:\nT001 + T002\n```\n",
        &[("T002", "")],
    ),
    (
        "lines that each say of one task that it is parallel",
        "## Parallel work\n```\nT001 — the class     (parallel)\nT002 — the handler   (parallel)\n```\n",
        &[("T002", "")],
    ),
    (
        "tracks beside each other",
        "## Parallel work\n```\n# Then in two parallel tracks:\nBackend:  T001 → T002\nFrontend: T003 ∥ T004\nDocs: T005 (after both tracks)\n```\n",
        &[("T002", "T001"), ("T003", ""), ("T004", ""), ("T005", "T001 T002 T003 T004")],
    ),
    (
        "tasks that run together, with brackets behind what they do",
        "## Parallel work\n- T001 + T002: create the class and the handler (two files) — run together\n",
        &[("T002", "")],
    ),
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
        "tasks that run in parallel after one, some of which come before it",
        "## Dependencies\n- **Phase 1**: Tasks T002, T003 and T005 can run in parallel after T004\n",
        &[("T002", "T001"), ("T004", "T002 T003"), ("T005", "T004")],
    ),
    (
        "what runs in parallel after a task waits for nothing else",
        "## Dependencies\n- T004, T005 (x) — all parallel after T001\n",
        &[("T004", "T001"), ("T005", "T001")],
    ),
    (
        "members of a chain that are marked as parallel",
        "## Dependencies\n```\nT001 → T002,T004 [P] → T005\n```\n",
        &[("T002", "T001"), ("T004", "T001 T003"), ("T005", "T002 T004")],
    ),
    (
        "a label before all tasks that are named in brackets",
        "## Dependencies\n- **Phase 1**: All 4 tasks can run in parallel (T001-T004)\n",
        &[("T002", ""), ("T004", ""), ("T005", "T001 T002 T003 T004")],
    ),
    (
        "groups below a label that says that they are parallel",
        "## Parallel work\n\n**Phase 1** Parallel Groups:\n- Group A: T001, T002 (x)\n- Group B: T003, T004 (y)\n",
        &[("T002", ""), ("T004", "T001 T002")],
    ),
    (
        "what each of several terminals does",
        "## Parallel work\n```bash\n# Adapters\nTerminal 1: T002 - x\nTerminal 2: T003-T004 - y\n```\n",
        &[("T004", "T001 T003")],
    ),
    (
        "the end of a range with fewer digits",
        "## Dependencies\n- T002-T4 are sequential\n",
        &[("T003", "T001 T002"), ("T004", "T002 T003")],
    ),
    (
        "tasks that are called by a pronoun",
        "## Dependencies\n- T002 and T003 edit one file. Run them **sequentially**\n- T004 and T005 (two files, both depend on T001)\n",
        &[("T003", "T001 T002"), ("T005", "T001 T004")],
    ),
    (
        "a label before tasks that are called by a pronoun",
        "## Dependencies\n- Phase 1: T001 and T002 are independent (two files); T003 depends on both.\n",
        &[("T003", "T001 T002")],
    ),
    (
        "tasks that depend on each other",
        "## Dependencies\n- T002 and T003 depend on each other\n",
        &[("T003", "T001 T002")],
    ),
    ("Spanish", "## Dependencies\n- T001 y T004 (x) pueden ir en paralelo\n", &[("T001", ""), ("T004", "")]),
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
        &[("T007", "T001 T006"), ("phase-2", "phase-1")],
    ),
    ("a task that can be done at any time", "## Dependencies\n- T005 can be done anytime\n", &[("T005", "")]),
];

const WHOLE_PLANS: &[Row] = &[
    (
        "stories with names and numbers",
        "## Phase 1: Setup\n- [ ] T001 a\n## Phase 2: User Story CSV1 - x\n- [ ] T002 b\n## Phase 3: User Story RULE1 - y\n- [ ] T003 c\n## Phase 4: User Story CSV2 - z\n- [ ] T004 d\n\n## Dependencies\n\n- **CSV1 → CSV2**: one behind the other\n- **RULE1**: Depends on CSV2 completion\n",
        &[("phase-2", "phase-1"), ("phase-3", "phase-4"), ("phase-4", "phase-2")],
    ),
    (
        "stories with names in a table",
        "## Phase 1: Setup\n- [ ] T001 a\n## Phase 2: User Story CSV1 - x\n- [ ] T002 b\n## Phase 3: User Story RULE1 - y\n- [ ] T003 c\n## Phase 4: User Story CSV2 - z\n- [ ] T004 d\n\n## Dependencies\n\n| Story | Depends on |\n|---|---|\n| CSV1 | - |\n| RULE1 | US-CSV1 |\n| CSV2 | User Story RULE1 |\n",
        &[("phase-3", "phase-2"), ("phase-4", "phase-3")],
    ),
    (
        "stories whose names only the tags of tasks tell",
        "## Phase 1: Setup\n- [ ] T001 a\n## Phase 2: Login\n- [ ] T002 [US-AUTH] b\n## Phase 3: Checkout\n- [ ] T003 [US-PAY] c\n\n## Dependencies\n\n- PAY depends on AUTH\n",
        &[("phase-3", "phase-2")],
    ),
    (
        "phases beside each other by their tasks, of which one has a slash in its name",
        "## Phase 1: Setup\n- [ ] T001 a\n## Phase 2: Documentation\n- [ ] T002 b\n- [ ] T003 c\n## Phase 3: CI/CD Migration\n- [ ] T004 d\n- [ ] T005 e\n\n## Dependencies\n\n- Documentation (T002-T003) can run parallel with CI/CD (T004-T005)\n",
        &[("phase-2", "phase-1"), ("T004", "phase-1"), ("T005", "T004 phase-1")],
    ),
    (
        "a task of the setup that no story waits for",
        "## Phase 1: Setup\n- [ ] T001 a\n- [ ] T002 [P] b\n## Phase 2: User Story 1 - x\n- [ ] T003 c\n## Phase 3: Polish\n- [ ] T004 d\n\n## Dependencies\n\n- **User Story 1**: Depends on T001\n- **Polish**: Depends on Phase 2\n",
        &[("phase-2", "T001"), ("phase-3", "phase-1 phase-2")],
    ),
    (
        "headings without marks",
        "# Tasks\n\nPhase 1 — Setup\n\n- [ ] T001 a\n\nPhase 2 — User Story 1 (US1) — x\n\nStory goal: see it.\n\n- [ ] T002 [US1] b\n- [ ] T003 [US1] c\n\nPhase 3 — User Story 2 (US2) — y\n\n- [ ] T004 [US2] d\n\nDependencies (story order)\n\n1. US2 tasks depend on the page (T002).\n",
        &[("phase-2", "phase-1"), ("T003", "T002"), ("phase-3", "T002"), ("T004", "")],
    ),
    (
        "what the tasks below a line of a fence wait for",
        "## Phase 1: a\n- [ ] T001 [P] a\n- [ ] T002 [P] b\n- [ ] T003 [P] c\n\n## Parallel Example\n\n```bash\n# After T001 is complete:\nT002: b\nT003: c\n```\n",
        &[("T002", "T001"), ("T003", "T001")],
    ),
    (
        "a part of a story that depends on another",
        "## Phase 1: Foundation\n- [ ] T001 a\n## Phase 2: User Story 1 - x\n- [ ] T002 b\n## Phase 3: User Story 2 - y\n- [ ] T003 c\n- [ ] T004 (deferred until US1 exists) d\n\n## Dependencies\n\n- **US2 (Phase 3)**: Depends on Foundation; route integration depends on the US1 route.\n",
        &[("phase-3", "phase-1"), ("T004", "T003 phase-2")],
    ),
    (
        "a second foundation, behind the polish of the first stories",
        "## Phase 1: Foundational\n- [ ] T001 a\n## Phase 2: User Story 1 - x\n- [ ] T002 b\n## Phase 3: Polish\n- [ ] T003 c\n## Phase 4: Foundational 2\n- [ ] T004 d\n## Phase 5: User Story 2 - y\n- [ ] T005 e\n\n## Dependencies\n\n- **Foundational (Phase 1)**: blocks US1\n- **User Stories rev.2 (Phase 5-5)**: All depend on Foundational 2 (Phase 4)\n",
        &[("phase-2", "phase-1"), ("phase-3", "phase-2"), ("phase-4", "phase-3"), ("phase-5", "phase-4")],
    ),
    (
        "remarks about order in a drawn list",
        "## Phase 1: a\n- [ ] T001 [P] a\n- [ ] T002 [P] b\n- [ ] T003 [P] c\n- [ ] T004 [P] d\n\n## Parallel Opportunities\n\n```\nT001: a.ts ─┐\nT002: b.ts ─┤ (parallel — two files)\nT003: c.ts ─┤ (parallel after T001)\nT004: d.ts ─┘ (sequential after T001+T003)\n```\n",
        &[("T002", ""), ("T003", "T001"), ("T004", "T001 T003")],
    ),
    (
        "what is not to start until others are done",
        "## Phase 1: Foundational\n- [ ] T001 a\n## Phase 2: User Story 1 - x\n- [ ] T002 b\n- [ ] T003 c\n## Phase 3: User Story 2 - y\n- [ ] T004 d\n\n## Dependencies\n\n- **US2**: Starts after Phase 1; do not start US2 until T002 is complete\n",
        &[("phase-3", "T002 phase-1")],
    ),
    (
        "tasks that run in parallel with each other, beside one that joins some of them",
        "## Phase 1: a\n- [ ] T001 [P] a\n- [ ] T002 [P] b\n- [ ] T003 c\n- [ ] T004 [P] d\n\n## Dependencies\n\n- Tasks T001–T002 and T004 can all run in parallel with each other.\n",
        &[("T003", "T001 T002"), ("T004", "")],
    ),
    (
        "an id in brackets behind what is needed",
        "## Phase 1: Setup\n- [ ] T001 a\n## Phase 2: User Story 1 - x\n- [ ] T002 b\n- [ ] T003 c\n## Phase 3: User Story 2 - y\n- [ ] T004 d\n\n## Dependencies\n\n- **US2 (Phase 3)**: needs Phase 1 + AccountMenu (T002). Internal: none\n",
        &[("phase-3", "T002 phase-1")],
    ),
    (
        "what another story depends on, behind which",
        "## Phase 1: Setup\n- [ ] T001 a\n## Phase 2: User Story 1 - x\n- [ ] T002 b\n## Phase 3: User Story 2 - y\n- [ ] T003 c\n## Phase 4: User Story 3 - z\n- [ ] T004 d\n\n## Dependencies\n\n1. **User Story 1** establishes the model, which **User Story 2** depends on.\n2. **User Story 2** establishes the tokens, which **User Story 3** extends.\n",
        &[("phase-3", "phase-2"), ("phase-4", "phase-3")],
    ),
    (
        "tasks in the heading of a parallel group",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n\n## Parallel Execution Examples\n\n### Parallel Group 1: Integration Points (T002-T003)\n\n```bash\n# After T001 is complete:\nT002: b\nT003: c\n```\n",
        &[("T002", "T001"), ("T003", "T001")],
    ),
    (
        "a standalone phase that mentions a story",
        "## Phase 1: Foundation\n- [ ] T001 a\n## Phase 2: Protection (User Story 1)\n- [ ] T002 [US1] b\n## Phase 3: Docs\n- [ ] T003 c\n\n## Dependencies\n\n- **Protection (Phase 2)**: No dependencies — standalone script\n",
        &[("phase-2", ""), ("phase-3", "phase-1 phase-2")],
    ),
    (
        "tasks that are all independent",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n\n## Dependencies\n\n- T001-T002 (Phase 1) — all independent\n",
        &[("T002", ""), ("T003", "T001 T002")],
    ),
    (
        "independent tasks below a drawing, one of which is all of its phase",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n## Phase 2: Polish\n- [ ] T003 c\n\n## Dependencies\n\n```\nT001 (a)\nT002, T003 — independent verification tasks\n```\n",
        &[("T002", ""), ("phase-2", "")],
    ),
    (
        "all tasks of a phase beside those of another",
        "## Phase 1: Setup\n- [ ] T001 a\n- [ ] T002 b\n## Phase 2: Foundational\n- [ ] T003 c\n## Phase 3: More\n- [ ] T004 d\n\n## Dependencies\n\n- T001, T002 (Setup) can run in parallel with T003 (Foundational)\n",
        &[("phase-2", ""), ("phase-3", "phase-1 phase-2")],
    ),
    (
        "marked tasks of a range that run in parallel",
        "## Phase 1: a\n- [ ] T001 [P] a\n- [ ] T002 b\n- [ ] T003 [P] c\n- [ ] T004 d\n\n## 의존성\n\n- [P]로 표시된 모델 태스크는 병렬 실행 가능 (T001-T004)\n",
        &[("T002", "T001"), ("T003", ""), ("T004", "T002 T003")],
    ),
    (
        "what is independent of both that were named before it",
        "## Phase 1: a\n- [ ] T008 a\n- [ ] T009 b\n- [ ] T010 [P] c\n- [ ] T011 [P] d\n- [ ] T012 e\n- [ ] T013 f\n\n## Parallel Opportunities\n\n- T010/T011 (the hosts) in parallel once T008/T009 land; T012 (the delivery host) is independent of both and can run alongside them.\n",
        &[("T010", "T008 T009"), ("T012", "T009"), ("T013", "T010 T011 T012")],
    ),
    (
        "a drawing beside tasks that all name their dependencies is a summary",
        "## T001 — a\n- **Files:** x | **Depends-on:** — | y\n## T002 — b\n- **Files:** x | **Depends-on:** T001\n## T003 — c\n- **Tests:** no | **Depends-on:** T001\n## T004 — d\n- **Files:** x | **Depends-on:** T002, T003\n### Dependency graph (summary)\n```\nT001 ─▶ T002 ─▶ T003 ─▶ T004\n```\n",
        &[("T002", "T001"), ("T003", "T001"), ("T004", "T002 T003")],
    ),
    (
        "a test and a page of a story that run in parallel, behind a dash",
        "## Phase 1: US1 - x\n### Tests for US1\n- [ ] T001 [P] [US1] test a\n- [ ] T002 [P] [US1] test b\n### Implementation for US1\n- [ ] T003 [P] [US1] page\n- [ ] T004 [US1] class\n## Dependencies\n### Parallel Opportunities\n- T001, T002, T003 — US1 test specs and page in parallel\n",
        &[("T003", ""), ("T004", "T001 T002 T003")],
    ),
    (
        "groups in brackets that run concurrently with each other",
        "## Phase 1: a\n- [ ] T001 dto\n- [ ] T002 service\n- [ ] T003 route\n- [ ] T004 page\n- [ ] T005 join\n## Dependencies\n### Parallel Opportunities\n- Frontend UI work (T004) runs concurrently with Backend API logic (T002, T003).\n",
        &[("T004", "T001"), ("T005", "T003 T004")],
    ),
    (
        "a line of a batch that says that it is sequential",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n## Parallel Example\n```\n# all in parallel:\nTask T001: a.ts\nTask T002: b.ts\nTask T003: b.ts (same file as T002 — sequential)\n```\n",
        &[("T002", ""), ("T003", "T001 T002")],
    ),
    (
        "one task against a range, by its mark",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n- [ ] T004 d\n\n## Dependencies\n\nT001-T002 are sequential (one file); T003 [P] vs T001-T002 (another file); T004 depends on T001-T003.\n",
        &[("T003", ""), ("T004", "T001 T002 T003")],
    ),
    (
        "a phase of a story that says what it waits for, and another with the same tag",
        "## Phase 6: Health\n- [ ] T001 a\n## Phase 7: Notes\n- [ ] T002 [US5] b\n## Phase 8: User Story 5 - x\n- [ ] T003 [US5] c\n## Dependencies\n- **Phase 7: Notes**: Depends on Phase 6\n- **Phase 8: US5 (x)**: Depends on Phase 6\n",
        &[("phase-7", "phase-6"), ("phase-8", "phase-6")],
    ),
    (
        "two phases of a story by their titles run in order",
        "## Phase 1: Foundational\n- [ ] T001 a\n## Phase 2: US5 tests\n- [ ] T002 [US5] b\n## Phase 3: US5 code\n- [ ] T003 [US5] c\n## Dependencies\n- US5 depends on Foundational\n",
        &[("phase-2", "phase-1"), ("phase-3", "phase-1 phase-2")],
    ),
    (
        "names with tasks in brackets that run beside each other",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n- [ ] T004 d\n- [ ] T005 e\n- [ ] T006 f\n\n## Dependencies\n\n- Models (T002-T003) and pages (T004), panels (T005, T006) can be built in parallel\n",
        &[("T003", "T002"), ("T004", "T001"), ("T005", "T001"), ("T006", "T001")],
    ),
    (
        "the same in Japanese",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n- [ ] T004 d\n\n## 依存関係\n\n- モデル (T002-T003) と画面 (T004) は並列実行可能\n",
        &[("T003", "T002"), ("T004", "T001")],
    ),
    (
        "tasks of which brackets say that they run in parallel",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n\n## Task Dependency Chain\n\n```\nT002, T003 (parallel)\n```\n",
        &[("T002", "T001"), ("T003", "T001")],
    ),
    (
        "Chinese, traditional: parallel",
        "## 第一階段：基礎建設 (Foundational)\n- [ ] T001 a\n## 第二階段：User Story 1 - x\n- [ ] T002 b\n- [ ] T003 c\n- [ ] T004 d\n## 第三階段：User Story 2 - y\n- [ ] T005 e\n## 第四階段：User Story 3 - z\n- [ ] T006 f\n\n## 依賴關係\n\n- T003-T004 可平行執行\n- **User Story 2**：Foundational 完成後即可開始 - 可與 US1 平行\n- **US1**: US3 的前置條件\n",
        &[("phase-2", "phase-1"), ("phase-3", "phase-1"), ("phase-4", "phase-1 phase-2"), ("T004", "T002")],
    ),
    (
        "an arrow that leads to a remark",
        "## Phase 1: Foundational\n- [ ] T001 a\n## Phase 2: User Story 1\n- [ ] T002 b\n## Phase 3: User Story 2\n- [ ] T003 c\n## Phase 4: User Story 3\n- [ ] T004 d\n\n## Dependencies\n\n```\nUS1 → [All other stories can parallelize]\nUS3 ← (depends on US2 for its data)\n```\n\n- US2 can run in parallel with US1\n",
        &[("phase-3", "phase-1"), ("phase-4", "phase-2 phase-3")],
    ),
    (
        "what can begin once another is done, beside the dependencies",
        "## 1. Base\n- [ ] 1.1 a\n## 2. Page\n- [ ] 2.1 b\n## 3. Build\n- [ ] 3.1 c\n\n## Parallelizable work\n\n- The build (Task 3) can be set up once Task 1 is complete\n",
        &[("2-page", "1-base"), ("3-build", "1-base")],
    ),
    (
        "a table of numbered rows",
        "# Plan\n\n| # | Module | Depends on | Status |\n|---|---|---|---|\n| 1 | a | — | done |\n| 2 | b | 1 | open |\n| 3 | c | 1 | open |\n| 4 | d | 2, 3 | open |\n",
        &[("1", ""), ("2", "1"), ("3", "1"), ("4", "2 3")],
    ),
    (
        "the number of a wave is no task",
        "- [ ] 1. a\n- [ ] 2. b\n- [ ] 3. c\n\n## Execution waves\n\n| Wave | Tasks | Dependencies |\n|---|---|---|\n| 2 | 1. a | None |\n| 3 | 2. b | Wave 2 |\n| 4 | 3. c | Wave 3 |\n",
        &[("1", ""), ("2", "1"), ("3", "2")],
    ),
    (
        "a task that can run at any time",
        "## Phase 1: a\n- [ ] T001 a\n## Phase 2: b\n- [ ] T002 b\n- [ ] T003 Write the docs (can run at any time)\n- [ ] T004 c\n## Phase 3: d\n- [ ] T005 Draw a logo. Can be done anytime\n- [ ] T006 Let users cancel at any time\n\n## Dependencies\n\n- Phase 2 depends on Phase 1\n",
        &[
            ("T003", ""),
            ("T002", "phase-1"),
            ("T004", "T002 T003 phase-1"),
            ("phase-2", ""),
            ("T005", ""),
            ("T006", "T005 phase-2"),
        ],
    ),
    (
        "a task that may run beside the tests of its phase",
        "## Phase 1: US1 - x\n### Tests\n- [ ] T001 [P] [US1] test a\n- [ ] T002 [US1] test b\n### Implementation\n- [ ] T003 [P] [US1] types\n- [ ] T004 [US1] service\n## Dependencies\n- US1 types (T003) can run parallel with tests\n",
        &[("T003", ""), ("T004", "T002 T003")],
    ),
    (
        "needs in the heading of a part of a phase",
        "## Phase 1: a\n### Domain\n- [ ] T001 a\n### Store\n- [ ] T002 b\n### API wiring (depends on T001)\n- [ ] T003 c\n",
        &[("store", "domain"), ("api-wiring-depends-on-t001", "T001")],
    ),
    (
        "a phase that is continued",
        "## Phase A: a\n- [ ] T001 a\n## Phase A (continued): b\n- [ ] T002 b\n## Phase B: c\n- [ ] T003 c\n## Phase C: d\n- [ ] T004 d\n## Dependencies\n- **Phase C**: Can start in parallel with Phase B — only requires Phase A's types\n",
        &[("T002", "T001"), ("phase-b", "phase-a"), ("phase-c", "phase-a")],
    ),
    (
        "tasks that say that they are sequential with others",
        "## Phase 1: Foundational\n- [ ] T001 a\n## Phase 2: User Story 1\n- [ ] T002 [US1] b\n## Phase 3: User Story 2\n- [ ] T003 [US2] c. **Sequential with T002/T004** (same file)\n## Phase 4: User Story 3\n- [ ] T004 [US3] d\n",
        &[("T003", "T002"), ("T004", "T003"), ("phase-3", "phase-1")],
    ),
    (
        "a story that the text of a task only tells about",
        "## Phase 1: Foundational\n- [ ] T001 a\n## Phase 2: User Story 1\n- [ ] T002 [US1] b\n## Phase 3: User Story 2\n- [ ] T003 [US2] c (corrected after US1 hit this)\n- [ ] T004 [US2] d (after US1 is done)\n",
        &[("T003", ""), ("T004", "T003 phase-2")],
    ),
    (
        "dependencies in other sections",
        "## Phase 1: Foundational\n- [ ] T001 a\n## Phase 2: User Story 1\n- [ ] T002 [US1] b\n## Phase 3: User Story 2\n- [ ] T003 [US2] c\n## Phase 4: User Story 3\n- [ ] T004 [US3] d\n## Strategy\n\nSince US1 is P1, and US3 depends on US1 components:\n\n1. US1 first\n\n## Notes\n- The page is changed by T002 → T003 — always work sequentially on this file\n",
        &[("phase-4", "phase-1 phase-2"), ("T003", "T002")],
    ),
    (
        "a task that can run at any time behind another",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c (any time after T001)\n- [ ] T004 d (any time after lunch)\n",
        &[("T003", "T001"), ("T004", "T002 T003")],
    ),
    (
        "phases by what their titles count",
        "## Phase 1: Base\n- [ ] T001 a\n## Phase 2: Module 1 - Walk\n- [ ] T002 b\n## Phase 3: Module 2 - Run\n- [ ] T003 c\n## Phase 4: Module 3 - Jump\n- [ ] T004 d\n## Phase 5: End\n- [ ] T005 e\n\n## Parallel Opportunities\n\n- Module 1, 2 and 3 can be developed in parallel\n",
        &[("phase-3", "phase-1"), ("phase-4", "phase-1"), ("phase-5", "phase-2 phase-3 phase-4")],
    ),
    (
        "a range of what titles count",
        "## Phase 1: Base\n- [ ] T001 a\n## Phase 2: Module 1 - Walk\n- [ ] T002 b\n## Phase 3: Module 2 - Run\n- [ ] T003 c\n## Phase 4: Module 3 - Jump\n- [ ] T004 d\n\n## Dependencies\n\n- Module 3 depends on Module 1\n- Modules 1-2 depend on Phase 1\n",
        &[("phase-2", "phase-1"), ("phase-3", "phase-1"), ("phase-4", "phase-2")],
    ),
    (
        "milestones by their word",
        "## Milestone 1: a\n- [ ] T001 a\n## Milestone 2: b\n- [ ] T002 b\n## Milestone 3: c\n- [ ] T003 c\n\n## Dependencies\n\n- Milestone 3 depends on Milestone 1\n",
        &[("phase-2", "phase-1"), ("phase-3", "phase-1")],
    ),
    (
        "a name that stands for tasks",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n- [ ] T004 d\n- [ ] T005 e\n\n## Dependencies\n\n- Program fixes (T002-T003) are sequential. Page fixes (T004-T005) can run in parallel with program fixes.\n",
        &[("T003", "T002"), ("T004", "T001"), ("T005", "T001 T004")],
    ),
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
    (
        "tasks as headings with tables of properties",
        "## Phase 1 : a\n\n### T001 - a\n\n| Attribut | Valeur |\n|---|---|\n| Depends | - |\n\n### T002 - b\n\n| Attribut | Valeur |\n|---|---|\n| Depends | - |\n| Blocks | T003 |\n\n### T003 - c\n\n| Attribut | Valeur |\n|---|---|\n| Depends | T002 |\n\n### T004 - d\n\n| Attribut | Valeur |\n|---|---|\n| Depends | T001 |\n",
        &[("T001", ""), ("T002", ""), ("T003", "T002"), ("T004", "T001")],
    ),
    (
        "headings that are numbered through all sections",
        "# Tasks\n\n## Foundation Tasks\n\n### 1. Add the hook ✅\n\n- do it\n\n### 2. Use it\n\n## Core Tasks\n\n### 3. Ship it\n\n## Acceptance\n\n- [ ] it works\n",
        &[("1", ""), ("2", "1"), ("core-tasks", "foundation-tasks")],
    ),
    (
        "a number that counts names no task",
        "- [ ] 1. Limit the login\n  - Block after 3 failed attempts\n- [ ] 2. Log it\n- [ ] 3. Show it\n",
        &[("1", ""), ("2", "1"), ("3", "2")],
    ),
    (
        "what comes before tasks that depend on it",
        "## Phase 1: a\n- [ ] T001 [P] a\n- [ ] T002 [P] b\n- [ ] T003 [P] c\n\n## Dependencies\n\n- The service (T001) before components that depend on it (T002-T003)\n",
        &[("T001", ""), ("T002", "T001"), ("T003", "T001")],
    ),
    (
        "each test before its own implementation",
        "## Phase 1: a\n- [ ] T001 [P] a\n- [ ] T002 [P] b\n- [ ] T003 [P] c\n- [ ] T004 [P] d\n\n## Dependencies\n\n- Tests (T001, T003) must fail before their paired implementation tasks (T002, T004)\n",
        &[("T002", "T001"), ("T003", ""), ("T004", "T003")],
    ),
    (
        "a word about later tasks in the text of a task",
        "## Phase 1: a\n- [ ] T001 Test that all behaves the same after the T002/T003 extraction\n- [ ] T002 b\n- [ ] T003 c\n",
        &[("T001", ""), ("T002", "T001"), ("T003", "T002")],
    ),
    (
        "the end of a range that has parts",
        "## Phase 1: a\n- [ ] T001 [P] a\n- [ ] T002 b\n- [ ] T002a c\n- [ ] T003 d\n\n## Dependencies\n\n- T001-T002 can run in parallel\n",
        &[("T002", ""), ("T002a", "T001 T002"), ("T003", "T002a")],
    ),
    (
        "a range that is a whole phase",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n## Phase 2: b\n- [ ] T003 c\n## Phase 3: c\n- [ ] T004 [P] d\n- [ ] T005 [P] e\n\n## Dependencies\n\n- T004-T005 (Service) depends on T001\n",
        &[("phase-2", "phase-1"), ("phase-3", "T001"), ("T004", "")],
    ),
    (
        "tasks in brackets behind the word",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n- [ ] T004 d\n\n## Dependencies\n\n- All shared libraries can be created in parallel (T002-T003)\n",
        &[("T002", "T001"), ("T003", "T001"), ("T004", "T002 T003")],
    ),
    (
        "groups between bars",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n- [ ] T004 d\n- [ ] T005 e\n\n## Dependencies\n\n- T002 ‖ T003+T004\n",
        &[("T002", "T001"), ("T003", "T001"), ("T004", "T001 T003"), ("T005", "T002 T004")],
    ),
    (
        "pairs",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n- [ ] T004 d\n- [ ] T005 e\n\n## Parallel Opportunities\n\n- T002+T003, T004+T005 (state modules) — each pair sequential, pairs parallel\n",
        &[("T002", "T001"), ("T003", "T002"), ("T004", "T001"), ("T005", "T001 T004")],
    ),
    (
        "ranges beside each other",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n- [ ] T004 d\n- [ ] T005 e\n- [ ] T006 f\n\n## Dependencies\n\n- T001 must complete before T002-T006\n- T002-T003 (Hero), T004-T005 (Footer) can run in parallel\n",
        &[
            ("T002", "T001"),
            ("T003", "T001 T002"),
            ("T004", "T001"),
            ("T005", "T001 T004"),
            ("T006", "T001 T003 T005"),
        ],
    ),
    (
        "a list below a line about parallel work",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n- [ ] T004 d\n\n## Parallel Opportunities\n\n```text\nParallel batch A (different files):\n  T002: b\n  T003: c\n\nSequential after batch A:\n  T004: d\n```\n",
        &[("T002", "T001"), ("T003", "T001"), ("T004", "T002 T003")],
    ),
    (
        "such a list of a test and its implementation",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 write tests for b\n- [ ] T003 make b\n\n## Parallel Opportunities\n\nParallel batch 1:\n\n- T002\n- T003\n",
        &[("T003", "T002")],
    ),
    (
        "sections that are named by their titles",
        "## Phase 1: a\n- [ ] T001 a\n## Phase 2: b\n### Hooks & Utils\n- [ ] T002 [P] b\n### Services (API)\n- [ ] T003 [P] c\n### Wrap up\n- [ ] T004 d\n\n## Parallel Execution\n\n- Services and hooks can be written in parallel.\n",
        &[("T002", ""), ("T003", ""), ("T004", "T002 T003")],
    ),
    (
        "the story of a phase in a line below its heading",
        "## Phase 1: Setup\n- [ ] T001 a\n## Phase 2: Pages & Polish\n\n> **Story**: US1 (Priority P1)\n\n- [ ] T002 b\n## Phase 3: More (US2)\n- [ ] T003 c\n## Phase 4: Polish\n- [ ] T004 d\n\n## Dependencies\n\n- US2 depends on US1\n",
        &[("phase-2", "phase-1"), ("phase-3", "phase-2"), ("phase-4", "phase-1 phase-2 phase-3")],
    ),
    (
        "a part of a phase that says what it waits for",
        "## Phase 1: a\n### Group A - Tables\n- [ ] T001 a\n- [ ] T002 b\n### Group B - Mail (depends on T001)\n- [ ] T003 c\n### Group C - Pages (depends on hooks in Group B)\n- [ ] T004 d\n",
        &[("group-b-mail-depends-on-t001", "T001"), ("T003", ""), ("T004", "")],
    ),
    (
        "groups with names between bars",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n- [ ] T004 d\n\n## Dependencies\n\n- Server (T002-T003) ∥ client (T004)\n",
        &[("T003", "T002"), ("T004", "T001")],
    ),
    (
        "groups that \"and\" joins",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n- [ ] T004 d\n- [ ] T005 e\n\n## Dependencies\n\n- T002/T003 (server) and T004/T005 (client) can run in parallel\n",
        &[("T003", "T002"), ("T004", "T001"), ("T005", "T001 T004")],
    ),
    (
        "a dash before the word",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n\n## Dependencies\n\n- T002, T003 (models) - parallel after T001\n",
        &[("T002", "T001"), ("T003", "T001")],
    ),
    (
        "a range in brackets that is sequential",
        "## Phase 1: a\n- [ ] T001 [P] a\n- [ ] T002 [P] b\n\n## Dependencies\n\n- Phase 1: fixes (T001-T002) are sequential\n",
        &[("T002", "T001")],
    ),
    (
        "tests that stand behind the implementation",
        "## Phase 1: a\n### Implementation\n- [ ] T001 a\n### Tests\n- [ ] T002 b\n\n## Notes\n- TDD is optional\n",
        &[("T001", ""), ("T002", "T001")],
    ),
    (
        "tests that stand behind the implementation and are to be written first",
        "## Phase 1: a\n### Implementation\n- [ ] T001 a\n### Tests\n- [ ] T002 b\n\n## Notes\n- Tests must fail before implementation\n",
        &[("T001", "T002"), ("T002", "")],
    ),
    (
        "tests that a chain puts behind the implementation",
        "## Phase 1: a\n### Implementation\n- [ ] T001 a\n### Tests\n- [ ] T002 b\n## Phase 2: b\n### Implementation\n- [ ] T003 c\n- [ ] T004 d\n### Tests\n- [ ] T005 e\n\n## Dependencies\n\n```\nPhase 1\n  └── Phase 2 (T003 → T004 → T005)\n```\n",
        &[("T001", ""), ("T002", "T001"), ("T003", ""), ("T005", "T004")],
    ),
    (
        "a table of waves whose rows say when they run",
        "- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 [P] c\n- [ ] T004 d\n- [ ] T005 [P] e\n- [ ] T006 [P] f\n\n## Parallel work\n\n| Wave | Tasks |\n|---|---|\n| After T001 | T002, T003 in parallel |\n| US2 | T005, T006 parallel after T004 is decided |\n",
        &[("T002", "T001"), ("T003", "T001"), ("T004", "T002 T003"), ("T005", "T004"), ("T006", "T004")],
    ),
    (
        "tests and another task that a few words name",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 [P] test\n- [ ] T003 b\n- [ ] T004 [P] c\n\n## Parallel Opportunities\n\n- Test T002 and content task T004 can run in parallel.\n",
        &[("T002", "T001"), ("T004", "T001")],
    ),
    (
        "arrows that mean 'needs', and everything else",
        "## Phase 1: a\n- [ ] T001 a\n## Phase 2: b\n- [ ] T002 b\n## Phase 3: c\n- [ ] T003 c\n## Phase 4: Polish\n- [ ] T004 d\n## Phase 5: Debt\n- [ ] T005 e\n\n## Dependencies\n\n- Phase 2 → Phase 1 done.\n- Phase 3 → Phase 1 done.\n- Phase 4 → everything else.\n- Phase 5 → Phase 2 done.\n",
        &[("phase-3", "phase-1"), ("phase-4", "phase-1 phase-2 phase-3"), ("phase-5", "phase-2")],
    ),
    (
        "ids with fewer zeros, in a list of what runs in parallel",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n\n## Parallel Opportunities\n\nIn parallel:\n- T002, T3 (pages)\n",
        &[("T002", "T001"), ("T003", "T001")],
    ),
    (
        "parts of a phase all of whose tasks run in parallel",
        "## Phase 1: a\n### Entities\n- [ ] T001 [P] a\n- [ ] T002 [P] b\n### Records\n- [ ] T003 [P] c\n- [ ] T004 [P] d\n### Service (depends on T001-T004)\n- [ ] T005 e\n\n## Parallel Example\n\n```\nLaunch simultaneously:\n  T001  a\n  T002  b\n  T003  c\n  T004  d\n```\n",
        &[("entities", ""), ("records", ""), ("service-depends-on-t001-t004", "T001 T002 T003 T004")],
    ),
    (
        "names in frames on both sides of an arrow",
        "## Phase 1: Foundation\n- [ ] T001 a\n## Phase 2: User Story 5 - Player\n- [ ] T002 [US5] b\n## Phase 3: User Story 6 - Hands\n- [ ] T003 [US6] c\n\n## Dependencies\n\n```\n[Foundation]\n     │\n     ├── [US5: Player] ─────► [US6: Hand Recording]\n```\n",
        &[("phase-3", "phase-2")],
    ),
    (
        "a section of its own with what a task waits for",
        "## Task 1: a\n\n- [ ] x\n\n### Dependencies\n\n- None (types)\n\n## Task 2: b\n\n### Dependencies\n\n- Task 1 (schema)\n\n## Task 3: c\n\n### Dependencies\n\n- Task 1\n\n## Task 4: d\n\n### Dependencies\n\n- Tasks 2-3\n\n## Task 5: e\n\n### Dependencies\n\n- All previous tasks\n",
        &[("1", ""), ("2", "1"), ("3", "1"), ("4", "2 3"), ("5", "1 2 3 4")],
    ),
    (
        "ranges in a list that runs in parallel are each worked through",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n- [ ] T004 d\n- [ ] T005 e\n\n## Parallel Opportunities\n\n**Parallel Batch 1** (simultaneously):\n- T001-T002 (views)\n- T003-T004 (logic)\n",
        &[("T002", "T001"), ("T003", ""), ("T004", "T003"), ("T005", "T002 T004")],
    ),
    (
        "independent files in a fence, all of them marked",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 [P] Write failing tests\n- [ ] T003 b\n- [ ] T004 [P] c\n\n## Parallel Execution Examples\n\n**Independent files after T001:**\n\n```bash\nTask: T002 Write failing tests\nTask: T004 c\n```\n",
        &[("T002", "T001"), ("T003", "T002"), ("T004", "T001")],
    ),
    (
        "a line of a drawing that says that it is independent",
        "## Phase 1: Setup\n- [ ] T001 a\n## Phase 2: User Story 1\n- [ ] T002 [US1] b\n## Phase 3: User Story 2\n- [ ] T003 [US2] c\n## Phase 4: Polish\n- [ ] T004 d\n\n## Dependencies\n\n```\nPhase 1: Setup\n    ↓\nPhase 2: User Story 1\n    ↓\nPhase 3: User Story 2 → Independent (purely visual)\n    ↓\nPhase 4: Polish\n```\n",
        &[("phase-3", "phase-1"), ("phase-4", "phase-1 phase-2 phase-3")],
    ),
    (
        "what blocks others does not tell what else they wait for",
        "## Phase 1: Setup\n- [ ] T001 a\n## Phase 2: Foundational\n- [ ] T002 b\n## Phase 3: c\n- [ ] T003 c\n\n## Dependencies\n\n- Phase 1 blocks everything that follows.\n",
        &[("phase-2", "phase-1"), ("phase-3", "phase-1 phase-2")],
    ),
    (
        "a story that waits for one phase only",
        "## Phase 1: Setup\n- [ ] T001 a\n## Phase 2: Foundational\n- [ ] T002 b\n## Phase 3: User Story 1\n- [ ] T003 c\n\n## Dependencies\n\n- Phase 2 blocks all user stories\n- US1 depends on Phase 1 only\n",
        &[("phase-3", "phase-1")],
    ),
    (
        "steps below a phase count for themselves",
        "## Phase 1: a\n- [ ] T001 a\n## Phase 2: b\n### Step 1\n- [ ] T002 b\n### Step 2\n- [ ] T003 c\n\n## Dependencies\n\n- Phase 2 depends on Phase 1\n- T002+T003 can run in parallel\n",
        &[("phase-2", "phase-1"), ("T003", "")],
    ),
    (
        "a chain that leads to a range says nothing about the order in it",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n- [ ] T004 d\n- [ ] T005 e\n\n## Dependencies\n\n- T001 → T002 → T003-T005\n",
        &[("T004", "T002 T003"), ("T005", "T002 T004")],
    ),
    (
        "Korean",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n## Phase 2: b\n- [ ] T004 d\n## Phase 3: c\n- [ ] T005 e\n\n## Dependencies\n\n- T002·T003 (문서화) 병렬 실행 가능\n- Phase 3 → Phase 1~2 완료 후\n",
        &[("T002", "T001"), ("T003", "T001"), ("phase-3", "phase-1 phase-2")],
    ),
    (
        "a task that says beside which it runs",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b (parallel with T001)\n- [ ] T003 c\n",
        &[("T002", ""), ("T003", "T001 T002")],
    ),
    (
        "a label before the permission",
        "## Phase 1: Setup\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n- [ ] T004 d\n\n## Dependencies\n\n- T001/T002: directory setup can run in parallel\n- T003, T004 (pages) — two files, parallel\n",
        &[("T002", ""), ("T003", "T001 T002"), ("T004", "T001 T002")],
    ),
    (
        "a subject that goes on",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n\n## Dependencies\n\n- T003 depends on T001; can run in parallel with T002\n",
        &[("T002", "T001"), ("T003", "T001")],
    ),
    (
        "a task of another story",
        "## Phase 1: Foundational\n- [ ] T001 a\n## Phase 2: User Story 1\n- [ ] T002 b\n- [ ] T003 c\n## Phase 3: User Story 2\n- [ ] T004 d\n\n## Dependencies\n\n- US2 depends on Phase 1 + US1 T002 (the store)\n",
        &[("phase-3", "T002 phase-1")],
    ),
    (
        "what stories are needed for",
        "## Phase 1: Foundational\n- [ ] T001 a\n## Phase 2: User Story 1\n- [ ] T002 b\n## Phase 3: User Story 2\n- [ ] T003 c\n## Phase 4: User Story 3\n- [ ] T004 d\n\n## Dependencies\n\n- US3 depends on US1 for the chart, US2 for the dates\n",
        &[("phase-4", "phase-2 phase-3")],
    ),
    (
        "phases that are said to wait for each other",
        "## Phase 1: User Story 1\n- [ ] T001 a\n## Phase 2: User Story 2\n- [ ] T002 b\n\n## Dependencies\n\n- US1 depends on US2\n- US2 depends on US1\n",
        &[("phase-1", ""), ("phase-2", "phase-1")],
    ),
    (
        "what can be done while others are in progress",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n\n## Dependencies\n\n- T003 can be done while T001-T002 are in progress\n",
        &[("T002", "T001"), ("T003", "")],
    ),
    (
        "lines that each name what runs at once",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n- [ ] T004 d\n\n## Parallel Opportunities\n\n**Phase 1 (parallel groups)**:\n\n- T001, T002 (models)\n- T003, T004 (views)\n",
        &[("T002", ""), ("T003", "T001 T002"), ("T004", "T001 T002")],
    ),
    (
        "a story that waits for phases of its own",
        "## Phase 1: Setup\n- [ ] T001 [US1] a\n## Phase 2: Units\n- [ ] T002 [US1] b\n## Phase 3: Pages\n- [ ] T003 [US1] c\n\n## Dependencies\n\n- US1 depends on all Phase 2 & 3 tasks\n",
        &[("phase-2", "phase-1"), ("phase-3", "phase-1 phase-2")],
    ),
    (
        "tasks of a phase that run in parallel",
        "## Phase 1: Setup\n- [ ] T001 a\n- [ ] T002 b\n## Phase 2: User Story 1\n- [ ] T003 c\n- [ ] T004 d\n\n## Parallel Execution\n\n- Tasks T001-T002 in Phase 1 can be executed in parallel as they create separate files.\n- T003, T004 in User Story 1 can all start simultaneously\n",
        &[("T002", ""), ("T004", ""), ("phase-2", "phase-1")],
    ),
    (
        "ranges and tasks with names beside each other",
        "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n- [ ] T004 d\n- [ ] T005 e\n- [ ] T006 f\n\n## Dependencies\n\n- T001-T002 (form), T003-T004 (hook), T005 (page) can be done in parallel\n",
        &[("T002", "T001"), ("T003", ""), ("T004", "T003"), ("T005", ""), ("T006", "T002 T004 T005")],
    ),
    (
        "labels that say that a list runs in parallel",
        "## Phase 1: A\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n- [ ] T004 d\n- [ ] T005 e\n- [ ] T006 f\n\n## 并行机会\n\n```\n并行组 1（定义）：T002, T003\n全部可并行：T005, T006\n```\n",
        &[("T002", "T001"), ("T003", "T001"), ("T004", "T002 T003"), ("T005", "T004"), ("T006", "T004")],
    ),
    (
        "a track is worked through in its order",
        "## Phase 1: A\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n\n## Parallel Opportunities\n\n- Parallel track A: T002, T003\n",
        &[("T003", "T002")],
    ),
    (
        "all tasks of a phase beside each other",
        "## Phase 1: Setup\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n## Phase 2: Foundational\n- [ ] T004 a\n- [ ] T005 b\n- [ ] T006 c\n- [ ] T007 d\n\n## Parallel Opportunities\n\n- All Setup tasks marked [P] can run in parallel\n- All Foundational tasks can run in parallel after T004 (the types come first)\n- Setup tasks can be parallelized by platform\n",
        &[("T003", "T002"), ("T005", "T004"), ("T006", "T004"), ("T007", "T004")],
    ),
    (
        "all of a few tasks in brackets, with a word about them",
        "## Phase 1: Setup\n- [ ] T001 a\n- [ ] T002 [P] b\n- [ ] T003 [P] c\n\n## Parallel Opportunities\n\n- All 3 tasks can run in parallel (T001-T003 marked [P])\n",
        &[("T002", ""), ("T003", "")],
    ),
    (
        "a task beside another, in Korean, behind a chain",
        "## Phase 1: A\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n- [ ] T004 [P] d\n\n## 의존성 순서\n\n1. **Phase 1**: T001 → T002 → T003, T004는 T002와 병렬 가능\n",
        &[("T003", "T002"), ("T004", "T001")],
    ),
    (
        "dependencies with a Korean label, throughout",
        "## Phase 1: A\n### TASK-001: a\n**의존성**: 없음\n### TASK-002: b\n**의존성**: TASK-001\n### TASK-003: c\n**의존성**: TASK-001\n## Phase 2: B\n### TASK-004: d\n**의존성**: TASK-002\n",
        &[("TASK-002", "TASK-001"), ("TASK-003", "TASK-001"), ("TASK-004", "TASK-002"), ("phase-2", "")],
    ),
    (
        "a line that is nothing but tasks and brackets",
        "## Phase 1: A\n- [ ] T001 a\n- [ ] T002 b\n## Phase 2: B\n- [ ] T003 c\n## Phase 3: C\n- [ ] T004 d\n- [ ] T005 e\n\n## Dependencies\n\n```\nT001-T002 → T003 (B)\nT004-T005 (C - can start after T002)\n```\n",
        &[("phase-2", "phase-1"), ("phase-3", "T002")],
    ),
    (
        "a chain that goes on in the next line, and one that forks there",
        "## Phase 1: A\n- [ ] T001 a\n- [ ] T002 [P] b\n- [ ] T003 [P] c\n- [ ] T004 [P] d\n\n## Dependencies\n\n```\nA:  T001 → T002\n    → T003\n```\n\n```\nT001 → T002\n     → T004\n```\n",
        &[("T002", "T001"), ("T003", "T001 T002"), ("T004", "T001")],
    ),
    (
        "what a drawn bracket says of its lines",
        "## Phase 1: A\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n\n## Parallel work\n\n```\nT002 (x) ──┐\nT003 (y) ──┴── 可同時執行\n```\n",
        &[("T002", "T001"), ("T003", "T001")],
    ),
    (
        "phases that are drawn side by side",
        "## Phase 1: A\n- [ ] T001 a\n## Phase 2: B\n- [ ] T002 b\n## Phase 3: C\n- [ ] T003 c\n\n## Dependencies\n\n```\n     Phase 1\n        │\n   ┌────┴────┐\n   ▼         ▼\nPhase 2  Phase 3\n```\n",
        &[("phase-2", "phase-1"), ("phase-3", "phase-1")],
    ),
    (
        "dependencies by titles",
        "- [ ] Write the Intro Module (docs/a.md)\n  - **Dependencies**: None\n- [ ] Write the Parser Module\n  - **Dependencies**: Intro Module\n- [ ] Publish\n  - **Dependencies**: Intro Module, Parser Module\n- [ ] Record a video\n  - **Dependencies**: Intro Module\n",
        &[
            ("write-the-parser-module", "write-the-intro-module"),
            ("publish", "write-the-intro-module write-the-parser-module"),
            ("record-a-video", "write-the-intro-module"),
        ],
    ),
    (
        "headings by words of their titles",
        "## Task 1: Grouping\na\n## Task 2: Text Output\nb\n## Task 3: JSON Output\nc\n## Task 4: Errors\nd\n\n## Dependencies\n\n- Text and JSON formatters can be implemented in parallel after Task 1\n",
        &[("2", "1"), ("3", "1"), ("4", "2 3")],
    ),
    (
        "a table of waves",
        "## Phase 1: A\n- [ ] T001 a\n## Phase 2: B\n- [ ] T002 b\n## Phase 3: C\n- [ ] T003 c\n## Phase 4: D\n- [ ] T004 d\n\n## Execution\n\n| Wave | Phases | Notes |\n|---|---|---|\n| 1 | Phase 1 | |\n| 2 | Phase 2, Phase 3 | |\n| 3 | Phase 4 | |\n",
        &[("phase-2", "phase-1"), ("phase-3", "phase-1"), ("phase-4", "phase-2 phase-3")],
    ),
    (
        "a table of waves that tells which come first",
        "- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n\n## Waves\n\n| Wave | Tasks | Depends on |\n|---|---|---|\n| 1 | T001 | - |\n| 2 | T002 | Wave 1 |\n| 3 | T003 | Wave 1 |\n",
        &[("T001", ""), ("T002", "T001"), ("T003", "T001")],
    ),
    (
        "what a line of a drawing says of itself goes before the line that is drawn to it",
        "## Phase 1: A\n- [ ] T001 a\n## Phase 2: B\n- [ ] T002 b\n## Phase 3: C\n- [ ] T003 c\n## Phase 4: D\n- [ ] T004 d\n\n## Dependencies\n\n```\nPhase 1\n   ↓\nPhase 2\n   ↓\nPhase 3   ← Can start after Phase 1\n   ↓\nPhase 4\n```\n",
        &[("phase-2", "phase-1"), ("phase-3", "phase-1"), ("phase-4", "phase-2 phase-3")],
    ),
    (
        "a sequential flow behind an arrow",
        "## Phase 1: A\n- [ ] T001 a\n- [ ] T002 [P] b\n- [ ] T003 [P] c\n- [ ] T004 d\n- [ ] T005 e\n\n## Dependencies\n\n- Parallel checks (T002, T003) → Sequential flow (T004-T005)\n",
        &[("T002", "T001"), ("T003", "T001"), ("T004", "T002 T003"), ("T005", "T002 T003 T004")],
    ),
    (
        "denials and exceptions in Japanese, beside a drawing",
        "## Issue 分割\n### #7 基盤\n受け入れ基準。\n- [ ] x\n### #8 計算\n- [ ] y\n### #9 画面\n- [ ] z\n### #10 表示\n- [ ] v\n### #12 控え\n- [ ] w\n\n## 実装順序\n\n```\n#7\n └→ #8\n      └→ #9\n           └→ #10\n                └→ #12\n```\n\n- #8 は #7 に依存しない。\n- #9 は #7 と #8 の両方に依存する。\n- #12 は #7 のみに依存する。\n",
        &[("7", ""), ("8", ""), ("9", "7 8"), ("12", "7")],
    ),
    (
        "phases that count with letters",
        "## Phase A: a\n- [ ] T001 a\n## Phase B: b\n- [ ] T002 b\n## Phase C: c\n- [ ] T003 c\n## Phase D: d\n- [ ] T004 d\n## Phase E: e\n- [ ] T005 e\n\n## Dependencies\n\n- **Phase C**: Requires Phase A only\n- **Phase D**: Requires Phase A, B, and C complete\n- **Phase E**: depends on Phases A–C\n",
        &[
            ("phase-c", "phase-a"),
            ("phase-d", "phase-a phase-b phase-c"),
            ("phase-e", "phase-a phase-b phase-c"),
        ],
    ),
    (
        "tasks that run in parallel after one of them, in a section about parallel work",
        "## Phase 1: A\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 [P] c\n- [ ] T004 [P] d\n- [ ] T005 e\n\n## Parallel Opportunities\n\n- T003 and T004 can run in parallel (both depend on T002)\n",
        &[("T003", "T002"), ("T004", "T002"), ("T005", "T003 T004")],
    ),
    (
        "a phase that is independent of a thing and requires only one phase",
        "## Phase A: a\n- [ ] T001 a\n## Phase B: b\n- [ ] T002 b\n## Phase C: c\n- [ ] T003 c\n\n## Dependencies\n\n- **Phase C (T003)**: Can start in parallel with Phase B (independent of the handlers) — only requires Phase A's types.\n",
        &[("phase-c", "phase-a")],
    ),
    (
        "stories that count with letters",
        "## Phase 1: Foundational\n- [ ] T001 a\n## Phase 2: User Story A-1 — 基礎\n- [ ] T002 [US-A1] b\n## Phase 3: User Story B-2 — x\n- [ ] T003 [US-B2] c\n## Phase 4: User Story B-3 — y\n- [ ] T004 [US-B3] d\n\n## Dependencies\n\n- US-B3 depends on US-A1\n",
        &[("phase-2", "phase-1"), ("phase-3", "phase-1"), ("phase-4", "phase-2")],
    ),
];

/// Whole plans whose sentences leave something open, or name parts of stories.
const OF_STORIES: &[Row] = &[
    (
        "parts of a sentence that each have their own story",
        "- **User Stories**: US1 (P1) unlocks MVP, US2 (P1) can proceed parallel once Phase 2 done, US3 (P2) can run after US1 shared modules available.\n",
        &[("phase-3", "phase-2"), ("phase-4", "phase-2"), ("phase-5", "phase-3")],
    ),
    (
        "parts of a sentence behind \"and\" and \"but\"",
        "- US1 can start after Phase 2 and US2 can start after Phase 1, but US3 must wait for US2.\n",
        &[("phase-3", "phase-2"), ("phase-4", "phase-1"), ("phase-5", "phase-4")],
    ),
    (
        "parts of a sentence in German",
        "- US2 kann nach Phase 2 beginnen, US3 kann nach US1 beginnen.\n",
        &[("phase-4", "phase-2"), ("phase-5", "phase-3")],
    ),
    (
        "parts of a sentence in Chinese",
        "- US2 依賴 Phase 2，US3 可在 US1 完成後開始\n",
        &[("phase-4", "phase-2"), ("phase-5", "phase-3")],
    ),
    (
        "parts of a sentence in Japanese",
        "- US2 は Phase 2 の後、US3 は US1 の後に開始\n",
        &[("phase-4", "phase-2"), ("phase-5", "phase-3")],
    ),
    (
        "a story that starts after others complete or in parallel",
        "- US3 can start after at least one P1 story completes or in parallel if resourced.\n",
        &[("phase-5", "phase-2")],
    ),
    (
        "stories that come first, and those that follow them in any order",
        "**User Story Completion Order**: US1 and US2 must be completed first as they are foundational, then US3 can be completed in any order.\n",
        &[("phase-4", "phase-2"), ("phase-5", "phase-3 phase-4")],
    ),
    (
        "a phase that runs in parallel with a story, in Portuguese and against a drawing",
        "```\nPhase 3: US1\n  ↓\nPhase 5: US3\n  ↓\nPhase 6: Isolation (paralelo com US3)\n```\n",
        &[("phase-5", "phase-3"), ("phase-6", "phase-2 phase-3 phase-4")],
    ),
    (
        "what a branch of a drawn tree says of itself in brackets",
        "```\nPhase 2: Foundational\n    ├─→ Phase 3: US1\n    ├─→ Phase 4: US2 (depends on US1)\n    └─→ Phase 5: US3 (依賴 US1 和 US2)\n```\n",
        &[("phase-3", "phase-2"), ("phase-4", "phase-3"), ("phase-5", "phase-3 phase-4")],
    ),
    (
        "the path of a single developer is no order",
        "- US2 depends on US1\n- US3 depends on Foundational\n\n### Critical Path (single developer, sequential)\n\n```\nUS1 → US2 → US3\n```\n",
        &[("phase-4", "phase-3"), ("phase-5", "phase-2")],
    ),
    (
        "parts of two stories",
        "- **Phase 5 (US3)**: after Phase 2; depends on US2 components (card, chip) and US1 shell\n",
        &[("phase-5", "phase-2 phase-3 phase-4")],
    ),
    (
        "one way of two",
        "- US2 and US3 can proceed after Phase 2, or after US1\n- US3 is P2 - can proceed after US1 or in parallel\n",
        &[("phase-4", "phase-2"), ("phase-5", "phase-2")],
    ),
    (
        "an item that says its order in brackets",
        "- **US2** - Browse (depends on US1)\n- **US3** - Search (can run in parallel with US2)\n",
        &[("phase-4", "phase-3"), ("phase-5", "phase-2")],
    ),
    (
        "a story that only gains from others",
        "- US3 (Search) can start after US1, benefits from US2 being complete\n",
        &[("phase-5", "phase-3")],
    ),
    (
        "some tasks of a story, and the story once more",
        "- **US2**: after Foundational + US1 core model tasks (T003) — depends on types from US1\n",
        &[("phase-4", "T003 phase-2")],
    ),
    (
        "stories that run in parallel behind a phase, with the phase in the middle",
        "- US2 与 US3 可以在 Foundational 完成后并行推进\n- US3: 推荐在 US2 完成后进行\n",
        &[("phase-4", "phase-2"), ("phase-5", "phase-2")],
    ),
    (
        "words go before lines that are drawn, and the last phase stays the last",
        "- **US3**: Depends on US1 - Independent of US2\n\n```\nPhase 3 (US1)\n    ↓\nPhase 4 (US2)\n    ↓\nPhase 5 (US3)\n    ↓\nPhase 7 (Polish)\n```\n",
        &[("phase-4", "phase-3"), ("phase-5", "phase-3"), ("phase-7", "phase-5 phase-6")],
    ),
    (
        "a story that goes on independently behind a phase",
        "- US1 MUST complete before other user stories\n- US3 can proceed independently after Foundational\n",
        &[("phase-4", "phase-2 phase-3"), ("phase-5", "phase-2")],
    ),
    (
        "a column of what may run at the same time goes before a drawing",
        "| Story | Depends on | Can Parallel With |\n|---|---|---|\n| US1 | Foundational | - |\n| US2 | US1 | - |\n| US3 | US1 | US2 |\n\n```\nPhase 3: US1\n    ↓\nPhase 4: US2\n    ↓\nPhase 5: US3\n```\n",
        &[("phase-4", "phase-3"), ("phase-5", "phase-3")],
    ),
    (
        "a preferred sequence is advice",
        "- **User Stories**: Depend on Foundational.\n  - Preferred sequence: US1 -> US2 -> US3.\n",
        &[("phase-4", "phase-2"), ("phase-5", "phase-2")],
    ),
    (
        "a count is no order",
        "- Each file is edited once per story that touches it — T003 for US1, T006 for US3\n",
        &[("T006", "")],
    ),
    (
        "a story that is independent, and a thing of it that is not",
        "- **US2**: Independent after Foundational - needs US1 data to show\n- **US3**: Independent after Foundational — may start US3 dialog after US2 form exists\n",
        &[("phase-4", "phase-2"), ("phase-5", "phase-2")],
    ),
];

/// Sentences whose lists or conditions are written in unusual ways.
const LISTS: &[Row] = &[
    (
        "a list of ids that only spaces part",
        "- **Phase 5**: Depends on T003 T004 T005 — blocks the rest\n",
        &[("phase-5", "T003 T004 T005")],
    ),
    (
        "a list that repeats its preposition",
        "- **US2**: depende de Foundational y de US1 (extiende x)\n- **US3**: depends on US1 and on US2\n",
        &[("phase-4", "phase-2 phase-3"), ("phase-5", "phase-3 phase-4")],
    ),
];

/// Remarks that are no names, and what they stand beside.
const REMARKS: &[Row] = &[
    (
        "a remark behind an arrow, and remarks below phases",
        "```\nPhase 2 (Foundational) ← BLOCKER: all stories wait\n    ↓\nPhase 3 (US1)    Phase 4 (US2)    Phase 5 (US3)\n    ↓                ↓                ↓\n (independent)    (independent)    (needs US1 code)\n    ↓                ↓                ↓\n    └────────────────┴────────────────┘\n                     ↓\n                  Phase 6\n```\n",
        &[
            ("phase-2", "phase-1"),
            ("phase-3", "phase-2"),
            ("phase-4", "phase-2"),
            ("phase-5", "phase-2"),
            ("phase-6", "phase-3 phase-4 phase-5"),
        ],
    ),
    (
        "a story that builds upon another",
        "- **US2**: Builds on US1 components\n- **US3**: builds on US2 but is independently testable\n",
        &[("phase-4", "phase-3"), ("phase-5", "phase-2")],
    ),
    (
        "a story that needs a phase and runs beside another story",
        "- **US1 (P1)**: 無依賴，僅需 Phase 2\n- **US2 (P1)**: 無依賴，僅需 Phase 2，可與 US1 並行\n",
        &[("phase-3", "phase-2"), ("phase-4", "phase-2")],
    ),
];

/// The tree that `git arborist plan --format json` prints for this text. Other modules test the command itself.
fn tree(text: &str) -> Value {
    let plan = Plan::read("tasks.md", text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
    serde_json::to_value(TreeDocument::from(&plan)).unwrap()
}

/// What is wrong with the order of a plan.
fn misses(text: &str, (what, _, wanted): &Row) -> Vec<String> {
    let tree = tree(text);
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
fn statements_about_order_become_dependencies() {
    let of_stories = SAID_OF_STORIES
        .iter()
        .chain(OF_STORIES)
        .chain(LISTS)
        .chain(REMARKS)
        .map(|row| (format!("{STORIES}{}", row.1), row));
    let of_tasks = SAID_OF_TASKS.iter().map(|row| (format!("{TASKS}\n{}", row.1), row));
    let whole = WHOLE_PLANS.iter().map(|row| (row.1.to_owned(), row));
    let misses: Vec<String> =
        of_stories.chain(of_tasks).chain(whole).flat_map(|(text, row)| misses(&text, row)).collect();
    assert!(misses.is_empty(), "{}", misses.join("\n"));
}

/// Ways to say that the second story waits for the first.
const SECOND_AFTER_FIRST: &[&str] = &[
    "US2 cannot start until US1 is complete",
    "US2 must not start before US1 is done",
    "US2 can start when US1 is complete",
    "US2 can start as soon as US1 is done",
    "Upon completion of US1, US2 can start",
    "After US1, US2 can start",
    "Complete US1 prior to US2",
    "US1 is required for US2",
    "US1 unlocks US2",
    "US2 is gated by US1",
    "US2 relies on US1",
    "US2 must follow US1",
    "Prerequisites for US2: US1",
    "US3 depends on US1 and US2, US2 depends on US1",
    "Stories run sequentially (US1 → US2 → US3)",
    "Stories must be done in order: US1, US2, US3",
    "US2 requiere US1",
    "US1 antes de US2",
    "Primeiro US1, depois US2",
    "US1 doit être terminée avant US2",
    "US2 hängt von US1 ab",
    "Zuerst US1, dann US2",
    "US2 需要 US1 完成",
    "US1 必须在 US2 之前完成",
    "US2はUS1の完了を待つ",
    "US2는 US1 완료 필요",
    "Сначала US1, затем US2",
    "US2 US1'den sonra",
];

/// Ways to say that the two tasks in the middle run side by side.
const SIDE_BY_SIDE: &[&str] = &[
    "T002 and T003 can be done at the same time",
    "T002 and T003 side by side",
    "T002 and T003 can be done in any order",
    "T002 and T003 are independent of each other",
    "T002 and T003 have no dependencies on each other",
    "T003 at the same time as T002",
    "Launch T002 and T003 together",
    "T002 and T003 touch different files, so they can run in parallel",
    "Run together: T002, T003",
    "T002 и T003 параллельно",
    "Tasks not listed here have no dependencies",
    "T003 follows its noted dependencies only",
];

/// What stands below the heading of a phase that waits for the first story.
const BELOW_A_HEADING: &[&str] = &[
    "This phase requires US1.",
    "**Can start after**: Phase 3",
    "⚠️ Depends on US1",
    "US1 must be complete before this phase.",
    "**Abhängigkeiten**: US1",
    "**前置条件**: US1",
    "**Зависит от**: US1",
];

/// What a task says about itself that waits for the task T003.
const BEHIND_A_TASK: &[&str] =
    &["(when T003 is complete)", "(prereq: T003)", "← T003", "(nach T003)", "(需要 T003)", "(après T003)"];

/// What a node of a plan waits for.
fn needs(text: &str, id: &str) -> Vec<String> {
    let tree = tree(text);
    let ids = tree["nodes"][id]["depends_on"].as_array().expect("the node is there");
    ids.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[test]
fn statements_about_order_are_understood_in_many_phrasings_and_languages() {
    let mut misses = Vec::new();
    for said in SECOND_AFTER_FIRST {
        if !needs(&format!("{STORIES}- {said}\n"), "phase-4").iter().any(|on| on == "phase-3") {
            misses.push(*said);
        }
    }
    let four = "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n- [ ] T004 d\n\n## Dependencies\n\n";
    for said in SIDE_BY_SIDE {
        if needs(&format!("{four}- {said}\n"), "T003").iter().any(|on| on == "T002") {
            misses.push(*said);
        }
    }
    let plan = STORIES.split_once("## Dependencies").map_or("", |(plan, _)| plan);
    for said in BELOW_A_HEADING {
        let text = plan.replace("- [ ] T005", &format!("\n{said}\n\n- [ ] T005"));
        if !needs(&text, "phase-4").iter().any(|on| on == "phase-3") {
            misses.push(*said);
        }
    }
    for said in BEHIND_A_TASK {
        let text = plan.replace("T005 [US2] e", &format!("T005 [US2] e {said}"));
        if !needs(&text, "T005").iter().any(|on| on == "T003") {
            misses.push(*said);
        }
    }
    assert!(misses.is_empty(), "not read: {misses:#?}");
}

#[test]
fn a_story_that_can_start_after_a_task_of_another_story_waits_only_for_that_task() {
    for said in [
        "- US2 depends on US1 components\n\n### Parallel\n\n- US2 and US3 can start simultaneously after US1 T003\n",
        "- **US2**: depends on US1 (T003 only)\n",
        "| Story | Depends on | Can start after |\n|---|---|---|\n| US2 | US1 | T003 complete |\n",
    ] {
        assert_eq!(needs(&format!("{STORIES}{said}"), "phase-4"), ["T003"], "{said}");
    }
}

#[test]
fn a_parallel_mark_at_the_end_of_a_line_counts() {
    for mark in ["(P)", "[P]"] {
        let text = format!("## Phase 1: a\n- [ ] T001 a {mark}\n- [ ] T002: Write b. {mark}\n");
        assert!(needs(&text, "T002").is_empty(), "{mark}");
    }
}

#[test]
fn a_bold_label_starts_a_list_of_dependencies() {
    let text = "## Phase 1: a\n### Task 1: a\n- x\n### Task 2: b\n- y\n### Task 3: c\n- z\n\n## Summary\n\n\
                Total: 3\n\n**Dependencies:**\n- Tasks 2-3 can be done in parallel\n";
    assert_eq!(needs(text, "3"), ["1"]);
}

#[test]
fn sections_run_in_parallel_if_a_sentence_says_so() {
    let text = "## Phase 1: a\n### Module Content\n- [ ] T001 a\n### Module Assets\n- [ ] T002 b\n\n\
                ## Parallel Example\n\n```bash\n# Asset creation (can run alongside or after content):\nTask: T002\n```\n";
    assert!(needs(text, "T002").is_empty());
}

#[test]
fn a_story_name_refers_to_the_phase_that_has_its_tag() {
    let text = "## Phase 1: Setup\n- [ ] T001 a\n## Phase 2: Foundational\n- [ ] T002 b\n\
                ## Phase 3: Project Initialization (US1)\n- [ ] T003 [US1] c\n\
                ## Phase 4: Scripts (US2)\n- [ ] T004 [US2] d\n## Phase 5: Types (US3)\n- [ ] T005 [US3] e\n\n\
                ## Dependencies\n\n1. **US1** (T003) MUST complete before **US2**, **US3**.\n\
                2. **US3** (Types) depends on **US1** and **Foundational**.\n";
    let on = needs(text, "phase-5");
    assert!(on.iter().any(|on| on == "phase-3"), "{on:?}");
}

#[test]
fn phases_that_run_in_priority_order_follow_each_other() {
    let said = "1. **Phases 3-5**: stories are executed in priority order; tasks marked [P] can run in parallel.\n\n\
                **User Story 1 (T003-T004)**:\n- T003 can parallelize with T004\n";
    assert_eq!(needs(&format!("{STORIES}{said}"), "phase-4"), ["phase-3"]);
    let choice = "1. **Phases 3-5**: stories run in priority order or in parallel.\n";
    assert_eq!(needs(&format!("{STORIES}{choice}"), "phase-4"), ["phase-2"]);
}

#[test]
fn stories_run_in_priority_order_only_if_the_plan_offers_no_parallel_choice() {
    let in_order = "- Stories can proceed sequentially in priority order (P1 → P2)\n";
    assert_eq!(needs(&format!("{STORIES}{in_order}"), "phase-5"), ["phase-3", "phase-4"]);
    for choice in [
        "- Stories can run in parallel (if staffed)\n- Or sequentially in priority order (P1 → P2)\n",
        "- 用户故事间可并行\n- 或按优先级顺序 (P1: US1/US2 → P2: US3)\n",
    ] {
        assert_eq!(needs(&format!("{STORIES}{choice}"), "phase-5"), ["phase-2"], "{choice}");
    }
}

/// One phase of five tasks.
const FIVE: &str = "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n- [ ] T004 d\n- [ ] T005 e\n\n";

#[test]
fn a_task_that_can_start_right_after_another_waits_for_that_one_only() {
    for heading in ["## Dependencies", "## Parallel Opportunities"] {
        for said in [
            "- T004 can start immediately after T002\n",
            "- T004 can start as soon as T002 is done\n",
            "```\n# Phase 1 - run in parallel after T002:\nT004  write\nT005  read\n```\n",
        ] {
            assert_eq!(needs(&format!("{FIVE}{heading}\n\n{said}"), "T004"), ["T002"], "{heading}: {said}");
        }
    }
}

#[test]
fn a_task_that_is_parallel_to_the_rest_of_its_phase_leaves_the_others_in_order() {
    for said in [
        "T003 can run in parallel with the other tasks of Phase 1",
        "T003 can run in parallel with other Phase 1 tasks",
        "T003 is independent of all other Phase 1 tasks",
        "T003 可與其他階段 1 任務平行",
        "T003 可与阶段 1 的其他任务并行",
        "T003はフェーズ1の他のタスクと並行して実行可能",
        "T003 puede ejecutarse en paralelo con las demás tareas de la Fase 1",
        "T003 kann parallel zu den anderen Aufgaben von Phase 1 laufen",
        "T003 peut être exécutée en parallèle avec les autres tâches de la phase 1",
    ] {
        let text = format!("{FIVE}## Dependencies\n\n- {said}\n");
        assert!(needs(&text, "T003").is_empty(), "{said}");
        assert_eq!(needs(&text, "T002"), ["T001"], "{said}");
        assert_eq!(needs(&text, "T004"), ["T002"], "{said}");
        assert_eq!(needs(&text, "T005"), ["T004"], "{said}");
    }
}

#[test]
fn tasks_of_two_stories_that_are_sequential_to_each_other_follow_the_order_of_the_file() {
    let plan = STORIES.split_once("## Dependencies").map_or("", |(plan, _)| plan);
    let text = format!(
        "{plan}## Notes\n\n- `a.rs` is touched by both T003 (US1) and T005 (US2) — sequential relative to each other\n"
    );
    assert_eq!(needs(&text, "T005"), ["T003"]);
}

#[test]
fn ranges_with_a_parallel_mark_in_a_drawn_box_run_in_parallel_and_continue_together() {
    let text = "## Phase 1: User Story 1\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c\n- [ ] T004 d\n\
                ## Phase 2: User Story 2\n- [ ] T005 e\n\n## Dependencies\n\n```\n╔══════════════════════════════╗\n\
                ║ User Story 1 - in parallel   ║\n║   Payments (T001-T002) [P]   ║\n║   Products (T003-T004) [P]   ║\n\
                ╚══════════════════════════════╝\n  ↓\nUser Story 2\n```\n";
    assert_eq!(needs(text, "T002"), ["T001"]);
    assert!(needs(text, "T003").is_empty());
    assert_eq!(needs(text, "T004"), ["T003"]);
    assert_eq!(needs(text, "phase-2"), ["T001", "T002", "T003", "T004"]);
}

#[test]
fn the_word_sequential_after_tasks_in_brackets_excludes_them_from_parallel_work() {
    let text = "## Phase 1: Setup\n- [ ] T001 [P] a\n- [ ] T002 [P] b\n- [ ] T003 [P] c\n- [ ] T004 [P] d\n\n\
                ## Dependencies\n\n- **Phase 1**: All tasks marked [P] can run in parallel (T001-T002, T003-T004 sequential)\n";
    assert!(needs(text, "T002").is_empty());
    assert_eq!(needs(text, "T004"), ["T003"]);
}

/// The plan of [`STORIES`] with a section about order.
fn stories_with(said: &str) -> String {
    format!("{STORIES}{said}\n")
}

#[test]
fn text_below_a_name_in_a_drawing_is_a_comment_and_not_a_name() {
    let text = stories_with(
        "```\nPhase 1: Setup ────────────┐\n                           │\nPhase 2: Foundational ◄────┘\n         \
         (models, services)\n              │\n              │  BLOCKS ALL USER STORIES\n              ▼\n     \
         ┌────────┴────────┬────────────┐\n     │                 │            │\nPhase 3: US1 ◄──►  Phase 4: US2       │\n\
         (P1 - MVP)        (P1)                 │\n                       │            │\n                       ▼            │\n\
         \x20            Phase 5: US3 ◄─────────┘\n```\n",
    );
    assert_eq!(needs(&text, "phase-2"), ["phase-1"]);
    assert_eq!(needs(&text, "phase-3"), ["phase-2"]);
    assert_eq!(needs(&text, "phase-4"), ["phase-2"]);
}

#[test]
fn a_drawn_line_to_an_earlier_phase_is_overridden_by_a_sentence_about_that_phase() {
    let drawing = "```\nPhase 5\n   │\n   ▼\nPhase 3\n```\n";
    assert_eq!(needs(&stories_with(drawing), "phase-3"), ["phase-5"]);
    let worded = stories_with(&format!("- US1 depends on Phase 2\n\n{drawing}"));
    assert_eq!(needs(&worded, "phase-3"), ["phase-2"]);
}

#[test]
fn rows_of_a_drawing_that_meet_at_a_junction_keep_their_own_dependencies() {
    let text = stories_with(
        "```\nPhase 2\n  ├─► US1 ─► US2 ─┐\n  │               ├─► Phase 7\n  └─► US1 ─► US3 ─┘\n```\n",
    );
    assert_eq!(needs(&text, "phase-4"), ["phase-3"]);
    assert_eq!(needs(&text, "phase-5"), ["phase-3"]);
}

#[test]
fn a_table_cell_that_denies_a_dependency_adds_none() {
    let table = |cell: &str| {
        stories_with(&format!("| Story | Depends on |\n|---|---|\n| US1 | Phase 2 |\n| US2 | {cell} |\n"))
    };
    for cell in [
        "Phase 2, independent of US1",
        "Phase 2. Shares the timer with US1, independently testable",
        "After Foundational. Can be parallel to US1.",
        "Phase 2, then US3",
    ] {
        assert_eq!(needs(&table(cell), "phase-4"), ["phase-2"], "{cell}");
    }
    assert_eq!(needs(&table("Needs the session flow from US1"), "phase-4"), ["phase-3"]);
}

#[test]
fn stories_may_be_numbered_with_letters() {
    let plan = "## Phase 0: Baseline\n- [ ] T001 a\n- [ ] T002 b\n## Story A (P1): x\n- [ ] T010 c\n## Story B (P2): y\n- [ ] T020 d\n\
                ## Story C: z\n- [ ] T030 e\n## Phase 5: Polish\n- [ ] T040 f\n\n## Dependencies\n\n";
    let text = format!("{plan}- Stories B and C depend on T001–T002 (baseline) but not on each other\n");
    for story in ["story-b-p2-y", "story-c-z"] {
        assert_eq!(needs(&text, story), ["T001", "T002"]);
    }
    let text = format!("{plan}- Story C depends on Stories A-B\n");
    assert_eq!(needs(&text, "story-c-z"), ["story-a-p1-x", "story-b-p2-y"]);
    assert_eq!(needs(&text, "story-b-p2-y"), ["phase-0"]);
}

#[test]
fn a_dash_between_a_story_and_its_title_is_not_read_as_a_range() {
    let text = "## Phase 1: Setup\n- [ ] T001 a\n## Phase 2: User Story 3 - Quiz\n- [ ] T002 b\n## Phase 3: User Story 6 - 3D Robot\n- [ ] T003 c\n\n\
                ## Dependencies\n\n| Story | Can start after | Depends on |\n|---|---|---|\n\
                | US3 - Quiz | Setup (Phase 1) | No other stories |\n| US6 - 3D Robot | Setup (Phase 1) | No other stories |\n";
    assert_eq!(needs(text, "phase-3"), ["phase-1"]);
}

#[test]
fn tasks_of_a_range_keep_their_order_if_only_the_range_has_a_dependency() {
    let text = "## Phase 1: Setup\n- [ ] T001 a\n## Phase 2: Build\n- [ ] T002 b\n- [ ] T003 c\n- [ ] T004 d\n- [ ] T005 e\n- [ ] T006 f\n\
                - [ ] T007 g\n\n## Dependencies\n\nT001 → T002-T004 → T005 → T006 → T007\n";
    assert_eq!(needs(text, "T003"), ["T001", "T002"]);
    assert_eq!(needs(text, "T004"), ["T001", "T003"]);
}

#[test]
fn a_story_that_may_come_before_another_does_not_block_it() {
    for said in [
        "- **US3**: Depends on Phase 2; can be implemented before US2 if needed\n",
        "- **US3**: Depends on Phase 2 — works even before US2 is done\n",
        "- **US3**: Depende de Phase 2 — mesmo antes da US2 estar pronta\n",
    ] {
        assert_eq!(needs(&stories_with(said), "phase-4"), ["phase-2"], "{said}");
    }
    assert_eq!(needs(&stories_with("- US3 must be done before US2\n"), "phase-4"), ["phase-5", "phase-2"]);
    let parallel = stories_with("- T003 and T005 can run in parallel before T006\n");
    assert_eq!(needs(&parallel, "T006"), ["T003", "T005"]);
}

#[test]
fn a_story_does_not_wait_for_stories_that_it_is_independent_of() {
    let text = stories_with(
        "- **US2 (P1)**: Depends on Phase 2; independent of US1 for the code, but needs US1 for end-to-end tests\n",
    );
    assert_eq!(needs(&text, "phase-4"), ["phase-2"]);
}

#[test]
fn a_statement_never_makes_a_task_wait_for_itself() {
    let text = stories_with(
        "- After T002 run T005–T006, T008 depends on T003–T006\n\n```\nChecks (T003-T004)\n  ├─ T003\n  └─ T004\n```\n",
    );
    assert!(needs(&text, "T003").is_empty());
    assert!(!needs(&text, "T005").contains(&"T006".to_owned()));
    assert!(needs(&text, "T008").contains(&"T006".to_owned()));
}

#[test]
fn an_arrow_followed_by_plain_words_adds_no_dependency() {
    let text = stories_with("- **US3** → better settings for all stories\n");
    assert_eq!(needs(&text, "phase-3"), ["phase-2"]);
    let text = stories_with("- **US1–US3**: share one file → sequential, in order US1 → US2 → US3\n");
    assert_eq!(needs(&text, "phase-5"), ["phase-4"]);
    let text = stories_with("- T006 (US3) → 可與 US1 並行\n");
    assert_eq!(needs(&text, "phase-3"), ["phase-2"]);
}

#[test]
fn the_full_title_of_a_phase_takes_precedence_over_a_word_in_another_title() {
    let text = "## Phase 1: Setup\n- [ ] T001 a\n## Phase 2: Foundational\n- [ ] T002 b\n## Phase 3: Tests & TDD Setup\n- [ ] T003 c\n\n\
                ## Dependencies\n\n- Phase 2 depends on Setup\n- Phase 3 depends on Foundational\n";
    assert_eq!(needs(text, "phase-2"), ["phase-1"]);
}

#[test]
fn a_phase_that_only_mentions_a_story_is_not_part_of_it() {
    let text = "## Phase 1: Setup\n- [ ] T001 a\n## Phase 2: User Story 1\n- [ ] T002 b\n## Phase 3: User Story 2\n- [ ] T003 c\n\
                ## Phase 4: Settings (serves US1)\n- [ ] T004 d\n\n## Dependencies\n\n- US2 depends on US1\n";
    assert_eq!(needs(text, "phase-3"), ["phase-2"]);
}

#[test]
fn the_chinese_word_for_backend_is_not_read_as_after() {
    let text = stories_with("- US1 后端模型（T003）与 US2 页面（T005）可并行\n- US2 的集成依赖 Phase 2\n");
    assert_eq!(needs(&text, "phase-3"), ["phase-2"]);
    let text = stories_with("- T003 和 T004 可与后端并行开发\n");
    assert_eq!(needs(&text, "T004"), ["T003"]);
}

#[test]
fn the_title_of_a_drawn_box_does_not_precede_its_contents() {
    let text = stories_with(
        "```\nPhase 2\n  ↓\n┌──────────────┐\n│ P1 stories   │\n├──────────────┤\n│ US1: x       │\n│ US2: y       │\n└──────────────┘\n```\n",
    );
    assert_eq!(needs(&text, "phase-3"), ["phase-2"]);
    assert_eq!(needs(&text, "phase-4"), ["phase-2"]);
}

/// Five tasks one behind the other, and what is said of them.
fn tasks_with(said: &str) -> String {
    let tasks: String = (1..=5).map(|task| format!("- [ ] T00{task} x\n")).collect();
    format!("## Phase 1: Work\n{tasks}\n## Dependencies\n\n{said}\n")
}

#[test]
fn a_word_that_permits_parallel_work_counts_in_any_language_and_with_any_verb() {
    for said in [
        "T001 and T002 can be scaffolded in parallel",
        "T001 e T002 podem ser implementadas em paralelo",
        "T001 e T002 podem ocorrer em paralelo após conclusão dos alvos",
        "T001 y T002 pueden implementarse en paralelo",
        "T001 et T002 peuvent être implémentées en parallèle",
        "T001 und T002 können parallel umgesetzt werden",
        "T001 e T002 possono essere implementati in parallelo",
        "T001 dan T002 dapat dikerjakan secara paralel",
        "T001 và T002 có thể thực hiện song song",
        "T001 y T002 son independientes entre sí",
        "T001 + T002 — page and model are independent",
    ] {
        assert!(needs(&tasks_with(&format!("- {said}")), "T002").is_empty(), "{said}");
    }
    for said in [
        "T001 and T002 can mostly be done in parallel",
        "T001 and T002 can unblock parallel work",
        "T001 e T002 não podem ser feitas em paralelo",
        "T001 dan T002 tidak dapat dikerjakan secara paralel",
    ] {
        assert_eq!(needs(&tasks_with(&format!("- {said}")), "T002"), ["T001"], "{said}");
    }
}

#[test]
fn numbers_of_requirements_are_not_read_as_dependencies() {
    let text = "- [ ] 1. a\n  - _Requisitos: 2, 3_\n- [ ] 2. b\n- [ ] 3. c\n  - _Pré-requisitos: 1_\n";
    assert!(needs(text, "1").is_empty());
    assert_eq!(needs(text, "2"), ["1"]);
    assert_eq!(needs(text, "3"), ["1", "2"]);
}

#[test]
fn tests_come_first_even_if_every_task_names_dependencies_in_other_phases() {
    let text = "Tests are written first and must fail.\n\n## Phase 1: Setup\n- [ ] T001 a\n\n## Phase 2: User Story 1\n### Tests\n\
                - [ ] T002 [P] [US1] test (depends on T001)\n### Implementation\n- [ ] T003 [US1] model (depends on T001)\n\
                - [ ] T004 [US1] service (depends on T003)\n- [ ] T005 [US1] page (depends on T003, T004)\n";
    assert_eq!(needs(text, "T003"), ["T001", "T002"]);
    assert_eq!(needs(text, "T004"), ["T003"]);
}

/// A phase of which the sections count issues.
const ISSUES: &str = "\
## Phase 1: Base
- [ ] T001 a
## Phase 2: Repairs
#### Issue #1: Access
- [ ] T002 b
- [ ] T003 c
#### Issue #2: Names
- [ ] T004 d
- [ ] T005 e
## Phase 3: More
- [ ] T006 f
### Phase 1: Inner
- [ ] T007 g

## Dependencies

";

#[test]
fn a_reference_to_a_numbered_heading_means_the_tasks_below_it() {
    let text = format!("{ISSUES}- Phase 3: can start after Phase 2 (Issue #1)\n");
    assert_eq!(needs(&text, "phase-3"), ["T002", "T003"]);
    let text = format!("{ISSUES}- Phase 2 issue fixes can run in parallel\n");
    assert!(needs(&text, "T004").is_empty());
    assert_eq!(needs(&text, "T005"), ["T004"]);
}

#[test]
fn tasks_that_wait_for_the_same_later_phase_keep_their_order() {
    let text =
        format!("{ISSUES}- Phase 3 can start after Phase 2 (Issue #1)\n- Issue #2 depends on Phase 3\n");
    assert_eq!(needs(&text, "T004"), ["phase-3", "T003"]);
    assert!(needs(&text, "T005").contains(&"T004".to_owned()));
}

#[test]
fn a_numbered_section_is_not_mistaken_for_the_phase_with_that_number() {
    let text = format!("{ISSUES}- Phase 3 depends on Phase 1 only\n");
    assert_eq!(needs(&text, "phase-3"), ["phase-1"]);
}

#[test]
fn stories_follow_each_other_if_the_plan_says_that_its_phases_run_in_order() {
    let plan = |head: &str, end: &str| {
        format!(
            "# Tasks\n\n**Organization**: {head}\n\n## Phase 1: Setup\n- [ ] T001 a\n## Phase 2: User Story 1\n\
             - [ ] T002 [US1] b\n## Phase 3: User Story 2\n- [ ] T003 [US2] c\n\n## Dependencies\n\n{end}\n"
        )
    };
    for (head, end) in [
        ("el orden de ejecución es secuencial (no paralelo)", ""),
        ("phases are executed sequentially", ""),
        ("x", "- Phases must run in order"),
        ("x", "- Phases 2-3 run sequentially"),
        ("各阶段按顺序执行", ""),
    ] {
        assert_eq!(needs(&plan(head, end), "phase-3"), ["phase-2"], "{head} {end}");
    }
    for (head, end) in [
        ("tasks are sequential within each phase", ""),
        ("phases can run sequentially or in parallel", ""),
        ("phases run sequentially", "- US1 and US2 can start after Phase 1"),
    ] {
        assert_eq!(needs(&plan(head, end), "phase-3"), ["phase-1"], "{head} {end}");
    }
}

#[test]
fn in_a_sentence_with_should_wait_only_the_named_task_waits() {
    let text = stories_with(
        "- **US2**: Depends on Phase 2 - new commands come from US1, so T005 should wait for T003\n",
    );
    assert_eq!(needs(&text, "phase-4"), ["phase-2"]);
    assert_eq!(needs(&text, "T005"), ["T003"]);
}

#[test]
fn before_and_arrows_connect_the_tasks_in_brackets() {
    let text = tasks_with("- Models (T001) before services (T003) before endpoints (T004)");
    assert!(needs(&text, "T004").contains(&"T003".to_owned()));
    assert!(!needs(&text, "T004").contains(&"T001".to_owned()));
    let marked = |said: &str| tasks_with(said).replace(" x\n", " [P] x\n");
    let text = marked("- Types (T001) and API (T002) before pages (T003)");
    assert_eq!(needs(&text, "T003"), ["T001", "T002"]);
    let text = marked("- Entities (T001) → services (T002)");
    assert_eq!(needs(&text, "T002"), ["T001"]);
    let text = marked("- First T001, then T002 and T003, finally T004");
    assert_eq!(needs(&text, "T004"), ["T002", "T003"]);
}

#[test]
fn a_phase_also_waits_for_earlier_tasks_that_arrows_move_after_the_previous_phase() {
    let text = "## Phase 1: a\n- [ ] 1.1 a\n- [ ] 1.2 b\n- [ ] 1.3 c\n## Phase 2: b\n- [ ] 2.1 d\n## Phase 3: c\n- [ ] 3.1 e\n\n\
                ## Dependencies\n\n- 1.1 → 1.2 → 1.3\n- 2.1 → 1.2\n";
    assert_eq!(needs(text, "phase-3"), ["1.2", "1.3", "phase-2"]);
}

#[test]
fn all_tasks_of_a_phase_for_tests_and_documentation_may_run_in_parallel() {
    let text = |title: &str| {
        format!(
            "## Phase 1: a\n- [ ] 1.1 a\n## Phase 2: {title}\n- [ ] 2.1 Add unit tests\n- [ ] 2.2 Update the README\n\n\
             ## Parallel work\n\n- All Phase 2 tasks can run in parallel after Phase 1\n"
        )
    };
    assert_eq!(needs(&text("Testing and documentation"), "2.2"), Vec::<String>::new());
    assert_eq!(needs(&text("Login"), "2.2"), ["2.1"]);
}

#[test]
fn in_a_drawing_a_line_to_the_corner_after_a_name_does_not_lead_to_that_name() {
    let text = "## Phase 1: a\n- [ ] T1 a\n## Phase 2: b\n- [ ] T2 b\n## Phase 3: c\n- [ ] T3 c\n## Phase 4: d\n- [ ] T4 d\n\n\
                ## Dependencies\n```\nPhase 1 ───┬── Phase 3\n           │\nPhase 2 ───┘\n              ↓\n           Phase 4\n```\n";
    assert_eq!(needs(text, "phase-3"), ["phase-1", "phase-2"]);
    assert!(needs(text, "phase-4").contains(&"phase-3".to_owned()));
}

/// A phase with two lines of work, each of which names what it continues.
fn chains_with(needs: &str, said: &str) -> String {
    format!(
        "## Phase 1: Routes\n- [ ] T001 [P] a\n- [ ] T002 b ({needs} T001)\n- [ ] T003 c ({needs} T002)\n- [ ] T004 [P] d\n\
         - [ ] T005 e ({needs} T004)\n- [ ] T006 f\n\n## Dependencies\n\n{said}\n"
    )
}

#[test]
fn chains_of_tasks_that_begin_independently_do_not_wait_for_each_other() {
    for (needs_words, said) in [
        ("depends on", "- T001 (PATCH route) and T004 (DELETE route) within Phase 1 are independent"),
        ("after", "- T001 and T004 can run in parallel"),
        ("abhängig von", "- T001 und T004 sind unabhängig voneinander"),
        ("dépend de", "- T001 et T004 sont indépendants"),
        ("depende de", "- T001 y T004 son independientes entre sí"),
        ("depende de", "- T001 e T004 são independentes"),
        ("依赖", "- T001 和 T004 相互独立"),
        ("依存:", "- T001、T004 は互いに独立"),
        ("의존:", "- T001와 T004는 서로 독립적이다"),
        ("зависит от", "- T001 и T004 можно выполнять параллельно"),
        ("zależy od", "- T001 i T004 są niezależne"),
    ] {
        let text = chains_with(needs_words, said);
        assert_eq!(needs(&text, "T005"), ["T004"], "{said}");
        // A task that names nothing waits for both.
        assert_eq!(needs(&text, "T006"), ["T003", "T005"], "{said}");
    }
    assert_eq!(needs(&chains_with("depends on", ""), "T006"), ["T005"]);
}

/// A story with three sections.
fn sections_with(titles: [&str; 3], said: &str) -> String {
    let [first, second, third] = titles;
    format!(
        "## Phase 1: User Story 1\n### {first}\n- [ ] T001 [US1] a\n- [ ] T002 [US1] b\n### {second}\n- [ ] T003 [US1] c\n\
         - [ ] T004 [US1] d\n### {third}\n- [ ] T005 [US1] e\n\n## Dependencies\n\n### Parallel\n\n{said}\n"
    )
}

#[test]
fn sections_for_modules_run_in_parallel_if_the_plan_says_that_modules_do() {
    let none = Vec::<String>::new();
    let listed =
        "- Módulos diferentes podem ser feitos em paralelo\n  - A: T001-T002\n  - B: T003-T004\n  - C: T005";
    for (titles, said) in [
        (["Module A", "Module B", "Module C"], "- **Phase 1**: Different modules can be built in parallel"),
        (["A module", "B module", "C module"], "- There is no dependency between modules"),
        (["Modul A", "Modul B", "Modul C"], "- Die Module können parallel umgesetzt werden"),
        (["Módulo A", "Módulo B", "Módulo C"], "- Não há dependência entre módulos"),
        (["Модуль A", "Модуль B", "Модуль C"], "- Модули можно делать параллельно"),
        (["认证模块", "账单模块", "聊天模块"], "- 各模块可以并行开发"),
        (["A", "B", "C"], listed),
    ] {
        let text = sections_with(titles, said);
        assert_eq!(needs(&text, "T003"), none, "{said}");
        assert_eq!(needs(&text, "T005"), none, "{said}");
        assert_eq!(needs(&text, "T004"), ["T003"], "{said}");
    }
    let text = sections_with(["Shared", "Module B", "Module C"], "- Modules can be built in parallel");
    assert_eq!((needs(&text, "T003"), needs(&text, "T005")), (vec!["T002".into()], vec!["T002".into()]));
    let text = sections_with(["Module A", "Module B", "Module C"], "- Modules cannot be built in parallel");
    assert_eq!(needs(&text, "T005"), ["T004"]);
}

#[test]
fn explain_names_tests_as_the_reason_only_for_sections_with_tests() {
    let repo = TestRepo::init();
    let explain = |titles: [&str; 3]| {
        repo.write("tasks.md", sections_with(titles, ""));
        repo.arborist(["plan", "--explain", "T003", "tasks.md"]).succeeds()
    };
    explain(["Implementation - A", "Implementation - B", "C"]).out("the sections of a phase run in order");
    explain(["Tests", "Implementation", "C"]).out("tests come before the implementation");
}

#[test]
fn boxes_that_repeat_tasks_of_headings_set_their_status() {
    let repo = TestRepo::init();
    let text = "## Phase I: Base\n### Task I-1.1: Model\n**ID:** I-1.1\n**Depends on:** none\n### Task I-1.2: Store\n**ID:** I-1.2\n\
                **Depends on:** I-1.1\n## Phase II: Web\n### Task II-1.1: Page\n**ID:** II-1.1\n**Depends on:** Phase I Complete\n\n\
                ## Task Status Tracking\n### Phase I: Base\n- [x] I-1.1: Model\n- [x] I-1.2: Store\n### Phase II: Web\n\
                - [ ] II-1.1: Page\n- [ ] II-1.2: Styles\n";
    assert_eq!(needs(text, "II-1.1"), ["phase-i"]);
    assert_eq!(needs(text, "II-1.2"), ["II-1.1"]);
    repo.write("tasks.md", text);
    repo.arborist(["plan", "--check", "tasks.md"]).succeeds().out("4 tasks in 2 phases: 2 done, 2 to do");
}

#[test]
fn phases_in_a_table_follow_the_drawing_and_take_their_status_from_the_table() {
    let repo = TestRepo::init();
    for (heading, status, done, open) in [
        ("Dependency graph", "Status", "Done", "Open"),
        ("Abhaengigkeits-Graph", "Status", "Fertig", "Offen"),
        ("Graphe de dépendances", "Statut", "Terminé", "À faire"),
        ("依存関係", "状態", "完了", "未着手"),
        ("Зависимости", "Статус", "Готово", "Не начато"),
        ("Zależności", "Stan", "Gotowe", "Do zrobienia"),
    ] {
        let text = format!(
            "## {heading}\n```\nPhase 1 (x)\n  │\n  ├──────────┐\n  ▼          ▼\nPhase 2    Phase 3\nRunbook    Setup\n  │          │\n\
             \u{20} └────┬─────┘\n       ▼\n  Phase 4: End\n```\n\n| # | Phase | {status} |\n|---|---|---|\n| 1 | a | {done} |\n\
             | 2 | b | {open} |\n| 3 | c | {open} |\n| 4 | d | {open} |\n"
        );
        assert_eq!(needs(&text, "3"), ["1"], "{heading}");
        assert_eq!(needs(&text, "4"), ["2", "3"], "{heading}");
        repo.write("tasks.md", &text);
        repo.arborist(["plan", "--check", "tasks.md"]).succeeds().out("1 done, 3 to do");
    }
}

/// A flat list with optional extras.
fn extras_with(said: &str) -> String {
    format!(
        "## Phase 1: Core\n- [ ] 1. Upload\n  - Build the form\n- [ ]* 1.1 Test the upload\n- [ ] 2. Download\n  - Build the page\n\
         - [ ]* 2.1 Test the download\n## Phase 2: More\n- [ ] 3. Report\n  - Build the report\n\n## Notes\n\n{said}\n"
    )
}

#[test]
fn a_starred_optional_task_does_not_turn_the_task_before_it_into_a_group() {
    let text = extras_with("- Tasks marked with * are optional");
    assert_eq!((needs(&text, "1.1"), needs(&text, "2")), (vec!["1".into()], vec!["1.1".into()]));
    // Elsewhere in this list, the lines of a whole repeat what its parts do.
    let text = format!("{text}## Phase 3: Docs\n- [ ] 4. Docs\n  - Write them\n- [ ] 4.1 Write the guide\n");
    assert_eq!(needs(&text, "1.1"), Vec::<String>::new());
}

#[test]
fn core_tasks_do_not_wait_for_starred_ones_that_do_not_block() {
    for said in [
        "- Optional tasks (marked *) do not block the core tasks",
        "- Optionale Aufgaben (mit *) blockieren nicht",
        "- Les tâches optionnelles (*) ne bloquent pas les autres",
        "- Las tareas opcionales (*) no bloquean",
        "- Tarefas opcionais (*) não bloqueiam",
        "- **可选任务**（标记*）：可选实现，不阻塞核心流程",
        "- オプションのタスク（*）は他をブロックしない",
        "- 선택 작업(*)은 다른 작업을 차단하지 않는다",
        "- Необязательные задачи (*) не блокируют остальные",
        "- Zadania opcjonalne (*) nie blokują pozostałych",
    ] {
        let text = extras_with(said);
        assert_eq!((needs(&text, "2"), needs(&text, "2.1")), (vec!["1".into()], vec!["2".into()]));
        assert_eq!(needs(&text, "phase-2"), ["1", "2"], "{said}");
    }
}

#[test]
fn a_file_that_parallel_tasks_only_cite_is_not_reported_as_a_conflict() {
    let repo = TestRepo::init();
    let check = |first: &str, second: &str| {
        repo.write("tasks.md", format!("## Phase 1\n- [ ] T001 [P] {first}\n- [ ] T002 [P] {second}\n"));
        repo.arborist(["plan", "--check", "tasks.md"]).succeeds()
    };
    for (first, second) in [
        ("Add a route per `contracts/api.md`", "Add b, per FR-002 and `contracts/api.md` POST"),
        ("Add a gemäß `contracts/api.md`", "Add b selon `contracts/api.md`"),
        ("согласно `contracts/api.md`", "`contracts/api.md` に従って実装"),
        ("Validate research.md Decision 1", "Run the quickstart of research.md"),
        ("a\n  **Spec Reference:** `SPEC.md` Phase I", "b\n  **Spec Reference:** `SPEC.md` Phase II"),
    ] {
        assert!(!check(first, second).stdout().contains("the same file"), "{first}, {second}");
    }
    check("Update quickstart.md", "Write quickstart.md").out("the same file 'quickstart.md'");
    check("Add a to docs/api.md", "Add b to docs/api.md").out("the same file 'docs/api.md'");
}

#[test]
fn a_last_phase_that_depends_on_all_desired_features_is_understood() {
    let repo = TestRepo::init();
    let text = stories_with("- **Polish (Phase 7)**: Depends on all desired features being complete\n");
    repo.write("tasks.md", &text);
    repo.arborist(["plan", "--check", "--strict", "tasks.md"]).succeeds();
}
