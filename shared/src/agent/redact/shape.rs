//! The formats of well-known tokens: a prefix, and what may follow it.

use super::secrets::decode_base64;

/// The bytes that a token may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alphabet {
    /// Letters and digits.
    Alphanumeric,
    /// Also `_` and `-`.
    Word,
    /// Also the characters of base64 and web tokens.
    Token,
}

impl Alphabet {
    pub(super) fn holds(self, byte: u8) -> bool {
        let extra: &[u8] = match self {
            Self::Alphanumeric => b"",
            Self::Word => b"_-",
            Self::Token => b"_-.+/=~",
        };
        byte.is_ascii_alphanumeric() || extra.contains(&byte)
    }
}

/// What must follow a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// At least this many bytes of an alphabet; all of them are removed.
    Run(Alphabet, usize),
    /// The rest of a JSON web token: its header, a dot and its content.
    Jwt,
    /// The base64 form of a name, a colon and a password.
    Basic,
    /// A name, a colon and a password up to the `@` of a URL.
    Userinfo,
    /// A label that ends in `PRIVATE KEY-----` or `PRIVATE KEY BLOCK-----`, and a block.
    Pem,
}

/// The format of a token.
#[derive(Debug, Clone, Copy)]
pub(super) struct SecretShape {
    pub(super) opening: &'static str,
    pub(super) rest: Rest,
    /// How much of the prefix is no secret and stays.
    pub(super) kept: usize,
}

const fn token(opening: &'static str, alphabet: Alphabet, least: usize) -> SecretShape {
    SecretShape { opening, rest: Rest::Run(alphabet, least), kept: 0 }
}

/// `Bearer ` stays, so that a reader sees what was there.
const fn bearer(opening: &'static str) -> SecretShape {
    SecretShape { opening, rest: Rest::Run(Alphabet::Token, 12), kept: opening.len() }
}

const fn basic(opening: &'static str) -> SecretShape {
    SecretShape { opening, rest: Rest::Basic, kept: opening.len() }
}

pub(super) const SHAPES: &[SecretShape] = &[
    token("sk-", Alphabet::Word, 20),
    token("sk_live_", Alphabet::Word, 16),
    token("rk_live_", Alphabet::Word, 16),
    token("ghp_", Alphabet::Word, 20),
    token("gho_", Alphabet::Word, 20),
    token("ghu_", Alphabet::Word, 20),
    token("ghs_", Alphabet::Word, 20),
    token("ghr_", Alphabet::Word, 20),
    token("github_pat_", Alphabet::Word, 20),
    token("glpat-", Alphabet::Word, 20),
    token("npm_", Alphabet::Word, 30),
    token("hf_", Alphabet::Alphanumeric, 30),
    token("AKIA", Alphabet::Alphanumeric, 16),
    token("ASIA", Alphabet::Alphanumeric, 16),
    token("AIza", Alphabet::Word, 30),
    token("xoxa-", Alphabet::Word, 10),
    token("xoxb-", Alphabet::Word, 10),
    token("xoxe-", Alphabet::Word, 10),
    token("xoxe.", Alphabet::Token, 10),
    token("xoxp-", Alphabet::Word, 10),
    token("xoxr-", Alphabet::Word, 10),
    token("xoxs-", Alphabet::Word, 10),
    token("xapp-", Alphabet::Word, 10),
    bearer("Bearer "),
    bearer("bearer "),
    bearer("BEARER "),
    basic("Basic "),
    basic("basic "),
    basic("BASIC "),
    SecretShape { opening: "eyJ", rest: Rest::Jwt, kept: 0 },
    SecretShape { opening: "://", rest: Rest::Userinfo, kept: 3 },
    SecretShape { opening: "-----BEGIN ", rest: Rest::Pem, kept: 0 },
];

/// How many bytes after a prefix are needed to decide whether it is a token. The header of a web token can be long.
pub(super) const LOOKAHEAD: usize = 1024;

