//! Timing whole commands, and showing them as ratios.

use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// How long a command takes; its output goes nowhere.
pub(crate) fn run(command: &mut Command) -> Duration {
    let start = Instant::now();
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("a command that starts");
    start.elapsed()
}

/// The middle of so many measurements.
pub(crate) fn median(count: usize, mut measure: impl FnMut() -> Duration) -> Duration {
    let mut times: Vec<Duration> = (0..count).map(|_| measure()).collect();
    times.sort_unstable();
    times[count / 2]
}

/// Prints times as ratios to the first.
pub(crate) fn table(title: &str, base: (&str, Duration), rows: &[(&str, Duration, &str)]) {
    println!("{title}");
    println!("  {:<32} {:>10.1} ms", base.0, ms(base.1));
    for (name, time, aim) in rows {
        let ratio = base.1.as_secs_f64() / time.as_secs_f64();
        let shown = if ratio >= 2.0 { format!("1/{ratio:.0}") } else { format!("{:.2}", 1.0 / ratio) };
        println!("  {name:<32} {:>10.1} ms  {shown:>7}  {aim}", ms(*time));
    }
    println!();
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
