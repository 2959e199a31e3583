//! `cellblock mcp`, asked as its clients do: messages of one line over stdin and stdout.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use cellblock_testkit::{binary, home};
use serde_json::{Value, json};

use crate::shown::{FaceSummary, raised};

#[derive(Debug)]
pub(crate) struct McpClient {
    server: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    number: u64,
}

impl McpClient {
    pub(crate) fn start() -> Self {
        let mut server = Command::new(binary().unwrap())
            .arg("mcp")
            .env("CELLBLOCK_HOME", home().unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let requests = server.stdin.take().unwrap();
        let answers = BufReader::new(server.stdout.take().unwrap());
        let mut client = Self {
            server,
            requests,
            answers,
            number: 0,
        };
        let client_info = json!({"name": "plain", "version": "1"});
        let initialize =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client_info});
        client.ask("initialize", &initialize);
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    /// Runs code in a session of its own.
    pub(crate) fn run(&mut self, code: &str) -> FaceSummary {
        let call = json!({"name": "run_python", "arguments": {"code": code}});
        let result = self.ask("tools/call", &call);
        let structured = &result["structuredContent"];
        let empty = Vec::new();
        let outputs = structured["outputs"].as_array().unwrap_or(&empty);
        let charts = outputs.iter().filter(|it| it["kind"] == "figure").count();
        let files = structured["files"].as_array().unwrap_or(&empty);
        let blocks = result["content"].as_array().unwrap();
        let texts: Vec<_> = blocks.iter().filter_map(|it| it["text"].as_str()).collect();
        let text = texts.join("\n");
        // What the structure says, the text of a model says, too.
        assert_eq!(
            text.matches(": figure, ").count(),
            charts,
            "{text}\n{structured:#}"
        );
        let failed = outputs.iter().find(|it| it["kind"] == "exception");
        FaceSummary {
            charts,
            files: files
                .iter()
                .map(|it| it["name"].as_str().unwrap().to_owned())
                .collect(),
            exception: failed.and_then(|it| raised(it["text"].as_str().unwrap())),
            text,
        }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.number += 1;
        let number = self.number;
        self.send(&json!({"jsonrpc": "2.0", "id": number, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert!(
                self.answers.read_line(&mut line).unwrap() > 0,
                "the server ended at {method}"
            );
            let mut message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == number {
                assert!(message["error"].is_null(), "{message}");
                return message["result"].take();
            }
        }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.requests, "{message}").unwrap();
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        let _gone_already = self.server.kill();
        let _gone_already = self.server.wait();
    }
}
