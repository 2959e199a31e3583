//! What travels on a connection: messages of a few kinds, told apart by their first byte, and what the control messages among them say.

use bytes::{BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};

use super::refusal::Refusal;
use cellblock_image::Report as Audit;
use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::Usage;
use cellblock_sandbox::jail::protection::Report;

/// Grows when the two sides of a connection could no longer understand each other. The frames inside have a generation of their own.
pub(super) const GENERATION: u32 = 1;
/// The most bytes of one message, on both sides.
pub const MAX_MESSAGE: usize = 1024 * 1024;
/// The most bytes of a stream that one message carries.
pub(super) const PART: usize = 64 * 1024;
/// The stream on which the guest's frames travel.
pub(super) const GUEST: u32 = 0;

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    /// Says that its sender is there.
    Beat,
    /// A [`ToServer`] or a [`ToClient`] as JSON.
    Control(Bytes),
    /// Bytes of a stream.
    Data { stream: u32, bytes: Bytes },
    /// So many more bytes of a stream may be sent.
    Credit { stream: u32, bytes: u32 },
    /// No more bytes of a stream come.
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

    /// Reads what the other side sent, which may be anything.
    pub(super) fn decode(mut message: Bytes) -> Result<Self, String> {
        if message.len() > MAX_MESSAGE {
            return Err(format!(
                "a message of {} bytes, the limit is {MAX_MESSAGE}",
                message.len()
            ));
        }
        let Some((kind, _)) = message.split_first() else {
            return Err("a message without a byte".to_owned());
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

/// What a client says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum ToServer {
    /// Asks for something; answered under the same number.
    Ask { id: u64, ask: Ask },
    /// SIGINT for the kernel that speaks on this stream.
    Interrupt { kernel: u32 },
    /// SIGKILL for it.
    Kill { kernel: u32 },
    /// Kills everything in the sandbox.
    KillAll {},
}

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Ask {
    /// A sandbox; a connection has one.
    Create { limits: Limits },
    /// A kernel, which will speak on this stream.
    StartKernel { stream: u32 },
    /// Lets the standby of the kernel that has ended take over; it will speak on this stream.
    Rescue { stream: u32, pid: u32 },
    /// A file of so many bytes will come on this stream.
    Upload { stream: u32, bytes: u64 },
    /// Shows the file that is coming at a name of `/tmp/data`.
    Mount { name: String },
    /// What the sandbox has used.
    Usage {},
    /// Ends the sandbox; answered when all that was held for it has been given back.
    Destroy {},
    /// Answered when kernels start without waiting.
    Warm {},
    /// What the image is.
    Describe {},
    /// Which network clients the image holds.
    Audit {},
    /// A layer with these requirements.
    Layer { requirements: Vec<String> },
}

/// What a server says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ToClient {
    /// The first message.
    Hello(Hello),
    /// Answers an ask.
    Answer { id: u64, answer: Answer },
    /// Says that an ask failed.
    Refused { id: u64, refusal: Refusal },
}

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    /// [`GENERATION`].
    pub(super) generation: u32,
    /// The generation of the frames inside.
    pub(super) frames: u32,
    /// The image's id.
    pub(super) image: String,
    /// What its sandboxes are confined by.
    pub(super) report: Report,
}

/// What an ask gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(super) enum Answer {
    /// It was done.
    Done {},
    /// A sandbox.
    Sandbox {
        /// Its name there.
        id: String,
    },
    /// A kernel.
    Kernel {
        /// Its number in the sandbox.
        pid: u32,
    },
    /// What was used.
    Usage {
        /// It.
        usage: Usage,
    },
    /// Kernels start without waiting.
    Warm {
        /// Modules that could not be imported, with reasons.
        failed_modules: Vec<String>,
    },
    /// The image's manifest.
    Image {
        /// It, unread.
        manifest: serde_json::Value,
    },
    /// What an audit found.
    Audit {
        /// It.
        report: Audit,
    },
    /// A layer.
    Layer {
        /// Its id.
        id: String,
    },
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_kind_of_message_reads_back_as_it_was() {
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
    fn a_message_that_is_too_long_or_cut_or_of_no_kind_is_refused() {
        for (message, reason) in [
            (vec![], "a message without a byte"),
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
        fn whatever_is_read_is_written_as_the_same_bytes(message in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(wire) = Wire::decode(message.clone().into()) {
                prop_assert_eq!(wire.encode().to_vec(), message);
            }
        }
    }
}
