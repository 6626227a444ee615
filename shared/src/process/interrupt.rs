//! Handles Ctrl-C and similar signals. The first one requests to stop, the second one ends everything at once.
//!
//! `git arborist …` is a child of git in the same terminal: one Ctrl-C reaches it from the terminal and again from git,
//! which passes it on. So a signal shortly after the first one is ignored.
//!
//! A command that does not ask to be stopped this way ends with its first signal, after the programs that it runs.

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

use super::{Cancel, running_program, spawn};

/// A signal within this time after the first one is the same request.
pub const REPEAT_WINDOW: Duration = Duration::from_millis(300);

/// How long programs may take to end before they are killed, if this process ends with its first signal.
const END_GRACE: Duration = Duration::from_secs(1);

static WATCHED: AtomicBool = AtomicBool::new(false);

/// Whether a signal ends this process now.
static ENDING: AtomicBool = AtomicBool::new(false);

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
    if !ignored_signals().contains(&SIGHUP) {
        wanted.push(SIGHUP);
    }
    let signals = Signals::new(wanted)?;
    WATCHED.store(true, Ordering::SeqCst);
    let cancel = Cancel::new();
    let cancel_flag = cancel.clone();
    let _ = SIGNAL_CANCEL.set(cancel.clone());
    thread::Builder::new()
        .name("signals".into())
        .spawn(move || listen(signals, &cancel_flag, on_second_signal))?;
    Ok(cancel)
}

/// Ends this process with its first signal, as without a handler, but ends the programs that it runs before: a git that
/// hangs would outlive it. Once [`watch`] was called, that decides.
pub fn end_with_programs() -> io::Result<()> {
    let ignored = ignored_signals();
    let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !ignored.contains(signal));
    let mut signals = Signals::new(wanted)?;
    WATCHED.store(true, Ordering::SeqCst);
    let end = move || {
        let first = signals.forever().find(|_| signal_cancel().is_none());
        first.into_iter().for_each(end_by);
    };
    thread::Builder::new().name("signals".into()).spawn(end)?;
    Ok(())
}

fn end_by(signal: i32) {
    ENDING.store(true, Ordering::SeqCst);
    // Held until the end, so that no other program is started.
    let _none_starts = spawn::stop_spawns();
    running_program::end_all(END_GRACE);
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}

/// Waits for the end of this process, if a signal ends it now: the programs that it ran were ended, and nothing should be
/// concluded from that.
pub(super) fn wait_if_ending() {
    while ENDING.load(Ordering::SeqCst) {
        thread::park();
    }
}

fn listen(mut signals: Signals, cancel_flag: &Cancel, on_second_signal: impl FnOnce(i32)) {
    let mut first = None;
    for signal in signals.forever() {
        match first {
            None => cancel_flag.cancel_by(signal),
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

/// The signals that we were started with as ignored; none if that is unknown.
fn ignored_signals() -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    (1..=64).filter(|signal| mask & (1 << (signal - 1)) != 0).collect()
}
