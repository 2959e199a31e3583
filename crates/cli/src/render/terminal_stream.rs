//! A sandbox's stream for a person: progress bars are drawn over themselves, and everything else is
//! harmless text.

use std::fmt::Write as _;

use cellblock_interpreter::render::redraw::{Redraws, TerminalStep, first_step};

use crate::sanitize::SanitizedStream;

/// Shows a stream as it comes.
#[derive(Debug)]
pub(crate) enum TerminalStream {
    /// In a file or a pipe: rows as they stand after their redraws.
    Rows {
        redraws: Box<Redraws>,
        safe: SanitizedStream,
    },
    /// On a terminal, which redraws itself, but only rows that this stream has written since the
    /// last block of ours.
    Terminal {
        /// The beginning of a character or a sequence whose rest has not come.
        pending: Vec<u8>,
        safe: SanitizedStream,
        /// Row of the cursor, and the last row, counted from the last block.
        row: usize,
        bottom: usize,
    },
}

impl TerminalStream {
    pub(crate) fn new(terminal: bool) -> Self {
        let safe = SanitizedStream::default();
        if terminal {
            Self::Terminal {
                pending: Vec::new(),
                safe,
                row: 0,
                bottom: 0,
            }
        } else {
            Self::Rows {
                redraws: Box::new(Redraws::live()),
                safe,
            }
        }
    }

    /// Takes a piece and returns what can be shown of it by now.
    pub(crate) fn push(&mut self, piece: &[u8]) -> String {
        match self {
            Self::Rows { redraws, safe } => {
                let mut drawn = Vec::new();
                redraws.push(piece, &mut drawn);
                safe.push(&drawn)
            }
            Self::Terminal { pending, .. } => {
                let mut bytes = std::mem::take(pending);
                bytes.extend_from_slice(piece);
                self.draw(&bytes, false)
            }
        }
    }

    /// Returns what was held back. On a terminal the cursor is then in the last row.
    pub(crate) fn finish(&mut self) -> String {
        match self {
            Self::Rows { redraws, safe } => {
                let mut drawn = Vec::new();
                redraws.finish(&mut drawn);
                safe.push(&drawn) + &safe.finish()
            }
            Self::Terminal { pending, .. } => {
                let bytes = std::mem::take(pending);
                let mut drawn = self.draw(&bytes, true);
                if let Self::Terminal { row, bottom, .. } = self {
                    if row < bottom {
                        let _ = write!(drawn, "\x1b[{}B", *bottom - *row);
                    }
                    *row = *bottom;
                }
                drawn
            }
        }
    }

    /// Protects everything that has been written until now.
    pub(crate) fn begin(&mut self) {
        if let Self::Terminal { row, bottom, .. } = self {
            (*row, *bottom) = (0, 0);
        }
    }

    fn draw(&mut self, mut bytes: &[u8], last: bool) -> String {
        let mut drawn = String::with_capacity(bytes.len());
        let Self::Terminal {
            pending,
            safe,
            row,
            bottom,
        } = self
        else {
            return drawn;
        };
        while let Some((step, length)) = first_step(bytes, last) {
            // Writing to a string does not fail.
            let _ = match step {
                TerminalStep::Put(cell) => {
                    drawn += &safe.push(cell.bytes());
                    // A byte that only looks like the beginning of a character.
                    drawn += &safe.finish();
                    Ok(())
                }
                TerminalStep::NewLine => {
                    *row += 1;
                    *bottom = (*bottom).max(*row);
                    drawn.push('\n');
                    Ok(())
                }
                TerminalStep::Return => {
                    drawn.push('\r');
                    Ok(())
                }
                TerminalStep::Up(rows) => match rows.min(*row) {
                    0 => Ok(()),
                    rows => {
                        *row -= rows;
                        write!(drawn, "\x1b[{rows}A")
                    }
                },
                TerminalStep::Down(rows) => match rows.min(*bottom - *row) {
                    0 => Ok(()),
                    rows => {
                        *row += rows;
                        write!(drawn, "\x1b[{rows}B")
                    }
                },
                TerminalStep::Left(columns) => write!(drawn, "\x1b[{columns}D"),
                TerminalStep::Right(columns) => write!(drawn, "\x1b[{columns}C"),
                TerminalStep::Column(column) => write!(drawn, "\x1b[{}G", column + 1),
                TerminalStep::EraseLine(part) => write!(drawn, "\x1b[{part}K"),
                TerminalStep::EraseBelow => write!(drawn, "\x1b[J"),
                TerminalStep::Nothing => Ok(()),
            };
            bytes = &bytes[length..];
        }
        *pending = bytes.to_vec();
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BARS: &[u8] =
        b"\router 0%\n\rinner 0%\x1b[A\router 50%\n\rinner 9%\x1b[A\router 99%\n\nwarning\x1b[2J\n";

    #[test]
    fn a_file_gets_the_last_state_of_a_progress_bar() {
        let mut stream = TerminalStream::new(false);
        let shown: String = BARS.chunks(3).map(|piece| stream.push(piece)).collect();
        assert_eq!(shown + &stream.finish(), "outer 99%\ninner 9%\nwarning\\x1b[2J\n");
        assert_eq!(stream.push(b"50%\xff\r") + &stream.finish(), "50%\\xff");
    }

    #[test]
    fn a_terminal_redraws_rows_of_this_stream_and_obeys_nothing_else() {
        let mut stream = TerminalStream::new(true);
        let mut shown = String::new();
        for piece in BARS.chunks(3) {
            shown += &stream.push(piece);
        }
        assert_eq!(
            shown,
            "\router 0%\n\rinner 0%\x1b[1A\router 50%\n\rinner 9%\x1b[1A\router 99%\n\nwarning\\x1b[2J\n"
        );
        assert_eq!(stream.push(b"\x1b[9Ax\x1b]0;t\x07"), "\x1b[3Ax\\x1b]0;t\\x07");
        assert_eq!(stream.finish(), "\x1b[3B");
        stream.begin();
        assert_eq!(stream.push(b"\x1b[9Ax\x1b[9B\xff\xe2\x82"), "x\\xff");
        assert_eq!(stream.finish(), "\\xe2\\x82");
    }
}
