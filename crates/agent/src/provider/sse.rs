//! Server-sent events from bytes that arrive in pieces. Sizes are limited; line ends are LF, CR or
//! both.

use super::error::ProviderError;

/// Maximum size of an event in bytes, and therefore of a line.
pub(super) const MAX_EVENT: usize = 4 << 20;

/// A decoder of one stream.
#[derive(Debug)]
pub(super) struct Sse {
    limit: usize,
    line: Vec<u8>,
    data: Option<String>,
    name: String,
    /// The last byte was CR, so a following LF belongs to the same line end.
    after_cr: bool,
    first: bool,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SseFrame {
    /// Name, empty if there is none.
    pub(super) name: String,
    /// Lines of data, joined.
    pub(super) data: String,
}

impl Sse {
    pub(super) const fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            data: None,
            name: String::new(),
            after_cr: false,
            first: true,
        }
    }

    /// Takes a piece and returns the events that it completes.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<Vec<SseFrame>, ProviderError> {
        let mut frames = Vec::new();
        for &byte in piece {
            match byte {
                b'\n' if self.after_cr => self.after_cr = false,
                b'\n' | b'\r' => {
                    self.after_cr = byte == b'\r';
                    frames.extend(self.end_line()?);
                }
                _ => {
                    self.after_cr = false;
                    self.line.push(byte);
                    self.bound()?;
                }
            }
        }
        Ok(frames)
    }

    /// Returns the last event if the server closed the stream without ending it.
    pub(super) fn end(&mut self) -> Result<Option<SseFrame>, ProviderError> {
        let last = if self.line.is_empty() {
            None
        } else {
            self.end_line()?
        };
        Ok(last.or_else(|| self.frame()))
    }

    fn bound(&self) -> Result<(), ProviderError> {
        let size = self.line.len() + self.data.as_ref().map_or(0, String::len);
        if size > self.limit {
            let limit = self.limit;
            return Err(ProviderError::TooLarge {
                what: "an event",
                limit,
            });
        }
        Ok(())
    }

    fn end_line(&mut self) -> Result<Option<SseFrame>, ProviderError> {
        let bytes = std::mem::take(&mut self.line);
        let line = String::from_utf8(bytes).map_err(|_| ProviderError::malformed("it is not UTF-8"))?;
        let line = if std::mem::take(&mut self.first) {
            line.trim_start_matches('\u{feff}')
        } else {
            &line
        };
        if line.is_empty() {
            return Ok(self.frame());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                none => *none = Some(value.to_owned()),
            },
            "event" => value.clone_into(&mut self.name),
            // Comments, which have an empty name, keep a connection alive; ids and delays are
            // ignored.
            _ => {}
        }
        self.bound()?;
        Ok(None)
    }

    fn frame(&mut self) -> Option<SseFrame> {
        let name = std::mem::take(&mut self.name);
        let data = self.data.take()?;
        Some(SseFrame { name, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut sse = Sse::new(64);
        let mut frames = Vec::new();
        for piece in pieces {
            frames.extend(sse.push(piece).unwrap());
        }
        frames.extend(sse.end().unwrap());
        frames.into_iter().map(|frame| (frame.name, frame.data)).collect()
    }

    #[test]
    fn events_are_the_same_wherever_pieces_are_cut_and_lines_end() {
        let text = "\u{feff}: hello\n\nevent: a\ndata: {\"é\":\ndata:1}\nid: 7\n\n:\ndata\n\n\
                    event: none\n\ndata: [DONE]";
        let expected = [("a", "{\"é\":\n1}"), ("", ""), ("", "[DONE]")];
        let expected: Vec<_> = expected
            .map(|(name, data)| (name.to_owned(), data.to_owned()))
            .into();
        for end in ["\n", "\r\n", "\r"] {
            let text = text.replace('\n', end);
            let bytes = text.as_bytes();
            for cut in 0..=bytes.len() {
                assert_eq!(frames(&[&bytes[..cut], &bytes[cut..]]), expected, "{cut} {end:?}");
            }
        }
    }

    #[test]
    fn an_endless_event_is_rejected_before_it_fills_the_memory() {
        let mut sse = Sse::new(64);
        let error = sse.push(&[b'x'; 65]).unwrap_err();
        assert!(matches!(error, ProviderError::TooLarge { limit: 64, .. }));
        let mut sse = Sse::new(64);
        let lines = "data: 0123456789\n".repeat(8);
        assert!(matches!(
            sse.push(lines.as_bytes()),
            Err(ProviderError::TooLarge { .. })
        ));
        let mut sse = Sse::new(64);
        assert_eq!(sse.push(": heartbeat\n\n".repeat(100).as_bytes()).unwrap(), []);
    }

    #[test]
    fn invalid_utf8_is_rejected() {
        assert!(matches!(
            Sse::new(64).push(b"data: \xff\n"),
            Err(ProviderError::Malformed { .. })
        ));
    }
}
