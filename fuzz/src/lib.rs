//! What several fuzz targets have in common.

use cellblock_protocol::{Decoder, Limits, Message, encode};

const LIMITS: Limits = Limits { header_bytes: 1 << 16, frame_bytes: 1 << 20 };

/// Decodes any bytes as a stream of frames, whole and cut in two, and encodes what it finds.
pub fn frames<M: Message + PartialEq + std::fmt::Debug>(data: &[u8]) {
    let mut whole = Decoder::new(LIMITS);
    whole.push(data);
    let mut cut = Decoder::new(LIMITS);
    let (start, end) = data.split_at(data.len() / 2);
    cut.push(start);
    let mut early = Vec::new();
    while let Ok(Some(frame)) = cut.frame::<M>() {
        early.push(frame);
    }
    cut.push(end);
    let mut early = early.into_iter();
    while let Ok(Some(frame)) = whole.frame::<M>() {
        let other = early.next().or_else(|| cut.frame().ok().flatten());
        assert_eq!(Some(&frame), other.as_ref());
        let blobs: Vec<&[u8]> = frame.blobs.iter().map(Vec::as_slice).collect();
        encode(&frame.message, &blobs, &Limits::default()).expect("what was decoded can be encoded");
    }
}
