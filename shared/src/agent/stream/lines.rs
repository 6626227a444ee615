//! Splits bytes into lines, in bounded memory. Where a long line is cut depends on the line alone, never on how it
//! arrived.

use memchr::memchr;

use super::super::EventFormat;

/// The longest piece of plain text.
const PIECE: usize = 64 * 1024;

/// The longest line that is parsed as JSON. Programs put whole files and images on one line.
const LONGEST_LINE: usize = 8 * 1024 * 1024;

/// A line, without its end.
pub(super) enum StreamLine<'a> {
    /// Text: a line, or a piece of a very long one.
    Words(String),
    /// A line that begins like a JSON object.
    Json(&'a [u8]),
    /// A line that begins like a JSON object and is too long to be parsed.
    TooLong(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unclear,
    Words,
    Json,
}

/// The unfinished line.
#[derive(Debug)]
pub(super) struct LineBuffer {
    is_text: bool,
    kind: Kind,
    buffer: Vec<u8>,
    /// The number of bytes of an overlong line that were dropped.
    dropped: usize,
}

impl LineBuffer {
    pub(super) fn new(format: EventFormat) -> Self {
        let is_text = format == EventFormat::Text;
        Self { is_text, kind: Kind::Unclear, buffer: Vec::new(), dropped: 0 }
    }

    pub(super) fn feed(&mut self, mut bytes: &[u8], mut give: impl FnMut(StreamLine<'_>)) {
        while let Some(end) = memchr(b'\n', bytes) {
            self.add(&bytes[..end], &mut give);
            self.end(&mut give);
            bytes = &bytes[end + 1..];
        }
        self.add(bytes, &mut give);
    }

    /// Passes on a last line without a line end.
    pub(super) fn finish(&mut self, mut give: impl FnMut(StreamLine<'_>)) {
        if !self.buffer.is_empty() || self.dropped > 0 {
            self.end(&mut give);
        }
    }

    fn add(&mut self, bytes: &[u8], give: &mut impl FnMut(StreamLine<'_>)) {
        for part in bytes.chunks(PIECE) {
            self.add_part(part, give);
        }
    }

    /// Leading white space is dropped, because it would change where a line is cut.
    fn add_part(&mut self, mut bytes: &[u8], give: &mut impl FnMut(StreamLine<'_>)) {
        if self.kind == Kind::Unclear {
            self.kind = self.kind_of(bytes);
            bytes = if self.is_text { bytes } else { bytes.trim_ascii_start() };
        }
        if self.dropped > 0 {
            self.dropped = self.dropped.saturating_add(bytes.len());
            return;
        }
        self.buffer.extend_from_slice(bytes);
        if self.kind != Kind::Json {
            while self.buffer.len() > PIECE {
                let cut = piece_end(&self.buffer);
                give(StreamLine::Words(String::from_utf8_lossy(&self.buffer[..cut]).into_owned()));
                self.buffer.drain(..cut);
            }
        } else if self.buffer.len() > LONGEST_LINE {
            self.dropped = self.buffer.len();
            self.buffer = Vec::new();
        }
    }

    /// The first byte that is no white space decides. The format `text` has no JSON.
    fn kind_of(&self, bytes: &[u8]) -> Kind {
        match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
            _ if self.is_text => Kind::Words,
            None => Kind::Unclear,
            Some(b'{') => Kind::Json,
            Some(_) => Kind::Words,
        }
    }

    fn end(&mut self, give: &mut impl FnMut(StreamLine<'_>)) {
        let line = self.buffer.strip_suffix(b"\r").unwrap_or(&self.buffer);
        match self.kind {
            Kind::Json if self.dropped > 0 => give(StreamLine::TooLong(self.dropped)),
            Kind::Json => give(StreamLine::Json(line)),
            _ => give(StreamLine::Words(String::from_utf8_lossy(line).into_owned())),
        }
        self.buffer.clear();
        self.buffer.shrink_to(PIECE);
        (self.kind, self.dropped) = (Kind::Unclear, 0);
    }
}

/// A line as text, in pieces of bounded length.
pub(super) fn pieces(line: &[u8]) -> impl Iterator<Item = String> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let cut = if rest.len() > PIECE { piece_end(rest) } else { rest.len() };
        let (piece, after) = rest.split_at(cut);
        rest = after;
        (!piece.is_empty()).then(|| String::from_utf8_lossy(piece).into_owned())
    })
}

/// The last position at or before [`PIECE`] where a character begins; `PIECE` itself if the bytes are not UTF-8.
fn piece_end(bytes: &[u8]) -> usize {
    (PIECE - 3..=PIECE).rev().find(|place| bytes[*place] & 0xc0 != 0x80).unwrap_or(PIECE)
}
