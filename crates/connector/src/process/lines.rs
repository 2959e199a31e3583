//! Lines of a stream, with limited length.

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// Reads lines. A canceled read loses nothing.
#[derive(Debug)]
pub struct Lines<R> {
    from: R,
    line: Vec<u8>,
    limit: usize,
}

/// The next part of the stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A line, without its end.
    Whole(Vec<u8>),
    /// The line exceeds the limit. Its rest would be read as another line.
    TooLong,
    /// The stream has ended.
    End,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    /// Reads lines of at most so many bytes.
    pub const fn new(from: R, limit: usize) -> Self {
        Self {
            from,
            line: Vec::new(),
            limit,
        }
    }

    /// Returns the stream after the lines that were read.
    pub fn rest(&mut self) -> &mut R {
        &mut self.from
    }

    /// Returns the next line. Text after the last line end is also a line.
    pub async fn next(&mut self) -> std::io::Result<Line> {
        loop {
            let read = self.from.fill_buf().await?;
            if read.is_empty() {
                return Ok(if self.line.is_empty() {
                    Line::End
                } else {
                    self.whole()
                });
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let take = end.unwrap_or(read.len());
            if self.line.len() + take > self.limit {
                self.line = Vec::new();
                return Ok(Line::TooLong);
            }
            self.line.extend_from_slice(&read[..take]);
            self.from.consume(take + usize::from(end.is_some()));
            if end.is_some() {
                return Ok(self.whole());
            }
        }
    }

    fn whole(&mut self) -> Line {
        let mut line = std::mem::take(&mut self.line);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Line::Whole(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_split_and_limited() {
        let text: &[u8] = b"one\r\n\n1234\nlast";
        let mut lines = Lines::new(text, 4);
        for expected in ["one", "", "1234", "last"] {
            assert_eq!(lines.next().await.unwrap(), Line::Whole(expected.into()));
        }
        assert_eq!(lines.next().await.unwrap(), Line::End);
        let mut lines = Lines::new(b"12345\n".as_slice(), 4);
        assert_eq!(lines.next().await.unwrap(), Line::TooLong);
    }
}
