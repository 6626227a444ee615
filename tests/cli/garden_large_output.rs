//! An agent may print as much as it likes: the driver's memory stays small, and the log has all of it.

#![cfg(target_os = "linux")]
use arborist_testkit::TestRepo;

/// So much more than for a little output the driver may need for a flood, in kilobytes.
const MORE: u64 = 12 * 1024;
/// A little output.
const LITTLE: u64 = 1 << 10;

fn expect_no_more_memory_for(events: &str, bytes: u64) {
    let (usual, peak) = (flood(events, LITTLE), flood(events, bytes));
    assert!(peak < usual + MORE, "{peak} kB were needed for {bytes} bytes of {events}, {usual} kB for few");
}

/// Prints so many bytes, a fifth of them in lines and the rest in one line that does not end, then asks how much memory its
/// parent has needed so far, in kilobytes. The pipe is small, so by then the driver has read nearly all.
fn flood(events: &str, bytes: u64) -> u64 {
    let repo = TestRepo::init();
    let (lines, line) = (bytes / 5, bytes - bytes / 5);
    repo.agent(&format!(
        r#"case "$prompt" in
  Review*) ;;
  *) yes '{{"type":"assistant","message":{{"content":[{{"type":"text","text":"a line"}}]}}}}' | head -c {lines}
     head -c {line} /dev/zero | tr '\0' x
     grep VmHWM /proc/$PPID/status > "$ROOT/peak"; echo; echo x > x.txt ;;
esac
case "$prompt" in Review*) said=APPROVED ;; *) said=done ;; esac
printf '{{"type":"result","subtype":"success","is_error":false,"result":"%s"}}\n' "$said"; echo "$said""#
    ));
    let file = repo.home().join(".config/git-arborist/config.toml");
    let known = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{known}events = \"{events}\"\n")).unwrap();
    repo.git(["config", "arborist.log-limit", "2000"]).succeeds();
    repo.arborist(["garden", "-m", "flood"]).succeeds();
    let peak = std::fs::read_to_string(repo.root().join("peak")).unwrap();
    let logs = std::fs::read_dir(repo.path("spec/logs")).unwrap().flatten();
    let longest = logs.map(|log| log.metadata().unwrap().len()).max().unwrap();
    assert!(longest >= bytes, "the log has only {longest} of {bytes} bytes");
    peak.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_large_agent_output_does_not_increase_memory() {
    expect_no_more_memory_for("claude", 32 << 20);
    expect_no_more_memory_for("text", 32 << 20);
}

#[test]
#[ignore = "writes a log of 1 GB, twice; run it with --ignored"]
fn a_gigabyte_of_agent_output_does_not_increase_memory() {
    expect_no_more_memory_for("claude", 1 << 30);
    expect_no_more_memory_for("text", 1 << 30);
}
