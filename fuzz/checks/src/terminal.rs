//! Text of any kind on its way to a terminal: whole, by the line, as JSON, and as a stream in pieces.

use cellblock_interpreter::output::{Output, Primitive, Scalar};
use cellblock_interpreter::render;

use crate::sanitize::{self, SanitizedStream};
use crate::text::is_for_a_model;

/// The longest escape of one byte is `\x1b`; of one character of four bytes, `\u{e0041}`.
const GROWTH: usize = 4;

/// Shows bytes in every way there is.
pub(crate) fn check(data: &[u8]) {
    let streamed = in_pieces(data, data.len().max(1));
    assert_harmless(&streamed, &['\n', '\t']);
    assert!(streamed.len() <= data.len() * GROWTH, "it grows without bound");
    for size in [1, 2, 3, 7] {
        assert_eq!(
            in_pieces(data, size),
            streamed,
            "pieces of {size} are shown as the whole"
        );
    }
    assert_eq!(
        in_pieces(streamed.as_bytes(), 5),
        streamed,
        "what is harmless is shown as it is"
    );
    let text = String::from_utf8_lossy(data);
    assert_harmless(&sanitize::text(&text), &['\n', '\t']);
    assert_harmless(&sanitize::line(&text), &[]);
    let value = serde_json::json!({ "text": text, "list": [text.len()] });
    let json = sanitize::json(&value.to_string());
    assert_harmless(&json, &[]);
    let read: serde_json::Value = serde_json::from_str(&json).expect("harmless JSON is JSON");
    assert_eq!(read, value);
    for_a_model(&text);
}

fn in_pieces(bytes: &[u8], size: usize) -> String {
    let mut stream = SanitizedStream::default();
    let mut shown: String = bytes.chunks(size).map(|piece| stream.push(piece)).collect();
    shown.push_str(&stream.finish());
    shown
}

fn assert_harmless(shown: &str, but: &[char]) {
    let acts = |c: char| cellblock_protocol::text::acts(c) && !but.contains(&c);
    assert!(!shown.chars().any(acts), "a terminal is shown {shown:?}");
}

fn for_a_model(text: &str) {
    let output = Output::Primitive(Primitive {
        name: Some(text.chars().take(20).collect()),
        value: Scalar::Text(text.to_owned()),
        python_type: String::from("str"),
        truncated: false,
        note: None,
    });
    for tokens in [10, 50, 1000] {
        is_for_a_model(&render::to_model(std::slice::from_ref(&output), tokens), tokens);
    }
}
