//! Ctrl-C and its relatives. The first signal asks everybody to stop; the second ends all at once.
//!
//! `git arborist …` is a child of git in the same terminal: one Ctrl-C reaches it from the terminal and once more from
//! git, which passes it on. So signals that follow each other at once are one.

use std::{
    io,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};

use super::{Cancel, spawn};

/// Signals closer to the first than this are the same wish.
pub const ECHO: Duration = Duration::from_millis(300);

static WATCHED: AtomicBool = AtomicBool::new(false);

/// The wish that the first signal makes known, for those who wait for a program that nobody gave them one for.
static WISH: OnceLock<Cancel> = OnceLock::new();

/// The wish to stop of whoever sends us signals, if we watch for these.
pub(super) fn wish() -> Option<&'static Cancel> {
    WISH.get()
}

/// Whether signals come to us and end nothing by themselves.
pub(super) fn is_watched() -> bool {
    WATCHED.load(Ordering::SeqCst)
}

/// Takes over SIGINT, SIGTERM and SIGHUP (but not a hangup that `nohup` told us to ignore). The first of them cancels
/// what is given.
///
/// With the second signal all supervised programs are killed, and `last_word` gets its number to end the process with.
pub fn watch(last_word: impl FnOnce(i32) + Send + 'static) -> io::Result<Cancel> {
    let mut wanted = vec![SIGINT, SIGTERM];
    if !ignores(SIGHUP) {
        wanted.push(SIGHUP);
    }
    let signals = Signals::new(wanted)?;
    WATCHED.store(true, Ordering::SeqCst);
    let cancel = Cancel::new();
    let told = cancel.clone();
    let _ = WISH.set(cancel.clone());
    thread::Builder::new().name("signals".into()).spawn(move || listen(signals, &told, last_word))?;
    Ok(cancel)
}

fn listen(mut signals: Signals, told: &Cancel, last_word: impl FnOnce(i32)) {
    let mut first = None;
    for signal in signals.forever() {
        match first {
            None => told.cancel_by(signal),
            Some(at) if Instant::now().duration_since(at) < ECHO => continue,
            Some(_) => {
                spawn::kill_families();
                spawn::end_spared();
                return last_word(signal);
            }
        }
        first = Some(Instant::now());
    }
}

/// Whether we were started with this signal ignored. Where that cannot be told: no.
fn ignores(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}
