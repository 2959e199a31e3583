//! Frames built by hand: their wire form, and every violation of it.

use std::error::Error;
use std::io::{Read, Seek, SeekFrom, Write};

use cellblock_protocol::{
    Blob, Decoder, Frame, FrameLimits, FromGuest, FromKernel, KernelOutcome, MAX_BLOBS, MessageSet, Prefix,
    Stream, ToGuest, ToKernel, encode, schema,
};
use serde_json::{Value, json};

fn framed(header: &str, blobs: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(4 + header.len() + blobs.len())
        .unwrap()
        .to_be_bytes()
        .to_vec();
    bytes.extend(u32::try_from(header.len()).unwrap().to_be_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(blobs);
    bytes
}

fn decode<M: MessageSet>(bytes: &[u8]) -> Result<Option<Frame<M, Vec<u8>>>, String> {
    let mut decoder = Decoder::default();
    decoder.push(bytes);
    decoder.frame().map_err(|error| match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    })
}

#[test]
fn a_message_without_blobs_has_this_wire_form() {
    let bytes = encode(&FromGuest::Ok { request: 7 }, &[], &FrameLimits::default()).unwrap();
    assert_eq!(bytes, b"\0\0\0\x1d\0\0\0\x19{\"type\":\"ok\",\"request\":7}");
}

#[test]
fn blobs_are_listed_in_the_header_and_follow_it() {
    let message = FromGuest::Stream {
        exec: 3,
        stream: Stream::Stderr,
    };
    let bytes = encode(&message, &[b"ab", b"", b"c"], &FrameLimits::default()).unwrap();
    let header = br#"{"type":"stream","exec":3,"stream":"stderr","blobs":[2,0,1]}"#;
    assert_eq!(&bytes[8..], header);
    let header_bytes = u32::try_from(header.len()).unwrap();
    assert_eq!(bytes[..4], (4 + header_bytes + 3).to_be_bytes());
    assert_eq!(bytes[4..8], header_bytes.to_be_bytes());
}

#[test]
fn the_header_contains_the_lengths_of_the_blobs() {
    let bytes = encode(
        &FromGuest::Content {
            request: 1,
            eof: true,
            stamp: None,
        },
        &[b"abc"],
        &FrameLimits::default(),
    )
    .unwrap();
    let prefix = Prefix::parse(*bytes.first_chunk().unwrap(), &FrameLimits::default()).unwrap();
    assert_eq!((prefix.header_bytes(), prefix.blob_bytes()), (bytes.len() - 8, 3));
    let header = prefix.header::<FromGuest>(&bytes[8..]).unwrap();
    assert_eq!(
        (header.message, header.blobs),
        (
            FromGuest::Content {
                request: 1,
                eof: true,
                stamp: None
            },
            vec![3]
        )
    );
    let error = prefix.header::<FromGuest>(&bytes[9..]).unwrap_err();
    let expected = format!(
        "header of {} bytes where the prefix announced {} bytes",
        bytes.len() - 9,
        bytes.len() - 8
    );
    assert_eq!(error.to_string(), expected);
}

