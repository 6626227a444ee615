//! Whether child processes may have written files. A scan of a worktree stays valid for as long as no child
//! was at work: all that runs code of others is a child of this process, and ends before it is judged.

use std::{
    mem,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
};

/// How many children that may write files have ever begun.
static BEGUN: AtomicU64 = AtomicU64::new(0);
/// How many of them are at work.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);

/// A child that may write files anywhere, from just before it begins until all of it has ended.
#[derive(Debug)]
pub(super) struct Writer(());

impl Writer {
    pub(super) fn begin() -> Self {
        AT_WORK.fetch_add(1, Ordering::SeqCst);
        BEGUN.fetch_add(1, Ordering::SeqCst);
        Self(())
    }

    /// Not all of it has ended: from now on nothing is quiet any more.
    pub(super) fn stays(self) {
        mem::forget(self);
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        AT_WORK.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A moment at which no child was at work that may write files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quiet(u64);

impl Quiet {
    /// Now; `None` while a child is at work. Take this before you look at anything.
    #[must_use]
    pub fn now() -> Option<Self> {
        let begun = BEGUN.load(Ordering::SeqCst);
        let is_quiet = AT_WORK.load(Ordering::SeqCst) == 0;
        // Once more: one may have begun and ended between the two.
        (is_quiet && BEGUN.load(Ordering::SeqCst) == begun).then_some(Self(begun))
    }

    /// Whether no child has been at work since.
    #[must_use]
    pub fn lasts(self) -> bool {
        Self::now() == Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Program, Supervised};

    #[test]
    fn nothing_is_quiet_while_a_child_is_at_work_or_after_one_was() {
        // Other tests of this process may have children at work: then there is nothing to compare with.
        let before = Quiet::now();
        let writer = Writer::begin();
        assert_eq!(Quiet::now(), None);
        assert!(before.is_none_or(|before| !before.lasts()));
        drop(writer);
        assert!(before.is_none_or(|before| !before.lasts()));
        let after = Quiet::now();
        Supervised::new(Program::new("true")).run(|_| ());
        assert!(after.is_none_or(|after| !after.lasts()));
        let after = Quiet::now();
        Program::new("true").finish().unwrap();
        assert!(after.is_none_or(|after| !after.lasts()));
    }
}
