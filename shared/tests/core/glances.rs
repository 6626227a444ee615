//! What a look into git's own files tells is what git tells, however refs are kept and whoever changed them.

use arborist_core::{
    git::{Repository, Worktree},
    name::BranchName,
};
use arborist_testkit::Garden;

const FORMATS: [&[&str]; 3] = [&[], &["--object-format=sha256"], &["--ref-format=reftable"]];

/// Gardens of all formats that git can make.
fn gardens() -> Vec<Garden> {
    let can = |options: &&&[&str]| {
        let probe = Garden::sprout();
        probe.git(["init", "-q"].iter().chain(**options).chain(&["probe"])).code() == 0
    };
    FORMATS.iter().filter(can).map(|options| Garden::bare_ground(options)).collect()
}

fn told_by_git(garden: &Garden, name: &str) -> Option<String> {
    let told = garden.git(["rev-parse", "--verify", "-q", name]);
    (told.code() == 0).then(|| told.stdout().trim().to_owned())
}

#[test]
fn a_ref_is_where_git_has_it() {
    for garden in gardens() {
        garden.commit("begin\n");
        let repository = Repository::discover_from(&garden.path("")).unwrap();
        let check = |when: &str| {
            for name in ["loose", "packed", "gone", "alias", "deep/er"] {
                let name = format!("refs/heads/{name}");
                let found = repository.find_ref(&name).unwrap().map(|id| id.to_string());
                assert_eq!(found, told_by_git(&garden, &name), "{name} {when}");
            }
        };
        check("before anything is there");
        for name in ["packed", "gone"] {
            garden.git(["branch", name]).succeeds();
        }
        check("loose");
        garden.git(["pack-refs", "--all"]).succeeds();
        check("packed");
        garden.git(["branch", "-D", "gone"]).succeeds();
        garden.git(["commit", "-q", "--allow-empty", "-m", "more"]).succeeds();
        for name in ["loose", "deep/er"] {
            garden.git(["branch", name]).succeeds();
        }
        garden.git(["branch", "-f", "packed"]).succeeds();
        garden.git(["symbolic-ref", "refs/heads/alias", "refs/heads/packed"]).succeeds();
        check("packed and moved");
    }
}

fn find<'a>(worktrees: &'a [Worktree], folder: &str) -> &'a Worktree {
    worktrees.iter().find(|worktree| worktree.path.ends_with(folder)).unwrap()
}

#[test]
fn worktrees_are_as_git_lists_them_whatever_others_did_meanwhile() {
    for garden in gardens() {
        garden.commit("begin\n");
        garden.git(["worktree", "add", "-q", "--detach", "wt/one"]).succeeds();
        let repository = Repository::discover_from(&garden.path("")).unwrap();
        // Somebody who asks for the first time asks git.
        let anew = || Repository::discover_from(&garden.path("")).unwrap().list_worktrees().unwrap();
        let list = || {
            let listed = repository.list_worktrees().unwrap();
            assert_eq!(listed, anew());
            listed
        };
        let branch = |name: &str| Some(name.parse::<BranchName>().unwrap());
        assert_eq!(find(&list(), "wt/one").branch, None);
        garden.git(["-C", "wt/one", "checkout", "-q", "-b", "own"]).succeeds();
        assert_eq!(find(&list(), "wt/one").branch, branch("own"));
        let before = find(&list(), "wt/one").head;
        garden.git(["-C", "wt/one", "commit", "-q", "--allow-empty", "-m", "more"]).succeeds();
        assert_ne!(find(&list(), "wt/one").head, before);
        garden.git(["worktree", "lock", "--reason", "mine", "wt/one"]).succeeds();
        assert_eq!(find(&list(), "wt/one").lock.as_deref(), Some("mine"));
        garden.git(["worktree", "unlock", "wt/one"]).succeeds();
        garden.git(["worktree", "add", "-q", "--detach", "wt/two"]).succeeds();
        assert_eq!(list().len(), 3);
        garden.git(["worktree", "move", "wt/two", "wt/three"]).succeeds();
        find(&list(), "wt/three");
        garden.git(["worktree", "remove", "wt/three"]).succeeds();
        assert_eq!(list().len(), 2);
        garden.git(["checkout", "-q", "--orphan", "unborn"]).succeeds();
        let listed = list();
        assert_eq!((&listed[0].branch, listed[0].head), (&branch("unborn"), None));
    }
}
