//! Locks mutexes of this process.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex.
pub trait MutexExt<T: ?Sized> {
    /// Waits for the mutex and locks it, even if another thread panicked while it held it: the panic is reported by itself.
    fn hold(&self) -> MutexGuard<'_, T>;
}

impl<T: ?Sized> MutexExt<T> for Mutex<T> {
    fn hold(&self) -> MutexGuard<'_, T> {
        self.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
