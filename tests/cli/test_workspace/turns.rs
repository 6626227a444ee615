//! A session over two repositories: an agent that tells of its turns writes in one, in the other and in both; another tells
//! of none.

use std::fs;

use serde_json::Value;

use super::TestWorkspace;

const PLAN: &str = r#"{"nodes": {
  "T001": {"id": "T001", "name": "the work", "repo": ["repo", "backend"]},
  "T002": {"id": "T002", "name": "in both", "repo": ["repo", "backend"], "runner": "plain", "dependencies": ["T001"]},
  "T003": {"id": "T003", "name": "only there", "repo": ["backend"], "runner": "plain", "dependencies": ["T002"]}
}, "root_ids": ["T001", "T002", "T003"]}"#;

/// Speaks as Claude Code does. It goes on when its turn is written down: a model would take longer.
const TURNS: &str = r#"
there=$(printf '%s\n' "$prompt" | sed -n 's/^- backend: //p')
noted() { git -C "$ROOT/repo" log --format=%s --glob=refs/arborist/sessions --grep=": turn [0-9]* of $ARBORIST_TASK" | wc -l; }
calls() { printf '{"type":"assistant","message":{"id":"m%s","content":[{"type":"text","text":"%s"},{"type":"tool_use","id":"t%s","name":"Bash","input":{"command":"work"}}]}}\n' "$1" "$2" "$1"; }
answers() { before=$(noted); printf '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t%s"}]}}\n' "$1"; tries=0; while [ "$(noted)" -le $before ] && [ $tries -lt 600 ]; do sleep 0.02; tries=$((tries+1)); done; }
echo '{"type":"system","subtype":"init","session_id":"s-1","model":"claude-sonnet-5"}'
calls 1 "Let me read."; answers 1
calls 2 "I'll write here"; echo "here $n" > here.txt; answers 2
calls 3 "I'll write there"; echo "there $n" > "$there/there.txt"; rm -f "$there/kept.txt"; answers 3
[ ! -e "$ROOT/before-last.sh" ] || . "$ROOT/before-last.sh"
calls 4 "I'll write in both"; echo "both $n" >> here.txt; echo "both $n" >> "$there/there.txt"; answers 4
echo '{"type":"result","subtype":"success","is_error":false,"result":"All is done."}'
"#;

/// Says that it is done, and no more.
const PLAIN: &str = r#"
there=$(printf '%s\n' "$prompt" | sed -n 's/^- backend: //p')
[ "$ARBORIST_TASK" = T003 ] || echo "$n" > "$ARBORIST_TASK.txt"
echo "$n" > "$there/$ARBORIST_TASK.txt"
echo done
"#;

impl TestWorkspace {
    /// The plan, and who does it.
    pub(crate) fn of_turns() -> Self {
        let workspace = Self::of(&["backend"], PLAN);
        workspace.agent(PLAIN);
        fs::rename(workspace.root().join("agent.sh"), workspace.root().join("plain.sh")).unwrap();
        workspace.agent(TURNS);
        fs::write(workspace.root().join("judge.sh"), "cat > /dev/null\necho APPROVED\n").unwrap();
        let root = workspace.root().display();
        let runner = |name: &str, more: &str| {
            format!("[runners.{name}]\ncommand = [\"sh\", \"{root}/{name}.sh\"]\n{more}")
        };
        let config = format!(
            "runner = \"agent\"\ntest-command = \"true\"\n[steps.review]\nrunner = \"judge\"\n{}{}{}",
            runner("agent", "events = \"claude\"\n"),
            runner("plain", ""),
            runner("judge", "")
        );
        fs::write(workspace.home().join(".config/git-arborist/config.toml"), config).unwrap();
        workspace
    }

    /// The same, done: with the id of the session.
    #[track_caller]
    pub(crate) fn of_session() -> (Self, String) {
        let workspace = Self::of_turns();
        workspace.arborist(["gardener"]).succeeds();
        let id = workspace.session_branch("backend").rsplit_once('/').unwrap().1.to_owned();
        (workspace, id)
    }

    /// What a command prints as one document.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.arborist(args).answer()).unwrap()
    }

    /// The turns of a session.
    #[track_caller]
    pub(crate) fn turns(&self, id: &str) -> Vec<Value> {
        self.json(&["session", "turns", id, "--json"])["turns"].as_array().unwrap().clone()
    }

    /// The turn whose message begins so.
    #[track_caller]
    pub(crate) fn turn(&self, id: &str, message: &str) -> Value {
        let begins = |turn: &&Value| turn["message"].as_str().is_some_and(|said| said.starts_with(message));
        self.turns(id).iter().find(begins).unwrap_or_else(|| panic!("{:#?}", self.turns(id))).clone()
    }
}

impl TestWorkspace {
    /// Makes the records of a session what they were when they did not tell of other repositories.
    pub(crate) fn remove_others_from_records(&self, id: &str) {
        self.forge(id, |record| drop(record.as_object_mut().unwrap().remove("others")));
    }

    /// Makes the records of a session say something else.
    pub(crate) fn forge(&self, id: &str, change: impl Fn(&mut Value)) {
        let name = format!("refs/arborist/sessions/{id}");
        let log = ["log", "--first-parent", "--reverse", "--format=%H %P", "--grep=^session ", &name];
        let empty = self.git(["rev-parse", &format!("{name}^{{tree}}")]).answer();
        let mut new: Vec<(String, String)> = Vec::new();
        for line in self.git(log).answer().lines() {
            let ids: Vec<&str> = line.split(' ').collect();
            let message = self.git(["log", "-1", "--format=%B", ids[0]]).answer();
            let (subject, body) = message.split_once("\n\n").unwrap();
            let mut record: Value = serde_json::from_str(body).unwrap();
            change(&mut record);
            let renamed = |text: String| new.iter().fold(text, |text, (old, new)| text.replace(old, new));
            let message = renamed(format!("{subject}\n\n{record}\n"));
            let parents: Vec<String> = ids[1..].iter().map(|parent| renamed((*parent).to_owned())).collect();
            new.push((ids[0].to_owned(), self.commit_object(&empty, &parents, message)));
        }
        self.git(["update-ref", &name, &new.last().unwrap().1]).succeeds();
    }
}
