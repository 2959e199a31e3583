//! HTTP as bytes, so that tests can send what no library would.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

/// An answer.
#[derive(Debug)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl HttpAnswer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(it, _)| it == name);
        found.map(|(_, value)| value.as_str())
    }

    /// All values of a header.
    pub(crate) fn headers(&self, name: &str) -> Vec<&str> {
        let found = self.headers.iter().filter(|(it, _)| it == name);
        found.map(|(_, value)| value.as_str()).collect()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body))
    }

    /// The code of an error in the API's form.
    pub(crate) fn code(&self) -> String {
        let error = &self.json()["error"];
        for key in ["message", "type"] {
            assert!(error[key].is_string(), "{}", self.body);
        }
        assert!(error.as_object().unwrap().contains_key("param"), "{}", self.body);
        error["code"].as_str().unwrap().to_owned()
    }
}

/// Longer than anything that a test waits for.
const LIMIT: Duration = Duration::from_mins(1);

/// A request that was sent, and whose answer is to be read.
#[derive(Debug)]
pub(crate) struct SentRequest(BufReader<TcpStream>);

/// Sends a request. Headers that are not given are those that every program sends.
pub(crate) fn send(address: SocketAddr, line: &str, headers: &[(&str, &str)], body: &str) -> SentRequest {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let own = ("Host", address.to_string());
    let length = body.len().to_string();
    let host = (!headers.iter().any(|(name, _)| *name == "Host")).then_some((own.0, own.1.as_str()));
    let described = [("Content-Type", "application/json"), ("Content-Length", &length)];
    let described = described.iter().filter(|_| !body.is_empty());
    let lines = host.iter().chain(headers).chain(described);
    let lines: Vec<_> = lines
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let closes = !headers.iter().any(|(name, _)| *name == "Connection");
    let close = if closes { "Connection: close\r\n" } else { "" };
    let text = format!("{line} HTTP/1.1\r\n{close}{}\r\n{body}", lines.concat());
    stream.write_all(text.as_bytes()).unwrap();
    SentRequest(BufReader::new(stream))
}

impl SentRequest {
    /// Waits so long for each part of the answer.
    pub(crate) fn within(self, limit: Duration) -> Self {
        self.0.get_ref().set_read_timeout(Some(limit)).unwrap();
        self
    }

    /// Reads the answer to its end, or as far as it comes.
    pub(crate) fn answer(mut self) -> HttpAnswer {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        let status = line
            .split(' ')
            .nth(1)
            .unwrap_or_else(|| panic!("no status: {line:?}"));
        let status = status.parse().unwrap();
        let mut headers = Vec::new();
        loop {
            line.clear();
            self.0.read_line(&mut line).unwrap();
            match line.trim_end().split_once(": ") {
                Some((name, value)) => headers.push((name.to_lowercase(), value.to_owned())),
                None => break,
            }
        }
        let mut answer = HttpAnswer {
            status,
            headers,
            body: String::new(),
        };
        let mut bytes = Vec::new();
        if answer.header("transfer-encoding") == Some("chunked") {
            self.chunks(&mut bytes);
        } else {
            // A server that is killed resets its connections.
            let _cut = self.0.read_to_end(&mut bytes);
        }
        answer.body = String::from_utf8(bytes).unwrap();
        answer
    }

    /// Waits until a line of the answer holds a text.
    pub(crate) fn until(&mut self, text: &str) {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert!(
                self.0.read_line(&mut line).unwrap() > 0,
                "the answer ended before `{text}`"
            );
        }
    }

    /// Returns the rest of a stream.
    pub(crate) fn rest(mut self) -> String {
        let mut bytes = Vec::new();
        let _cut = self.0.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn chunks(&mut self, bytes: &mut Vec<u8>) {
        loop {
            let mut size = String::new();
            if self.0.read_line(&mut size).unwrap_or(0) == 0 {
                return;
            }
            let size = u64::from_str_radix(size.trim(), 16).unwrap();
            if size == 0 {
                return;
            }
            if (&mut self.0).take(size).read_to_end(bytes).is_err() {
                return;
            }
            let mut end = String::new();
            let _cut = self.0.read_line(&mut end);
        }
    }
}

/// The request that runs a piece of Python by the model `demo`.
pub(crate) fn code(code: &str, stream: bool) -> String {
    json!({
        "model": "demo",
        "input": format!("```python\n{code}\n```"),
        "tools": [{"type": "code_interpreter", "container": {"type": "auto"}}],
        "include": ["code_interpreter_call.outputs"],
        "store": false,
        "stream": stream,
    })
    .to_string()
}

/// The first call of a response.
pub(crate) fn call(response: &Value) -> &Value {
    let mut items = response["output"].as_array().unwrap().iter();
    let call = items.find(|item| item["type"] == "code_interpreter_call");
    call.unwrap_or_else(|| panic!("no code was run: {response}"))
}
