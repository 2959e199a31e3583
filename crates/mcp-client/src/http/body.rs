//! Bodies and streams of a server, limited while they are read.

use std::io::Read as _;
use std::sync::Arc;

use bytes::Bytes;
use cellblock_connector::{BodyError, whole_body};
use futures_util::Stream;
use futures_util::stream::unfold;
use reqwest::Response;

use crate::failure::Failure;
use crate::wire::Wire;

/// Reads a whole body.
pub(super) async fn whole(response: Response, wire: &Wire) -> Result<String, Failure> {
    let body = whole_body(response, wire.most()).await;
    let body = body.map_err(|error| match error {
        BodyError::TooLarge(announced) => wire.too_large(announced),
        BodyError::Broken(error) => broken(error),
        BodyError::Unkept(error) => unkept(&error),
    })?;
    let mut bytes = Vec::new();
    body.reader()
        .read_to_end(&mut bytes)
        .map_err(|error| unkept(&error))?;
    String::from_utf8(bytes).map_err(|error| Failure::unread("it is not UTF-8", error.utf8_error()))
}

/// Converts the error of the file for a large body.
fn unkept(error: &std::io::Error) -> Failure {
    Failure::malformed(format!("this machine could not keep it: {error}"))
}

/// Returns the bytes of a stream of events, up to the first event that is too large.
pub(super) fn stream(
    response: Response,
    wire: Arc<Wire>,
) -> impl Stream<Item = Result<Bytes, Failure>> + Send + 'static {
    unfold(Some((response, Event::default(), wire)), |state| async {
        let (mut response, mut event, wire) = state?;
        match response.chunk().await {
            Ok(Some(bytes)) if event.grow(&bytes) > wire.most() => Some((Err(wire.too_large(None)), None)),
            Ok(Some(bytes)) => Some((Ok(bytes), Some((response, event, wire)))),
            Ok(None) => None,
            Err(error) => Some((Err(broken(error)), None)),
        }
    })
}

/// The size of the current event. An empty line ends it.
#[derive(Debug, Default)]
struct Event {
    size: u64,
    line: u64,
    carriage_return: bool,
}

impl Event {
    /// Continues with more bytes; returns the size of the largest event that was open meanwhile.
    fn grow(&mut self, bytes: &[u8]) -> u64 {
        let mut most = 0;
        for byte in bytes {
            let after = std::mem::replace(&mut self.carriage_return, *byte == b'\r');
            match byte {
                // The second half of a line end.
                b'\n' if after => {}
                b'\n' | b'\r' => {
                    if self.line == 0 {
                        self.size = 0;
                    }
                    self.line = 0;
                }
                _ => {
                    self.line += 1;
                    self.size += 1;
                    most = most.max(self.size);
                }
            }
        }
        most
    }
}

/// Converts the error of a broken connection, without the URL, which can contain a secret.
pub(super) fn broken(error: reqwest::Error) -> Failure {
    Failure::Unreachable(Some(Arc::new(error.without_url())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_the_size_of_its_lines_and_ends_with_an_empty_one() {
        let grown = |pieces: &[&str]| {
            let mut event = Event::default();
            pieces
                .iter()
                .map(|piece| event.grow(piece.as_bytes()))
                .max()
                .unwrap()
        };
        assert_eq!(grown(&["data: abc\ndata: d\n\ndata: e\n\n"]), 16);
        assert_eq!(grown(&["data: abc\r", "\ndata: d\r\n\r\ndata: e"]), 16);
        assert_eq!(grown(&["aaaa\r\rbbbbb\r\rcc"]), 5);
        // Ends of lines are not empty lines.
        assert_eq!(grown(&["a\r\nb\r\nc\r\n", "d\r", "\ne\r\n"]), 5);
    }
}
