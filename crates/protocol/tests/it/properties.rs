//! Properties of all messages, all bytes and all splits.

use std::fmt::Debug;

use cellblock_protocol::{
    Decoder, Frame, FrameLimits, FromGuest, FromKernel, MessageSet, ToGuest, ToKernel, encode,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::messages;

fn bytes_of<M: MessageSet>(message: &M, blobs: &[Vec<u8>]) -> Vec<u8> {
    let slices: Vec<&[u8]> = blobs.iter().map(Vec::as_slice).collect();
    let mut bytes = encode(message, &slices, &FrameLimits::default()).unwrap();
    bytes.extend(blobs.concat());
    bytes
}

fn round_trips<M: MessageSet + PartialEq + Debug>(message: M, blobs: Vec<Vec<u8>>) {
    let mut decoder = Decoder::default();
    decoder.push(&bytes_of(&message, &blobs));
    assert_eq!(decoder.frame::<M>().unwrap(), Some(Frame { message, blobs }));
    assert!(!decoder.is_partial());
    assert!(decoder.frame::<M>().unwrap().is_none());
}

fn decode_all<M: MessageSet>(bytes: &[u8]) {
    let limits = FrameLimits {
        header_bytes: 1 << 12,
        frame_bytes: 1 << 16,
    };
    let mut decoder = Decoder::new(limits);
    decoder.push(bytes);
    while let Ok(Some(_)) = decoder.frame::<M>() {}
}

fn blobs() -> impl Strategy<Value = Vec<Vec<u8>>> {
    vec(vec(any::<u8>(), 0..40), 0..4)
}

proptest! {
    #[test]
    fn any_message_to_a_kernel_round_trips(message in messages::to_kernel(), blobs in blobs()) {
        round_trips(message, blobs);
    }

    #[test]
    fn any_message_from_a_kernel_round_trips(message in messages::from_kernel(), blobs in blobs()) {
        round_trips(message, blobs);
    }

    #[test]
    fn any_message_to_a_guest_round_trips(message in messages::to_guest(), blobs in blobs()) {
        round_trips(message, blobs);
    }

    #[test]
    fn any_message_from_a_guest_round_trips(message in messages::from_guest(), blobs in blobs()) {
        round_trips(message, blobs);
    }

    #[test]
    fn any_bytes_decode_without_a_panic(bytes in vec(any::<u8>(), 0..200)) {
        decode_all::<ToKernel>(&bytes);
        decode_all::<FromKernel>(&bytes);
        decode_all::<ToGuest>(&bytes);
        decode_all::<FromGuest>(&bytes);
    }

    #[test]
    fn any_header_text_decodes_without_a_panic(
        header in "\\{\"type\":\"(hello|output|done|call|ok)\"\
                   (,\"[a-z]{1,6}\":(0|-1|1e999|\\[\\]|\\{\\}|null|\"\\PC{0,3}\")){0,4}\\}"
    ) {
        let mut bytes = u32::try_from(header.len() + 4).unwrap().to_be_bytes().to_vec();
        bytes.extend(u32::try_from(header.len()).unwrap().to_be_bytes());
        bytes.extend(header.as_bytes());
        decode_all::<FromKernel>(&bytes);
        decode_all::<FromGuest>(&bytes);
    }

    #[test]
    fn a_changed_byte_decodes_without_a_panic(
        message in messages::from_kernel(), blobs in blobs(),
        at: prop::sample::Index, byte: u8
    ) {
        let mut bytes = bytes_of(&message, &blobs);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        decode_all::<FromKernel>(&bytes);
    }

    #[test]
    fn any_split_of_a_stream_gives_the_same_frames(
        sent in vec((messages::from_kernel(), blobs()), 1..4),
        cuts in vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let stream: Vec<u8> = sent.iter().flat_map(|(message, blobs)| bytes_of(message, blobs)).collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let mut decoder = Decoder::default();
        let mut received = Vec::new();
        for piece in cuts.windows(2) {
            decoder.push(&stream[piece[0]..piece[1]]);
            while let Some(Frame { message, blobs }) = decoder.frame::<FromKernel>().unwrap() {
                received.push((message, blobs));
            }
        }
        prop_assert_eq!(received, sent);
        prop_assert!(!decoder.is_partial());
    }

    #[test]
    fn a_truncated_frame_waits(
        message in messages::from_guest(), blobs in blobs(),
        cut: prop::sample::Index
    ) {
        let bytes = bytes_of(&message, &blobs);
        let mut decoder = Decoder::default();
        decoder.push(&bytes[..cut.index(bytes.len())]);
        prop_assert!(decoder.frame::<FromGuest>().unwrap().is_none());
    }

    #[test]
    fn wrong_blob_lengths_are_errors(message in messages::from_guest(), blobs in blobs(), more in 1_u8..20) {
        // The last blob is longer than its header declares, and the total length includes it.
        let mut bytes = bytes_of(&message, &blobs);
        bytes.extend(vec![0; more.into()]);
        let total = u32::try_from(bytes.len() - 4).unwrap();
        bytes[..4].copy_from_slice(&total.to_be_bytes());
        let mut decoder = Decoder::default();
        decoder.push(&bytes);
        let error = decoder.frame::<FromGuest>().unwrap_err();
        prop_assert!(error.to_string().starts_with("blobs of "), "{error}");
    }
}
