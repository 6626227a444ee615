//! Whatever the facts are, the verdict on them keeps the promises: nothing in use, unknown, young or nowhere else goes
//! without being saved.

use arborist_core::{
    cleanup::{
        Candidate, CandidateKind, CandidatePlace, CleanupRules, CleanupVerdict, Commits, Grounds, InUse,
        KeepReason, Proof, UncommittedContent, UnsavedPolicy, judge_all,
    },
    history::RevertedMerge,
    name::Oid,
    session::SessionState,
    settings::Age,
};
use proptest::prelude::*;

const NOW: i64 = 1_739_716_222;

fn oid() -> Oid {
    "1".repeat(40).parse().unwrap()
}

fn place(what: CandidateKind, is_scratch: bool) -> CandidatePlace {
    match what {
        CandidateKind::Worktree => CandidatePlace::Worktree {
            path: "/w".into(),
            branch: None,
            head: Some(oid()),
            is_scratch,
            is_missing: false,
        },
        CandidateKind::Folder | CandidateKind::Trash | CandidateKind::Log | CandidateKind::Report => {
            CandidatePlace::Path("/p".into())
        }
        CandidateKind::RemoteBranch => {
            CandidatePlace::Remote { remote: "origin".into(), name: "refs/heads/x".into(), tip: oid() }
        }
        _ => CandidatePlace::Ref { name: "refs/heads/x".into(), tip: oid() },
    }
}

fn commits() -> impl Strategy<Value = Commits> {
    prop_oneof![
        Just(Commits::None),
        Just(Commits::Held),
        Just(Commits::Copied),
        Just(Commits::Landed { into: "main".into(), how: Proof::Squash }),
        (1usize..5).prop_map(Commits::Loose),
        Just(Commits::Reverted(RevertedMerge { merge: oid(), by: oid(), is_partial: false, place: None })),
    ]
}

fn content() -> impl Strategy<Value = UncommittedContent> {
    prop_oneof![
        Just(UncommittedContent::Nothing),
        Just(UncommittedContent::Unsaved(vec!["a".into(), "b".into(), "c".into()])),
        Just(UncommittedContent::Stuck("a repository is in it".into())),
    ]
}

fn in_use() -> impl Strategy<Value = Vec<InUse>> {
    let one = prop_oneof![
        Just(InUse::Queued),
        Just(InUse::Here),
        Just(InUse::Claim),
        Just(InUse::Session("s1".parse().unwrap(), SessionState::Paused)),
        Just(InUse::Foreign("not ours".into())),
    ];
    prop_oneof![3 => Just(Vec::new()), 1 => prop::collection::vec(one, 1..3)]
}

prop_compose! {
    fn candidate(count: usize)(
        what in prop::sample::select(CandidateKind::ALL.to_vec()),
        is_scratch in prop::bool::weighted(0.1),
        in_use in in_use(),
        unknown in prop::collection::vec(Just("something".to_owned()), 0..2),
        commits in commits(),
        content in content(),
        worktree_index in prop::option::of(0..count),
        age in prop::option::weighted(0.9, -10i64..20_000_000),
    ) -> Candidate {
        let is_branch = matches!(what, CandidateKind::Branch | CandidateKind::SessionBranch);
        Candidate {
            in_use,
            unknown,
            commits,
            content,
            worktree_index: worktree_index.filter(|_| is_branch),
            time: age.map(|age| NOW - age),
            ..Candidate::new(what, place(what, is_scratch), "x".into())
        }
    }
}

prop_compose! {
    fn rules()(older in 0i64..10_000_000, saved in 0i64..10_000_000, is_forced: bool) -> CleanupRules {
        CleanupRules {
            now: NOW,
            older_than: Age(older),
            keep_saved: Age(saved),
            keep_records: Age(saved),
            unsaved: if is_forced { UnsavedPolicy::Saved } else { UnsavedPolicy::Kept },
        }
    }
}

