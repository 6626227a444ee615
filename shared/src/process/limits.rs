//! How long a supervised program may run and be silent, and how much it may log.

use std::time::{Duration, Instant};

use super::Ending;

/// The limits of a supervised program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The time from start to end.
    pub whole: Option<Duration>,
    /// The time without a byte on either stream.
    pub silence: Option<Duration>,
    /// The time between TERM and KILL.
    pub grace: Duration,
    /// The size of its log in bytes.
    pub log_size: u64,
}

/// The default size of a log.
const LOG_SIZE: u64 = 100 * 1000 * 1000;

impl Default for Limits {
    fn default() -> Self {
        Self { whole: None, silence: None, grace: Duration::from_secs(5), log_size: LOG_SIZE }
    }
}

/// The two moments from which limits are counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    pub(super) started: Instant,
    pub(super) heard: Instant,
}

impl Limits {
    /// The limit that is exceeded at `now`, if any.
    pub(super) fn breach(&self, clock: Clock, now: Instant) -> Option<Ending> {
        let over = |limit: Option<Duration>, since| limit.filter(|limit| now.duration_since(since) >= *limit);
        if let Some(after) = over(self.whole, clock.started) {
            return Some(Ending::TimedOut { after });
        }
        over(self.silence, clock.heard).map(|after| Ending::Silent { after })
    }

    /// The time from `now` until a limit could be exceeded.
    pub(super) fn patience(&self, clock: Clock, now: Instant) -> Option<Duration> {
        let left =
            |limit: Option<Duration>, since| limit.map(|l| l.saturating_sub(now.duration_since(since)));
        match (left(self.whole, clock.started), left(self.silence, clock.heard)) {
            (Some(whole), Some(silence)) => Some(whole.min(silence)),
            (one, other) => one.or(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_silence_limit_counts_from_the_last_byte_and_the_total_from_the_start() {
        let second = Duration::from_secs;
        let started = Instant::now();
        let limits = Limits { whole: Some(second(10)), silence: Some(second(3)), ..Limits::default() };
        let clock = Clock { started, heard: started + second(5) };

        assert!(limits.breach(clock, started + second(7)).is_none());
        assert_eq!(limits.patience(clock, started + second(7)), Some(second(1)));
        assert!(matches!(limits.breach(clock, started + second(8)), Some(Ending::Silent { .. })));
        assert!(matches!(limits.breach(clock, started + second(10)), Some(Ending::TimedOut { .. })));
        assert_eq!(Limits::default().patience(clock, started + second(9)), None);
    }
}
