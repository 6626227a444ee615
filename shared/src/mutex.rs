//! Locks mutexes of this process; sets that its threads share.

use std::{
    borrow::Borrow,
    collections::HashSet,
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
};

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

/// A set that the threads of this process share.
#[derive(Debug)]
pub struct SharedSet<T>(Mutex<HashSet<T>>);

impl<T> Default for SharedSet<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Eq + Hash> SharedSet<T> {
    /// Adds a value.
    pub fn add(&self, value: T) {
        self.0.hold().insert(value);
    }

    /// Removes a value.
    pub fn remove(&self, value: &T) {
        self.0.hold().remove(value);
    }

    /// Whether it has this value.
    pub fn has<V: Eq + Hash + ?Sized>(&self, value: &V) -> bool
    where
        T: Borrow<V>,
    {
        self.0.hold().contains(value)
    }
}
