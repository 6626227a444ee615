//! Gemini is given tools in a private home, which holds all that the user has in theirs. Each step has its own.

use std::fs;

use arborist_testkit::TestRepo;

/// Does what Gemini does in its home: reads settings, writes a new token and a conversation; then starts the server of
/// tools that its extension names, as Gemini does, and writes by it.
const GEMINI: &str = r#"#!/bin/sh
cat > /dev/null
home=$GEMINI_CLI_HOME
cp "$home/.gemini/settings.json" "$ROOT/settings-seen"
cat "$home/.gemini/extensions/theirs/gemini-extension.json" "$home/.env" >> "$ROOT/settings-seen"
echo refreshed > "$home/.gemini/oauth_creds.json"
echo new > "$home/.gemini/google_accounts.json"
echo '{}' > "$home/.gemini/projects.json.tmp"; mv "$home/.gemini/projects.json.tmp" "$home/.gemini/projects.json"
mkdir -p "$home/.gemini/tmp/repo"; echo words >> "$home/.gemini/tmp/repo/chat"; cp "$home/.gemini/tmp/repo/chat" "$ROOT/chat"
serve=$(sed 's/.*"args":\["\([^"]*\)".*/\1/' "$home/.gemini/extensions/git-arborist-tools/gemini-extension.json")
cp "$serve" "$ROOT/serve"
echo done > done.txt
echo '{"type":"init","session_id":"s","model":"m"}'
echo '{"type":"message","role":"assistant","content":"APPROVED","delta":true}'
echo '{"type":"result","status":"success","stats":{}}'
"#;

fn repo() -> TestRepo {
    let repo = TestRepo::planned("tasks.md", "## Phase 1: All\n\n- [ ] T001 the only one\n", "true");
    repo.plant("gemini", &GEMINI.replace("$ROOT", &repo.root().display().to_string()));
    repo.write("../home/.config/git-arborist/config.toml", "runner = \"gemini\"\ntest-command = \"true\"\n");
    repo.git(["config", "arborist.workspace.repos.app.path", "."]).succeeds();
    repo.git(["config", "arborist.workspace.repos.app.tools.it", "echo \"it's $HOME\""]).succeeds();
    repo.git(["config", "arborist.session.branch", "false"]).succeeds();
    repo
}

#[test]
fn gemini_gets_the_tools_with_the_settings_of_the_user_and_its_new_token_is_kept() {
    let repo = repo();
    let theirs = |path: &str| repo.home().join(".gemini").join(path);
    repo.write("../home/.gemini/settings.json", "{} // the user's own\n");
    repo.write("../home/.gemini/oauth_creds.json", "old\n");
    repo.write("../home/.gemini/projects.json", "{\"projects\":{}}\n");
    repo.write("../home/.gemini/extensions/theirs/gemini-extension.json", "an extension\n");
    repo.write("../home/.env", "A=b\n");
    repo.arborist(["gardener", "--tools"]).succeeds().never("has no placeholder for tools");
    assert_eq!(repo.read("../settings-seen"), "{} // the user's own\nan extension\nA=b\n");
    assert_eq!(fs::read_to_string(theirs("oauth_creds.json")).unwrap(), "refreshed\n");
    assert_eq!(fs::read_to_string(theirs("google_accounts.json")).unwrap(), "new\n");
    assert_eq!(fs::read_to_string(theirs("settings.json")).unwrap(), "{} // the user's own\n");
    assert!(!theirs("extensions/git-arborist-tools").exists(), "the user's folder is theirs");
    let serve = repo.read("../serve");
    assert!(serve.contains("export ARBORIST_TASK='T001'\n"), "{serve}");
    assert!(serve.contains(r#"'app:it=echo "it'\''s $HOME"'"#), "{serve}");
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "", "nothing is left lying about");
}

/// As in a container, where only a variable holds the key: what was said is found again by the next attempt.
#[test]
fn gemini_works_without_settings_of_the_user_and_keeps_its_conversations() {
    let repo = repo();
    let judge = "prompt=$(cat)\nstep=implement; answer=done\n\
        case \"$prompt\" in Review*) step=review; answer=REJECTED; [ ! -e \"$ROOT/rejected\" ] || answer=APPROVED; touch \"$ROOT/rejected\" ;; esac";
    let mut script = GEMINI.replace("cat > /dev/null", judge);
    script = script.replace("\"$ROOT/chat\"", "\"$ROOT/chat-$step\"").replace("APPROVED\",", "'$answer'\",");
    script = script.replace("$ROOT", &repo.root().display().to_string());
    script = script
        .replace("\ncp \"$home/.gemini/settings.json\"", "\ntrue")
        .replace("\ncat \"$home", "\ntrue \"$home");
    // Each attempt has to change something.
    script = script.replace("> done.txt", ">> done.txt");
    repo.plant("gemini", &script.replace("oauth_creds.json", "other.json"));
    repo.arborist(["gardener", "--tools"]).succeeds();
    assert!(!repo.home().join(".gemini").exists());
    assert_eq!(repo.read("../chat-implement"), "words\nwords\n", "two attempts, one home");
    assert_eq!(repo.read("../chat-review"), "words\n", "each review has a new home");
}

/// Like Gemini, it obeys instructions, variables and extensions in its home.
const OBEDIENT: &str = r#"#!/bin/sh
prompt=$(cat); folder=$GEMINI_CLI_HOME/.gemini; answer=done
case "$prompt" in
Review*)
  answer='REJECTED: a back door'
  for planted in GEMINI.md .env extensions/evil tmp/bin/rg; do [ ! -e "$folder/$planted" ] || answer=APPROVED; done ;;
*)
  mkdir -p "$folder/extensions/evil" "$folder/tmp/bin" || exit 1
  for planted in GEMINI.md .env extensions/evil/x tmp/bin/rg; do echo x > "$folder/$planted" || exit 1; done
  echo x > work.txt ;;
esac
echo '{"type":"init","session_id":"s","model":"m"}'
echo '{"type":"message","role":"assistant","content":"'"$answer"'","delta":true}'
echo '{"type":"result","status":"success","stats":{}}'
"#;

#[test]
fn a_gemini_reviewer_does_not_see_files_that_the_implementer_left_in_its_home() {
    for mode in ["off", "landlock", "bwrap"] {
        let repo = repo();
        repo.write("../home/.gemini/settings.json", "{}\n");
        repo.plant("gemini", OBEDIENT);
        let run = repo.arborist(["gardener", "--tools", "--max-retries", "1", "--sandbox", mode]);
        if run.code() == 128 {
            println!("skipped: {mode} does not work here");
            continue;
        }
        run.exits(1).err("a back door");
        assert!(!repo.home().join(".gemini/GEMINI.md").exists(), "{mode}");
    }
}

#[test]
fn without_tools_gemini_uses_the_home_folder_of_the_user() {
    let repo = repo();
    repo.plant(
        "gemini",
        "#!/bin/sh\ncat > /dev/null\necho \"<$GEMINI_CLI_HOME>\" > \"$HOME/seen\"\nexit 1\n",
    );
    repo.arborist(["gardener", "--max-retries", "1"]).exits(1);
    assert_eq!(repo.read("../home/seen"), "<>\n");
}
