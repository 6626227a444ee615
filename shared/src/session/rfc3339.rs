//! Serialises seconds since 1970 as RFC 3339.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serializer, de::Error};

pub(super) fn serialize<S: Serializer>(seconds: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    let time = Timestamp::from_second(*seconds).unwrap_or(Timestamp::UNIX_EPOCH);
    serializer.collect_str(&time)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse::<Timestamp>().map(Timestamp::as_second).map_err(D::Error::custom)
}
