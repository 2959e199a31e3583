//! A cell's events as a client reads them.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::response::IntoResponse;
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use cellblock_agent::wire::ApiError;
use cellblock_interpreter::execution::{Event, ProducedFile};
use cellblock_interpreter::output::Output;
use futures_util::stream;
use parking_lot::Mutex;
use serde::Serialize;

use crate::problem::Problem;
use crate::state::sessions::{CellReader, CellStream, HostedSession, lock};

/// Interval of the signs of life in a quiet stream, which detect clients that are gone.
const BEAT: Duration = Duration::from_secs(10);

/// An event of a streamed cell. `type` is its kind.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(tag = "type")]
pub(crate) enum CellEvent<'a> {
    /// The cell starts.
    #[serde(rename = "cell.started")]
    Started {
        /// The session's id.
        session: &'a str,
    },
    /// Output to stdout.
    #[serde(rename = "cell.stdout")]
    Stdout {
        /// The text; bytes that are not UTF-8 are replaced.
        text: String,
    },
    /// Output to stderr.
    #[serde(rename = "cell.stderr")]
    Stderr {
        /// The text; bytes that are not UTF-8 are replaced.
        text: String,
    },
    /// A displayed value.
    #[serde(rename = "cell.output")]
    Output {
        /// The displayed value.
        output: &'a Output,
        /// ID of the display, if code can replace its value.
        #[serde(skip_serializing_if = "Option::is_none")]
        display_id: Option<&'a str>,
    },
    /// A value replaces what was displayed under its ID. The ID of an earlier cell's display is new here.
    #[serde(rename = "cell.output_updated")]
    OutputUpdated {
        /// ID of the display.
        display_id: &'a str,
        /// The new value.
        output: &'a Output,
    },
    /// Removal of everything that the cell has displayed and printed.
    #[serde(rename = "cell.cleared")]
    Cleared {
        /// Whether to wait until something is displayed or printed.
        wait: bool,
    },
    /// A file was created or changed.
    #[serde(rename = "cell.file")]
    File {
        /// The file.
        file: &'a ProducedFile,
    },
    /// Cellblock failed to run the cell to its end. This is the last event; otherwise the last
    /// event is `cell.done`, with the complete result as `cell`.
    #[serde(rename = "cell.error")]
    Error {
        /// The same as without a stream.
        #[schemars(with = "serde_json::Value")]
        error: ApiErrorFields<'a>,
    },
}

/// An error's fields, without the envelope of an answer.
#[derive(Debug)]
pub(crate) struct ApiErrorFields<'a>(&'a ApiError);

impl Serialize for ApiErrorFields<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = serde_json::to_value(self.0).map_err(serde::ser::Error::custom)?;
        value["error"].serialize(serializer)
    }
}

/// Tells a client of its cell.
#[derive(Debug)]
pub(super) struct Teller {
    stream: Arc<CellStream>,
    session: String,
    number: AtomicU64,
    texts: Mutex<[Text; 2]>,
}

/// The events of a stream, as a response.
pub(super) fn told(reader: CellReader) -> impl IntoResponse + use<> {
    let events = stream::unfold(reader, |mut reader| async {
        let frame = reader.next().await?;
        Some((Ok::<_, Infallible>(frame), reader))
    });
    let beat = KeepAlive::new().interval(BEAT).text("keep-alive");
    Sse::new(events).keep_alive(beat)
}

impl Teller {
    pub(super) fn new(held: &HostedSession, stream: Arc<CellStream>) -> Self {
        Self {
            stream,
            session: held.id.clone(),
            number: AtomicU64::new(0),
            texts: Mutex::default(),
        }
    }

    pub(super) async fn started(&self) {
        let session = &self.session;
        self.tell("cell.started", &CellEvent::Started { session }).await;
    }

    pub(super) async fn event(&self, event: Event) {
        match event {
            Event::Stdout(bytes) => {
                let text = lock(&self.texts)[0].push(&bytes);
                self.tell_text("cell.stdout", text, |text| CellEvent::Stdout { text })
                    .await;
            }
            Event::Stderr(bytes) => {
                let text = lock(&self.texts)[1].push(&bytes);
                self.tell_text("cell.stderr", text, |text| CellEvent::Stderr { text })
                    .await;
            }
            Event::Output(output) => {
                let shown = CellEvent::Output {
                    output: &output,
                    display_id: None,
                };
                self.tell("cell.output", &shown).await;
            }
            Event::Display(display) => {
                let (id, output) = (display.id.as_str(), &display.output);
                if display.update {
                    let updated = CellEvent::OutputUpdated {
                        display_id: id,
                        output,
                    };
                    self.tell("cell.output_updated", &updated).await;
                } else {
                    let display_id = Some(id);
                    let shown = CellEvent::Output { output, display_id };
                    self.tell("cell.output", &shown).await;
                }
            }
            Event::Clear { wait } => self.tell("cell.cleared", &CellEvent::Cleared { wait }).await,
        }
    }

