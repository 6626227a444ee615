//! How long to wait for a provider that cannot keep up.

use std::time::Duration;

use jiff::Timestamp;

use super::super::Wait;

/// Waits that double from `first` to `longest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The first wait.
    pub first: Duration,
    /// No wait that we choose is longer.
    pub longest: Duration,
    /// A moment that lies further ahead than this is not believed.
    pub horizon: Duration,
}

impl Default for Backoff {
    /// From five seconds to ten minutes; weekly limits are the longest that providers have.
    fn default() -> Self {
        Self {
            first: Duration::from_secs(5),
            longest: Duration::from_secs(600),
            horizon: Duration::from_secs(8 * 24 * 3600),
        }
    }
}

impl Backoff {
    /// How long to wait when nobody said, after `tries` waits that did not help.
    #[must_use]
    pub fn delay(&self, tries: u32) -> Duration {
        let factor = 2_u32.checked_pow(tries).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.longest)
    }

    /// When to try again. A moment that was given is kept; a span that was given is kept unless it has proved
    /// too short; what is past, absurd or unknown is replaced by a delay of ours.
    #[must_use]
    pub fn resume_at(&self, wait: Wait, tries: u32, now: Timestamp) -> Timestamp {
        let own = self.delay(tries);
        let span = match wait {
            Wait::Until(moment) => Duration::try_from(moment.duration_since(now)).unwrap_or_default(),
            Wait::For(span) => span.max(if tries == 0 { Duration::ZERO } else { own }),
            Wait::Unknown => Duration::ZERO,
        };
        let is_sound = !span.is_zero() && span <= self.horizon;
        now.checked_add(if is_sound { span } else { own }).unwrap_or(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_delays_double_up_to_the_cap() {
        let seconds: Vec<u64> = (0..9).map(|tries| Backoff::default().delay(tries).as_secs()).collect();
        assert_eq!(seconds, [5, 10, 20, 40, 80, 160, 320, 600, 600]);
        assert_eq!(Backoff::default().delay(u32::MAX).as_secs(), 600);
    }

    #[test]
    fn a_given_time_is_kept_where_it_makes_sense() {
        let table = [
            (Wait::Until(Timestamp::from_second(4600).unwrap()), 3, 3600),
            (Wait::Until(Timestamp::from_second(10).unwrap()), 0, 5),
            (Wait::Until(Timestamp::MAX), 1, 10),
            (Wait::For(Duration::from_secs(1)), 0, 1),
            (Wait::For(Duration::from_secs(1)), 3, 40),
            (Wait::For(Duration::from_secs(90)), 3, 90),
            (Wait::For(Duration::MAX), 0, 5),
            (Wait::Unknown, 2, 20),
        ];
        let now = Timestamp::from_second(1000).unwrap();
        for (wait, tries, expected) in table {
            let at = Backoff::default().resume_at(wait, tries, now);
            assert_eq!(at.as_second() - 1000, expected, "{wait:?} {tries}");
        }
    }
}
