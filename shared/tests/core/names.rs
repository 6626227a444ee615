//! Names that a git which stays is asked for: what others did meanwhile is seen, and no name leads elsewhere.

use arborist_core::git::Repository;
use arborist_testkit::TestRepo;

fn repository(repo: &TestRepo) -> Repository {
    Repository::discover_from(&repo.path("")).unwrap()
}

#[test]
fn ref_changes_by_other_processes_are_seen_immediately() {
    for format in ["files", "reftable"] {
        let repo = TestRepo::with_options(&["--ref-format", format]);
        repo.commit("one\n");
        let repository = repository(&repo);
        let (one, name) = (repository.head.commit.unwrap(), "refs/heads/side");
        assert_eq!(repository.find_ref(name).unwrap(), None, "{format}");
        repo.git(["update-ref", name, "HEAD"]).succeeds();
        assert_eq!(repository.find_ref(name).unwrap(), Some(one), "{format}");
        repo.git(["pack-refs", "--all"]).succeeds();
        assert_eq!(repository.find_ref(name).unwrap(), Some(one), "{format}");
        repo.git(["commit", "-q", "--allow-empty", "-m", "two"]).succeeds();
        let two = repository.find_commit("HEAD").unwrap().unwrap();
        repo.git(["update-ref", name, "HEAD"]).succeeds();
        repo.git(["repack", "-qad"]).succeeds();
        assert_ne!(two, one, "{format}");
        assert_eq!(repository.find_ref(name).unwrap(), Some(two), "{format}");
        assert_eq!(repository.load_commits(&[two]).unwrap()[0].parents().next(), Some(one), "{format}");
        repo.git(["update-ref", "-d", name]).succeeds();
        assert_eq!(repository.find_ref(name).unwrap(), None, "{format}");
    }
}

#[test]
fn a_missing_ref_is_not_resolved_to_a_similar_name() {
    let repo = TestRepo::init();
    repo.commit("one\n");
    let repository = repository(&repo);
    for decoy in ["refs/tags/refs/heads/a", "refs/heads/refs/heads/b", "refs/remotes/refs/heads/c/HEAD"] {
        repo.git(["update-ref", decoy, "HEAD"]).succeeds();
    }
    let described = format!("refs/heads/d-1-g{}", repository.head.commit.unwrap().short());
    for name in ["refs/heads/a", "refs/heads/b", "refs/heads/c", &described] {
        assert_eq!(repository.find_ref(name).unwrap(), None, "{name}");
        repo.git(["update-ref", name, "HEAD"]).succeeds();
        assert_eq!(repository.find_ref(name).unwrap(), repository.head.commit, "{name}");
    }
}

#[test]
fn a_tree_with_a_missing_blob_is_not_committed() {
    let repo = TestRepo::init();
    repo.write("file", "here");
    repo.commit("one\n");
    let repository = repository(&repo);
    let head = repository.tree_of(repository.head.commit.unwrap()).unwrap();
    let empty = repository.empty_tree().unwrap();
    repository.require_verified(empty, head).unwrap();
    let mut changes = repository.changes(empty, head).unwrap();
    changes[0].after = Some((0o100_644, "1".repeat(40).parse().unwrap()));
    let tree = repository.tree_with(head, &changes).unwrap();
    assert!(repository.require_verified(empty, tree).is_err());
}
