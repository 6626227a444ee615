//! Whatever was made, merged, squashed, left lying or broken, and however it is cleaned up: every object that could be had
//! before can be had afterwards, and what was saved comes back.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use crate::cleanup_repo::CleanupRepo;

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(sides).unwrap()).unwrap()
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        if of.is_empty() { None } else { Some(&of[self.roll(of.len())]) }
    }
}

struct Story {
    repo: CleanupRepo,
    dice: Dice,
    count: usize,
    log: Vec<String>,
}

impl Story {
    fn new(seed: u64) -> Self {
        Self { repo: CleanupRepo::new(), dice: Dice(seed), count: 0, log: Vec::new() }
    }

    fn next(&mut self) -> usize {
        self.count += 1;
        self.count
    }

    fn tasks(&self) -> Vec<String> {
        let names = self.repo.refs("refs/heads/arborist/task/main");
        names.iter().map(|name| name.rsplit('/').next().unwrap().to_owned()).collect()
    }

    fn places(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.repo.root().join("repo.arborist")).into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        found.retain(|path| path.join(".git").exists() && !path.to_string_lossy().contains(".removed-"));
        found.sort();
        found
    }

    fn step(&mut self) {
        let n = self.next();
        let kind = self.dice.roll(13);
        self.log.push(format!("{kind}"));
        match kind {
            0 | 1 => {
                let files: Vec<(String, String)> = (0..=self.dice.roll(3))
                    .map(|m| (format!("f{}.txt", (n + m) % 7), format!("{n} {m}\n")))
                    .collect();
                let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
                self.repo.grow(&format!("B{n}"), "main", &files);
            }
            2 => self.merge_a_branch("--no-ff"),
            3 => self.merge_a_branch("--squash"),
            4 => self.pick(),
            5 => drop(self.repo.arborist(["worktree", "add", "--allow-dirty", &format!("W{n}")])),
            6 => {
                let task = format!("L{n}");
                drop(self.repo.arborist(["worktree", "add", "--allow-dirty", "--lane", &task]));
                if self.dice.roll(2) == 0 {
                    drop(self.repo.arborist(["worktree", "recycle", &task]));
                }
            }
            7 | 8 => self.work(n),
            9 => self.break_something(),
            10 => {
                let file = format!("f{}.txt", self.dice.roll(7));
                self.repo.write(&file, format!("main {n}\n"));
                self.repo.commit("main goes on\n");
            }
            _ => self.clean(),
        }
    }

    fn merge_a_branch(&mut self, how: &str) {
        let tasks = self.tasks();
        let Some(task) = self.dice.pick(&tasks) else { return };
        let branch = format!("arborist/task/main/{task}");
        let merged = self.repo.git(["merge", "-q", how, "-m", "land", "-X", "theirs", &branch]);
        if merged.code() != 0 || how == "--squash" {
            drop(self.repo.git(["commit", "-q", "-m", "squash"]));
            self.repo.git(["reset", "-q", "--hard"]).succeeds();
        }
    }

    fn pick(&mut self) {
        let tasks = self.tasks();
        let Some(task) = self.dice.pick(&tasks) else { return };
        let range = format!("main..arborist/task/main/{task}");
        if self.repo.git(["cherry-pick", "-x", &range]).code() != 0 {
            drop(self.repo.git(["cherry-pick", "--abort"]));
            self.repo.git(["reset", "-q", "--hard"]).succeeds();
        }
    }

    /// Somebody works in a worktree: changes, stages, commits, on a branch or on none.
    fn work(&mut self, n: usize) {
        let places = self.places();
        let Some(place) = self.dice.pick(&places).cloned() else { return };
        let git = |args: &[&str]| drop(self.repo.git_in(&place, args));
        let file = ["a.txt", "new.txt", "sub/deep é.txt", "target/cache"][n % 4];
        fs::create_dir_all(place.join(file).parent().unwrap()).unwrap();
        fs::write(place.join(file), format!("work {n}\n")).unwrap();
        match self.dice.roll(5) {
            0 => git(&["add", "-A"]),
            1 => {
                git(&["add", "-A"]);
                fs::write(place.join("a.txt"), format!("more {n}\n")).unwrap();
            }
            2 => {
                git(&["add", "-A"]);
                git(&["commit", "-q", "-m", "work"]);
            }
            _ => {}
        }
    }

    fn break_something(&mut self) {
        let places = self.places();
        let Some(place) = self.dice.pick(&places).cloned() else { return };
        let home = self.repo.path(".git/worktrees").join(place.file_name().unwrap());
        match self.dice.roll(4) {
            0 => fs::remove_dir_all(&place).unwrap(),
            1 => fs::write(place.join(".git"), "gitdir: /nowhere\n").unwrap(),
            2 if home.exists() => fs::remove_dir_all(&home).unwrap(),
            _ => {
                fs::write(self.repo.path(".git/arborist/locks").join("worktrees.making"), "/nowhere")
                    .unwrap();
            }
        }
    }

    fn clean(&mut self) {
        let mut args = vec!["--older-than", ["0", "0", "0", "7d"][self.dice.roll(4)]];
        let options = [
            "--force", "--force", "--reclaim", "--only=worktrees", "--only=branches", "--remote", "--dry-run",
        ];
        args.extend(
            (0..self.dice.roll(3)).map(|_| options[self.dice.roll(options.len())]).collect::<BTreeSet<_>>(),
        );
        let tasks = self.tasks();
        let lock = (self.dice.roll(5) == 0).then(|| {
            let path = self.repo.path(".git/arborist/locks/run-main");
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let file = fs::File::options().create(true).append(true).open(path).unwrap();
            file.lock().unwrap();
            file
        });
        let before = reachable_objects(&self.repo, &self.places());
        let run = self.repo.cleanup(&args);
        assert!([0, 1].contains(&run.code()), "{:?}\n{}", self.log, run.report());
        let after = reachable_objects(&self.repo, &self.places());
        let lost: Vec<&String> = before.difference(&after).collect();
        assert!(lost.is_empty(), "lost {lost:?}\n{:?}\n{}", self.log, run.report());
        if let Some(lock) = lock {
            assert_eq!(self.tasks(), tasks, "a run is under way\n{}", run.report());
            // A child that another test is just starting may have a copy of the descriptor.
            lock.unlock().unwrap();
        }
    }

    /// Everything that was saved comes back, each to a place of its own.
    fn restore_all(&mut self) {
        let saved = self.repo.cleanup(&["saved", "--json"]).answer();
        let saved: serde_json::Value = serde_json::from_str(&saved).unwrap();
        for one in saved["saved"].as_array().unwrap() {
            let n = self.next();
            let (branch, place) = (format!("again/{n}"), self.repo.root().join(format!("again-{n}")));
            let name = one["name"].as_str().unwrap();
            let args = ["restore", name, "--branch", &branch, "--to", place.to_str().unwrap()];
            self.repo.cleanup(&args).succeeds();
            let commit = one["commit"].as_str().unwrap();
            if place.exists() {
                let index = self.repo.root().join("again-index");
                let mut command = self.repo.command("git", &place);
                command.env("GIT_INDEX_FILE", &index).args(["add", "-A"]);
                arborist_testkit::Run::of(&mut command, b"").succeeds();
                let mut command = self.repo.command("git", &place);
                command.env("GIT_INDEX_FILE", &index).args(["write-tree"]);
                let tree = arborist_testkit::Run::of(&mut command, b"").answer();
                fs::remove_file(&index).unwrap();
                assert_eq!(
                    tree,
                    self.repo.git(["rev-parse", &format!("{commit}^{{tree}}")]).answer(),
                    "{name}"
                );
            } else {
                assert_eq!(self.repo.git(["rev-parse", &branch]).answer(), commit, "{name}");
            }
        }
    }
}

