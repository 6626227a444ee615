//! Handles Ctrl-C and similar signals. The first one requests to stop, the second one ends everything at once.
//!
//! `git arborist …` is a child of git in the same terminal: one Ctrl-C reaches it from the terminal and again from git,
//! which passes it on. So a signal shortly after the first one is ignored.

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

/// A signal within this time after the first one is the same request.
pub const REPEAT_WINDOW: Duration = Duration::from_millis(300);

static WATCHED: AtomicBool = AtomicBool::new(false);

/// The request that the first signal triggers, for code that waits for a program without a [`Cancel`] of its own.
static SIGNAL_CANCEL: OnceLock<Cancel> = OnceLock::new();

/// The request to stop, if signals are handled.
pub(super) fn signal_cancel() -> Option<&'static Cancel> {
    SIGNAL_CANCEL.get()
}

/// The signal that requested to stop, if there was one.
#[must_use]
pub fn received_signal() -> Option<i32> {
    signal_cancel().and_then(Cancel::signal)
}

/// Whether signals are handled and do not end this process by themselves.
pub(super) fn is_watched() -> bool {
    WATCHED.load(Ordering::SeqCst)
}

/// Handles SIGINT, SIGTERM and SIGHUP (but not a hangup that `nohup` told us to ignore). The first signal triggers the
/// returned [`Cancel`].
///
/// The second signal kills all supervised programs; then `on_second_signal` is called with its number to end the process.
pub fn watch(on_second_signal: impl FnOnce(i32) + Send + 'static) -> io::Result<Cancel> {
    let mut wanted = vec![SIGINT, SIGTERM];
    if !ignores(SIGHUP) {
        wanted.push(SIGHUP);
    }
    let signals = Signals::new(wanted)?;
    WATCHED.store(true, Ordering::SeqCst);
    let cancel = Cancel::new();
    let told = cancel.clone();
    let _ = SIGNAL_CANCEL.set(cancel.clone());
    thread::Builder::new().name("signals".into()).spawn(move || listen(signals, &told, on_second_signal))?;
    Ok(cancel)
}

fn listen(mut signals: Signals, told: &Cancel, on_second_signal: impl FnOnce(i32)) {
    let mut first = None;
    for signal in signals.forever() {
        match first {
            None => told.cancel_by(signal),
            Some(at) if Instant::now().duration_since(at) < REPEAT_WINDOW => continue,
            Some(_) => {
                spawn::kill_groups();
                spawn::terminate_shielded();
                return on_second_signal(signal);
            }
        }
        first = Some(Instant::now());
    }
}

/// Whether we were started with this signal ignored. If that is unknown: no.
fn ignores(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}