impl SecretShape {
    /// How many bytes of `text`, which begins with the prefix, are certainly secret.
    pub(super) fn measure(&self, text: &[u8]) -> Option<usize> {
        let rest = &text[self.opening.len()..];
        let rest = &rest[..rest.len().min(LOOKAHEAD)];
        let length = match self.rest {
            Rest::Run(alphabet, least) => rest
                .get(..least)
                .is_some_and(|run| run.iter().all(|byte| alphabet.holds(*byte)))
                .then_some(least)?,
            Rest::Jwt => web_token(rest)?,
            Rest::Basic => basic_length(rest)?,
            Rest::Userinfo => userinfo(rest)?,
            Rest::Pem => pem_label(rest)?,
        };
        Some(self.opening.len() + length)
    }

    /// What a file contains at `start`, where the prefix is. Only formats that are rarely anything else count: files have
    /// example addresses and headers, but seldom a private key.
    pub(super) fn describe_in_file(&self, content: &[u8], start: usize) -> Option<String> {
        let before = [start.checked_sub(2), start.checked_sub(1)];
        let before = before.map(|at| at.map_or(b' ', |at| content[at]));
        self.measure(&content[start..]).filter(|_| self.may_follow(before))?;
        match self.rest {
            Rest::Pem => Some("a private key".to_owned()),
            Rest::Run(alphabet, _) if self.kept == 0 => {
                let rest = content[start + self.opening.len()..].iter();
                let has_digit = rest.take_while(|byte| alphabet.holds(**byte)).any(u8::is_ascii_digit);
                has_digit.then(|| format!("a token that begins with '{}'", self.opening))
            }
            _ => None,
        }
    }

    /// Whether a token may begin after these two bytes. It cannot begin inside of a word, as in `task-…`; the `n` of
    /// an escape such as `\n` does not count as one.
    pub(super) fn may_follow(&self, before: [u8; 2]) -> bool {
        let is_escape = before[0] == b'\\' && matches!(before[1], b'n' | b'r' | b't');
        matches!(self.rest, Rest::Pem | Rest::Userinfo) || is_escape || !Alphabet::Word.holds(before[1])
    }
}

/// The shortest header and the shortest content of a web token, in bytes.
const SHORTEST_PART: usize = 10;

/// The length of a web token without its signature.
fn web_token(rest: &[u8]) -> Option<usize> {
    let part = |text: &[u8]| text.iter().take_while(|byte| Alphabet::Word.holds(**byte)).count();
    let header = part(rest);
    let content = part(rest.get(header..)?.strip_prefix(b".")?);
    (header >= SHORTEST_PART && content >= SHORTEST_PART).then_some(header + 1 + content)
}

/// The shortest base64 form of a name and a password.
const SHORTEST_BASIC: usize = 8;

/// The length of the base64 form of a name and a password.
fn basic_length(rest: &[u8]) -> Option<usize> {
    let length = rest.iter().take_while(|byte| Alphabet::Token.holds(**byte)).count();
    let decoded = decode_base64(&rest[..length]);
    let is_text = decoded.iter().all(|byte| !byte.is_ascii_control());
    (length >= SHORTEST_BASIC && is_text && decoded.contains(&b':')).then_some(length)
}

/// The length of the name and the password in a URL, up to the `@`.
fn userinfo(rest: &[u8]) -> Option<usize> {
    let is_part = |byte: &u8| byte.is_ascii_graphic() && !b"/?#\"'<>`\\".contains(byte);
    let authority = &rest[..rest.iter().take_while(|byte| is_part(byte)).count()];
    let end = authority.iter().rposition(|byte| *byte == b'@')?;
    let colon = authority[..end].iter().position(|byte| *byte == b':')?;
    (colon + 1 < end).then_some(end)
}

/// The length of the label of a private key, including the dashes after it.
fn pem_label(rest: &[u8]) -> Option<usize> {
    let label = rest
        .iter()
        .position(|byte| !(byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b' '))?;
    let text = &rest[..label];
    let is_private = text.ends_with(b"PRIVATE KEY") || text.ends_with(b"PRIVATE KEY BLOCK");
    (is_private && rest[label..].starts_with(b"-----")).then_some(label + 5)
}

/// Bytes that may occur in a key block, in a file or in a JSON string.
pub(super) fn is_pem(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace() || b"+/=-\\:,".contains(&byte)
}
