//! Why a call did not work, and how long to wait. Told by fields that programs and providers keep for it, never by
//! words: "rate limit" also stands in people's tasks.

use std::time::Duration;

use jiff::Timestamp;

/// Who cannot keep up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKind {
    /// We have used up what we may.
    Limit,
    /// The provider has too much to do.
    Overload,
}

/// Why a program gave up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The provider does not know or does not want us.
    Auth,
    /// We have used up what we may.
    Limit,
    /// The provider has too much to do.
    Overload,
    /// Anything else.
    Other,
}

impl FailureKind {
    /// What an HTTP status means.
    #[must_use]
    pub fn of_status(status: u64) -> Self {
        match status {
            401..=403 => Self::Auth,
            429 => Self::Limit,
            500..=599 => Self::Overload,
            _ => Self::Other,
        }
    }

    /// What an error code means, as providers and programs spell them in fields of their own.
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

    /// As a limit, if it is one.
    #[must_use]
    pub fn as_limit(self) -> Option<LimitKind> {
        match self {
            Self::Limit => Some(LimitKind::Limit),
            Self::Overload => Some(LimitKind::Overload),
            Self::Auth | Self::Other => None,
        }
    }
}

/// How long to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Until this moment.
    Until(Timestamp),
    /// This long from now.
    For(Duration),
    /// Nobody said.
    Unknown,
}

impl Wait {
    /// A moment in seconds since 1970.
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

    /// This one, or `other` where this one says nothing.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        if self == Self::Unknown { other } else { self }
    }
}
