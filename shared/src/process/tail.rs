//! Keeps the end of a stream, in constant memory however long the stream is.

/// The last characters of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tail {
    /// The characters; bytes that are not UTF-8 are replaced.
    pub text: String,
    /// The number of bytes of the whole stream, after the filter.
    pub total: u64,
    /// Whether something before the text is missing.
    pub cut: bool,
}

/// Keeps the last `limit` characters of a stream.
#[derive(Debug)]
pub(super) struct TailKeeper {
    limit: usize,
    bytes: Vec<u8>,
    total: u64,
}

/// The longest character in UTF-8.
const WIDEST: usize = 4;

impl TailKeeper {
    pub(super) const fn new(limit: usize) -> Self {
        Self { limit, bytes: Vec::new(), total: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = self.limit * WIDEST;
        let bytes = &bytes[bytes.len().saturating_sub(room)..];
        if self.bytes.len() + bytes.len() > 2 * room {
            let excess = (self.bytes.len() + bytes.len()).saturating_sub(room);
            self.bytes.drain(..excess.min(self.bytes.len()));
        }
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn finish(&self) -> Tail {
        let whole = self.total == self.bytes.len() as u64;
        let torn = self.bytes.iter().take(WIDEST - 1).take_while(|byte| (**byte & 0xC0) == 0x80).count();
        let kept = &self.bytes[if whole { 0 } else { torn }..];
        let text = String::from_utf8_lossy(kept);
        let start = text.char_indices().rev().take(self.limit).last().map_or(text.len(), |(at, _)| at);
        Tail { text: text[start..].to_owned(), total: self.total, cut: !whole || start > 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(limit: usize, pieces: &[&[u8]]) -> Tail {
        let mut keeper = TailKeeper::new(limit);
        pieces.iter().for_each(|piece| keeper.push(piece));
        keeper.finish()
    }

    #[test]
    fn the_last_characters_stay_whole_however_they_came() {
        let text = "añ€😀".repeat(50);
        for limit in 0..220 {
            for step in [1, 2, 3, 7, 64, 1000] {
                let pieces: Vec<&[u8]> = text.as_bytes().chunks(step).collect();
                let got = tail(limit, &pieces);
                let skip = 200_usize.saturating_sub(limit);
                assert_eq!(got.text, text.chars().skip(skip).collect::<String>(), "{limit} {step}");
                assert_eq!((got.cut, got.total), (skip > 0, text.len() as u64));
            }
        }
    }

    #[test]
    fn memory_does_not_grow_and_bad_bytes_are_replaced() {
        let mut keeper = TailKeeper::new(10);
        for _ in 0..1000 {
            keeper.push(&[0xFF; 33]);
            assert!(keeper.bytes.capacity() <= 160);
        }
        assert_eq!(keeper.finish().text, "\u{FFFD}".repeat(10));
        assert_eq!(tail(5, &[]), Tail::default());
    }
}
