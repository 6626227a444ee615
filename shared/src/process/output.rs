//! Distributes the output of a supervised program: raw to the listener, in lines and filtered to the log and the tails.
//! A tail is the end of a stream, in constant memory however long the stream is.

use std::{
    fs::File,
    io::{self, Write},
};

use memchr::memchr;

/// One of the two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Bytes of output, cut anywhere.
#[derive(Debug, Clone, Copy)]
pub struct Chunk<'a> {
    /// The stream that they came from.
    pub stream: Stream,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// Filters everything that is kept of the output, to remove secrets.
///
/// A filter may hold bytes back until it has seen enough. Whatever it adds to `out` is kept.
pub trait Filter: Send {
    /// Takes the next bytes of a stream.
    fn pass(&mut self, chunk: Chunk<'_>, out: &mut Vec<u8>);
    /// The stream has ended: adds the bytes that were held back.
    fn finish(&mut self, stream: Stream, out: &mut Vec<u8>);
}

pub(super) struct OutputRecorder<'a> {
    pub(super) listener: Box<dyn FnMut(Chunk<'_>) + 'a>,
    pub(super) filter: Option<Box<dyn Filter + 'a>>,
    pub(super) log: Option<File>,
    /// How many bytes the log may still grow by.
    pub(super) log_room: u64,
    pub(super) log_error: Option<io::Error>,
    pub(super) tails: [TailKeeper; 2],
    pub(super) scratch: Vec<u8>,
    /// How many bytes of standard output there were.
    pub(super) printed: u64,
}

impl OutputRecorder<'_> {
    pub(super) fn take(&mut self, chunk: Chunk<'_>) {
        if chunk.stream == Stream::Stdout {
            self.printed += chunk.bytes.len() as u64;
        }
        (self.listener)(chunk);
        let Some(filter) = &mut self.filter else {
            return self.keep(chunk);
        };
        let mut kept = std::mem::take(&mut self.scratch);
        filter.pass(chunk, &mut kept);
        self.keep_and_clear(chunk.stream, kept);
    }

    /// Both streams have ended.
    pub(super) fn finish(&mut self) -> [Tail; 2] {
        for stream in [Stream::Stdout, Stream::Stderr] {
            if let Some(filter) = &mut self.filter {
                let mut kept = std::mem::take(&mut self.scratch);
                filter.finish(stream, &mut kept);
                self.keep_and_clear(stream, kept);
            }
        }
        [self.tails[0].finish(), self.tails[1].finish()]
    }

    fn keep_and_clear(&mut self, stream: Stream, mut kept: Vec<u8>) {
        self.keep(Chunk { stream, bytes: &kept });
        kept.clear();
        self.scratch = kept;
    }

    /// A log that cannot be written, or is full, is abandoned and reported in the result; the program continues.
    fn keep(&mut self, chunk: Chunk<'_>) {
        self.tails[chunk.stream as usize].push(chunk.bytes);
        if let Some(Err(error)) = self.log.as_mut().map(|log| write(log, chunk.bytes, &mut self.log_room)) {
            self.log = None;
            self.log_error = Some(error);
        }
    }
}

/// Writes as much as there is room for. The error says that there was more, and so does the last line of the log.
fn write(log: &mut File, bytes: &[u8], room: &mut u64) -> io::Result<()> {
    let fitting = bytes.len().min(usize::try_from(*room).unwrap_or(usize::MAX));
    log.write_all(&bytes[..fitting])?;
    *room -= fitting as u64;
    if fitting == bytes.len() {
        return Ok(());
    }
    let words = "the log has reached its size limit (log-limit), and the rest was left out";
    log.write_all(format!("\n[{words}]\n").as_bytes())?;
    Err(io::Error::new(io::ErrorKind::FileTooLarge, words))
}

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

    #[test]
    fn line_splitting_does_not_depend_on_chunks() {
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

    fn tail(limit: usize, pieces: &[&[u8]]) -> Tail {
        let mut keeper = TailKeeper::new(limit);
        pieces.iter().for_each(|piece| keeper.push(piece));
        keeper.finish()
    }

    #[test]
    fn the_kept_end_of_output_does_not_depend_on_chunks() {
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
