//! A run as a client reads it: one JSON event after the other. A client that does not read holds up
//! its run for a while, and then is taken for gone.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use cellblock_settings::clock;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Events that wait for a client.
const WAITING: usize = 64;
/// Maximum time for which a client may read nothing while events wait for it.
const PATIENCE: Duration = Duration::from_mins(1);
/// Interval of the signs of life in a quiet stream, which detect clients that are gone.
const BEAT: Duration = Duration::from_secs(10);
/// Number of bytes without a line break that are sent all the same.
const LONG_LINE: usize = 64 * 1024;

/// Sends events to a client. Clones send to the same one.
#[derive(Clone, Debug)]
pub(super) struct Teller {
    frames: mpsc::Sender<Frame>,
    gone: CancellationToken,
}

/// Creates a client's stream, and its sender. `gone` is canceled when the client disconnects.
pub(super) fn channel(gone: CancellationToken) -> (Teller, Response) {
    let (frames, waiting) = mpsc::channel(WAITING);
    let teller = Teller {
        frames,
        gone: gone.clone(),
    };
    // Dropped with the stream.
    let guard = gone.drop_guard();
    let events = stream::unfold((waiting, guard), |(mut waiting, guard)| async {
        let frame = waiting.recv().await?;
        Some((Ok::<_, Infallible>(frame), (waiting, guard)))
    });
    let beat = KeepAlive::new().interval(BEAT).text("keep-alive");
    (teller, Sse::new(events).keep_alive(beat).into_response())
}

impl Teller {
    /// Sends an event of this type with these fields.
    pub(super) async fn tell(&self, kind: &str, fields: Value) {
        let mut event = json!({"type": kind, "timestamp": clock::unix_millis()});
        if let (Value::Object(event), Value::Object(fields)) = (&mut event, fields) {
            event.extend(fields);
        }
        let frame = Frame::default().data(event.to_string());
        if self.frames.send_timeout(frame, PATIENCE).await.is_err() {
            self.gone.cancel();
        }
    }

    /// Sends text of a stream, unless it is empty.
    pub(super) async fn text(&self, stream: &str, text: String) {
        if !text.is_empty() {
            self.tell(stream, json!({ "text": text })).await;
        }
    }

    /// Sends a failure.
    pub(super) async fn error(&self, name: &str, value: &str, traceback: &[&str]) {
        let error = json!({"ename": name, "evalue": value, "traceback": traceback});
        self.tell("error", json!({ "error": error })).await;
    }

    /// Sends the end.
    pub(super) async fn complete(&self, took: Duration) {
        let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.tell("execution_complete", json!({ "execution_time": took }))
            .await;
    }
}

/// Bytes of a stream as whole lines: clients begin a new line between two events, unless the first
/// ends with one.
#[derive(Debug, Default)]
pub(super) struct Lines(Vec<u8>);

impl Lines {
    /// Takes bytes, and returns the lines that are whole now.
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        self.0.extend_from_slice(bytes);
        let whole = match self.0.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => last + 1,
            None if self.0.len() > LONG_LINE => self.0.len(),
            None => 0,
        };
        let rest = self.0.split_off(whole);
        let lines = std::mem::replace(&mut self.0, rest);
        String::from_utf8_lossy(&lines).into_owned()
    }

    /// Returns what is left.
    pub(super) fn rest(&mut self) -> String {
        let rest = std::mem::take(&mut self.0);
        String::from_utf8_lossy(&rest).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_sent_in_whole_lines_wherever_it_is_cut() {
        let whole = "aé\n€\n😀";
        for cut in 0..=whole.len() {
            let mut lines = Lines::default();
            let parts = [
                lines.push(&whole.as_bytes()[..cut]),
                lines.push(&whole.as_bytes()[cut..]),
            ];
            assert!(
                parts.iter().all(|part| part.is_empty() || part.ends_with('\n')),
                "{cut}"
            );
            assert_eq!(parts.concat() + &lines.rest(), whole, "{cut}");
        }
        let mut lines = Lines::default();
        assert_eq!(lines.push(&vec![b'x'; LONG_LINE + 1]).len(), LONG_LINE + 1);
    }
}
