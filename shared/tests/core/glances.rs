//! What a look into git's own files tells is what git tells, however refs are kept and whoever changed them.

use arborist_core::{
    git::{Repository, Worktree},
    name::BranchName,
};
use arborist_testkit::TestRepo;

const FORMATS: [&[&str]; 3] = [&[], &["--object-format=sha256"], &["--ref-format=reftable"]];

/// Gardens of all formats that git can make.
fn repos() -> Vec<TestRepo> {
    let can = |options: &&&[&str]| {
        let probe = TestRepo::init();
        probe.git(["init", "-q"].iter().chain(**options).chain(&["probe"])).code() == 0
    };
    FORMATS.iter().filter(can).map(|options| TestRepo::with_options(options)).collect()
}

fn ref_by_git(repo: &TestRepo, name: &str) -> Option<String> {
    let told = repo.git(["rev-parse", "--verify", "-q", name]);
    (told.code() == 0).then(|| told.stdout().trim().to_owned())
}

#[test]
fn refs_are_resolved_like_git_does() {
    for repo in repos() {
        repo.commit("begin\n");
        let repository = Repository::discover_from(&repo.path("")).unwrap();
        let check = |when: &str| {
            for name in ["loose", "packed", "gone", "alias", "deep/er"] {
                let name = format!("refs/heads/{name}");
                let found = repository.find_ref(&name).unwrap().map(|id| id.to_string());
                assert_eq!(found, ref_by_git(&repo, &name), "{name} {when}");
            }
        };
        check("before anything is there");
        for name in ["packed", "gone"] {
            repo.git(["branch", name]).succeeds();
        }
        check("loose");
        repo.git(["pack-refs", "--all"]).succeeds();
        check("packed");
        repo.git(["branch", "-D", "gone"]).succeeds();
        repo.git(["commit", "-q", "--allow-empty", "-m", "more"]).succeeds();
        for name in ["loose", "deep/er"] {
            repo.git(["branch", name]).succeeds();
        }
        repo.git(["branch", "-f", "packed"]).succeeds();
        repo.git(["symbolic-ref", "refs/heads/alias", "refs/heads/packed"]).succeeds();
        check("packed and moved");
    }
}

fn find<'a>(worktrees: &'a [Worktree], folder: &str) -> &'a Worktree {
    worktrees.iter().find(|worktree| worktree.path.ends_with(folder)).unwrap()
}

#[test]
fn worktrees_are_listed_like_git_does_despite_concurrent_changes() {
    for repo in repos() {
        repo.commit("begin\n");
        repo.git(["worktree", "add", "-q", "--detach", "wt/one"]).succeeds();
        let repository = Repository::discover_from(&repo.path("")).unwrap();
        // Somebody who asks for the first time asks git.
        let anew = || Repository::discover_from(&repo.path("")).unwrap().list_worktrees().unwrap();
        let list = || {
            let listed = repository.list_worktrees().unwrap();
            assert_eq!(listed, anew());
            listed
        };
        let branch = |name: &str| Some(name.parse::<BranchName>().unwrap());
        assert_eq!(find(&list(), "wt/one").branch, None);
        repo.git(["-C", "wt/one", "checkout", "-q", "-b", "own"]).succeeds();
        assert_eq!(find(&list(), "wt/one").branch, branch("own"));
        let before = find(&list(), "wt/one").head;
        repo.git(["-C", "wt/one", "commit", "-q", "--allow-empty", "-m", "more"]).succeeds();
        assert_ne!(find(&list(), "wt/one").head, before);
        repo.git(["worktree", "lock", "--reason", "mine", "wt/one"]).succeeds();
        assert_eq!(find(&list(), "wt/one").lock.as_deref(), Some("mine"));
        repo.git(["worktree", "unlock", "wt/one"]).succeeds();
        repo.git(["worktree", "add", "-q", "--detach", "wt/two"]).succeeds();
        assert_eq!(list().len(), 3);
        repo.git(["worktree", "move", "wt/two", "wt/three"]).succeeds();
        find(&list(), "wt/three");
        repo.git(["worktree", "remove", "wt/three"]).succeeds();
        assert_eq!(list().len(), 2);
        repo.git(["checkout", "-q", "--orphan", "unborn"]).succeeds();
        let listed = list();
        assert_eq!((&listed[0].branch, listed[0].head), (&branch("unborn"), None));
    }
}
