//! A graph as one list of edges.

/// Edges by where they begin, in one list: a list for each gate would cost more than all the rest.
#[derive(Debug)]
pub(super) struct Edges {
    starts: Vec<usize>,
    pub(super) ends: Vec<usize>,
}

impl Edges {
    pub(super) fn new(gates: usize, pairs: &[(usize, usize)]) -> Self {
        let mut starts = vec![0; gates + 1];
        pairs.iter().for_each(|(from, _)| starts[from + 1] += 1);
        for gate in 0..gates {
            starts[gate + 1] += starts[gate];
        }
        let mut free = starts.clone();
        let mut ends = vec![0; pairs.len()];
        for (from, to) in pairs {
            ends[free[*from]] = *to;
            free[*from] += 1;
        }
        Self { starts, ends }
    }

    pub(super) fn gates(&self) -> usize {
        self.starts.len() - 1
    }

    pub(super) fn of(&self, gate: usize) -> &[usize] {
        &self.ends[self.starts[gate]..self.starts[gate + 1]]
    }
}
