//! How long to wait for an overloaded provider.

use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::super::RetryWait;

/// Waits that double from `first` to `longest`, up to `patience` in total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The first wait.
    pub first: Duration,
    /// The longest wait that we choose.
    pub longest: Duration,
    /// A time that is further in the future than this is ignored.
    pub horizon: Duration,
    /// The total time to wait if the provider names no time.
    pub patience: Duration,
}

/// One wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackoffWait {
    /// Its length.
    pub span: Duration,
    /// Where the length came from.
    pub chosen: Chosen,
}

/// Where the length of a wait came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Chosen {
    /// The provider gave it.
    #[serde(rename = "provider")]
    ByProvider,
    /// The provider gave none, so it was chosen here.
    #[serde(rename = "us")]
    ByUs,
}

/// A provider that names a time and refuses us again this often will not recover. The times that it names do not use up
/// [`Backoff::patience`], so without this limit a provider that always names a few seconds would be called for ever. One
/// with hourly limits may refuse us for two days.
const MOST_TRIES: u32 = 50;

impl Default for Backoff {
    /// From five seconds to ten minutes, half an hour in total; the longest limits of providers are weekly.
    fn default() -> Self {
        Self {
            first: Duration::from_secs(5),
            longest: Duration::from_secs(600),
            horizon: Duration::from_secs(8 * 24 * 3600),
            patience: Duration::from_secs(1800),
        }
    }
}

impl Backoff {
    /// The wait if the provider names no time, after `tries` waits.
    #[must_use]
    pub fn delay(&self, tries: u32) -> Duration {
        let factor = 2_u32.checked_pow(tries).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.longest)
    }

    /// The next wait after `tries` waits, of which our own add up to `waited`; `None` when it is time to give up. A
    /// time that was given is kept; a duration that was given is kept unless it has proved too short; what is past,
    /// absurd or unknown is replaced by our own delay.
    #[must_use]
    pub fn next(&self, wait: RetryWait, tries: u32, waited: Duration, now: Timestamp) -> Option<BackoffWait> {
        let own = self.delay(tries);
        let given = match wait {
            RetryWait::Until(moment) => Duration::try_from(moment.duration_since(now)).ok(),
            RetryWait::For(span) => Some(span).filter(|span| tries == 0 || *span >= own),
            RetryWait::Unknown => None,
        };
        if let Some(span) = given.filter(|span| !span.is_zero() && *span <= self.horizon) {
            return (tries < MOST_TRIES).then_some(BackoffWait { span, chosen: Chosen::ByProvider });
        }
        let left = self.patience.saturating_sub(waited);
        (!left.is_zero()).then(|| BackoffWait { span: own.min(left), chosen: Chosen::ByUs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_delays_double_up_to_the_maximum() {
        let seconds: Vec<u64> = (0..9).map(|tries| Backoff::default().delay(tries).as_secs()).collect();
        assert_eq!(seconds, [5, 10, 20, 40, 80, 160, 320, 600, 600]);
        assert_eq!(Backoff::default().delay(u32::MAX).as_secs(), 600);
    }

    #[test]
    fn a_retry_time_of_the_provider_is_used_if_it_is_plausible() {
        let at = |second| RetryWait::Until(Timestamp::from_second(second).unwrap());
        let seconds = Duration::from_secs;
        let table = [
            (at(4600), 3, Some((3600, Chosen::ByProvider))),
            (at(4600), MOST_TRIES, None),
            (at(10), 0, Some((5, Chosen::ByUs))),
            (RetryWait::Until(Timestamp::MAX), 1, Some((10, Chosen::ByUs))),
            (RetryWait::For(seconds(1)), 0, Some((1, Chosen::ByProvider))),
            (RetryWait::For(seconds(1)), 3, Some((40, Chosen::ByUs))),
            (RetryWait::For(seconds(90)), 3, Some((90, Chosen::ByProvider))),
            (RetryWait::For(Duration::MAX), 0, Some((5, Chosen::ByUs))),
            (RetryWait::Unknown, 2, Some((20, Chosen::ByUs))),
        ];
        let now = Timestamp::from_second(1000).unwrap();
        for (wait, tries, expected) in table {
            let pause = Backoff::default().next(wait, tries, Duration::ZERO, now);
            let found = pause.map(|pause| (pause.span.as_secs(), pause.chosen));
            assert_eq!(found, expected, "{wait:?} {tries}");
        }
    }

    #[test]
    fn waits_without_a_provider_time_end_when_patience_is_used_up() {
        let backoff = Backoff { patience: Duration::from_secs(30), ..Backoff::default() };
        let mut waited = Duration::ZERO;
        let mut spans = Vec::new();
        while let Some(pause) =
            backoff.next(RetryWait::Unknown, spans.len() as u32, waited, Timestamp::UNIX_EPOCH)
        {
            waited += pause.span;
            spans.push(pause.span.as_secs());
        }
        assert_eq!(spans, [5, 10, 15]);
    }
}
