//! The decoder beside `serde_json`: every cut, every escape, and arguments that are broken.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{ArgumentsDecoder, ArgumentsError, MAX_DEPTH};

/// Decodes pieces; gives what was handed out, and the whole.
fn decode(pieces: &[&[u8]]) -> Result<(String, Map<String, Value>), ArgumentsError> {
    let mut decoder = ArgumentsDecoder::new("code");
    let mut code = String::new();
    for piece in pieces {
        code.push_str(&decoder.push(piece)?);
    }
    Ok((code, decoder.finish()?))
}

fn error(text: &str) -> ArgumentsError {
    decode(&[text.as_bytes()]).unwrap_err()
}

fn malformed(offset: usize, expected: &'static str) -> ArgumentsError {
    ArgumentsError::Malformed { offset, expected }
}

const RICH: &str = concat!(
    r#" { "a" : [1, {"code": "inner", "b": [true, null, -1.5e3]}], "c\u006fde"#,
    "\" :\n",
    r#""q\"b\\s\/\b\f\n\r\t\u0041\u00E9\uD83D\ude00 é€😀", "requirements": ["x\"]}"], "z": {} } "#
);
const RICH_CODE: &str = "q\"b\\s/\u{8}\u{c}\n\r\tAé😀 é€😀";

#[test]
fn the_field_is_the_same_wherever_the_pieces_are_cut() {
    let whole: Map<String, Value> = serde_json::from_str(RICH).unwrap();
    assert_eq!(whole["code"], RICH_CODE);
    let bytes = RICH.as_bytes();
    for first in 0..=bytes.len() {
        for second in [first, first + 1, first + 2, bytes.len()] {
            let second = second.min(bytes.len());
            let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
            assert_eq!(decode(&pieces).unwrap(), (RICH_CODE.to_owned(), whole.clone()));
        }
    }
    let single: Vec<_> = bytes.chunks(1).collect();
    assert_eq!(decode(&single).unwrap(), (RICH_CODE.to_owned(), whole));
}

#[test]
fn each_piece_returns_the_text_that_it_completes() {
    let mut decoder = ArgumentsDecoder::new("code");
    let pieces = [
        r#"{"co"#,
        r#"de": "a"#,
        r"\",
        r"n\u00",
        r"e9\ud83",
        r"d\",
        r"ude",
        r"00",
        "b\"",
        "}",
    ];
    let grown: Vec<_> = pieces.iter().map(|piece| decoder.push(piece).unwrap()).collect();
    assert_eq!(grown, ["", "a", "", "\n", "é", "", "", "😀", "b", ""]);
    assert_eq!(
        Value::Object(decoder.finish().unwrap()),
        json!({"code": "a\né😀b"})
    );
}

