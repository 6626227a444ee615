//! The number of tickets that are tested together. Pure.

/// The setting `merge.batch`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Batch {
    /// As many as the recent failures suggest.
    #[default]
    Auto,
    /// This many.
    Size(usize),
}

impl Batch {
    /// How many tickets to stack, from the number of recent tries and how many of them failed. A stack is tested once,
    /// and halved if it fails; the rarer that is, the larger the stack may be. The bounds are those with the fewest
    /// expected test runs.
    #[must_use]
    pub fn size(self, tries: usize, reds: usize) -> usize {
        match self {
            Self::Size(size) => size.max(1),
            Self::Auto if reds * 20 < tries || tries == 0 => 8,
            Self::Auto if reds * 20 < tries * 3 => 4,
            Self::Auto if reds * 5 <= tries => 2,
            Self::Auto => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_fails_the_fewer_are_tested_at_once() {
        for (tries, reds, size) in
            [(0, 0, 8), (50, 0, 8), (50, 2, 8), (50, 3, 4), (50, 7, 4), (50, 8, 2), (50, 10, 2), (50, 11, 1)]
        {
            assert_eq!(Batch::Auto.size(tries, reds), size, "{reds} of {tries}");
        }
        assert_eq!(Batch::Size(3).size(50, 50), 3);
        assert_eq!(Batch::Size(0).size(0, 0), 1);
    }
}
