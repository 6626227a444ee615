//! The sessions of a repository, as commands print them for programs.

use std::fs;

use arborist_testkit::TestRepo;
use serde_json::Value;

/// What a command prints with `--json`.
pub(crate) fn json(repo: &TestRepo, args: &[&str]) -> Value {
    serde_json::from_str(&repo.arborist(args).answer()).unwrap()
}

/// All sessions.
pub(crate) fn sessions(repo: &TestRepo) -> Vec<Value> {
    json(repo, &["session", "list", "--json"])["sessions"].as_array().unwrap().clone()
}

/// The turns of a session.
pub(crate) fn turns(repo: &TestRepo, id: &str) -> Vec<Value> {
    json(repo, &["session", "turns", id, "--json"])["turns"].as_array().unwrap().clone()
}

/// Gives the runner of `turn_scripts` a command that resumes one of its own sessions.
pub(crate) fn can_resume(repo: &TestRepo) {
    let file = repo.home().join(".config/git-arborist/config.toml");
    let script = repo.root().join("agent.sh");
    let resume = format!("[runners.robot]\nresume = [\"sh\", \"{}\", \"{{session}}\"]\n", script.display());
    let config = fs::read_to_string(&file).unwrap().replace("[runners.robot]\n", &resume);
    fs::write(file, config).unwrap();
}
