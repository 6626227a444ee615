//! Distributes the output of a supervised program: raw to the listener, filtered to the log and the tails.

use std::{
    fs::File,
    io::{self, Write},
};

use super::tail::{Tail, TailKeeper};

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
