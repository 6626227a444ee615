//! How long to wait for a provider that cannot keep up.

use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::super::RetryWait;

/// Waits that double from `first` to `longest`, `patience` in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The first wait.
    pub first: Duration,
    /// No wait that we choose is longer.
    pub longest: Duration,
    /// A moment that lies further ahead than this is not believed.
    pub horizon: Duration,
    /// How long we wait in all where nobody says for how long.
    pub patience: Duration,
}

/// One wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackoffWait {
    /// How long.
    pub span: Duration,
    /// Who chose it.
    pub chosen: Chosen,
}

/// Who chose how long we wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Chosen {
    /// The provider named it.
    #[serde(rename = "provider")]
    ByProvider,
    /// Nobody did, so we did.
    #[serde(rename = "us")]
    ByUs,
}

/// Providers that name a time and refuse us again, this often, will do so for ever.
const MOST_TRIES: u32 = 50;

impl Default for Backoff {
    /// From five seconds to ten minutes, half an hour in all; weekly limits are the longest that providers have.
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
    /// How long to wait when nobody said, after `tries` waits that did not help.
    #[must_use]
    pub fn delay(&self, tries: u32) -> Duration {
        let factor = 2_u32.checked_pow(tries).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.longest)
    }

    /// How long to wait now, after `tries` waits of which our own came to `waited`; `None` when it is time to give up. A
    /// moment that was given is kept; a span that was given is kept unless it has proved too short; what is past,
    /// absurd or unknown is replaced by a delay of ours.
    #[must_use]
    pub fn next(
        &self,
        wait: RetryWait,
        (tries, waited): (u32, Duration),
        now: Timestamp,
    ) -> Option<BackoffWait> {
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
    fn own_delays_double_up_to_the_cap() {
        let seconds: Vec<u64> = (0..9).map(|tries| Backoff::default().delay(tries).as_secs()).collect();
        assert_eq!(seconds, [5, 10, 20, 40, 80, 160, 320, 600, 600]);
        assert_eq!(Backoff::default().delay(u32::MAX).as_secs(), 600);
    }

    #[test]
    fn a_given_time_is_kept_where_it_makes_sense() {
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
            let pause = Backoff::default().next(wait, (tries, Duration::ZERO), now);
            let found = pause.map(|pause| (pause.span.as_secs(), pause.chosen));
            assert_eq!(found, expected, "{wait:?} {tries}");
        }
    }

    #[test]
    fn own_waits_come_to_an_end() {
        let backoff = Backoff { patience: Duration::from_secs(30), ..Backoff::default() };
        let mut waited = Duration::ZERO;
        let mut spans = Vec::new();
        while let Some(pause) =
            backoff.next(RetryWait::Unknown, (spans.len() as u32, waited), Timestamp::UNIX_EPOCH)
        {
            waited += pause.span;
            spans.push(pause.span.as_secs());
        }
        assert_eq!(spans, [5, 10, 15]);
    }
}
