//! Text for people is compared with files in `tests/cli/snapshots`, one for each command that a test looks at. What differs
//! from run to run has a placeholder there.

use std::{cell::RefCell, path::Path, sync::LazyLock, thread};

use regex::Regex;

/// Placeholders for what differs from run to run, in this order.
static PLACEHOLDERS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        // Tests run without a sandbox, unless they test it, and each summary says so.
        (r"(?m)^  note +agents, or tests of their code, ran without .*\n", ""),
        // The folder of a test, also as git and shells quote it.
        (r"(/[A-Za-z0-9_.+-]+)*/ga(?:rden)?(\\? |%20)(é|\\303\\251|%C3%A9)(\\? |%20)[0-9]{6}", "[root]"),
        (r"\b[0-9]{8}T?-?[0-9]{6}Z?(-[0-9a-z]+)*", "[session]"),
        (r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.]+)?( ?[+-][0-9]{4}|Z| UTC)?", "[date]"),
        (r"\b[0-9]+(\.[0-9]+)? ?(ms|s|min|m|h)\b", "[time]"),
        (r"\b[0-9]+(\.[0-9]+)? ?([kKMG]i?)?B\b", "[size]"),
        (r"\b(process|pid|PID|kill -INT) [0-9]+", "$1 [number]"),
        (r"\brun had left: [0-9]+(, [0-9]+)*", "run had left: [numbers]"),
        (r#""seconds": [0-9.]+"#, r#""seconds": [number]"#),
        (r"\bbaseline_test_[0-9a-f]+", "baseline_test_[id]"),
    ]
    .into_iter()
    .map(|(pattern, shown)| (Regex::new(pattern).expect("a pattern"), shown))
    .collect()
});

/// The name of this machine, where a holder of a lock is named.
static HOST: LazyLock<String> = LazyLock::new(|| {
    let system = rustix::system::uname();
    format!(" on {} ", system.nodename().to_string_lossy())
});

/// Words that may be the name of an object, or the begin of one. It may happen to have no digit.
static HEX: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b[0-9a-f]{7,64}\b").expect("a pattern"));

thread_local! {
    /// The test that runs in this thread, and how many commands it has looked at.
    static COUNT: RefCell<(String, usize)> = RefCell::default();
}

/// Compares a text with the next snapshot of the test that runs.
#[track_caller]
pub(crate) fn compare(text: &str) {
    let name = next_name();
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, steady(text)));
}

/// The test runner names its threads after the tests. With a single thread it does not: `.cargo/config.toml` asks for more.
fn next_name() -> String {
    let thread = thread::current();
    let test = thread.name().filter(|name| name.contains("::")).expect("run tests in several threads");
    COUNT.with_borrow_mut(|(last, count)| {
        *count = if last == test { *count + 1 } else { 1 };
        test.clone_into(last);
        format!("{}-{count}", test.replace("::", "__"))
    })
}

/// The text without what differs from run to run.
#[must_use]
pub fn steady(text: &str) -> String {
    let without_ids = HEX.replace_all(text, "[id]");
    let without_host = without_ids.replace(HOST.as_str(), " on [host] ");
    let without_host = without_host.replace(&format!("{},", HOST.trim_end()), " on [host],");
    PLACEHOLDERS
        .iter()
        .fold(without_host, |text, (pattern, shown)| pattern.replace_all(&text, *shown).into_owned())
}

#[cfg(test)]
mod tests {
    use super::steady;

    #[test]
    fn varying_values_become_placeholders() {
        let text = "/tmp/garden é 012345/repo at 0a1b2c3d4e efccafe 2025-02-16 14:30:22 +0000 after 12.5s, process 77, 3 kB";
        assert_eq!(steady(text), "[root]/repo at [id] [id] [date] after [time], process [number], [size]");
    }
}
