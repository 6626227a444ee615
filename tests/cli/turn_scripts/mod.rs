//! Agents that tell of their turns: scripts that speak as real programs do.

#![allow(dead_code, reason = "not every file of tests needs all of it")]
use std::fs;

use arborist_testkit::TestRepo;

/// How Claude Code speaks. It looks with a git that no test has planted. An agent that has answered goes on when its turn is committed: a model would take longer.
pub(crate) const HELPERS: &str = r#"
opens() { echo '{"type":"system","subtype":"init","session_id":"s-1","model":"claude-sonnet-5"}'; }
calls() { printf '{"type":"assistant","message":{"id":"m%s","usage":{"input_tokens":10,"output_tokens":2},"content":[{"type":"text","text":"%s"},{"type":"tool_use","id":"t%s","name":"Bash","input":{"command":"work"}}]}}\n' "$1" "$2" "$1"; }
count() { PATH=${PATH#*:} git log --format=%s --grep='@turn)' 2>/dev/null | wc -l; }
settles() { tries=0; while [ "$(count)" -le "$1" ] && [ $tries -lt 600 ]; do sleep 0.02; tries=$((tries+1)); done; while [ -n "$(marks)" ] && [ $tries -lt 600 ]; do sleep 0.02; tries=$((tries+1)); done; }
marks() { PATH=${PATH#*:} git for-each-ref refs/arborist/wip/main/@staging; }
answers() { before=$(count); printf '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t%s"}]}}\n' "$1"; settles $before; }
reads() { before=$(noted); printf '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t%s"}]}}\n' "$1"; tries=0; while [ "$(noted)" -le $before ] && [ $tries -lt 600 ]; do sleep 0.02; tries=$((tries+1)); done; }
noted() { PATH=${PATH#*:} git log --format=%s --glob=refs/arborist/sessions --grep=': turn ' 2>/dev/null | wc -l; }
ends() { printf '{"type":"assistant","message":{"id":"last","content":[{"type":"text","text":"%s"}]}}\n{"type":"result","subtype":"success","is_error":false,"result":"%s"}\n' "$1" "$1"; }
"#;

/// A plan of one task, and an agent that prints events of this kind.
pub(crate) fn repo(events: &str, script: &str) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 the work\n");
    repo.commit("a plan\n");
    agent(&repo, events, script);
    repo
}

/// Makes a script the agent that works; somebody else reviews and approves.
pub(crate) fn agent(repo: &TestRepo, events: &str, script: &str) {
    repo.agent(&format!("{HELPERS}\n{script}"));
    let root = repo.root().display();
    let config = format!(
        "runner = \"robot\"\ntest-command = \"true\"\n[steps.review]\nrunner = \"judge\"\n\
         [runners.robot]\ncommand = [\"sh\", \"{root}/agent.sh\"]\nevents = \"{events}\"\n\
         [runners.judge]\ncommand = [\"sh\", \"{root}/judge.sh\"]\n"
    );
    fs::write(repo.home().join(".config/git-arborist/config.toml"), config).unwrap();
    judge(repo, "echo APPROVED\n");
}

/// Makes a script the reviewer.
pub(crate) fn judge(repo: &TestRepo, script: &str) {
    fs::write(repo.root().join("judge.sh"), script).unwrap();
}

/// A plan of one task that was done as a recorded stream tells it.
pub(crate) fn recorded(program: &str) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 the schema\n");
    repo.commit("a plan\n");
    let stream =
        format!("{}/shared/tests/data/streams/{program}.implement.jsonl", env!("CARGO_MANIFEST_DIR"));
    agent(&repo, program, &replay(program, &stream));
    repo.arborist(["gardener", "--model", "anthropic/m"]).succeeds();
    repo
}

/// A script that prints a recorded stream, and does before the end of each turn what the program did in it.
pub(crate) fn replay(program: &str, stream: &str) -> String {
    let ends = match program {
        "claude" | "gemini" => "*tool_result*",
        "codex" => "*item.completed*command_execution*|*item.completed*file_change*",
        _ => "*step_finish*tool-calls*",
    };
    format!(
        r#"
turn=0
while IFS= read -r line; do
  case "$line" in
    {ends})
      turn=$((turn+1)); before=$(count)
      case $turn in
        1) mkdir -p src; echo 'create table users(id int);' > src/schema.sql ;;
        2) echo 'create table posts(id int);' >> src/schema.sql; mkdir -p docs; echo notes > docs/notes.md ;;
        3) echo 'insert into users values (1);' > src/seed.sql ;;
      esac
      printf '%s\n' "$line"; settles $before ;;
    *) printf '%s\n' "$line" ;;
  esac
done < '{stream}'
"#
    )
}

/// The first lines of all commits, oldest first.
pub(crate) fn subjects(repo: &TestRepo) -> Vec<String> {
    repo.git(["log", "--reverse", "--format=%s"]).answer().lines().map(str::to_owned).collect()
}

/// Those of turns.
pub(crate) fn turns(repo: &TestRepo) -> Vec<String> {
    subjects(repo).into_iter().filter(|subject| subject.contains("@turn)")).collect()
}
