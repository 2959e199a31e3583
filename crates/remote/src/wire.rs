//! The messages on a connection: a few kinds, identified by their first byte, and the content of
//! control messages.

use bytes::{BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};

use super::refusal::RemoteRefusal;
use cellblock_image::AuditReport;
use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::Usage;
use cellblock_sandbox::jail::protection::Report;

/// Increased when the two sides of a connection could no longer understand each other. The frames
/// inside have their own generation.
pub(super) const GENERATION: u32 = 1;
/// Maximum size of a message in bytes, in both directions.
pub const MAX_MESSAGE: usize = 1024 * 1024;
/// Maximum number of bytes of a stream in one message.
pub(super) const PART: usize = 64 * 1024;
/// Number of the stream with the guest's frames.
pub(super) const GUEST: u32 = 0;

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    /// Shows that its sender is there.
    Beat,
    /// A [`ToServer`] or a [`ToClient`] as JSON.
    Control(Bytes),
    /// Bytes of a stream.
    Data { stream: u32, bytes: Bytes },
    /// The sender of the stream may send this many more bytes.
    Credit { stream: u32, bytes: u32 },
    /// The stream has ended.
    End { stream: u32 },
}

impl Wire {
    pub(super) fn encode(self) -> Bytes {
        let mut message = BytesMut::with_capacity(9);
        match self {
            Self::Beat => message.put_u8(0),
            Self::Control(json) => {
                message.put_u8(1);
                message.extend_from_slice(&json);
            }
            Self::Data { stream, bytes } => {
                message.put_u8(2);
                message.put_u32(stream);
                message.extend_from_slice(&bytes);
            }
            Self::Credit { stream, bytes } => {
                message.put_u8(3);
                message.put_u32(stream);
                message.put_u32(bytes);
            }
            Self::End { stream } => {
                message.put_u8(4);
                message.put_u32(stream);
            }
        }
        message.freeze()
    }

    /// Decodes a message of the peer, which may be anything.
    pub(super) fn decode(mut message: Bytes) -> Result<Self, String> {
        if message.len() > MAX_MESSAGE {
            return Err(format!(
                "a message of {} bytes, the limit is {MAX_MESSAGE}",
                message.len()
            ));
        }
        let Some((kind, _)) = message.split_first() else {
            return Err("an empty message".to_owned());
        };
        let kind = *kind;
        let number = |at: usize| {
            let bytes = message.get(at..at + 4)?;
            Some(u32::from_be_bytes(bytes.try_into().ok()?))
        };
        let (first, second) = (number(1), number(5));
        match (kind, message.len(), first, second) {
            (0, 1, ..) => Ok(Self::Beat),
            (1, 2.., ..) => Ok(Self::Control(message.split_off(1))),
            (2, 6.., Some(stream), _) if message.len() <= PART + 5 => Ok(Self::Data {
                stream,
                bytes: message.split_off(5),
            }),
            (3, 9, Some(stream), Some(bytes)) => Ok(Self::Credit { stream, bytes }),
            (4, 5, Some(stream), _) => Ok(Self::End { stream }),
            (kind, length, ..) => Err(format!("a message of kind {kind} with {length} bytes")),
        }
    }
}

