//! The first line to a machine that was restored from a snapshot, and its answer.
//!
//! All machines of a snapshot have the same memory: without their own seed they would draw the same
//! random numbers, and without the time their clocks would show when the snapshot was taken. The
//! host uses no machine that does not echo its identity.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cellblock_sandbox::{Error, Result, random_bytes};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::snapshot::hex;

/// Maximum length of a line in bytes.
const LINE: usize = 512;

/// Values that make a restored machine different from the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wake {
    /// 32 random bytes, in hexadecimal.
    pub seed: String,
    /// Time since 1970 in nanoseconds.
    pub time_ns: u64,
    /// The machine's name, which becomes its host name.
    pub identity: String,
}

/// The machine's answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WakeAnswer {
    identity: String,
}

impl Wake {
    /// Returns the line for a new machine of this name.
    pub fn new(identity: impl Into<String>) -> Self {
        // This crate may not import the crate of the settings with its clock.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            seed: hex(&random_bytes::<32>()),
            time_ns: u64::try_from(now.as_nanos()).unwrap_or(u64::MAX),
            identity: identity.into(),
        }
    }

    /// Returns the random bytes; `None` if they are malformed.
    pub fn seed(&self) -> Option<[u8; 32]> {
        let mut seed = [0; 32];
        if self.seed.len() != 64 || !self.seed.is_ascii() {
            return None;
        }
        for (byte, at) in seed.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&self.seed[at..at + 2], 16).ok()?;
        }
        Some(seed)
    }

    /// Wakes a machine, and returns an error unless it answers with its identity within the limit.
    pub async fn send<S>(&self, stream: &mut S, limit: Duration) -> Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let exchange = async {
            // Ends what an earlier host may have left in a serial port.
            stream.write_all(b"\n").await?;
            write_line(stream, self).await?;
            read_line::<WakeAnswer>(stream).await
        };
        let answer = tokio::time::timeout(limit, exchange)
            .await
            .map_err(|_| Error::too_late("a restored machine", limit))?
            .map_err(|error| Error::protocol("restored machine", error.to_string()))?;
        if answer.identity != self.identity {
            return Err(Error::protocol(
                "restored machine",
                "it did not take the identity that it was given",
            ));
        }
        Ok(())
    }

    /// Reads the line inside a machine.
    pub async fn receive<S: AsyncRead + Unpin + Send>(stream: &mut S) -> io::Result<Self> {
        while stream.read_u8().await? != b'\n' {}
        read_line(stream).await
    }

    /// Answers inside a machine, once it has changed its seed, time and name.
    pub async fn answer<S: AsyncWrite + Unpin + Send>(&self, stream: &mut S) -> io::Result<()> {
        let identity = self.identity.clone();
        write_line(stream, &WakeAnswer { identity }).await
    }
}

async fn write_line<S: AsyncWrite + Unpin>(
    stream: &mut S,
    message: &(impl Serialize + Sync),
) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    stream.flush().await
}

/// Reads one line and nothing after it: the rest of the stream belongs to the next protocol.
async fn read_line<T: for<'de> Deserialize<'de>>(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<T> {
    let mut line = Vec::with_capacity(128);
    loop {
        match stream.read_u8().await? {
            b'\n' => return Ok(serde_json::from_slice(&line)?),
            byte if line.len() < LINE => line.push(byte),
            _ => {
                let reason = format!("a first line of more than {LINE} bytes");
                return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn a_machine_that_echoes_its_identity_is_awake() {
        let (mut host, mut machine) = tokio::io::duplex(1024);
        let wake = Wake::new("box-1");
        let inside = tokio::spawn(async move {
            let wake = Wake::receive(&mut machine).await.unwrap();
            wake.answer(&mut machine).await.unwrap();
            machine.write_all(b"next").await.unwrap();
            wake
        });
        wake.send(&mut host, LIMIT).await.unwrap();
        assert_eq!(inside.await.unwrap(), wake);
        let mut next = [0; 4];
        host.read_exact(&mut next).await.unwrap();
        assert_eq!(&next, b"next");
        assert_ne!(Wake::new("box-1").seed(), wake.seed());
    }

    #[tokio::test]
    async fn another_identity_garbage_and_silence_are_errors() {
        for (said, expected) in [
            (&b"{\"identity\": \"box-2\"}\n"[..], "did not take the identity"),
            (b"hello\n", "restored machine broke the protocol"),
            (&[b'a'; 600], "more than 512 bytes"),
            (b"", "was not ready within"),
        ] {
            let (mut host, mut machine) = tokio::io::duplex(2048);
            machine.write_all(said).await.unwrap();
            let limit = Duration::from_millis(200);
            let error = Wake::new("box-1").send(&mut host, limit).await;
            let error = error.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_malformed_seed_is_none() {
        let seed = |seed: &str| {
            Wake {
                seed: seed.to_owned(),
                time_ns: 0,
                identity: String::new(),
            }
            .seed()
        };
        assert_eq!(seed(&"0a".repeat(32)), Some([10; 32]));
        for malformed in ["", "0a", &"0g".repeat(32), &"é".repeat(32)] {
            assert_eq!(seed(malformed), None);
        }
    }
}
