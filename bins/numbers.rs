//! Parsers for the numbers of options. Their errors are for people; those of Rust and clap are not.

use std::str::FromStr;

/// A whole number.
pub(crate) fn whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "must be a whole number".to_owned())
}

/// A whole number of at least 1.
pub(crate) fn positive<T: FromStr + PartialOrd + From<u8>>(text: &str) -> Result<T, String> {
    let number: Option<T> = text.parse().ok();
    number
        .filter(|number| *number >= T::from(1))
        .ok_or_else(|| "must be a whole number, 1 or more".to_owned())
}

/// A single digit.
pub(crate) fn digit(text: &str) -> Result<u8, String> {
    text.parse().ok().filter(|digit| *digit <= 9).ok_or_else(|| "must be 0 to 9".to_owned())
}
