//! The last cells of a session, within limits.

use std::collections::VecDeque;

/// A cell that is kept.
#[derive(Clone, Debug)]
pub(crate) struct StoredCell {
    pub(crate) cell: u64,
    /// Its JSON.
    pub(crate) json: String,
}

/// The last cells of a session.
#[derive(Debug)]
pub(crate) struct StoredCells {
    cells: VecDeque<StoredCell>,
    most: usize,
    most_bytes: usize,
    ran: u64,
}

impl StoredCells {
    pub(crate) fn new(most: usize, most_bytes: usize) -> Self {
        Self {
            cells: VecDeque::new(),
            most: most.max(1),
            most_bytes,
            ran: 0,
        }
    }

    /// Keeps one more, and forgets the oldest that there is no room for.
    pub(crate) fn push(&mut self, cell: StoredCell) {
        self.ran = cell.cell;
        self.cells.push_back(cell);
        while self.cells.len() > 1 && (self.cells.len() > self.most || self.bytes() > self.most_bytes) {
            self.cells.pop_front();
        }
    }

    /// How many cells there were.
    pub(crate) fn ran(&self) -> u64 {
        self.ran
    }

    /// Returns the cells, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &StoredCell> {
        self.cells.iter()
    }

    fn bytes(&self) -> usize {
        self.cells.iter().map(|cell| cell.json.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(cell: u64, bytes: usize) -> StoredCell {
        let json = "x".repeat(bytes);
        StoredCell { cell, json }
    }

    fn numbers(kept: &StoredCells) -> Vec<u64> {
        kept.cells.iter().map(|kept| kept.cell).collect()
    }

    #[test]
    fn the_last_cells_are_kept_as_far_as_there_is_room_and_the_last_one_always() {
        let mut kept = StoredCells::new(3, 100);
        for number in 1..=5 {
            kept.push(cell(number, 10));
        }
        assert_eq!(numbers(&kept), [3, 4, 5]);
        kept.push(cell(6, 85));
        assert_eq!(numbers(&kept), [5, 6]);
        kept.push(cell(7, 1000));
        assert_eq!(numbers(&kept), [7]);
        assert_eq!(kept.ran(), 7);
    }
}