/// What must be so for one thing that goes.
fn check_removal(candidate: &Candidate, verdict: &CleanupVerdict, rules: &CleanupRules) {
    let CleanupVerdict::Remove(grounds, save) = verdict else { return };
    assert!(candidate.in_use.is_empty() && candidate.unknown.is_empty());
    let age = (NOW - candidate.time.unwrap()).max(0);
    let limit = match candidate.what {
        CandidateKind::Trash => 0,
        CandidateKind::Saved => rules.keep_saved.0,
        CandidateKind::Record => rules.keep_records.0,
        _ => rules.older_than.0,
    };
    assert!(age >= limit);
    if candidate.what == CandidateKind::Saved {
        assert_eq!(*grounds, Grounds::Expired(rules.keep_saved), "it may be the last copy");
    }
    assert!(!matches!(candidate.content, UncommittedContent::Stuck(_)));
    let is_nobodys = matches!(
        candidate.what,
        CandidateKind::Trash
            | CandidateKind::Claim
            | CandidateKind::Log
            | CandidateKind::Report
            | CandidateKind::Saved
            | CandidateKind::Cache
    ) || matches!(candidate.place, CandidatePlace::Worktree { is_scratch: true, .. });
    if is_nobodys {
        return;
    }
    if matches!(candidate.content, UncommittedContent::Unsaved(_))
        && candidate.what != CandidateKind::RemoteBranch
    {
        assert!(save.content, "what lies in it is saved");
        assert!(
            rules.unsaved == UnsavedPolicy::Saved || candidate.what == CandidateKind::Record,
            "and only when asked"
        );
    }
    match candidate.commits {
        Commits::Loose(_) => {
            assert!(save.commits && candidate.what != CandidateKind::RemoteBranch);
            let is_session = matches!(candidate.what, CandidateKind::SessionBranch | CandidateKind::Record);
            assert!(rules.unsaved == UnsavedPolicy::Saved || is_session);
        }
        Commits::Reverted(_) => {
            assert!(save.commits && candidate.what != CandidateKind::RemoteBranch);
            let is_session = matches!(candidate.what, CandidateKind::SessionBranch | CandidateKind::Record);
            assert!(rules.unsaved == UnsavedPolicy::Saved || is_session);
        }
        Commits::Landed { .. } | Commits::Copied => assert!(save.commits, "the way there is kept"),
        Commits::Held | Commits::None => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_must_stay_is_removed(candidates in prop::collection::vec(candidate(6), 6), rules in rules()) {
        let verdicts = judge_all(&candidates, &rules);
        prop_assert_eq!(verdicts.len(), candidates.len());
        for (candidate, verdict) in candidates.iter().zip(&verdicts) {
            check_removal(candidate, verdict, &rules);
            if let (CleanupVerdict::Remove(..), Some(place)) = (verdict, candidate.worktree_index) {
                let place_goes = matches!(verdicts[place], CleanupVerdict::Remove(..)) || candidates[place].worktree_index.is_some();
                prop_assert!(place_goes, "a branch goes only with its worktree");
            }
            if let CleanupVerdict::Keep(reason) = verdict {
                prop_assert!(!reason.to_string().is_empty());
            }
        }
    }

    /// To ask for more never lets anything go that is in use, and never keeps what went anyway.
    #[test]
    fn force_additionally_removes_only_what_it_saves(candidates in prop::collection::vec(candidate(4), 4), rules in rules()) {
        let careful = judge_all(&candidates, &CleanupRules { unsaved: UnsavedPolicy::Kept, ..rules.clone() });
        let forced = judge_all(&candidates, &CleanupRules { unsaved: UnsavedPolicy::Saved, ..rules });
        for (careful, forced) in careful.iter().zip(&forced) {
            match (careful, forced) {
                (CleanupVerdict::Remove(..), other) => prop_assert!(matches!(other, CleanupVerdict::Remove(..))),
                (CleanupVerdict::Keep(KeepReason::Loose(_) | KeepReason::Unsaved(_) | KeepReason::Reverted(_)), CleanupVerdict::Remove(_, save)) => {
                    prop_assert!(save.commits || save.content);
                }
                (CleanupVerdict::Keep(KeepReason::InUse(InUse::CheckedOut(_))), _) => {}
                (CleanupVerdict::Keep(_), other) => prop_assert!(matches!(other, CleanupVerdict::Keep(_))),
            }
        }
    }
}
