//! A terminal that a command runs on, and what can be read on its screen.

use std::{
    fs::File,
    io::{Read, Write},
    num::NonZeroU16,
    os::fd::AsFd,
    process::{Child, Command},
    sync::{Arc, Mutex},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rustix::{
    fs::{Mode, OFlags},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use vt100::Parser;

/// How many rows a terminal has.
const ROWS: u16 = 24;
/// How long something may take to appear.
const PATIENCE: Duration = Duration::from_secs(120);

/// A command on a terminal.
#[derive(Debug)]
pub struct Terminal {
    child: Child,
    master: File,
    seen: Arc<Mutex<Seen>>,
    reader: Option<JoinHandle<()>>,
}

struct Seen {
    parser: Parser,
    bytes: Vec<u8>,
}

impl std::fmt::Debug for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.parser.screen().contents())
    }
}

impl Terminal {
    /// Starts a command with all its streams on a terminal of so many columns.
    #[must_use]
    pub fn start(mut command: Command, columns: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("a terminal");
        resize(&master, columns);
        let name = ptsname(&master, Vec::new()).expect("a name");
        let slave = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("a terminal");
        let copy = || File::from(slave.try_clone().expect("a descriptor"));
        command.env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
        let child = command.stdin(copy()).stdout(copy()).stderr(copy()).spawn().expect("a program");
        drop((command, slave));
        let seen = Arc::new(Mutex::new(Seen {
            parser: Parser::new(count(ROWS), count(columns), 0),
            bytes: Vec::new(),
        }));
        let master = File::from(master);
        let mut source = master.try_clone().expect("a descriptor");
        let told = Arc::clone(&seen);
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = source.read(&mut buffer) {
                let mut seen = told.lock().expect("a lock");
                seen.parser.process(&buffer[..length]);
                seen.bytes.extend_from_slice(&buffer[..length]);
            }
        });
        Self { child, master, seen, reader: Some(reader) }
    }

    /// Waits until this stands on the screen, and gives what stands there.
    #[track_caller]
    pub fn shows(&self, text: &str) -> String {
        self.becomes(&format!("no '{text}'"), |screen| screen.contains(text))
    }

    /// Waits until the screen is as it should be, and gives what stands there. A change of several rows may be read in parts.
    #[track_caller]
    pub fn becomes(&self, otherwise: &str, is_so: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            assert!(Instant::now() < end, "{otherwise} in:\n{screen}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// What stands on the screen, without spaces at the ends of lines.
    #[must_use]
    pub fn screen(&self) -> String {
        self.seen.lock().expect("a lock").parser.screen().contents()
    }

    /// Makes it wider or narrower. Its own rows are not broken anew.
    pub fn resize(&self, columns: u16) {
        self.seen.lock().expect("a lock").parser.screen_mut().set_size(count(ROWS), count(columns));
        resize(&self.master, columns);
    }

    /// Types.
    pub fn types(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).expect("a terminal");
    }

    /// Sends a signal, by its name.
    pub fn signals(&self, signal: &str) {
        let kill = Command::new("kill").args(["-s", signal, &self.child.id().to_string()]).status();
        assert!(kill.expect("kill").success());
    }

    /// Waits for the end: the exit code, the screen, and everything that was written to it.
    #[must_use]
    pub fn ends(mut self) -> (i32, String, String) {
        let status = self.child.wait().expect("an end");
        let reader = self.reader.take().expect("a reader");
        reader.join().expect("a reader");
        let seen = self.seen.lock().expect("a lock");
        let bytes = String::from_utf8_lossy(&seen.bytes).into_owned();
        (status.code().unwrap_or(-1), seen.parser.screen().contents(), bytes)
    }
}

impl Drop for Terminal {
    /// A test that has failed leaves nothing running.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = Command::new("kill").arg(self.child.id().to_string()).status();
            let _ = self.child.wait();
        }
    }
}

fn count(cells: u16) -> NonZeroU16 {
    NonZeroU16::new(cells).expect("some cells")
}

fn resize(master: impl AsFd, columns: u16) {
    let size = Winsize { ws_row: ROWS, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(master, size).expect("a size");
}
