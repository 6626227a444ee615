//! The three streams of a supervised program, served by one thread that never blocks on any of them.

use std::{
    fs::File,
    io::{self, ErrorKind, Read, Write},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    process::Child,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{OFlags, fcntl_setfl},
};

use super::{
    cancel::timespec,
    output::{Chunk, OutputRecorder, Stream},
};

/// The largest size of a pipe. Everything that an ended program left in it is read, but not an endless flood of another
/// one.
const PIPE: usize = 1 << 20;

/// Our ends of the pipes; closed ones are `None`.
#[derive(Debug)]
pub(super) struct Streams {
    outputs: Vec<(Stream, File)>,
    input: Option<(File, Vec<u8>)>,
    fed: usize,
    buffer: Vec<u8>,
}

impl Streams {
    /// Takes the pipes of `child`; `input` is its standard input.
    pub(super) fn of(child: &mut Child, input: Vec<u8>) -> io::Result<Self> {
        let stdout = child.stdout.take().map(|pipe| (Stream::Stdout, OwnedFd::from(pipe)));
        let stderr = child.stderr.take().map(|pipe| (Stream::Stderr, OwnedFd::from(pipe)));
        let outputs = [stdout, stderr].into_iter().flatten();
        let outputs = outputs.map(|(stream, pipe)| Ok((stream, patient(pipe)?)));
        let stdin = child.stdin.take().map(|pipe| patient(OwnedFd::from(pipe))).transpose()?;
        Ok(Self {
            outputs: outputs.collect::<io::Result<_>>()?,
            input: stdin.map(|pipe| (pipe, input)),
            fed: 0,
            buffer: vec![0; 1 << 16],
        })
    }

    /// Waits at most `time` until something happens on the streams or on `others`, and passes on the output. Returns
    /// whether there was any.
    pub(super) fn serve(
        &mut self,
        time: Option<Duration>,
        others: &[BorrowedFd<'_>],
        recorder: &mut OutputRecorder<'_>,
    ) -> bool {
        self.await_one(time, others);
        self.feed();
        self.read_all(recorder) > 0
    }

    /// Reads what is left in the pipes, without waiting for processes that may still hold them open.
    pub(super) fn drain(&mut self, recorder: &mut OutputRecorder<'_>) {
        let mut rest = 2 * PIPE;
        while rest > 0 {
            match self.read_all(recorder) {
                0 => return,
                count => rest = rest.saturating_sub(count),
            }
        }
    }

    fn await_one(&self, time: Option<Duration>, others: &[BorrowedFd<'_>]) {
        let outputs = self.outputs.iter().map(|(_, pipe)| pipe.as_fd());
        let readable = outputs.chain(others.iter().copied());
        let mut fds: Vec<_> = readable.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        if let Some((pipe, _)) = &self.input {
            fds.push(PollFd::new(pipe, PollFlags::OUT));
        }
        let _ = poll(&mut fds, time.and_then(timespec).as_ref());
    }

    /// Writes input. A program that does not read all of it is not an error.
    fn feed(&mut self) {
        let Some((pipe, input)) = &mut self.input else { return };
        match pipe.write(&input[self.fed..]) {
            Ok(count) if self.fed + count < input.len() => self.fed += count,
            Err(error) if is_passing(&error) => {}
            _ => self.input = None,
        }
    }

    /// Reads once from each stream, and returns the number of bytes.
    fn read_all(&mut self, recorder: &mut OutputRecorder<'_>) -> usize {
        let buffer = &mut self.buffer;
        let mut heard = 0;
        self.outputs.retain_mut(|(stream, pipe)| match pipe.read(buffer) {
            Ok(0) => false,
            Ok(count) => {
                heard += count;
                recorder.take(Chunk { stream: *stream, bytes: &buffer[..count] });
                true
            }
            Err(error) => is_passing(&error),
        });
        heard
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn patient(pipe: OwnedFd) -> io::Result<File> {
    fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
    Ok(File::from(pipe))
}
