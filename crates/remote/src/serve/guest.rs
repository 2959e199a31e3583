//! Relays a client's requests to its guest, frame by frame: they are checked before the guest sees
//! any of them.

use cellblock_protocol::{Blob, Decoder, Frame, FrameLimits, FromGuest, ToGuest, encode};

use super::super::mux::{StreamReceiver, StreamSender};
use cellblock_sandbox::{Error, Result};

use cellblock_sandbox::guest::{GuestRequests, MAX_REPLACE, Relay};

/// Maximum size of a client's frames: the largest file that is written in one step, with its
/// description.
#[expect(clippy::cast_possible_truncation, reason = "a few megabytes")]
const LIMITS: FrameLimits = FrameLimits {
    header_bytes: 1 << 20,
    frame_bytes: MAX_REPLACE as u32 + (1 << 20) + 4,
};

/// Relays until one side has ended, or the client sends an invalid request.
pub(super) async fn pass(relay: Relay, sending: StreamSender, mut receiving: StreamReceiver) -> Result<()> {
    let requests = relay.requests();
    let mut answers = relay.answers;
    let up = async {
        let mut decoder = Decoder::new(LIMITS);
        while let Some(bytes) = receiving.next().await {
            decoder.push(&bytes);
            while let Some(frame) = decoder
                .frame::<ToGuest>()
                .map_err(|error| Error::protocol("client", cellblock_sandbox::jail::error::chain(&error)))?
            {
                ask(&requests, frame).await?;
            }
            receiving.done(bytes.len()).await;
        }
        Ok(())
    };
    let down = async {
        while let Some(frame) = answers.recv().await {
            answer(frame, &sending).await?;
        }
        sending.end().await;
        // The client may still send requests, and learns that the guest is gone.
        std::future::pending().await
    };
    tokio::select! {
        result = up => result,
        result = down => result,
    }
}

async fn ask(requests: &GuestRequests, mut frame: Frame<ToGuest, Vec<u8>>) -> Result<()> {
    if frame.blobs.len() > 1 {
        return Err(Error::protocol("client", "a request with several blobs"));
    }
    match requests.pass_on(frame.message, frame.blobs.pop()).await {
        // The client sees the end of the guest's stream.
        Err(error)
            if error.effect() == cellblock_sandbox::error::Effect::Destroys && !error.is_protocol() =>
        {
            Ok(())
        }
        passed => passed,
    }
}

async fn answer(frame: Frame<FromGuest>, sending: &StreamSender) -> Result<()> {
    let mut blobs: Vec<&[u8]> = Vec::new();
    for blob in &frame.blobs {
        match blob {
            Blob::Memory(bytes) => blobs.push(bytes),
            // No request asks for as much.
            Blob::File(..) => return Err(Error::protocol("guest", "an oversized blob")),
        }
    }
    let head = encode(&frame.message, &blobs, &FrameLimits::default())
        .map_err(|error| Error::protocol("guest", error.to_string()))?;
    sending.send(&head).await?;
    for blob in blobs {
        sending.send(blob).await?;
    }
    Ok(())
}