#[test]
fn unknown_fields_are_ignored_and_missing_ones_have_defaults() {
    let frame = decode::<FromKernel>(&framed(
        r#"{"later":[1],"type":"done","cell":1,"outcome":"raised"}"#,
        b"",
    ));
    let done = FromKernel::Done {
        cell: 1,
        outcome: KernelOutcome::Raised,
        duration_us: 0,
        error: None,
        variables: None,
        outputs_dropped: 0,
        no_files: false,
        rejections: vec![],
        findings: Vec::new(),
        names: None,
    };
    assert_eq!(frame.unwrap().unwrap().message, done);
    let reset = decode::<ToGuest>(&framed(r#"{"type":"kill_all"}"#, b""))
        .unwrap()
        .unwrap()
        .message;
    assert_eq!(
        reset,
        ToGuest::KillAll {
            request: 0,
            except: Vec::new()
        }
    );
}

#[test]
fn an_unknown_type_is_an_error_that_names_it() {
    let error = decode::<FromKernel>(&framed(r#"{"type":"gossip"}"#, b"")).unwrap_err();
    assert_eq!(error, r#"unknown message type "gossip""#);
    let long = format!(r#"{{"type":"\u001b{}"}}"#, "x".repeat(10_000));
    let error = decode::<FromKernel>(&framed(&long, b"")).unwrap_err();
    assert_eq!(
        error,
        format!(r#"unknown message type "\u{{1b}}{}"…"#, "x".repeat(63))
    );
}

#[test]
fn a_message_of_the_other_direction_is_an_error() {
    let bytes = encode(&ToKernel::Reset { cell: 1 }, &[], &FrameLimits::default()).unwrap();
    assert_eq!(
        decode::<FromKernel>(&bytes).unwrap_err(),
        r#"unknown message type "reset""#
    );
}

#[test]
fn an_unknown_output_type_is_an_error_that_names_it() {
    let header = r#"{"type":"output","cell":1,"index":0,"output":{"type":"hologram"}}"#;
    let error = decode::<FromKernel>(&framed(header, b"")).unwrap_err();
    assert!(
        error.starts_with("could not read the fields of a `output` message: unknown variant `hologram`"),
        "{error}"
    );
}

#[test]
fn headers_that_are_not_messages_are_errors() {
    for header in [
        "",
        "null",
        "[]",
        "{}",
        "{",
        r#"{"type":1}"#,
        r#"{"type":"done","type":"done"}"#,
        "{\"type\":\"done\"}x",
    ] {
        let error = decode::<FromKernel>(&framed(header, b"")).unwrap_err();
        assert!(
            error.starts_with("could not read a frame's header as a JSON object with a `type`"),
            "{header}: {error}"
        );
    }
    for header in [
        r#"{"type":"done"}"#,
        r#"{"type":"done","cell":-1,"outcome":"raised"}"#,
        r#"{"type":"done","cell":18446744073709551616,"outcome":"raised"}"#,
        r#"{"type":"done","cell":1,"outcome":"bored"}"#,
        r#"{"type":"done","cell":1,"outcome":"raised","duration_us":1e999}"#,
    ] {
        let error = decode::<FromKernel>(&framed(header, b"")).unwrap_err();
        assert!(error.starts_with("could not read "), "{header}: {error}");
    }
    let bytes = framed("{\"type\":\"\u{0}\"}", b"");
    assert!(decode::<FromKernel>(&bytes).is_err());
    let mut bytes = framed(r#"{"type":"call","call":1,"method":"ab"}"#, b"");
    let at = bytes.len() - 3;
    bytes[at] = 0xff;
    assert!(decode::<FromKernel>(&bytes).is_err());
}

#[test]
fn nesting_beyond_the_parsers_limit_is_an_error() {
    let deep = format!(
        r#"{{"type":"call","call":1,"method":"m","params":{}{}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    assert!(
        decode::<FromKernel>(&framed(&deep, b""))
            .unwrap_err()
            .contains("recursion limit exceeded")
    );
}

#[test]
fn lengths_beyond_a_limit_are_errors_before_anything_is_read() {
    let over_frame = [0x40, 0, 0, 1, 0, 0, 0, 2];
    assert_eq!(
        decode::<FromKernel>(&over_frame).unwrap_err(),
        "frame of 1073741825 bytes is over the limit of 1073741824 bytes; send less, or in several frames"
    );
    let over_header = [0x20, 0, 0, 0, 0, 0x40, 0, 1];
    assert_eq!(
        decode::<FromKernel>(&over_header).unwrap_err(),
        "header of 4194305 bytes is over the limit of 4194304 bytes; large values belong in a blob"
    );
    for total in 0..6_u8 {
        let beyond = [0, 0, 0, total, 0, 0, 0, 2];
        assert_eq!(
            decode::<FromKernel>(&beyond).unwrap_err(),
            format!("header of 2 bytes does not fit in a frame of {total} bytes")
        );
    }
}

#[test]
fn blob_lengths_that_overflow_do_not_wrap_around() {
    let header = r#"{"type":"call","call":1,"method":"m","blobs":[18446744073709551615,2]}"#;
    let error = decode::<FromKernel>(&framed(header, b"x")).unwrap_err();
    assert_eq!(
        error,
        "blobs of 18446744073709551615 bytes in a frame that has 1 bytes for them"
    );
}

#[test]
fn more_blobs_than_the_limit_are_an_error_on_both_sides() {
    let header = format!(
        r#"{{"type":"call","call":1,"method":"m","blobs":[{}0]}}"#,
        "0,".repeat(MAX_BLOBS)
    );
    let error = decode::<FromKernel>(&framed(&header, b"")).unwrap_err();
    assert_eq!(error, "frame with 1025 blobs is over the limit of 1024 blobs");
    let blobs = vec![b"".as_slice(); MAX_BLOBS + 1];
    let error = encode(&FromGuest::Ok { request: 1 }, &blobs, &FrameLimits::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "frame with 1025 blobs is over the limit of 1024 blobs"
    );
}

#[test]
fn encoding_respects_the_limits() {
    let limits = FrameLimits {
        header_bytes: 30,
        frame_bytes: 40,
    };
    let error = encode(
        &ToKernel::Get {
            cell: 1,
            name: "x".repeat(30),
        },
        &[],
        &limits,
    )
    .unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("is over the limit of 30 bytes; large values belong in a blob"),
        "{error}"
    );
    let limits = FrameLimits {
        header_bytes: 60,
        frame_bytes: 60,
    };
    let error = encode(&FromGuest::Ok { request: 1 }, &[&[0; 30]], &limits).unwrap_err();
    assert_eq!(
        error.to_string(),
        "frame of 72 bytes is over the limit of 60 bytes; send less, or in several frames"
    );
}

#[test]
fn the_lists_of_types_are_those_of_the_schema() {
    let schema = schema();
    let types = |of: &str| -> Vec<String> {
        let variants = schema[of]["oneOf"].as_array().unwrap();
        variants
            .iter()
            .map(|variant| {
                variant["properties"]["type"]["const"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
            .collect()
    };
    assert_eq!(types("to_kernel"), ToKernel::TYPES);
    assert_eq!(types("from_kernel"), FromKernel::TYPES);
    assert_eq!(types("to_guest"), ToGuest::TYPES);
    assert_eq!(types("from_guest"), FromGuest::TYPES);
}

#[test]
fn the_golden_schema_is_current() {
    let golden: Value = serde_json::from_str(include_str!("../../schema/gen-6.json")).unwrap();
    assert!(
        golden == schema(),
        "schema/gen-6.json is stale; run `cargo xtask generate`"
    );
    assert_eq!(golden["generation"], json!(cellblock_protocol::GENERATION));
}

#[test]
fn readers_of_one_blob_are_independent() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"hello world, and more").unwrap();
    for blob in [Blob::Memory(b"hello world".to_vec()), Blob::File(file, 11)] {
        let (mut first, mut second) = (blob.reader(), blob.reader());
        let mut text = String::new();
        first.seek(SeekFrom::End(-5)).unwrap();
        first.read_to_string(&mut text).unwrap();
        second.read_to_string(&mut text).unwrap();
        assert_eq!(text, "worldhello world");
        assert_eq!(first.seek(SeekFrom::Current(10)).unwrap(), 21);
        assert_eq!(first.read(&mut [0; 4]).unwrap(), 0);
        assert!(first.seek(SeekFrom::Current(-22)).is_err());
        assert_eq!((blob.len(), blob.is_empty()), (11, false));
    }
}

#[test]
fn an_error_repeats_little_of_a_header_and_escapes_it() {
    let long = format!(
        r#"{{"type":"output","cell":1,"index":0,"output":{{"type":"\u001b[2J{}"}}}}"#,
        "x".repeat(10_000)
    );
    let error = decode::<FromKernel>(&framed(&long, b"")).unwrap_err();
    assert_eq!(
        error,
        format!(
            r"could not read the fields of a `output` message: unknown variant `\u{{1b}}[2J{}…",
            "x".repeat(160 - "unknown variant `?[2J".len())
        )
    );
}
