//! Frames: three ways of reading them agree, and what was read can be written and read again.

use std::fmt::Debug;
use std::io::Read as _;

use cellblock_protocol::{Decoder, Frame, FrameError, FrameLimits, MAX_BLOBS, MessageSet, Prefix, encode};
use cellblock_sandbox::channel::FrameReader;
use futures_util::FutureExt as _;
use tokio::io::AsyncReadExt;

use crate::text::is_short_and_plain;

/// A message and its blobs.
type Whole<M> = Frame<M, Vec<u8>>;

/// Reads bytes as they are, and once more as the header and the blob of one frame whose lengths are right.
pub(crate) fn check<M: MessageSet + PartialEq + Debug>(data: &[u8]) {
    stream::<M>(data);
    let (header, blobs) = parts(data);
    if let Some(bytes) = framed(header, &blobs) {
        stream::<M>(&bytes);
    }
}

/// Reads bytes as the header and the blobs of one frame, which is encoded with the right lengths first.
pub(crate) fn repaired<M: MessageSet>(data: &[u8]) -> Option<Whole<M>> {
    let (header, blobs) = parts(data);
    let mut decoder = Decoder::default();
    decoder.push(&framed(header, &blobs)?);
    decoder.frame().ok().flatten()
}

/// The first line is a header, what follows it are blobs, which an empty line separates.
fn parts(data: &[u8]) -> (&[u8], Vec<&[u8]>) {
    let Some(end) = data.iter().position(|byte| *byte == b'\n') else {
        return (data, Vec::new());
    };
    let (header, mut rest) = (&data[..end], &data[end + 1..]);
    let mut blobs = Vec::new();
    while let Some(at) = rest.windows(BETWEEN.len()).position(|it| it == BETWEEN)
        && blobs.len() < MAX_BLOBS
    {
        blobs.push(&rest[..at]);
        rest = &rest[at + BETWEEN.len()..];
    }
    blobs.push(rest);
    (header, blobs)
}

/// What stands between two blobs of an input; no format that is read here has it by chance.
const BETWEEN: &[u8] = b"\n=blob=\n";

/// Puts the lengths of blobs into a header, and both lengths before it.
fn framed(header: &[u8], blobs: &[&[u8]]) -> Option<Vec<u8>> {
    let open = header.strip_suffix(b"}")?;
    let mut header = open.to_vec();
    if !blobs.is_empty() {
        let lengths: Vec<_> = blobs.iter().map(|blob| blob.len().to_string()).collect();
        header.extend(format!(",\"blobs\":[{}]", lengths.join(",")).bytes());
    }
    header.push(b'}');
    let blobs = blobs.concat();
    let total = u32::try_from(4 + header.len() + blobs.len()).ok()?;
    let length = u32::try_from(header.len()).ok()?;
    Some([&total.to_be_bytes()[..], &length.to_be_bytes(), &header, &blobs].concat())
}

fn stream<M: MessageSet + PartialEq + Debug>(data: &[u8]) {
    let (first, second) = data.split_at(data.len() / 2);
    let whole = decoded::<M>(&[data]);
    assert_eq!(
        whole,
        decoded(&[first, second]),
        "a stream that arrives in two pieces is the same stream"
    );
    assert_eq!(
        whole,
        received(first, second),
        "the host's reader and the decoder agree"
    );
    let mut taken = 0;
    for frame in &whole {
        taken += Prefix::LEN + frame.blobs.iter().map(Vec::len).sum::<usize>();
        again(frame);
    }
    assert!(
        taken <= data.len(),
        "{taken} bytes were read of {} that came",
        data.len()
    );
}

/// Every frame up to the first that is broken or not there yet.
fn decoded<M: MessageSet>(pieces: &[&[u8]]) -> Vec<Whole<M>> {
    let mut decoder = Decoder::default();
    let mut frames = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => {
                    is_harmless(&error);
                    return frames;
                }
            }
        }
    }
    frames
}

/// Every frame as the host reads it from a socket.
fn received<M: MessageSet>(first: &[u8], second: &[u8]) -> Vec<Whole<M>> {
    let mut reader = FrameReader::<_, M>::new(AsyncReadExt::chain(first, second), "guest");
    let mut frames = Vec::new();
    let next =
        |reader: &mut FrameReader<_, M>| reader.next().now_or_never().expect("bytes in memory are there");
    while let Ok(Some(frame)) = next(&mut reader) {
        let blobs = frame.blobs.iter().map(|blob| {
            let mut bytes = Vec::new();
            blob.reader().read_to_end(&mut bytes).expect("a blob can be read");
            bytes
        });
        frames.push(Frame {
            blobs: blobs.collect(),
            message: frame.message,
        });
    }
    frames
}

fn again<M: MessageSet + PartialEq + Debug>(frame: &Whole<M>) {
    let blobs: Vec<&[u8]> = frame.blobs.iter().map(Vec::as_slice).collect();
    let mut bytes =
        encode(&frame.message, &blobs, &FrameLimits::default()).expect("what was decoded can be encoded");
    bytes.extend(blobs.concat());
    let again = decoded::<M>(&[&bytes]);
    assert_eq!(
        again.as_slice(),
        std::slice::from_ref(frame),
        "a frame reads back equal"
    );
}

/// An error appears in logs and in the caller's messages, so it repeats little of a sandbox's data.
fn is_harmless(error: &FrameError) {
    is_short_and_plain(error, 1000);
}
