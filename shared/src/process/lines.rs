//! Splits a stream of bytes into lines.

use memchr::memchr;

/// One line without its line end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLine<'a> {
    /// Its bytes, up to the limit.
    pub bytes: &'a [u8],
    /// Whether it was longer than the limit, and the rest was dropped.
    pub cut: bool,
}

/// Splits a stream into lines of limited length.
#[derive(Debug)]
pub struct LineCutter {
    limit: usize,
    held: Vec<u8>,
    cut: bool,
}

impl LineCutter {
    /// Lines of at most `limit` bytes.
    #[must_use]
    pub const fn limited(limit: usize) -> Self {
        Self { limit, held: Vec::new(), cut: false }
    }

    /// Adds bytes, and passes on the lines that they complete.
    pub fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(OutputLine<'_>)) {
        while let Some(end) = memchr(b'\n', bytes) {
            self.hold(&bytes[..end]);
            self.hand_over(&mut each);
            bytes = &bytes[end + 1..];
        }
        self.hold(bytes);
    }

    /// Passes on the text after the last line end, if any.
    pub fn finish(&mut self, mut each: impl FnMut(OutputLine<'_>)) {
        if !self.held.is_empty() {
            self.hand_over(&mut each);
        }
    }

    fn hold(&mut self, bytes: &[u8]) {
        let room = self.limit.saturating_sub(self.held.len());
        self.cut |= bytes.len() > room;
        self.held.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn hand_over(&mut self, each: &mut impl FnMut(OutputLine<'_>)) {
        let bytes = self.held.strip_suffix(b"\r").unwrap_or(&self.held);
        each(OutputLine { bytes, cut: self.cut });
        self.held.clear();
        self.cut = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_out_alike_however_the_bytes_came_in() {
        let text = b"one\r\n\ntoo long by far\nlast";
        for step in 1..text.len() {
            let mut lines = LineCutter::limited(8);
            let mut got = Vec::new();
            let mut each =
                |line: OutputLine<'_>| got.push((String::from_utf8_lossy(line.bytes).into_owned(), line.cut));
            text.chunks(step).for_each(|piece| lines.push(piece, &mut each));
            lines.finish(&mut each);
            let want = [("one", false), ("", false), ("too long", true), ("last", false)];
            assert_eq!(got, want.map(|(line, cut)| (line.to_owned(), cut)), "{step}");
        }
    }
}
