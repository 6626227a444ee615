//! Agent programs: how one is called, how its event stream is read, what its end means, and what it may spend.

pub mod redact;