/// A message of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum ToServer {
    /// A request; its response has the same number.
    Ask { id: u64, ask: RemoteRequest },
    /// SIGINT for the kernel of this stream.
    Interrupt { kernel: u32 },
    /// SIGKILL for the kernel of this stream.
    Kill { kernel: u32 },
    /// Kills everything in the sandbox.
    KillAll {},
}

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum RemoteRequest {
    /// Creates the connection's only sandbox.
    Create { limits: Limits },
    /// Starts a kernel on this stream.
    StartKernel { stream: u32 },
    /// Lets the standby of the ended kernel take over, on this stream.
    Rescue { stream: u32, pid: u32 },
    /// Announces a file of this size on this stream.
    Upload { stream: u32, bytes: u64 },
    /// Mounts the announced file at a name of `/tmp/data`.
    Mount { name: String },
    /// Unpacks the announced file, a tar archive, as a layer.
    Install { layer: String },
    /// Returns the sandbox's resource usage.
    Usage {},
    /// Ends the sandbox; answered when all its resources have been released.
    Destroy {},
    /// Makes a machine ready to be written to disk: answered when nothing of the connection is in
    /// use any more. The server closes it then, and waits for another one.
    Suspend {},
    /// Takes over the sandbox of a connection that was suspended. Its kernel is the next one that is started.
    Resume {},
    /// Answered when kernels start without waiting.
    Warm {},
    /// Describes the image.
    Describe {},
    /// Returns the network clients in the image.
    Audit {},
    /// Returns a layer with these requirements.
    Layer { requirements: Vec<String> },
}

/// A message of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ToClient {
    /// The first message.
    Hello(Hello),
    /// The response to a request.
    Answer { id: u64, answer: RemoteAnswer },
    /// The error of a request.
    Refused { id: u64, refusal: RemoteRefusal },
}

/// A server's introduction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    /// [`GENERATION`].
    pub(super) generation: u32,
    /// The generation of the frames inside.
    pub(super) frames: u32,
    /// The image's id.
    pub(super) image: String,
    /// State of its sandboxes' protections.
    pub(super) report: Report,
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(super) enum RemoteAnswer {
    /// The operation is complete.
    Done {},
    /// A sandbox.
    Sandbox {
        /// Id of the sandbox at the server.
        id: String,
    },
    /// A kernel.
    Kernel {
        /// Process id in the sandbox.
        pid: u32,
    },
    /// Resource usage.
    Usage {
        /// The usage.
        usage: Usage,
    },
    /// Kernels start without waiting.
    Warm {
        /// Modules that failed to import, with reasons.
        failed_modules: Vec<String>,
    },
    /// The image's manifest.
    Image {
        /// The manifest, unread.
        manifest: serde_json::Value,
    },
    /// Result of an audit.
    Audit {
        /// The audit.
        report: AuditReport,
    },
    /// A layer.
    Layer {
        /// Id of the layer.
        id: String,
    },
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_kind_of_message_round_trips() {
        let bytes = Bytes::from_static(b"abc");
        for wire in [
            Wire::Beat,
            Wire::Control(bytes.clone()),
            Wire::Data { stream: 7, bytes },
            Wire::Credit {
                stream: u32::MAX,
                bytes: 1,
            },
            Wire::End { stream: 0 },
        ] {
            assert_eq!(Wire::decode(wire.clone().encode()), Ok(wire));
        }
    }

    #[test]
    fn oversized_truncated_and_unknown_messages_are_rejected() {
        for (message, reason) in [
            (vec![], "an empty message"),
            (vec![0, 0], "a message of kind 0 with 2 bytes"),
            (vec![1], "a message of kind 1 with 1 bytes"),
            (vec![2, 0, 0, 0, 1], "a message of kind 2 with 5 bytes"),
            (vec![2; PART + 6], "a message of kind 2 with 65542 bytes"),
            (vec![3, 0, 0, 0, 1, 0, 0, 0], "a message of kind 3 with 8 bytes"),
            (vec![9; 5], "a message of kind 9 with 5 bytes"),
            (
                vec![1; MAX_MESSAGE + 1],
                "a message of 1048577 bytes, the limit is 1048576",
            ),
        ] {
            assert_eq!(Wire::decode(message.into()), Err(reason.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn decoded_messages_encode_to_the_same_bytes(
            message in proptest::collection::vec(any::<u8>(), 0..40)
        ) {
            if let Ok(wire) = Wire::decode(message.clone().into()) {
                prop_assert_eq!(wire.encode().to_vec(), message);
            }
        }
    }
}
