//! The current time, and ages. Tests set the clock in the same way as git's own tests.

use std::{
    sync::LazyLock,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use jiff::{Timestamp, tz::TimeZone};

/// The time to which all output of one command refers.
static NOW: LazyLock<i64> = LazyLock::new(now);

/// Seconds since 1970, or the value of `GIT_TEST_DATE_NOW`.
#[must_use]
pub fn now() -> i64 {
    let stopped = std::env::var("GIT_TEST_DATE_NOW").ok().and_then(|value| value.parse().ok());
    stopped.unwrap_or_else(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}

/// How long ago `then` was, in one short word such as `5m` or `3d`.
#[must_use]
pub fn age(then: i64) -> String {
    span(NOW.saturating_sub(then))
}

/// How long ago `then` was, for a sentence: `5m ago`, or `in the future`.
#[must_use]
pub fn ago(then: i64) -> String {
    ago_span(NOW.saturating_sub(then))
}

/// How long something took: `12s`, `3m 05s` or `2h 07m`.
#[must_use]
pub fn duration(seconds: i64) -> String {
    let seconds = seconds.max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// A running time: `03:05`, or `2:07:09` after an hour.
#[must_use]
pub fn stopwatch(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds % 3600 / 60, seconds % 60);
    if hours == 0 {
        format!("{minutes:02}:{seconds:02}")
    } else {
        format!("{hours}:{minutes:02}:{seconds:02}")
    }
}

/// The local time in `seconds` from now: `14:05:30`, with the day if that is another.
#[must_use]
pub fn time_in(seconds: u64) -> String {
    let moment =
        |second| Timestamp::from_second(second).unwrap_or(Timestamp::MAX).to_zoned(TimeZone::system());
    let (today, then) = (moment(now()), moment(now().saturating_add_unsigned(seconds)));
    let form = if today.date() == then.date() { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" };
    then.strftime(form).to_string()
}

fn ago_span(seconds: i64) -> String {
    let mut span = span(seconds);
    if seconds >= 0 {
        span.push_str(" ago");
    }
    span
}

fn span(seconds: i64) -> String {
    match seconds {
        ..0 => "in the future".into(),
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        86_400..1_209_600 => format!("{}d", seconds / 86_400),
        1_209_600..31_536_000 => format!("{}w", seconds / 604_800),
        _ => format!("{}y", seconds / 31_536_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_printed_in_short_form() {
        for (seconds, word) in [
            (0, "0s"),
            (61, "1m"),
            (7_200, "2h"),
            (86_400 * 13, "13d"),
            (86_400 * 20, "2w"),
            (86_400 * 800, "2y"),
            (-5, "in the future"),
        ] {
            assert_eq!(span(seconds), word);
        }
    }

    #[test]
    fn durations_below_an_hour_are_printed_with_seconds() {
        assert_eq!([-1, 12, 185, 7_620].map(duration), ["0s", "12s", "3m 05s", "2h 07m"]);
        let times = [0, 185, 7_629].map(|seconds| stopwatch(Duration::from_secs(seconds)));
        assert_eq!(times, ["00:00", "03:05", "2:07:09"]);
    }

    #[test]
    fn an_age_in_the_future_is_printed_as_such() {
        assert_eq!([0, 10_800, -5].map(ago_span), ["0s ago", "3h ago", "in the future"]);
    }
}
