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

/// Repeated measurements of one thing. Taken in turns with those of another, what else the machine does meets both.
pub(crate) struct Times(Vec<Duration>);

impl Times {
    /// None yet.
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Measures so many times more.
    pub(crate) fn add(&mut self, count: usize, mut measure: impl FnMut() -> Duration) {
        self.0.extend((0..count).map(|_| measure()));
        self.0.sort_unstable();
    }

    /// The shortest: other work can only make one longer.
    fn best(&self) -> Duration {
        self.0[0]
    }

    fn median(&self) -> Duration {
        self.0[self.0.len() / 2]
    }
}

/// Prints the best and the middle of each, and the bests as ratios to the first.
pub(crate) fn table(title: &str, base: (&str, &Times), rows: &[(&str, &Times, &str)]) {
    println!("{title:<34} {:>10}  {:>10}", "best", "median");
    println!("  {:<32} {}", base.0, shown(base.1));
    for (name, times, aim) in rows {
        let ratio = base.1.best().as_secs_f64() / times.best().as_secs_f64();
        let ratio = if ratio >= 2.0 { format!("1/{ratio:.0}") } else { format!("{:.2}", 1.0 / ratio) };
        println!("  {name:<32} {}  {ratio:>6}  {aim}", shown(times));
    }
    println!();
}

fn shown(times: &Times) -> String {
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    format!("{:>7.1} ms  {:>7.1} ms", ms(times.best()), ms(times.median()))
}
