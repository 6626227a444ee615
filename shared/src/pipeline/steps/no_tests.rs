//! Detects test programs that ran no test. They have tested nothing, whatever their exit code. Pure.

use crate::pipeline::read_counts;

/// The output of programs that found no test: pytest, jest, vitest, nextest, phpunit, ctest, mocha.
const SENTENCES: [&str; 8] = [
    "no tests ran in ",
    " deselected in ",
    "No tests found, exiting with code",
    "No test files found, exiting with code",
    "error: no tests to run",
    "No tests executed!",
    "No tests were found!!!",
    "Error: No test files found",
];

/// Whether the output says that no test ran. False if it says nothing about tests.
#[must_use]
pub fn ran_no_tests(output: &str) -> bool {
    match read_counts(output) {
        Some(counts) => counts.passed + counts.failed == 0,
        None => SENTENCES.iter().any(|words| output.contains(words)) || has_only_empty_packages(output),
    }
}

/// `go test` prints a line for each package: `ok`, `FAIL` or `?`, and at the end whether there was anything to run.
fn has_only_empty_packages(output: &str) -> bool {
    let is_package = |line: &&str| ["ok  \t", "FAIL\t", "?   \t"].iter().any(|word| line.starts_with(word));
    let is_empty = |line: &str| line.ends_with("[no test files]") || line.ends_with("[no tests to run]");
    let mut packages = output.lines().filter(is_package).peekable();
    packages.peek().is_some() && packages.all(is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_ran_nothing_is_told_from_one_that_ran_something() {
        for (output, is_none) in [
            ("collected 0 items\n\n==== no tests ran in 0.01s ====\n", true),
            ("5 deselected in 0.01s\n", true),
            ("3 passed, 5 deselected in 0.01s\n", false),
            ("No tests found, exiting with code 1\n", true),
            ("No test files found, exiting with code 1\n", true),
            ("error: no tests to run\n(hint: use `--no-tests` to customize)\n", true),
            ("?   \texample.com/m\t[no test files]\n", true),
            (
                "testing: warning: no tests to run\nPASS\nok  \texample.com/m\t0.001s [no tests to run]\n",
                true,
            ),
            ("?   \texample.com/m\t[no test files]\nok  \texample.com/m/b\t0.002s\n", false),
            ("FAIL\texample.com/m [build failed]\n", false),
            ("test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n", true),
            ("1..0\n", true),
            ("No tests executed!\n", true),
            ("Test project /x/build\nNo tests were found!!!\n", true),
            ("Error: No test files found: \"test\"\n", true),
            ("0 examples, 0 failures\n", true),
            ("all is well\n", false),
            ("", false),
        ] {
            assert_eq!(ran_no_tests(output), is_none, "{output}");
        }
    }
}
