//! Supervised programs: real processes that hang, flood, ignore signals and leave others behind.

use std::{
    fs,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use arborist_core::{
    process::{
        Cancel, Chunk, Ending, Filter, Limits, LineCutter, OutputLine, Program, Stream, Supervised,
        SupervisedEnd,
    },
    safe_files,
};

fn shell(script: &str) -> Program {
    Program::new("sh").args(["-c", script])
}

fn run(script: &str) -> SupervisedEnd {
    Supervised::new(shell(script)).run(|_| {})
}

const fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

/// A program that should never reach this.
const LONG: Duration = Duration::from_secs(120);

/// Runs a script that prints "ready" as soon as it can be asked to end, until a limit. On a busy machine it may be too slow for
/// that, and gets more time in the next try. Returns the limit, what came of it, and how long it took.
fn limited(script: &str, grace: Duration) -> (Duration, SupervisedEnd, Duration) {
    let attempt = |whole: Duration| {
        let limits = Limits { whole: Some(whole), grace, ..Limits::default() };
        let start = Instant::now();
        let outcome = Supervised::new(shell(script)).limits(limits).run(|_| {});
        (whole, outcome, start.elapsed())
    };
    let is_ready =
        |(_, outcome, _): &(Duration, SupervisedEnd, Duration)| outcome.stdout.text.contains("ready");
    [1, 5, 60].map(Duration::from_secs).into_iter().map(attempt).find(is_ready).unwrap()
}

/// Whether nobody writes to `file` any more.
fn is_still(file: &Path) -> bool {
    let size = || fs::metadata(file).map_or(0, |meta| meta.len());
    let before = size();
    thread::sleep(ms(400));
    before == size()
}

#[test]
fn exit_code_signal_and_missing_program_are_distinguished() {
    assert!(matches!(run("exit 0").ending, Ending::Exited(0)));
    assert!(matches!(run("exit 3").ending, Ending::Exited(3)));
    assert!(matches!(run("kill -9 $$").ending, Ending::Signalled(9)));
    let missing = Supervised::new(Program::new("no-such-program-anywhere")).run(|_| {});
    assert!(matches!(missing.ending, Ending::NotStarted(_)));
    assert!(!missing.ending.is_success());
}

#[test]
fn both_streams_are_reported_logged_and_filtered_and_their_last_part_is_kept() {
    struct Hush;
    impl Filter for Hush {
        fn pass(&mut self, chunk: Chunk<'_>, out: &mut Vec<u8>) {
            out.extend(String::from_utf8_lossy(chunk.bytes).replace("secret", "***").into_bytes());
        }
        fn finish(&mut self, stream: Stream, out: &mut Vec<u8>) {
            if stream == Stream::Stderr {
                out.extend(b"(end)");
            }
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep/er.log");
    let mut heard = Vec::new();
    let mut lines = LineCutter::limited(100);

    let outcome = Supervised::new(shell("echo one; sleep 0.2; echo secret; sleep 0.2; echo three >&2"))
        .log(safe_files::open_log(&path).unwrap())
        .filter(Hush)
        .tail(4)
        .run(|chunk| {
            lines.push(chunk.bytes, |line: OutputLine<'_>| {
                heard.push((chunk.stream, String::from_utf8_lossy(line.bytes).into_owned()));
            });
        });

    let want = [(Stream::Stdout, "one"), (Stream::Stdout, "secret"), (Stream::Stderr, "three")];
    assert_eq!(heard, want.map(|(stream, line)| (stream, line.to_owned())));
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\n***\nthree\n(end)");
    assert_eq!((outcome.stdout.text.as_str(), outcome.stdout.cut), ("***\n", true));
    assert_eq!((outcome.stderr.text.as_str(), outcome.stderr.total), ("end)", 11));
}

#[test]
fn a_log_is_not_written_through_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let (target, link) = (dir.path().join("target"), dir.path().join("link"));
    fs::write(&target, "precious").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    safe_files::open_log(&link).unwrap();
    assert!(link.symlink_metadata().unwrap().is_file(), "the log takes the place of the link");
    assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
}

#[test]
fn input_is_written_while_output_is_read_and_may_stay_unread() {
    let input = vec![b'x'; 3 << 20];
    let outcome = Supervised::new(Program::new("cat")).input(input.clone()).run(|_| {});
    assert_eq!(outcome.stdout.total, input.len() as u64);
    let outcome = Supervised::new(shell("exec <&-; exit 4")).input(input).run(|_| {});
    assert!(matches!(outcome.ending, Ending::Exited(4)));
    let outcome = run("cat; echo nothing came");
    assert_eq!(outcome.stdout.text, "nothing came\n");
}

#[test]
fn the_environment_is_clean_and_contains_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().canonicalize().unwrap().join("place é");
    fs::create_dir(&place).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "supervised::surrounded", "--ignored", "--nocapture"])
        .envs(
            ["GIT_DIR", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_7", "GIT_CONFIG_VALUE_7"].map(|name| (name, "x")),
        )
        .envs(["GIT_EXEC_PATH", "GIT_EDITOR", "GIT_INDEX_FILE", "ARBORIST_TRUST"].map(|name| (name, "x")))
        .envs([("GIT_SSL_CAINFO", "kept"), ("PLACE", place.to_str().unwrap())])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let told: Vec<&str> = told.lines().filter(|line| line.starts_with(['G', 'P', 'T'])).collect();
    let pwd = format!("PWD={}", place.display());
    let no_rerere = ["GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=rerere.enabled", "GIT_CONFIG_VALUE_0=false"];
    assert_eq!(told[..3], no_rerere);
    assert_eq!(told[3..], ["GIT_INDEX_FILE=mine", "GIT_SSL_CAINFO=kept", &pwd]);
}

