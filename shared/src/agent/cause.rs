//! Why a call failed, and how long to wait. This is read from the fields that programs and providers have for it. Text
//! counts only in the last line of a failed call, and only phrases that programs print for nothing else, because "rate
//! limit" also occurs in people's tasks.

use std::time::Duration;

use jiff::Timestamp;

/// The kind of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKind {
    /// Our own quota is used up.
    Limit,
    /// The provider is overloaded.
    Overload,
}

/// Why a program gave up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The provider rejects our credentials.
    Auth,
    /// Our own quota is used up.
    Limit,
    /// The provider is overloaded.
    Overload,
    /// Anything else.
    Other,
}

impl FailureKind {
    /// The meaning of an HTTP status.
    #[must_use]
    pub fn of_status(status: u64) -> Self {
        match status {
            401..=403 => Self::Auth,
            429 => Self::Limit,
            500..=599 => Self::Overload,
            _ => Self::Other,
        }
    }

    /// The meaning of an error code, as providers and programs spell it in the field for it.
    #[must_use]
    pub fn of_code(code: &str) -> Option<Self> {
        Some(match code {
            "authentication_failed"
            | "authentication_error"
            | "permission_error"
            | "billing_error"
            | "oauth_org_not_allowed"
            | "UNAUTHENTICATED"
            | "PERMISSION_DENIED"
            | "API_KEY_INVALID"
            | "invalid_api_key"
            | "ProviderAuthError"
            | "FatalAuthenticationError" => Self::Auth,
            "rate_limit" | "rate_limit_error" | "rate_limit_exceeded" | "RESOURCE_EXHAUSTED" => Self::Limit,
            "overloaded" | "overloaded_error" | "server_error" | "UNAVAILABLE" | "INTERNAL" => Self::Overload,
            _ => return None,
        })
    }

    /// The meaning of the last line of a failed call, if a program has no fields for it: `usage limit reached|` with a
    /// time in seconds since 1970, `API Error:` with an HTTP status, a provider's error code such as
    /// `rate_limit_error`, or a message that a key is not valid.
    #[must_use]
    pub fn of_words(line: &str) -> Option<(Self, RetryWait)> {
        if let Some((_, moment)) = line.split_once("usage limit reached|") {
            let digits: String = moment.trim().chars().take_while(char::is_ascii_digit).collect();
            return Some((Self::Limit, digits.parse().map_or(RetryWait::Unknown, RetryWait::until_second)));
        }
        let status = line.split_once("API Error:").and_then(|(_, rest)| {
            rest.split(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty())?.parse().ok()
        });
        let of_status = status.map(Self::of_status).filter(|kind| *kind != Self::Other);
        let mut words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let of_code = || words.find_map(|word| Self::of_code(word).filter(|_| is_of_provider(word)));
        let lower = line.to_lowercase();
        let of_key = || KEY_REFUSED.iter().any(|words| lower.contains(words)).then_some(Self::Auth);
        of_status.or_else(of_code).or_else(of_key).map(|kind| (kind, RetryWait::Unknown))
    }

    /// The limit, if it is one.
    #[must_use]
    pub fn as_limit(self) -> Option<LimitKind> {
        match self {
            Self::Limit => Some(LimitKind::Limit),
            Self::Overload => Some(LimitKind::Overload),
            Self::Auth | Self::Other => None,
        }
    }
}

/// Whether a line says that the program's own session does not exist, in the words of known programs.
#[must_use]
pub fn names_lost_session(line: &str) -> bool {
    const PHRASES: [&str; 9] = [
        "no conversation found",
        "no session found",
        "session not found",
        "conversation not found",
        "thread not found",
        "no rollout found",
        "no saved session",
        "invalid session identifier",
        "error resuming session",
    ];
    let lower = line.to_lowercase();
    PHRASES.iter().any(|phrase| lower.contains(phrase))
}

/// Whether only providers use this code.
fn is_of_provider(code: &str) -> bool {
    code.ends_with("_error") && code != "server_error"
        || ["rate_limit_exceeded", "RESOURCE_EXHAUSTED", "API_KEY_INVALID", "invalid_api_key"].contains(&code)
}

/// Messages of programs whose key or login is not valid.
const KEY_REFUSED: [&str; 4] =
    ["invalid api key", "incorrect api key provided", "api key not valid", "please run /login"];

/// How long to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryWait {
    /// Until this moment.
    Until(Timestamp),
    /// This long from now.
    For(Duration),
    /// The provider did not say.
    Unknown,
}

impl RetryWait {
    /// Until a time in seconds since 1970.
    #[must_use]
    pub fn until_second(second: i64) -> Self {
        Timestamp::from_second(second).map_or(Self::Unknown, Self::Until)
    }

    /// A number of seconds from now.
    #[must_use]
    pub fn for_seconds(seconds: f64) -> Self {
        Duration::try_from_secs_f64(seconds).map_or(Self::Unknown, Self::For)
    }

    /// The value of a `Retry-After` header: seconds, or a date.
    #[must_use]
    pub fn of_header(value: &str) -> Self {
        if let Ok(seconds) = value.trim().parse::<f64>() {
            return Self::for_seconds(seconds);
        }
        jiff::fmt::rfc2822::parse(value.trim()).map_or(Self::Unknown, |date| Self::Until(date.timestamp()))
    }

    /// This one, or `other` if this one is unknown.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        if self == Self::Unknown { other } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unambiguous_messages_are_taken_for_a_limit() {
        let told = |line| FailureKind::of_words(line).map(|(kind, _)| kind);
        for (line, kind) in [
            ("Claude AI usage limit reached|1763200000", FailureKind::Limit),
            (
                "API Error: 429 {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\"}}",
                FailureKind::Limit,
            ),
            ("429 Too Many Requests: rate_limit_exceeded", FailureKind::Limit),
            ("API Error (529 {\"error\":{\"type\":\"overloaded_error\"}})", FailureKind::Overload),
            ("API Error: 529 overloaded", FailureKind::Overload),
            ("Invalid API key · Please run /login", FailureKind::Auth),
            ("API Error: 401 {\"error\":{\"type\":\"authentication_error\"}}", FailureKind::Auth),
        ] {
            assert_eq!(told(line), Some(kind), "{line}");
        }
        for line in [
            "",
            "the rate limit of the form is too low",
            "error: 429 tests failed",
            "API Error: 400 the prompt is too long",
            "assertion failed: server_error",
            "the usage limit is reached",
            "UNAVAILABLE",
        ] {
            assert_eq!(told(line), None, "{line}");
        }
        let at = FailureKind::of_words("usage limit reached|1763200000").unwrap().1;
        assert_eq!(at, RetryWait::until_second(1_763_200_000));
    }
}
