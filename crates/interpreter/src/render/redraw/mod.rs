//! Text as it stands after its redraws: progress bars write over themselves, and only the last
//! state of a row counts.
//!
//! Applied are a carriage return, a backspace, and the sequences that progress bars use: cursor
//! movements, erasing, colors (dropped). All other control characters stay, for the caller to
//! escape. Programs may so replace what they have written themselves, within [`WINDOW`] rows, and
//! nothing else: the line that says how much of a stream is left out is out of their reach.

mod step;

use std::borrow::Cow;
use std::collections::VecDeque;

pub use step::{ScreenCell, TerminalStep, first_step};

/// Rows above the cursor that can still be written over.
pub const WINDOW: usize = 64;
/// Maximum number of characters of a row that can still be written over.
const LONG: usize = 1 << 16;
/// Start of the line that stands for what a stream's capture has left out.
pub(crate) const LEFT_OUT: &str = "[… ";

/// Returns a text as it stands after its redraws.
pub fn redrawn(text: &str) -> Cow<'_, str> {
    if !text.contains(['\r', '\x08', '\x1b']) {
        return Cow::Borrowed(text);
    }
    let (mut redraws, mut drawn) = (Redraws::whole(), Vec::with_capacity(text.len()));
    redraws.push(text.as_bytes(), &mut drawn);
    redraws.finish(&mut drawn);
    Cow::Owned(String::from_utf8_lossy(&drawn).into_owned())
}

/// Applies the redraws of a stream that comes in pieces, which may end anywhere.
#[derive(Debug)]
pub struct Redraws {
    /// Whether rows are passed on as soon as a plain row follows them.
    live: bool,
    /// Rows that can still change; never empty.
    rows: VecDeque<Row>,
    row: usize,
    column: usize,
    /// Whether the cursor was moved since the last character.
    moved: bool,
    /// The beginning of a character or a sequence whose rest has not come.
    pending: Vec<u8>,
}

#[derive(Debug, Default)]
struct Row {
    cells: Vec<ScreenCell>,
    /// Whether something was written after a movement.
    redrawn: bool,
}

impl Redraws {
    /// Applies all redraws that reach at most [`WINDOW`] rows up.
    pub fn whole() -> Self {
        Self {
            live: false,
            rows: VecDeque::from([Row::default()]),
            row: 0,
            column: 0,
            moved: false,
            pending: Vec::new(),
        }
    }

    /// Passes a row on when it ends; rows of progress bars, when a plain row follows.
    pub fn live() -> Self {
        Self {
            live: true,
            ..Self::whole()
        }
    }

    /// Takes a piece, and adds the rows that do not change anymore.
    pub fn push(&mut self, piece: &[u8], into: &mut Vec<u8>) {
        if self.pending.is_empty() {
            self.take(piece, false, into);
        } else {
            let mut joined = std::mem::take(&mut self.pending);
            joined.extend_from_slice(piece);
            self.take(&joined, false, into);
        }
    }

    /// Ends the stream, and adds the rest.
    pub fn finish(&mut self, into: &mut Vec<u8>) {
        let pending = std::mem::take(&mut self.pending);
        self.take(&pending, true, into);
        self.release_all(into);
    }

    fn take(&mut self, mut bytes: &[u8], last: bool, into: &mut Vec<u8>) {
        while !bytes.is_empty() {
            let Some((step, length)) = first_step(bytes, last) else {
                self.pending = bytes.to_vec();
                return;
            };
            self.apply(step, into);
            bytes = &bytes[length..];
        }
    }

    fn apply(&mut self, step: TerminalStep, into: &mut Vec<u8>) {
        match step {
            TerminalStep::Put(cell) => return self.put(cell, into),
            TerminalStep::NewLine => return self.new_line(into),
            TerminalStep::Nothing => return,
            TerminalStep::Return => self.column = 0,
            TerminalStep::Left(columns) => self.column = self.column.saturating_sub(columns),
            TerminalStep::Right(columns) => self.column = (self.column + columns).min(LONG),
            TerminalStep::Column(column) => self.column = column,
            TerminalStep::Up(rows) => self.row = self.row.saturating_sub(rows),
            TerminalStep::Down(rows) => self.row = (self.row + rows).min(self.rows.len() - 1),
            TerminalStep::EraseBelow => {
                self.rows.truncate(self.row + 1);
                self.erase_line(0);
            }
            TerminalStep::EraseLine(part) => self.erase_line(part),
        }
        self.moved = true;
    }

    fn put(&mut self, cell: ScreenCell, into: &mut Vec<u8>) {
        let is_last = self.row + 1 == self.rows.len();
        if self.live && is_last && self.row > 0 && !self.moved && self.rows[self.row].cells.is_empty() {
            self.release(self.row, into);
        }
        let column = self.column;
        let row = &mut self.rows[self.row];
        row.redrawn |= std::mem::take(&mut self.moved);
        if row.cells.len() < column {
            row.cells.resize(column, ScreenCell::SPACE);
        }
        match row.cells.get_mut(column) {
            Some(place) => *place = cell,
            None => row.cells.push(cell),
        }
        self.column += 1;
        if self.rows[self.row].cells.len() > LONG {
            self.release_all(into);
        }
    }

    fn new_line(&mut self, into: &mut Vec<u8>) {
        self.column = 0;
        self.moved = false;
        self.row += 1;
        if self.row < self.rows.len() {
            return;
        }
        let ended = &self.rows[self.row - 1];
        let is_mark = ended.starts_with(LEFT_OUT.as_bytes());
        self.rows.push_back(Row::default());
        let plain = self.live && !self.rows.iter().any(|row| row.redrawn);
        if is_mark || plain {
            self.release(self.row, into);
        } else if self.row > WINDOW {
            self.release(1, into);
        }
    }

    fn erase_line(&mut self, part: usize) {
        let column = self.column;
        let row = &mut self.rows[self.row];
        row.redrawn = true;
        match part {
            0 => row.cells.truncate(column),
            1 => row
                .cells
                .iter_mut()
                .take(column + 1)
                .for_each(|cell| *cell = ScreenCell::SPACE),
            _ => row.cells.clear(),
        }
    }

    /// Passes on the first rows.
    fn release(&mut self, rows: usize, into: &mut Vec<u8>) {
        for row in self.rows.drain(..rows) {
            row.write(into);
            into.push(b'\n');
        }
        self.row -= rows;
    }

    /// Passes on everything; the last row goes on where it is.
    fn release_all(&mut self, into: &mut Vec<u8>) {
        self.row = self.rows.len() - 1;
        self.release(self.row, into);
        std::mem::take(&mut self.rows[0]).write(into);
        self.column = 0;
        self.moved = false;
    }
}

impl Row {
    /// Progress bars clear the rest of their row with spaces.
    fn write(&self, into: &mut Vec<u8>) {
        let blank = |cell: &&ScreenCell| **cell == ScreenCell::SPACE;
        let trailing = if self.redrawn {
            self.cells.iter().rev().take_while(blank).count()
        } else {
            0
        };
        for cell in &self.cells[..self.cells.len() - trailing] {
            into.extend_from_slice(cell.bytes());
        }
    }

    fn starts_with(&self, bytes: &[u8]) -> bool {
        let start = self.cells.iter().flat_map(step::ScreenCell::bytes);
        start.take(bytes.len()).eq(bytes)
    }
}

#[cfg(test)]
mod tests;