#[test]
#[ignore = "started by the test above"]
fn surrounded() {
    let Ok(place) = std::env::var("PLACE") else { return };
    let script = "env | grep -E '^(GIT_|ARBORIST_TRUST|PWD)' | sed 's/^ARBORIST_//' | sort";
    let program = shell(script).dir(place).env("GIT_INDEX_FILE", "mine").env("ARBORIST_TRUST", "1");
    println!("\n{}", Supervised::new(program).run(|_| {}).stdout.text);
}

#[test]
fn a_program_that_hangs_is_ended_in_time() {
    let script = "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let (whole, outcome, took) = limited(script, LONG);
    assert!(matches!(outcome.ending, Ending::TimedOut { after } if after == whole));
    assert_eq!(outcome.stdout.text, "ready\nbye\n", "it was asked, and heard to its end");
    assert!(took < LONG, "the grace was not waited for");
}

#[test]
fn a_program_that_ignores_term_is_killed_after_the_grace() {
    let grace = ms(300);
    let script = "trap '' TERM; sleep 1000 & echo ready; while :; do sleep 1; done";
    let (whole, outcome, took) = limited(script, grace);
    assert!(matches!(outcome.ending, Ending::TimedOut { .. }));
    assert!(outcome.survivors.is_empty());
    assert!(took >= whole + grace && took < LONG);
}

#[test]
fn the_silence_timeout_counts_from_the_last_byte_of_either_stream() {
    // It talks for longer than it may be silent. On a busy machine its pauses are longer than it wants, and so are those that
    // it may make in the next try.
    let is_heard = |times: u32| {
        let silence = Some(ms(1500) * times);
        let limits = Limits { silence, whole: Some(LONG), grace: ms(500), ..Limits::default() };
        let pause = 0.3 * f64::from(times);
        let chatty = format!("for i in 1 2 3 4 5 6 7 8; do sleep {pause}; echo . >&2; done; exit 5");
        let chatty = Supervised::new(shell(&chatty)).limits(limits).run(|_| {});
        let silent = Supervised::new(shell("echo hello; sleep 1000")).limits(limits).run(|_| {});
        assert!(matches!(silent.ending, Ending::Silent { .. }));
        matches!(chatty.ending, Ending::Exited(5)) && silent.stdout.text == "hello\n"
    };
    assert!([1, 4, 16].into_iter().any(is_heard));
}

#[test]
fn a_program_that_closes_its_pipes_is_still_waited_for_and_limited() {
    // The exit code tells that it was waited for: nothing else could have learned it.
    let outcome = run("exec >&- 2>&-; sleep 0.3; exit 6");
    assert!(matches!(outcome.ending, Ending::Exited(6)));
    let limits = Limits { silence: Some(ms(300)), ..Limits::default() };
    let outcome = Supervised::new(shell("exec >&- 2>&-; exec sleep 100")).limits(limits).run(|_| {});
    assert!(matches!(outcome.ending, Ending::Silent { .. }));
}

#[test]
fn a_full_stderr_with_an_idle_stdout_does_not_block() {
    let outcome = run("head -c 3000000 /dev/zero | tr '\\0' e >&2; echo done");
    assert!(outcome.ending.is_success());
    assert_eq!((outcome.stderr.total, outcome.stderr.text.len()), (3_000_000, 2000));
    assert_eq!(outcome.stdout.text, "done\n");
}

#[test]
fn cancelling_ends_it_at_once() {
    let cancel = Cancel::new();
    let own = Cancel::new();
    let start = Instant::now();
    let outcome = Supervised::new(shell("echo ready; sleep 1000"))
        .limits(Limits { grace: LONG, ..Limits::default() })
        .until(&Cancel::new())
        .until(&cancel)
        .until(&own)
        .run(|_| cancel.cancel());
    assert!(matches!(outcome.ending, Ending::Cancelled));
    assert!(start.elapsed() < LONG, "the grace was not waited for");
    assert!(!own.is_cancelled());
}

