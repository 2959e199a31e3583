//! Bodies that are packed with gzip.

use std::io::Write as _;

use axum::body::{Body, BodyDataStream};
use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use futures_util::{StreamExt as _, stream};

/// Packed bytes that are unpacked at once: a few bytes may stand for a thousand times as many.
const PACKED: usize = 1024;

/// Unpacks a body that is packed with gzip, as it comes.
pub(super) fn unpacked(body: Body) -> Body {
    let decoded = DecodedBody {
        packed: body.into_data_stream(),
        decoder: Some(MultiGzDecoder::new(Vec::new())),
        rest: Bytes::new(),
    };
    Body::from_stream(stream::try_unfold(decoded, DecodedBody::next))
}

/// A packed body, the decoder until it ends, and what the decoder has not seen yet.
struct DecodedBody {
    packed: BodyDataStream,
    decoder: Option<MultiGzDecoder<Vec<u8>>>,
    rest: Bytes,
}

impl DecodedBody {
    async fn next(mut self) -> std::io::Result<Option<(Bytes, Self)>> {
        let broken = |error| std::io::Error::other(format!("the body is not gzip: {error}"));
        loop {
            let Some(decoder) = &mut self.decoder else {
                return Ok(None);
            };
            if self.rest.is_empty() {
                let Some(piece) = self.packed.next().await else {
                    decoder.try_finish().map_err(broken)?;
                    let last = std::mem::take(decoder.get_mut());
                    self.decoder = None;
                    return Ok(Some((last.into(), self)));
                };
                self.rest = piece.map_err(std::io::Error::other)?;
            }
            let part = self.rest.split_to(self.rest.len().min(PACKED));
            decoder.write_all(&part).map_err(broken)?;
            let unpacked = std::mem::take(decoder.get_mut());
            if !unpacked.is_empty() {
                return Ok(Some((unpacked.into(), self)));
            }
        }
    }
}
