//! The store of sessions: chains that several writers share, and what is read back from them.

use std::collections::BTreeSet;

use arborist_core::{
    git::{RefMove, Repository},
    name::{Attempt, Oid, SessionId},
    session::{
        DraftRecord, Driver, RecordKind, RepositoryStart, SessionEnd, SessionError, SessionReader,
        SessionStart, SessionState, SessionVerdict, SessionWriter, TokenCount, Turn, ref_of,
    },
};
use arborist_testkit::TestRepo;

fn without_tasks() -> (TestRepo, Repository, Oid) {
    let repo = TestRepo::init();
    repo.git(["config", "user.name", "Ada"]).succeeds();
    repo.git(["config", "user.email", "ada@example.com"]).succeeds();
    let repository = Repository::discover_from(&repo.path("")).unwrap();
    let head = repository.head.commit.unwrap();
    (repo, repository, head)
}

fn start(base: Oid) -> SessionStart {
    SessionStart {
        repositories: vec![RepositoryStart { name: "repo".into(), branch: "main".parse().unwrap(), base }],
        plan: None,
        pipeline: "gardener".into(),
        driver: Driver::Run,
        options: [("runner".to_owned(), "claude".to_owned())].into(),
        withheld: Vec::new(),
        forked_from: None,
        offline: false,
    }
}

fn turn(number: u32, commit: Option<Oid>) -> Turn {
    Turn {
        number,
        node: "T1".parse().unwrap(),
        step: "implement".into(),
        attempt: Attempt(0),
        model: "m".into(),
        provider: "p".into(),
        runner: "r".into(),
        files: vec!["a".into()],
        tools: Vec::new(),
        tokens: Some(TokenCount { read: 10, written: 1 }),
        cost: Some(0.5),
        commit,
        others: Vec::new(),
        not_committed: None,
        interrupted: false,
        message: None,
        said: None,
        agent_session: None,
        started: 1,
        ended: 2,
    }
}

fn session() -> SessionId {
    "abc123".parse().unwrap()
}

#[test]
fn concurrent_writers_of_a_session_lose_no_records_and_get_unique_numbers() {
    let (repo, repository, head) = without_tasks();
    SessionWriter::begin(&repository, session(), start(head), 7).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            // Each has its own chronicle, as processes have, and two threads.
            let writer = SessionWriter::find(&repository, &session()).unwrap().unwrap();
            let writer = std::sync::Arc::new(writer);
            for _ in 0..2 {
                let writer = std::sync::Arc::clone(&writer);
                scope.spawn(move || {
                    for _ in 0..4 {
                        let draft = |number| {
                            Ok::<_, SessionError>(DraftRecord::of(RecordKind::Turn(turn(number, None))))
                        };
                        writer.append(8, draft).unwrap();
                    }
                });
            }
        }
    });
    let archive = SessionReader::new(&repository);
    let newest = archive.newest(&session()).unwrap().unwrap();
    let records: Vec<_> = archive.walk(&newest).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(records.len(), 17);
    let numbers: BTreeSet<u32> =
        records.iter().filter_map(|stored| stored.record.turn()).map(|turn| turn.number).collect();
    assert_eq!(numbers, (1..=16).collect());
    assert_eq!((newest.record.totals.turns, newest.record.totals.tokens_in), (16, 160));
    assert_eq!(newest.record.totals.cost, Some(8.0));
    let first = archive.start_of(&newest).unwrap();
    assert_eq!((first.record.sequence, first.record.context.started), (0, 7));
    assert_eq!(archive.turn(&newest, 5).unwrap().record.turn().unwrap().number, 5);
    assert!(matches!(archive.turn(&newest, 17), Err(SessionError::NoTurn { turns: 16, .. })));
    repo.git(["fsck", "--strict"]).succeeds();
}

#[test]
fn the_commit_and_the_record_of_a_turn_are_written_atomically() {
    let (repo, repository, head) = without_tasks();
    let writer = SessionWriter::begin(&repository, session(), start(head), 7).unwrap();
    let tree = repo.git(["rev-parse", "HEAD^{tree}"]).answer();
    let commit: Oid = repo.commit_object(&tree, &[head.to_string()], "a turn\n").parse().unwrap();
    let append = |old| {
        writer.append(8, |number| {
            let moves = vec![RefMove { name: "refs/heads/main", new: Some(commit), old }];
            let kind = RecordKind::Turn(turn(number, Some(commit)));
            Ok::<_, SessionError>(DraftRecord { moves, ..DraftRecord::at(commit, kind) })
        })
    };
    assert!(matches!(append(Some(commit)), Err(SessionError::Git(_))), "the branch is not there");
    assert_eq!(writer.newest().record.sequence, 0);
    let record = append(Some(head)).unwrap();
    assert_eq!(repo.git(["rev-parse", "main"]).answer(), commit.to_string());
    assert_eq!(repo.git(["rev-parse", &ref_of(&session())]).answer(), record.to_string());
    assert_eq!(repo.git(["rev-parse", &format!("{record}^2")]).answer(), commit.to_string());
    assert_eq!(writer.newest().record.totals.commits, 1);
}

#[test]
fn refs_that_are_no_valid_records_are_reported_and_skipped() {
    let (repo, repository, head) = without_tasks();
    let writer = SessionWriter::begin(&repository, session(), start(head), 7).unwrap();
    let again = SessionWriter::begin(&repository, session(), start(head), 7);
    assert!(matches!(again, Err(SessionError::Exists(_))));
    let copy = ref_of(&"other".parse().unwrap());
    repo.git(["update-ref", &copy, &ref_of(&session())]).succeeds();
    repo.git(["update-ref", "refs/arborist/sessions/noise", "main"]).succeeds();
    let archive = SessionReader::new(&repository);
    let session_list = archive.list().unwrap();
    assert_eq!(session_list.sessions.len(), 1);
    let skipped = arborist_core::git::take_skipped_refs();
    let is_named = |name: &str| skipped.iter().any(|(skipped, _)| skipped == name);
    assert!(is_named(&copy) && is_named("refs/arborist/sessions/noise"), "{skipped:?}");
    assert!(matches!(session_list.require("x"), Err(SessionError::Unknown(_))));
    assert_eq!(
        session_list.standing(&repository, session_list.require("abc").unwrap()),
        SessionState::Crashed
    );
    let end = || RecordKind::End(SessionEnd { result: SessionVerdict::Complete, words: String::new() });
    writer.append(9, |_| Ok::<_, SessionError>(DraftRecord::of(end()))).unwrap();
    let session_list = archive.list().unwrap();
    assert_eq!(
        session_list.standing(&repository, session_list.require("abc1").unwrap()),
        SessionState::Complete
    );
}
