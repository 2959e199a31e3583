//! Reading a response: bytes, events, and their meaning in one protocol.

use std::collections::VecDeque;

use futures_util::{StreamExt as _, stream};
use serde_json::Value;

use super::http::{Body, ProviderEndpoint};
use super::sse::{MAX_EVENT, Sse};
use super::{ModelEvent, ModelStream, ProviderError};

/// The meaning of a protocol's events.
pub(super) trait Assemble: Send + 'static {
    /// Takes one event.
    fn take(&mut self, event: &Value, out: &mut VecDeque<ModelEvent>) -> Result<(), ProviderError>;

    /// Takes a whole response that was not streamed.
    fn take_whole(&mut self, answer: &Value, out: &mut VecDeque<ModelEvent>) -> Result<(), ProviderError>;

    /// Returns whether the server has reported that the model stopped: the rest may be missing.
    fn finished(&self) -> bool;

    /// Ends the response; the flag says whether the server sent the end of the stream, rather than
    /// just stopping.
    fn end(&mut self, told: bool, out: &mut VecDeque<ModelEvent>) -> Result<(), ProviderError>;

    /// Returns the part of an event that reports an error.
    fn failure(event: &Value) -> Option<&Value>;
}

/// Reads a response to its end or its first error. Events before an error are returned first.
pub(super) fn read(endpoint: ProviderEndpoint, body: Body, assembler: impl Assemble) -> ModelStream {
    let reading = EventReader {
        endpoint,
        body,
        form: ResponseForm::Unknown,
        heard: false,
        sse: Sse::new(MAX_EVENT),
        assembler,
        ready: VecDeque::new(),
        end: None,
    };
    stream::try_unfold(reading, EventReader::next).boxed()
}

struct EventReader<A> {
    endpoint: ProviderEndpoint,
    body: Body,
    form: ResponseForm,
    /// Whether there was an event.
    heard: bool,
    sse: Sse,
    assembler: A,
    ready: VecDeque<ModelEvent>,
    end: Option<Result<(), ProviderError>>,
}

/// Form of a response, detected from its start: servers declare the wrong type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResponseForm {
    /// Still unknown.
    Unknown,
    /// Events.
    Events,
    /// One JSON value, whatever was requested.
    Json,
}

impl ResponseForm {
    fn of(bytes: &[u8]) -> Result<Self, ProviderError> {
        let first = bytes
            .strip_prefix(b"\xef\xbb\xbf")
            .unwrap_or(bytes)
            .trim_ascii_start()
            .first();
        match first {
            None => Ok(Self::Unknown),
            Some(b'{' | b'[') => Ok(Self::Json),
            Some(b'<') => Err(ProviderError::malformed(
                "it is a web page, not a response of a model; check the address",
            )),
            Some(_) => Ok(Self::Events),
        }
    }
}

impl<A: Assemble> EventReader<A> {
    async fn next(mut self) -> Result<Option<(ModelEvent, Self)>, ProviderError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some((event, self)));
            }
            if let Some(end) = self.end {
                return end.map(|()| None);
            }
            if let Err(error) = self.read().await {
                self.end = Some(Err(error));
            }
        }
    }

    async fn read(&mut self) -> Result<(), ProviderError> {
        let bytes = match self.body.next().await {
            Ok(Some(bytes)) => bytes,
            Ok(None) => {
                if let Some(frame) = self.sse.end()? {
                    self.data(&frame.data)?;
                }
                return match self.form {
                    ResponseForm::Unknown => Err(ProviderError::malformed("it is empty")),
                    _ if !self.heard => Err(ProviderError::malformed(
                        "it is neither a stream of events nor JSON",
                    )),
                    _ => self.finish(false),
                };
            }
            // The connection broke after the model had stopped.
            Err(_) if self.assembler.finished() => return self.finish(false),
            Err(error) => return Err(error),
        };
        if self.form == ResponseForm::Unknown {
            self.form = ResponseForm::of(&bytes)?;
        }
        if self.form == ResponseForm::Json {
            let whole = self.body.whole(bytes.to_vec()).await?;
            let answer = serde_json::from_slice(&whole);
            let answer =
                answer.map_err(|error| ProviderError::malformed(format!("it is not JSON: {error}")))?;
            self.refuse_failure(&answer)?;
            self.assembler.take_whole(&answer, &mut self.ready)?;
            return self.finish(true);
        }
        let frames = self.sse.push(&bytes)?;
        for frame in frames {
            self.data(&frame.data)?;
        }
        Ok(())
    }

    fn data(&mut self, data: &str) -> Result<(), ProviderError> {
        self.heard = true;
        match data.trim() {
            _ if self.end.is_some() => Ok(()),
            "" => Ok(()),
            "[DONE]" => self.finish(true),
            data => {
                let event = serde_json::from_str(data);
                let event = event
                    .map_err(|error| ProviderError::malformed(format!("an event is not JSON: {error}")))?;
                self.refuse_failure(&event)?;
                self.assembler.take(&event, &mut self.ready)
            }
        }
    }

    fn refuse_failure(&self, event: &Value) -> Result<(), ProviderError> {
        let Some(failure) = A::failure(event) else {
            return Ok(());
        };
        let words = [
            &failure["error"]["code"],
            &failure["code"],
            &failure["error"]["type"],
        ];
        Err(ProviderError::Reported {
            message: self.endpoint.told(failure),
            code: words.into_iter().find_map(Value::as_str).map(str::to_owned),
        })
    }

    fn finish(&mut self, told: bool) -> Result<(), ProviderError> {
        if self.end.is_none() {
            self.end = Some(Ok(()));
            self.assembler.end(told, &mut self.ready)?;
        }
        Ok(())
    }
}