#[test]
fn background_processes_of_the_group_do_not_outlive_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("written");
    let script = "(sh -c 'while :; do echo x >> \"$0\"; sleep 0.02; done' \"$FILE\" &)
        until [ -s \"$FILE\" ]; do sleep 0.02; done; exit 7";
    let outcome = Supervised::new(shell(script).env("FILE", &file)).run(|_| {});
    assert!(matches!(outcome.ending, Ending::Exited(7)), "its own code counts, whoever held the pipes open");
    assert!(file.exists() && is_still(&file));
}

#[cfg(target_os = "linux")]
#[test]
fn a_double_forked_writer_in_its_own_session_does_not_outlive_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("written");
    let script = "(setsid sh -c 'trap \"\" TERM HUP; (while :; do echo x >> \"$0\"; sleep 0.02; done)' \"$FILE\" \
                  </dev/null >/dev/null 2>&1 &); until [ -s \"$FILE\" ]; do sleep 0.02; done";
    let limits = Limits { grace: ms(200), ..Limits::default() };
    let outcome = Supervised::new(shell(script).env("FILE", &file)).limits(limits).run(|_| {});
    assert!(outcome.ending.is_success() && outcome.survivors.is_empty());
    assert!(file.exists() && is_still(&file));
}

#[cfg(target_os = "linux")]
#[test]
fn stray_processes_of_one_program_are_not_mistaken_for_those_of_another() {
    let dir = tempfile::tempdir().unwrap();
    let (stray, go) = (dir.path().join("stray"), dir.path().join("go"));
    let long =
        "(setsid sh -c 'echo $$ > \"$0.new\"; mv \"$0.new\" \"$0\"; while :; do sleep 1; done' \"$STRAY\" &)
        until [ -e \"$GO\" ]; do sleep 0.02; done; ps -o stat= -p $(cat \"$STRAY\") | grep -c '^[^Z]'";
    thread::scope(|scope| {
        let program = shell(long).env("STRAY", &stray).env("GO", &go);
        let first = scope.spawn(|| Supervised::new(program).run(|_| {}));
        while !stray.exists() {
            thread::sleep(ms(10));
        }
        assert!(run("exit 0").ending.is_success());
        assert!(run("(setsid sleep 50 &)").ending.is_success());
        fs::write(&go, "").unwrap();
        assert_eq!(
            first.join().unwrap().stdout.text,
            "1\n",
            "the first one's stray lives as long as the first"
        );
    });
}

#[test]
fn a_listener_that_panics_leaves_no_process_behind() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("written");
    let program = shell("while :; do echo x | tee -a \"$FILE\"; sleep 0.02; done").env("FILE", &file);
    let result = thread::spawn(|| Supervised::new(program).run(|_| panic!("on purpose"))).join();
    assert!(result.is_err() && is_still(&file));
}

#[test]
fn many_parallel_programs_end_with_their_own_code_and_output() {
    thread::scope(|scope| {
        let runs: Vec<_> =
            (0..16).map(|n| scope.spawn(move || run(&format!("(sleep 60 &); echo {n}; exit {n}")))).collect();
        for (n, run) in runs.into_iter().enumerate() {
            let outcome = run.join().unwrap();
            assert_eq!(outcome.ending.code(), Some(i32::try_from(n).unwrap()));
            assert_eq!(outcome.stdout.text, format!("{n}\n"));
        }
    });
}

/// 200 MB, or as many as `ARBORIST_TEST_FLOOD` says (1000 was tried).
#[cfg(target_os = "linux")]
#[test]
fn memory_use_does_not_depend_on_the_amount_of_output() {
    let megabytes = std::env::var("ARBORIST_TEST_FLOOD").unwrap_or_else(|_| "200".into());
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "supervised::flooded", "--ignored", "--nocapture"])
        .env("FLOODED_WITH", &megabytes)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let peak = told.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_else(|| panic!("{told}"));
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 24 * 1024, "{peak} kB for {megabytes} MB");
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "started by the test above"]
fn flooded() {
    let Ok(megabytes) = std::env::var("FLOODED_WITH") else { return };
    let bytes = megabytes.parse::<u64>().unwrap() * 1_000_000;
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let script = format!("head -c {bytes} /dev/zero & head -c 1000000 /dev/zero >&2; wait");
    let mut lines = LineCutter::limited(1 << 20);
    let outcome = Supervised::new(shell(&script))
        .limits(Limits { log_size: u64::MAX, ..Limits::default() })
        .log(safe_files::open_log(&log).unwrap())
        .run(|chunk| lines.push(chunk.bytes, |_| {}));
    assert_eq!(outcome.stdout.total, bytes);
    assert_eq!(fs::metadata(&log).unwrap().len(), bytes + 1_000_000);
    let status = fs::read_to_string("/proc/self/status").unwrap();
    println!("\n{}", status.lines().find(|line| line.starts_with("VmHWM:")).unwrap());
}
