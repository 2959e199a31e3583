//! A client of streams, the same for a provider and for the gateway before it.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use reqwest::Client;
use serde_json::{Value, json};

use super::provider::{ModelScript, clock};

/// Server that is called, and text that marks parts of its streams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestTarget {
    address: SocketAddr,
    path: &'static str,
    /// The body's fields, except the model.
    input: fn() -> Value,
    /// The text before the delta in the events that have one.
    before_text: &'static str,
    /// A part of the last event before the end mark.
    at_the_end: &'static str,
}

/// A stream that was read to its end.
#[derive(Debug)]
pub(crate) struct StreamReport {
    /// From the request to the end.
    pub(crate) total: Duration,
    /// Age of each delta when it came.
    pub(crate) ages: Vec<Duration>,
    /// Container in which code ran.
    container: Option<String>,
    /// Whether it ran to its end.
    pub(crate) ran: bool,
}

impl RequestTarget {
    /// The provider itself, for Chat Completions.
    pub(crate) fn provider(address: SocketAddr) -> Self {
        Self {
            address,
            path: "/v1/chat/completions",
            input: || json!({"messages": [{"role": "user", "content": "Go on."}]}),
            before_text: "\"content\":\"",
            at_the_end: "\"finish_reason\":\"stop\"",
        }
    }

    /// The gateway, for a response.
    pub(crate) fn gateway(address: SocketAddr) -> Self {
        Self {
            address,
            path: "/v1/responses",
            input: || json!({"store": false, "input": "Go on."}),
            before_text: "\"delta\":\"",
            at_the_end: "\"type\":\"response.completed\"",
        }
    }

    /// Sends a request; nothing of the answer but its head is read.
    pub(crate) async fn request(self, client: &Client, script: ModelScript) -> Result<reqwest::Response> {
        let mut body = (self.input)();
        body["model"] = script.model().into();
        body["stream"] = true.into();
        if script.code.is_some() {
            body["tools"] = json!([{"type": "code_interpreter", "container": {"type": "auto"}}]);
        }
        let request = client
            .post(format!("http://{}{}", self.address, self.path))
            .header("content-type", "application/json")
            .body(body.to_string());
        let answer = request.send().await.context("send a request")?;
        ensure!(
            answer.status().is_success(),
            "the answer is {}: {}",
            answer.status(),
            answer.text().await.unwrap_or_default()
        );
        Ok(answer)
    }

    /// Asks, and reads everything.
    pub(crate) async fn read(self, client: &Client, script: ModelScript) -> Result<StreamReport> {
        let started = Instant::now();
        let mut answer = self.request(client, script).await?;
        let mut frames = Frames::default();
        let mut ages = Vec::with_capacity(script.deltas);
        let (mut completed, mut done, mut ran) = (false, false, false);
        let mut container = None;
        while let Some(bytes) = answer.chunk().await.context("read a stream")? {
            let now = clock();
            frames.add(&bytes);
            while let Some(frame) = frames.next() {
                if let Some(sent) = sent_at(&frame, self.before_text) {
                    ages.push(Duration::from_nanos(now.saturating_sub(sent)));
                }
                ran |= is_run(&frame);
                if script.code.is_some() && container.is_none() {
                    container = text_after(&frame, "\"container_id\":\"").map(str::to_owned);
                }
                completed |= frame.contains(self.at_the_end);
                done |= frame.trim_end() == "data: [DONE]";
            }
        }
        ensure!(completed && done, "the stream broke off");
        let (came, expected) = (ages.len(), script.deltas);
        ensure!(came == expected, "{came} of {expected} deltas came");
        Ok(StreamReport {
            total: started.elapsed(),
            ages,
            container,
            ran,
        })
    }

    /// Deletes the container of a stream.
    pub(crate) async fn forget(self, client: &Client, read: &StreamReport) -> Result<()> {
        let container = read.container.as_deref().context("no code ran")?;
        let address = format!("http://{}/v1/containers/{container}", self.address);
        let answer = client.delete(address).send().await;
        let status = answer.context("delete a container")?.status();
        ensure!(status.is_success(), "the answer is {status}");
        Ok(())
    }
}

/// Whether a frame tells of code that ran to its end.
fn is_run(frame: &str) -> bool {
    frame.starts_with("event: response.output_item.done")
        && frame.contains("\"type\":\"code_interpreter_call\"")
        && frame.contains("\"status\":\"completed\"")
}

/// Returns the time at which a delta was sent, if the frame has one.
fn sent_at(frame: &str, before: &str) -> Option<u64> {
    text_after(frame, before)?.trim().parse().ok()
}

/// Returns the text between the end of `before` and the next quote.
fn text_after<'a>(frame: &'a str, before: &str) -> Option<&'a str> {
    frame.split_once(before)?.1.split('"').next()
}

/// Bytes of a stream, cut where events end.
#[derive(Debug, Default)]
struct Frames {
    bytes: Vec<u8>,
    read: usize,
}

impl Frames {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.read);
        self.read = 0;
        self.bytes.extend_from_slice(bytes);
    }

    fn next(&mut self) -> Option<String> {
        let rest = &self.bytes[self.read..];
        let end = rest.windows(2).position(|window| window == b"\n\n")? + 2;
        let frame = String::from_utf8_lossy(&rest[..end]).into_owned();
        self.read += end;
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_wherever_the_bytes_are_cut() {
        let text = "data: {\"content\":\"   12\"}\n\ndata: [DONE]\n\n";
        for cut in 0..=text.len() {
            let mut frames = Frames::default();
            let mut found = Vec::new();
            for piece in [&text[..cut], &text[cut..]] {
                frames.add(piece.as_bytes());
                while let Some(frame) = frames.next() {
                    found.push(frame);
                }
            }
            assert_eq!(found, ["data: {\"content\":\"   12\"}\n\n", "data: [DONE]\n\n"]);
        }
    }

    #[test]
    fn a_delta_says_when_it_was_sent() {
        let sent = |frame| sent_at(frame, "\"delta\":\"");
        assert_eq!(sent("data: {\"delta\":\"      12\"}"), Some(12));
        assert_eq!(sent("data: {\"delta\":\"x\"}"), None);
        assert_eq!(sent("data: [DONE]"), None);
    }
}