/// Every commit, tree and blob that a ref, a worktree's `HEAD`, an index or a file leads to, ignored files aside.
fn reachable_objects(repo: &CleanupRepo, places: &[PathBuf]) -> BTreeSet<String> {
    let words = |text: String| {
        text.lines().filter_map(|line| Some(line.split(' ').next()?.to_owned())).collect::<Vec<_>>()
    };
    let mut tips = vec![
        "rev-list".to_owned(),
        "--objects".to_owned(),
        "--no-object-names".to_owned(),
        "--all".to_owned(),
    ];
    let homes = fs::read_dir(repo.path(".git/worktrees")).into_iter().flatten().flatten();
    let mut found = BTreeSet::new();
    for home in homes.map(|home| home.path()) {
        let head = fs::read_to_string(home.join("HEAD")).unwrap_or_default();
        if head.len() == 41 {
            tips.push(head.trim().to_owned());
        }
        if home.join("index").exists() {
            let mut command = repo.command("git", &repo.path(""));
            command.env("GIT_INDEX_FILE", home.join("index")).args(["ls-files", "-s"]);
            let listed = arborist_testkit::Run::of(&mut command, b"").stdout();
            found.extend(listed.lines().filter_map(|line| Some(line.split(' ').nth(1)?.to_owned())));
        }
    }
    found.extend(words(repo.git(&tips).answer()));
    for file in places.iter().flat_map(|place| files(place)) {
        let id = repo.git(["hash-object".as_ref(), "--no-filters".as_ref(), file.as_os_str()]);
        found.insert(id.answer());
    }
    found
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name == ".git" || name == "target" {
            continue;
        }
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}

fn tell(seed: u64) {
    let mut story = Story::new(seed);
    for _ in 0..24 {
        story.step();
    }
    story.clean();
    story.restore_all();
    story.repo.git(["fsck", "--strict", "--no-dangling"]).succeeds();
}

#[test]
fn cleanup_loses_nothing_in_the_first_random_scenario() {
    tell(0x9E37_79B9_7F4A_7C15);
}

#[test]
fn cleanup_loses_nothing_in_the_second_random_scenario() {
    tell(0xD1B5_4A32_D192_ED03);
}

#[test]
fn cleanup_loses_nothing_in_the_third_random_scenario() {
    tell(0x94D0_49BB_1331_11EB);
}

#[test]
fn cleanup_loses_nothing_in_the_fourth_random_scenario() {
    tell(0xBF58_476D_1CE4_E5B9);
}

/// `STORIES=100 cargo test --test cli cleanup_model -- --ignored` for as many as somebody has time for.
#[test]
#[ignore = "takes as long as one lets it"]
fn cleanup_loses_nothing_in_many_random_scenarios() {
    let count: u64 = std::env::var("STORIES").ok().and_then(|count| count.parse().ok()).unwrap_or(20);
    (1..=count).for_each(|seed| tell(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
}