#[test]
fn every_code_unit_decodes_as_serde_json_decodes_it() {
    for unit in 0..=u16::MAX {
        let text = format!(r#"{{"code":"\u{unit:04x}"}}"#);
        let theirs = serde_json::from_str::<Map<String, Value>>(&text).ok();
        let ours = decode(&[text.as_bytes()]).ok();
        assert_eq!(
            ours.map(|(code, _)| Value::String(code)),
            theirs.map(|map| map["code"].clone()),
            "{unit:x}"
        );
    }
    for byte in 0..=u8::MAX {
        let text = [br#"{"code":"\"#.as_slice(), &[byte], br#""}"#].concat();
        let theirs = serde_json::from_slice::<Map<String, Value>>(&text).is_ok();
        assert_eq!(decode(&[&text]).is_ok(), theirs, "{byte:x}");
    }
}

#[test]
fn malformed_arguments_are_reported_with_their_offset() {
    assert_eq!(error("[1]"), malformed(0, "`{`"));
    assert_eq!(error("{'code'"), malformed(1, "a field's name in quotes"));
    assert_eq!(error(r#"{"code" "x""#), malformed(8, "`:`"));
    assert_eq!(error(r#"{"a":01}"#), malformed(7, "a number"));
    assert_eq!(error(r#"{"a":nul}"#), malformed(8, "`true`, `false` or `null`"));
    assert_eq!(error(r#"{"a":x}"#), malformed(5, "a value"));
    assert_eq!(error(r#"{"a":[1,]}"#), malformed(8, "a value"));
    assert_eq!(error(r#"{"a":[1}"#), malformed(7, "`,` or `]`"));
    assert_eq!(error(r#"{"a":1,}"#), malformed(7, "a field's name in quotes"));
    assert_eq!(
        error(r#"{"code":"\x"}"#),
        malformed(10, "an escape that JSON has")
    );
    assert_eq!(
        error(r#"{"code":"\u00g0"}"#),
        malformed(13, "a hexadecimal digit")
    );
    assert_eq!(
        error("{\"code\":\"a\nb\"}"),
        malformed(10, "an escape in place of a control character")
    );
    assert_eq!(
        error(r#"{"code":"\ud83d!"}"#),
        malformed(15, "the second half of a surrogate pair")
    );
    assert_eq!(
        error(r#"{"code":"\ude00"}"#),
        malformed(14, "the first half of a surrogate pair")
    );
    assert_eq!(
        error(r#"{"code":"x"} y"#),
        malformed(13, "nothing after the object")
    );
    assert_eq!(
        error("{\n\"code\":\"\",\"a\":1e999}"),
        malformed(20, "a value in range")
    );
    assert_eq!(decode(&[b"{\"code\":\"\xff"]).unwrap_err(), malformed(9, "UTF-8"));
}

#[test]
fn arguments_that_end_early_say_where() {
    for end in 1..RICH.trim_end().len() {
        let part = &RICH.as_bytes()[..end];
        let expected = if part.iter().all(u8::is_ascii_whitespace) {
            ArgumentsError::Missing {
                field: "code".to_owned(),
            }
        } else {
            ArgumentsError::Unfinished { offset: end }
        };
        assert_eq!(decode(&[part]).unwrap_err(), expected);
    }
}

#[test]
fn a_missing_repeated_or_non_string_field_is_rejected() {
    let field = "code".to_owned();
    for text in ["", "  ", "{}", r#"{"a":{"code":"x"}}"#] {
        assert_eq!(
            error(text),
            ArgumentsError::Missing { field: field.clone() },
            "{text}"
        );
    }
    let repeated = ArgumentsError::Repeated {
        field: field.clone(),
        offset: 17,
    };
    assert_eq!(error(r#"{"code":"x","code":"y"}"#), repeated);
    for value in ["1", "null", "[\"x\"]", "{}"] {
        let text = format!(r#"{{"code":{value}}}"#);
        assert_eq!(
            error(&text),
            ArgumentsError::NotText {
                field: field.clone(),
                offset: 8
            }
        );
    }
}

#[test]
fn a_server_that_repeats_the_whole_at_the_end_is_understood() {
    for text in [
        r#"{"code":"x"}{"code":"x"}"#,
        " {\"code\":\"x\"}\n{\"code\":\"x\"} ",
        "{\"code\":\"x\"}\n",
    ] {
        assert_eq!(decode(&[text.as_bytes()]).unwrap().0, "x", "{text}");
    }
    assert_eq!(
        error(r#"{"code":"x"}{"code":"y"}"#),
        malformed(21, "nothing after the object")
    );
    assert_eq!(
        error(r#"{"code":"x"}{"code":"#),
        ArgumentsError::Unfinished { offset: 20 }
    );
    assert_eq!(
        error(r#"{"code":"x"}{"code":"x"}{"#),
        malformed(24, "nothing after the object")
    );
}

#[test]
fn size_and_depth_are_bounded() {
    let mut decoder = ArgumentsDecoder::new("code").limit(12);
    assert_eq!(decoder.push(r#"{"code":"x"}"#).unwrap(), "x");
    assert_eq!(
        decoder.push(" ").unwrap_err(),
        ArgumentsError::TooLong { limit: 12 }
    );
    assert_eq!(
        decoder.push("").unwrap_err(),
        ArgumentsError::TooLong { limit: 12 }
    );
    assert_eq!(
        decoder.finish().unwrap_err(),
        ArgumentsError::TooLong { limit: 12 }
    );

    let nested = |depth: usize| format!(r#"{{"code":"x","a":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
    assert_eq!(decode(&[nested(MAX_DEPTH - 1).as_bytes()]).unwrap().0, "x");
    let limit = MAX_DEPTH;
    assert_eq!(
        error(&nested(MAX_DEPTH)),
        ArgumentsError::TooDeep {
            offset: 16 + limit - 1,
            limit
        }
    );
}

/// A string as some encoder might write it: each character plain, short or as code units.
fn written() -> impl Strategy<Value = String> {
    let character = (any::<char>(), 0..4u8).prop_map(|(character, form)| {
        let plain = !matches!(character, '"' | '\\' | '\0'..' ');
        match form {
            0 | 1 if plain => character.to_string(),
            2 => {
                let quoted = serde_json::to_string(&character).unwrap();
                quoted[1..quoted.len() - 1].to_owned()
            }
            _ => {
                let mut units = [0; 2];
                let units = character.encode_utf16(&mut units).iter();
                units
                    .map(|unit| format!("\\u{unit:04X}"))
                    .collect::<Vec<_>>()
                    .concat()
            }
        }
    });
    prop::collection::vec(character, 0..12).prop_map(|characters| characters.concat())
}

fn arguments() -> impl Strategy<Value = String> {
    let other = prop_oneof![
        Just("null"),
        Just("[1, 2.5e-3, {\"code\": \"no\"}]"),
        Just("\"}\\\"{\""),
        Just("-0"),
        Just("{ }"),
        Just("[ ]"),
    ];
    let fields = prop::collection::vec(("[a-z]{1,4}", other), 0..3);
    (fields.clone(), written(), fields, "[ \n\r\t]{0,2}").prop_map(|(before, code, after, blank)| {
        let pair = |(key, value): (String, &str)| format!("\"x{key}\"{blank}:{value}");
        let mut pairs: Vec<_> = before.into_iter().map(pair).collect();
        pairs.push(format!("{blank}\"code\":{blank}\"{code}\"{blank}"));
        pairs.extend(after.into_iter().map(pair));
        format!("{blank}{{{}}}{blank}", pairs.join(","))
    })
}

proptest! {
    #[test]
    fn any_arguments_cut_anywhere_decode_as_serde_json_decodes_them(
        text in arguments(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)
    ) {
        let whole: Map<String, Value> = serde_json::from_str(&text).unwrap();
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.sort_unstable();
        let ends = cuts.iter().copied().chain([text.len()]);
        let starts = [0].into_iter().chain(cuts.iter().copied());
        let pieces: Vec<_> = starts.zip(ends).map(|(start, end)| &text.as_bytes()[start..end]).collect();
        let (code, decoded) = decode(&pieces).unwrap();
        prop_assert_eq!(&Value::String(code), &whole["code"]);
        prop_assert_eq!(decoded, whole);
    }

    #[test]
    fn broken_arguments_are_accepted_exactly_when_serde_json_accepts_them(
        text in arguments(),
        at in any::<prop::sample::Index>(), byte in any::<u8>()
    ) {
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let theirs = serde_json::from_slice::<Map<String, Value>>(&bytes);
        match decode(&[&bytes]) {
            Ok((code, whole)) => {
                prop_assert_eq!(&Value::String(code), &whole["code"]);
                prop_assert_eq!(whole, theirs.unwrap());
            }
            Err(ArgumentsError::Missing { .. }) => {
                prop_assert!(theirs.is_err() || theirs.unwrap().get("code").is_none());
            }
            Err(ArgumentsError::NotText { .. } | ArgumentsError::Repeated { .. }) => {}
            Err(error) => prop_assert!(theirs.is_err(), "{error}"),
        }
    }
}
