//! The git directories of worktrees, compared by one process while another one works in the same repository.

use std::{fs, process};

use arborist_core::{
    git::{EarlierChanges, Repository},
    process::FileLock,
};
use arborist_testkit::TestRepo;

fn repository(repo: &TestRepo) -> Repository {
    Repository::discover_from(&repo.path("")).unwrap()
}

fn add_worktree(repo: &TestRepo, name: &str) {
    let top = repo.root().join(name);
    let args = ["worktree", "add", "-q", "--detach", "--lock", "--reason", "arborist"];
    repo.git(args.into_iter().chain([top.to_str().unwrap()])).succeeds();
}

#[test]
fn a_worktree_that_another_process_is_creating_is_not_touched() {
    let repo = TestRepo::init();
    add_worktree(&repo, "lane-1");
    let home = repo.path(".git/worktrees/lane-1");
    let files = ["commondir", "gitdir", "locked"];
    let whole = files.map(|name| fs::read(home.join(name)).unwrap());
    let repository = repository(&repo);
    // git writes `locked` first, then the others: each of them is empty for a moment.
    for is_there in [0, 1, 2] {
        fs::write(home.join("commondir"), "").unwrap();
        files[is_there..2].iter().for_each(|name| drop(fs::remove_file(home.join(name))));
        let watch = repository.watch_git_dirs(EarlierChanges::Accept);
        files.iter().zip(&whole).for_each(|(name, content)| fs::write(home.join(name), content).unwrap());
        assert_eq!(watch.restore(), Vec::<String>::new());
        assert_eq!(files.map(|name| fs::read(home.join(name)).unwrap()), whole);
    }
}

#[test]
fn a_lane_that_another_process_holds_is_not_touched() {
    let repo = TestRepo::init();
    add_worktree(&repo, "lane-1");
    let home = repo.path(".git/worktrees/lane-1");
    let repository = repository(&repo);
    let change = |content: &str| {
        fs::create_dir_all(home.join("info")).unwrap();
        fs::write(home.join("info/sparse-checkout"), content).unwrap();
    };
    let watch = repository.watch_git_dirs(EarlierChanges::Accept);
    change("/one\n");
    assert_eq!(
        watch.restore(),
        [
            ".git/worktrees/lane-1/info/sparse-checkout was added while an agent or a command ran, and was removed"
        ]
    );

    let watch = repository.watch_git_dirs(EarlierChanges::Accept);
    let path = repository.worktree_lock(&repo.root().join("lane-1"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _lock = FileLock::try_take(&path, "another run").unwrap();
    let holder = fs::read_to_string(&path).unwrap();
    fs::write(&path, holder.replace(&process::id().to_string(), "1")).unwrap();
    change("/two\n");
    assert_eq!(watch.restore(), Vec::<String>::new());
    assert_eq!(fs::read_to_string(home.join("info/sparse-checkout")).unwrap(), "/two\n");
}
