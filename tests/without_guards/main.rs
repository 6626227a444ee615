//! Attacks on a repository with the sandbox on and the guards off: each is stopped by the sandbox alone. The guards are
//! off only in a build with the feature `without-guards`; `.ci/without-guards` makes it and runs these tests.

use std::{fs, path::PathBuf};

use arborist_core::process::ConfinementBackend;
use arborist_testkit::TestRepo;

/// An attack, and how to see that it worked.
struct Attack {
    name: &'static str,
    /// Runs in the worktree. `$ROOT` is the folder around the checkout, `$git` the git directory.
    script: &'static str,
    /// Whether something was changed that must not be.
    worked: fn(&TestRepo) -> bool,
}

fn git_dir(repo: &TestRepo, file: &str) -> PathBuf {
    repo.path(".git").join(file)
}

fn has_ref(repo: &TestRepo, name: &str) -> bool {
    repo.git(["rev-parse", "--verify", "--quiet", name]).code() == 0
}

fn has_forged_commit(repo: &TestRepo) -> bool {
    repo.git(["log", "--all", "--format=%s"]).stdout().contains("forged")
}

/// Replaced by a link, or written through one.
fn is_linked(repo: &TestRepo, file: &str) -> bool {
    git_dir(repo, file).is_symlink()
}

const ATTACKS: [Attack; 6] = [
    Attack {
        name: "B2: writes refs that are not its own",
        script: r#"
forged=$(git commit-tree -p HEAD -m forged HEAD^{tree})
git update-ref refs/heads/planted "$forged"
git update-ref refs/arborist/landing/main "$forged"
git update-ref refs/arborist/gates/planted "$forged"
git update-ref refs/heads/arborist/task/main/T002 "$forged"
"#,
        worked: |repo| {
            ["refs/heads/planted", "refs/arborist/landing/main", "refs/arborist/gates/planted"]
                .iter()
                .any(|name| has_ref(repo, name))
        },
    },
    Attack {
        name: "B3: replaces what the driver restores by a link",
        script: r#"
rm -rf "$git/hooks" && ln -s "$ROOT/victim" "$git/hooks"
rm -f "$git/config" && ln -s "$ROOT/victim/config" "$git/config"
"#,
        worked: |repo| is_linked(repo, "hooks") || is_linked(repo, "config"),
    },
    Attack {
        name: "B5: moves the branch to forged commits",
        script: r#"
git update-ref refs/heads/main "$(git commit-tree -p main -m forged 'main^{tree}')"
"#,
        worked: has_forged_commit,
    },
    Attack {
        name: "B6: changes what git obeys",
        script: r#"
git config core.hooksPath "$ROOT/victim"
echo '[core]' > "$git/config.worktree"
mkdir -p "$git/info" && echo hidden.txt >> "$git/info/exclude" && echo '* -diff' > "$git/info/attributes"
ln -s nowhere "$git/hooks/post-commit"
mkdir -p "$git/modules/planted" && echo '[core]' > "$git/modules/planted/config"
"#,
        worked: |repo| {
            let exclude = fs::read_to_string(git_dir(repo, "info/exclude")).unwrap_or_default();
            repo.git(["config", "core.hooksPath"]).code() == 0
                || git_dir(repo, "config.worktree").exists()
                || exclude.contains("hidden.txt")
                || git_dir(repo, "info/attributes").exists()
                || is_linked(repo, "hooks/post-commit")
                || git_dir(repo, "modules").exists()
        },
    },
    Attack {
        name: "B7: removes the git directory inside of another repository",
        script: "rm -rf \"$git\"\n",
        worked: |repo| !git_dir(repo, "HEAD").exists() || !git_dir(repo, "refs").exists(),
    },
    Attack {
        name: "B15: plants links where the driver writes",
        script: r#"
mkdir -p "$git/arborist" && ln -s "$ROOT/victim/object" "$git/arborist/object-planted"
rm -f "$git/info/exclude" && ln -s "$ROOT/victim/exclude" "$git/info/exclude"
"#,
        worked: |repo| is_linked(repo, "arborist/object-planted") || is_linked(repo, "info/exclude"),
    },
];

/// Who makes the attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attacker {
    Agent,
    Test,
}

/// Runs a plan in which `attacker` makes the attack, and returns whether it worked. Each step of it may fail.
fn run(attack: &Attack, attacker: Attacker, args: &[&str]) -> bool {
    let (agent, test) = match attacker {
        Attacker::Agent => (attack.script, ""),
        Attacker::Test => ("", attack.script),
    };
    let plan = "- [ ] T001 [P] a\n- [ ] T002 [P] b\n";
    let body = "case \"$prompt\" in Review*) echo APPROVED ;; *) echo x > \"$ARBORIST_TASK.txt\" ;; esac";
    let repo = TestRepo::planned("tasks.md", plan, "");
    let git = repo.path(".git").display().to_string();
    let with_git = |script: &str| {
        let root = repo.root().display();
        format!("ROOT='{root}'; git='{git}'\n(\n:\n{script}\n) >/dev/null 2>&1\n")
    };
    repo.agent(&format!("{}{body}\n", with_git(agent)));
    repo.write_script("../attack.sh", &format!("{}exit 0\n", with_git(test)));
    // The checkout is inside of another repository, and a victim is beside it.
    fs::create_dir(repo.root().join("victim")).unwrap();
    for file in ["config", "pre-commit"] {
        fs::write(repo.root().join("victim").join(file), "untouched\n").unwrap();
    }
    repo.git(["init", "-q", &repo.root().display().to_string()]).succeeds();
    let outer = fs::read(repo.root().join(".git/config")).unwrap();
    let test = format!("sh '{}'", repo.path("../attack.sh").display());
    let run = repo.arborist([&["gardener", "--test-command", &test, "--max-retries", "1"], args].concat());
    let worked = (attack.worked)(&repo);
    if !args.contains(&"off") {
        assert_eq!(run.code(), 0, "{} {attacker:?} {args:?}: {}", attack.name, run.report());
        for file in ["config", "pre-commit"] {
            let text = fs::read_to_string(repo.root().join("victim").join(file)).unwrap();
            assert_eq!(text, "untouched\n", "{} {attacker:?} {args:?}", attack.name);
        }
        assert_eq!(fs::read(repo.root().join(".git/config")).unwrap(), outer, "{}", attack.name);
        assert!(!has_forged_commit(&repo), "{}", attack.name);
    }
    worked
}

#[test]
fn the_sandbox_alone_stops_each_attack() {
    let cases: [(ConfinementBackend, &[&str]); 3] = [
        (ConfinementBackend::Bwrap, &["--sandbox", "bwrap"]),
        (ConfinementBackend::Bwrap, &["--sandbox", "bwrap", "--jobs", "2"]),
        // In the user's own checkout Landlock cannot close the git directory.
        (ConfinementBackend::Landlock, &["--sandbox", "landlock", "--jobs", "2"]),
    ];
    for (backend, args) in cases {
        if !backend.works() {
            println!("skipped: {} does not work here", backend.as_str());
            continue;
        }
        for attack in &ATTACKS {
            for attacker in [Attacker::Agent, Attacker::Test] {
                assert!(!run(attack, attacker, args), "{} {attacker:?} {args:?}", attack.name);
            }
        }
    }
}

/// Without this, the test above would say nothing about the sandbox.
#[test]
fn each_attack_works_without_the_sandbox() {
    for attack in &ATTACKS {
        assert!(run(attack, Attacker::Test, &["--sandbox", "off"]), "{}", attack.name);
    }
}
