//! Claims on tasks: however many workers try, one has the task.

use std::{sync::Arc, thread, time::Duration};

use arborist_core::{
    coordination::{Claiming, Release, RemoteWork, WorkOptions},
    git::{Network, Repository},
    name::TaskId,
    process::Cancel,
};
use arborist_testkit::TestRepo;

const CLAIMERS: usize = 8;

/// `CLAIM_ROUNDS=1000 cargo test -p arborist-core --test core claims::` races more often.
#[test]
fn only_one_of_many_racing_processes_gets_a_claim() {
    let rounds = std::env::var("CLAIM_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(3);
    let repo = TestRepo::init();
    repo.write("file", "x");
    repo.commit("start\n");
    repo.git_in(repo.root(), ["clone", "-q", "--bare", "repo", "origin.git"]).succeeds();
    let workers: Vec<Arc<RemoteWork>> = (0..CLAIMERS)
        .map(|number| {
            let clone = format!("clone{number}");
            repo.git_in(repo.root(), ["clone", "-q", "origin.git", &clone]).succeeds();
            let repository = Repository::discover_from(&repo.root().join(clone)).unwrap();
            let options = WorkOptions {
                remote: "origin".to_owned(),
                coordination: None,
                run: "main".parse().unwrap(),
                ttl: Duration::from_secs(600),
                clock: || 0,
                started_by: None,
            };
            let network = Network { silence: Duration::from_secs(60), cancel: Cancel::default() };
            let worker = RemoteWork::join(&repository, options, network).unwrap();
            worker.catch_up().unwrap();
            worker
        })
        .collect();
    for round in 0..rounds {
        let task: TaskId = format!("T{round:04}").parse().unwrap();
        let claims: Vec<Claiming> = thread::scope(|scope| {
            let racing: Vec<_> =
                workers.iter().map(|worker| scope.spawn(|| worker.claim(&task).unwrap())).collect();
            racing.into_iter().map(|claim| claim.join().unwrap()).collect()
        });
        let mut winners = workers.iter().zip(claims).filter(|(_, claim)| *claim == Claiming::Won);
        let (winner, _) = winners.next().unwrap();
        assert_eq!(winners.count(), 0, "round {round}");
        // A claim that stays would be listed in all later rounds.
        winner.release(&task, Release::Free).unwrap();
    }
}
