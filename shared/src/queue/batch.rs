//! How many tickets are tested at once. Pure.

/// What `merge.batch` says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Batch {
    /// As many as recent failures make sensible.
    #[default]
    Auto,
    /// This many.
    Size(usize),
}

impl Batch {
    /// How many tickets to stack, given the last tries and how many of them were red. A stack is tested once, and
    /// halved if it is red: the rarer that is, the larger it may be. The bounds are where that costs fewest tests.
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