    pub(super) async fn file(&self, file: &ProducedFile) {
        self.tell("cell.file", &CellEvent::File { file }).await;
    }

    /// The end; `cell` is its answer as JSON.
    pub(super) async fn done(&self, cell: &str) {
        let [stdout, stderr] = {
            let mut texts = lock(&self.texts);
            [texts[0].rest(), texts[1].rest()]
        };
        self.tell_text("cell.stdout", stdout, |text| CellEvent::Stdout { text })
            .await;
        self.tell_text("cell.stderr", stderr, |text| CellEvent::Stderr { text })
            .await;
        let number = self.number.load(Ordering::Relaxed);
        let json = format!("{{\"type\":\"cell.done\",\"sequence_number\":{number},\"cell\":{cell}}}");
        self.send("cell.done", &json).await;
    }

    pub(super) async fn failed(&self, problem: &Problem) {
        let error = ApiErrorFields(problem.error());
        self.tell("cell.error", &CellEvent::Error { error }).await;
    }

    async fn tell_text(
        &self,
        name: &'static str,
        text: String,
        event: impl FnOnce(String) -> CellEvent<'static>,
    ) {
        if !text.is_empty() {
            self.tell(name, &event(text)).await;
        }
    }

    async fn tell(&self, name: &'static str, event: &CellEvent<'_>) {
        #[derive(Serialize)]
        struct NumberedEvent<'a> {
            #[serde(flatten)]
            event: &'a CellEvent<'a>,
            sequence_number: u64,
        }
        let sequence_number = self.number.load(Ordering::Relaxed);
        let numbered = NumberedEvent {
            event,
            sequence_number,
        };
        match serde_json::to_string(&numbered) {
            Ok(json) => self.send(name, &json).await,
            Err(error) => tracing::error!(%error, "write an event of a cell"),
        }
    }

    /// Sends an event under the next number, which is its place in the stream.
    async fn send(&self, name: &'static str, json: &str) {
        self.number.fetch_add(1, Ordering::Relaxed);
        let frame = Frame::default().event(name).data(json);
        self.stream.push(frame, json.len()).await;
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.stream.end();
    }
}

/// Bytes of a stream as text, without cutting a character in two.
#[derive(Debug, Default)]
struct Text {
    pending: Vec<u8>,
}

impl Text {
    fn push(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let whole = self.pending.len() - self.unfinished();
        let text = String::from_utf8_lossy(&self.pending[..whole]).into_owned();
        self.pending.drain(..whole);
        text
    }

    fn rest(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.pending)).into_owned()
    }

    /// Returns the number of bytes at the end that begin a character that is not complete.
    fn unfinished(&self) -> usize {
        let tail = self.pending.len().saturating_sub(3);
        match std::str::from_utf8(&self.pending[tail..]) {
            Ok(_) => 0,
            // The tail may begin within a character; only what is at its end counts.
            Err(_) => (1..=self.pending.len() - tail)
                .find(|count| {
                    let end = &self.pending[self.pending.len() - count..];
                    std::str::from_utf8(end)
                        .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
                })
                .unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_comes_through_whole_wherever_it_is_cut() {
        let whole = "aé€😀\nz";
        for first in 0..=whole.len() {
            for second in first..=whole.len() {
                let bytes = whole.as_bytes();
                let mut text = Text::default();
                let mut told = text.push(&bytes[..first]);
                told += &text.push(&bytes[first..second]);
                told += &text.push(&bytes[second..]);
                told += &text.rest();
                assert_eq!(told, whole, "{first} {second}");
            }
        }
    }

    #[test]
    fn invalid_utf8_is_replaced_without_delay() {
        let mut text = Text::default();
        assert_eq!(text.push(b"a\xffb"), "a\u{fffd}b");
        assert_eq!(text.push(b"\xff\xff\xff\xff"), "\u{fffd}".repeat(4));
        assert_eq!(text.push(b"\xf0\x9f"), "");
        assert_eq!(text.rest(), "\u{fffd}");
    }
}
