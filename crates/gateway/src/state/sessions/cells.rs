//! The last cells of a session, within limits, and which of them its state comes from.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use cellblock_interpreter::session::checkpoints::Checkpoint;

/// A cell that is kept.
#[derive(Clone, Debug)]
pub(crate) struct StoredCell {
    pub(crate) cell: u64,
    /// Its JSON.
    pub(crate) json: String,
    /// The cell whose state it found; `None` for the first.
    pub(crate) parent: Option<u64>,
}

/// The last cells of a session.
#[derive(Debug)]
pub(crate) struct StoredCells {
    cells: VecDeque<StoredCell>,
    most: usize,
    most_bytes: usize,
    ran: u64,
    /// The cell that the session's state comes from.
    head: Option<u64>,
    /// The same for each checkpoint, by its ID.
    checkpoints: BTreeMap<String, Option<u64>>,
}

impl StoredCells {
    pub(crate) fn new(most: usize, most_bytes: usize) -> Self {
        Self {
            cells: VecDeque::new(),
            most: most.max(1),
            most_bytes,
            ran: 0,
            head: None,
            checkpoints: BTreeMap::new(),
        }
    }

    /// Keeps one more, which the session's state comes from now, and forgets the oldest that there
    /// is no room for.
    pub(crate) fn push(&mut self, cell: StoredCell) {
        self.head = Some(cell.cell);
        self.push_discarded(cell);
    }

    /// Keeps one whose effects were undone.
    pub(crate) fn push_discarded(&mut self, cell: StoredCell) {
        self.ran = cell.cell;
        self.cells.push_back(cell);
        while self.cells.len() > 1 && (self.cells.len() > self.most || self.bytes() > self.most_bytes) {
            self.cells.pop_front();
        }
    }

    /// Returns the number of cells that ran.
    pub(crate) fn ran(&self) -> u64 {
        self.ran
    }

    /// Returns the cell that the session's state comes from.
    pub(crate) const fn head(&self) -> Option<u64> {
        self.head
    }

    /// Notes a checkpoint of the state.
    pub(crate) fn keep(&mut self, checkpoint: &str) {
        self.checkpoints.insert(checkpoint.to_owned(), self.head);
    }

    /// Forgets all checkpoints but these.
    pub(crate) fn retain(&mut self, checkpoints: &[Checkpoint]) {
        let is_there = |id: &String| checkpoints.iter().any(|it| it.id == *id);
        self.checkpoints.retain(|id, _| is_there(id));
    }

    /// Notes that the state is that of a checkpoint.
    pub(crate) fn go_back(&mut self, checkpoint: &str) {
        if let Some(head) = self.checkpoints.get(checkpoint) {
            self.head = *head;
        }
    }

    /// Returns the cells, oldest first, each with whether the state comes from others only.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&StoredCell, bool)> {
        let mut parents: BTreeMap<_, _> = self.cells.iter().map(|it| (it.cell, it.parent)).collect();
        let mut line = BTreeSet::new();
        let mut at = self.head;
        // Removing them makes sure of an end.
        while let Some(cell) = at
            && let Some(parent) = parents.remove(&cell)
        {
            line.insert(cell);
            at = parent;
        }
        self.cells.iter().map(move |it| (it, !line.contains(&it.cell)))
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
        let parent = cell.checked_sub(1).filter(|parent| *parent > 0);
        StoredCell { cell, json, parent }
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

    #[test]
    fn cells_of_a_branch_that_was_given_up_are_discarded() {
        let mut kept = StoredCells::new(10, 1000);
        let run = |kept: &mut StoredCells, number| {
            let parent = kept.head();
            let json = String::new();
            kept.push(StoredCell {
                cell: number,
                json,
                parent,
            });
        };
        let discarded = |kept: &StoredCells| -> Vec<u64> {
            kept.iter()
                .filter(|(_, gone)| *gone)
                .map(|(it, _)| it.cell)
                .collect()
        };
        kept.keep("c1");
        run(&mut kept, 1);
        kept.keep("c2");
        run(&mut kept, 2);
        kept.keep("c3");
        kept.go_back("c2");
        assert_eq!(discarded(&kept), [2]);
        run(&mut kept, 3);
        let parent = kept.head();
        kept.push_discarded(StoredCell {
            cell: 4,
            json: String::new(),
            parent,
        });
        assert_eq!((discarded(&kept), kept.ran()), (vec![2, 4], 4));
        kept.go_back("c1");
        assert_eq!(discarded(&kept), [1, 2, 3, 4]);
        kept.go_back("c3");
        assert_eq!(discarded(&kept), [3, 4]);
        kept.retain(&[]);
        kept.go_back("c2");
        assert_eq!(discarded(&kept), [3, 4], "it is not known any more");
    }
}
