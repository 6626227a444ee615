//! Object ids for both hashes, and the hashing that verifies that bytes belong to an id.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};
use sha2::Sha256;

use super::NameError;
use crate::words::words;

const KIND: &str = "object id";

/// The hash that a repository names its objects with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ObjectFormat {
    /// 40 hexadecimal digits.
    Sha1,
    /// 64 hexadecimal digits.
    Sha256,
}

impl ObjectFormat {
    /// The number of hexadecimal digits of an id.
    #[must_use]
    pub fn hex_len(self) -> usize {
        match self {
            Self::Sha1 => 40,
            Self::Sha256 => 64,
        }
    }
}

words! {
    /// The type of an object.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum ObjectKind {
        /// The content of a file.
        Blob = "blob",
        /// A folder.
        Tree = "tree",
        /// A commit.
        Commit = "commit",
    }
}

/// The id of a git object: 20 or 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Oid {
    bytes: [u8; 32],
    format: u8,
}

string_schema!(Oid);

impl Oid {
    fn from_digest(digest: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes[..digest.len()].copy_from_slice(digest);
        Self { bytes, format: if digest.len() == 20 { 20 } else { 32 } }
    }

    /// The id of an object with this content.
    #[must_use]
    pub fn of(kind: ObjectKind, content: &[u8], format: ObjectFormat) -> Self {
        // Thousands of commits are hashed to show a state, so nothing is formatted here.
        let size = content.len().to_string();
        Self::of_parts(&[kind.as_str().as_bytes(), b" ", size.as_bytes(), b"\0", content], format)
    }

    /// The hash of these bytes as they are, such as those of an object with its header.
    #[must_use]
    pub fn hash_raw(object: &[u8], format: ObjectFormat) -> Self {
        Self::of_parts(&[object], format)
    }

    fn of_parts(parts: &[&[u8]], format: ObjectFormat) -> Self {
        match format {
            ObjectFormat::Sha1 => {
                let digest = parts.iter().fold(Sha1::new(), Sha1::chain_update).finalize();
                Self::from_digest(&digest)
            }
            ObjectFormat::Sha256 => {
                let digest = parts.iter().fold(Sha256::new(), Sha256::chain_update).finalize();
                Self::from_digest(&digest)
            }
        }
    }

    /// The id with these 20 or 32 bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        matches!(bytes.len(), 20 | 32).then(|| Self::from_digest(bytes))
    }

    /// Its 20 or 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.format)]
    }

    /// Parses the hexadecimal form.
    #[must_use]
    pub fn from_hex(hex: &[u8]) -> Option<Self> {
        if hex.len() != 40 && hex.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        let mut seen = 0;
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            let (high, low) = (NIBBLES[usize::from(pair[0])], NIBBLES[usize::from(pair[1])]);
            seen |= high | low;
            *byte = high << 4 | low & 0xf;
        }
        (seen != NO_DIGIT).then_some(Self { bytes, format: if hex.len() == 40 { 20 } else { 32 } })
    }

    /// The hash of this id.
    #[must_use]
    pub fn format(&self) -> ObjectFormat {
        if self.format == 20 { ObjectFormat::Sha1 } else { ObjectFormat::Sha256 }
    }

    /// Whether it is the id that git writes for a missing object.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.bytes.iter().all(|byte| *byte == 0)
    }

    /// The first ten digits, for people.
    #[must_use]
    pub fn short(&self) -> String {
        let mut hex = self.to_string();
        hex.truncate(10);
        hex
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The table's value for a character that is no digit.
const NO_DIGIT: u8 = 0xff;

/// The values of lower-case hexadecimal digits. A table is faster than branches, which are unpredictable here.
const NIBBLES: [u8; 256] = {
    let mut table = [NO_DIGIT; 256];
    let mut value = 0;
    while value < 16 {
        table[DIGITS[value as usize] as usize] = value;
        value += 1;
    }
    table
};

/// The SHA-256 of `bytes` in hexadecimal digits.
#[must_use]
pub fn digest(bytes: &[u8]) -> String {
    Oid::from_digest(&Sha256::digest(bytes)).to_string()
}

impl FromStr for Oid {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        Self::from_hex(name.as_bytes())
            .ok_or_else(|| NameError::new(name, KIND, "it must be 40 or 64 lower-case hexadecimal digits"))
    }
}

impl TryFrom<String> for Oid {
    type Error = NameError;

    fn try_from(name: String) -> Result<Self, NameError> {
        name.parse()
    }
}

impl From<Oid> for String {
    fn from(oid: Oid) -> Self {
        oid.to_string()
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut hex = [0; 64];
        for (pair, byte) in hex.chunks_exact_mut(2).zip(self.as_bytes()) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 0xf)];
        }
        let hex = &hex[..2 * self.as_bytes().len()];
        f.write_str(std::str::from_utf8(hex).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_round_trips_for_both_hashes() {
        for hex in ["0123456789abcdef0123456789abcdef01234567", &"ab".repeat(32)] {
            assert_eq!(hex.parse::<Oid>().unwrap().to_string(), hex);
        }
        for bad in ["", "abc", &"g".repeat(40), &"A".repeat(40), &"a".repeat(41)] {
            assert!(bad.parse::<Oid>().is_err());
        }
    }

    #[test]
    fn an_empty_commit_has_the_same_id_as_in_git() {
        assert_eq!(
            Oid::of(ObjectKind::Commit, b"", ObjectFormat::Sha1).to_string(),
            "dcf5b16e76cce7425d0beaef62d79a7d10fce1f5"
        );
    }
}
