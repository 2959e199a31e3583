//! QEMU's control protocol: one JSON object per line, in both directions.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// Pause between two questions about a state that changes by itself.
const PAUSE: Duration = Duration::from_millis(1);
/// Maximum length of a line in bytes.
const LINE: u64 = 1 << 20;

/// A connection on which commands are accepted.
#[derive(Debug)]
pub(crate) struct Qmp {
    stream: BufReader<UnixStream>,
    /// The start of a line whose rest was not there in time.
    begun: Vec<u8>,
    /// Number of the last command. Its answer has the same; one that came too late has another.
    last: u64,
    /// Maximum time for one answer.
    limit: Duration,
}

impl Qmp {
    /// Reads the greeting and starts the session.
    pub(super) async fn start(stream: UnixStream, limit: Duration) -> Result<Self, String> {
        let mut qmp = Self {
            stream: BufReader::new(stream),
            begun: Vec::new(),
            last: 0,
            limit,
        };
        let greeting = qmp.line().await?;
        if greeting.get("QMP").is_none() {
            return Err("what is connected to QEMU's control socket is not QEMU".to_owned());
        }
        qmp.run("qmp_capabilities", json!({})).await?;
        Ok(qmp)
    }

    /// Runs a command and returns its result.
    pub(super) async fn run(&mut self, command: &str, arguments: Value) -> Result<Value, String> {
        self.last += 1;
        let mut line = json!({"execute": command, "arguments": arguments, "id": self.last}).to_string();
        line.push('\n');
        let written = self.stream.get_mut().write_all(line.as_bytes()).await;
        written.map_err(|error| format!("send `{command}` to QEMU: {error}"))?;
        loop {
            let mut answer = self.line().await?;
            if answer["id"] != self.last {
                continue;
            }
            if let Some(error) = answer.get("error") {
                let reason = error.get("desc").and_then(Value::as_str).unwrap_or("unknown");
                return Err(format!("QEMU rejected `{command}`: {reason}"));
            }
            if let Some(result) = answer.get_mut("return") {
                return Ok(result.take());
            }
        }
    }

    /// Repeats a command until its `status` is no longer one of `pending`; returns the result.
    pub(super) async fn settled(
        &mut self,
        command: &str,
        pending: &[&str],
        limit: Duration,
    ) -> Result<Value, String> {
        let asking = async {
            loop {
                let result = self.run(command, json!({})).await?;
                let status = result.get("status").and_then(Value::as_str);
                if status.is_some_and(|status| !pending.contains(&status)) {
                    return Ok(result);
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::time::timeout(limit, asking)
            .await
            .map_err(|_| format!("QEMU's `{command}` did not finish within {} s", limit.as_secs()))?
    }

    async fn line(&mut self) -> Result<Value, String> {
        let mut limited = tokio::io::AsyncReadExt::take(&mut self.stream, LINE);
        let read = tokio::time::timeout(self.limit, limited.read_until(b'\n', &mut self.begun)).await;
        match read {
            Err(_) => Err(format!(
                "QEMU did not answer within {} s",
                self.limit.as_secs_f32()
            )),
            Ok(Err(error)) => Err(format!("read QEMU's answer: {error}")),
            Ok(Ok(0)) => Err("QEMU closed its control socket".to_owned()),
            Ok(Ok(_)) => {
                let line = std::mem::take(&mut self.begun);
                serde_json::from_slice(&line).map_err(|error| format!("QEMU's answer is not JSON: {error}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    /// Starts with a peer that says each text once it has read that many commands.
    async fn with_answers(answers: &'static [(usize, &'static str)]) -> Result<Qmp, String> {
        let (ours, theirs) = UnixStream::pair().unwrap();
        tokio::spawn(async move {
            let mut peer = BufReader::new(theirs);
            let mut commands = 0;
            for (after, text) in answers {
                while commands < *after {
                    peer.read_until(b'\n', &mut Vec::new()).await.unwrap();
                    commands += 1;
                }
                peer.get_mut().write_all(text.as_bytes()).await.unwrap();
            }
            while let Ok(1..) = peer.read_until(b'\n', &mut Vec::new()).await {}
        });
        Qmp::start(ours, LIMIT).await
    }

    #[tokio::test]
    async fn events_are_skipped_and_errors_name_the_command() {
        let answers = &[
            (
                0,
                "{\"QMP\": {}}\n{\"return\": {}, \"id\": 1}\n{\"event\": \"STOP\"}\n",
            ),
            (2, "{\"return\": {\"status\": \"active\"}, \"id\": 2}\n"),
            (3, "{\"return\": {\"status\": \"completed\"}, \"id\": 3}\n"),
            (4, "{\"error\": {\"desc\": \"no such thing\"}, \"id\": 4}\n"),
        ];
        let mut qmp = with_answers(answers).await.unwrap();
        let settled = qmp.settled("query-migrate", &["active"], LIMIT).await;
        assert_eq!(settled.unwrap()["status"], "completed");
        let error = qmp.run("cont", json!({})).await.unwrap_err();
        assert_eq!(error, "QEMU rejected `cont`: no such thing");
    }

    #[tokio::test]
    async fn an_answer_that_comes_too_late_is_not_that_of_the_next_command() {
        let answers = &[
            (0, "{\"QMP\": {}}\n{\"return\": {}, \"id\": 1}\n{\"return\": \"la"),
            (3, "te\", \"id\": 2}\n{\"return\": \"in time\", \"id\": 3}\n"),
        ];
        let mut qmp = with_answers(answers).await.unwrap();
        qmp.limit = Duration::from_millis(50);
        let error = qmp.run("stop", json!({})).await.unwrap_err();
        assert!(error.contains("did not answer within"), "{error}");
        qmp.limit = LIMIT;
        assert_eq!(qmp.run("cont", json!({})).await.unwrap(), "in time");
    }

    #[tokio::test]
    async fn a_program_that_is_not_qemu_is_an_error() {
        let others: [(&[_], _); 2] = [
            (&[(0, "{}\n")], "is not QEMU"),
            (&[(0, "hello\n")], "is not JSON"),
        ];
        for (said, expected) in others {
            let error = with_answers(said).await.unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
