//! Errors of requests that cannot be parsed, in words for clients: serde names the Rust types that
//! it reads into.

use std::fmt::Display;

use cellblock_settings::json::{ARRAY, COUNT, INTEGER, NUMBER, OBJECT, POSITIVE, STRING};

const EXPECTED: &str = ", expected ";
const PLACE: &str = " at line ";
/// Text of axum before serde's message.
const TARGET: &str = "Failed to deserialize the JSON body into the target type";
const UNTAGGED: &str = "data did not match any variant of untagged enum ";

/// Returns the message of an error without names of Rust types: `expected an object`, not `expected
/// struct CreateRequest`.
pub fn describe(error: &(impl Display + ?Sized)) -> String {
    let message = error.to_string();
    let message = match message.strip_prefix(TARGET) {
        Some(rest) => format!("the JSON body is invalid{rest}"),
        None => message,
    };
    if let Some((before, after)) = message.split_once(UNTAGGED) {
        let rest = after.trim_start_matches(is_of_name);
        return format!("{before}the value has none of the accepted forms{rest}");
    }
    // A value of the path, as axum reports it: "Cannot parse `x` to a `u32`".
    if let Some((before, name)) = message.rsplit_once(" to a `")
        && let Some(kind) = name.strip_suffix('`').and_then(number)
    {
        return format!("{before}{EXPECTED}{kind}");
    }
    // The last one is serde's: a value that the message repeats stands before it.
    let Some((before, expected)) = message.rsplit_once(EXPECTED) else {
        return message;
    };
    let (expected, place) = match expected.rfind(PLACE) {
        Some(at) => expected.split_at(at),
        None => (expected, ""),
    };
    match plain(expected) {
        Some(plain) => format!("{before}{EXPECTED}{plain}{place}"),
        None => message,
    }
}

/// Returns other words for what serde expects, if its own name a type.
fn plain(expected: &str) -> Option<String> {
    const OBJECTS: [&str; 3] = ["struct ", "internally tagged enum ", "adjacently tagged enum "];
    const OTHERS: [(&str, &str); 5] = [
        ("tuple struct ", ARRAY),
        ("tuple variant ", ARRAY),
        ("unit struct ", "null"),
        ("unit variant ", STRING),
        ("enum ", "a string or an object"),
    ];
    if let Some(kind) = number(expected) {
        return Some(kind.to_owned());
    }
    let fixed = match expected {
        "string or map" => Some("a string or an object"),
        "a borrowed string" => Some(STRING),
        "unit" => Some("null"),
        "option" => Some("a value or null"),
        "variant identifier" | "field identifier" => Some("a name"),
        _ => None,
    };
    if let Some(fixed) = fixed {
        return Some(fixed.to_owned());
    }
    if let Some(size) = expected.strip_prefix("a tuple of size ") {
        return Some(format!("{ARRAY} of {size} elements"));
    }
    for (prefix, words) in OTHERS {
        if let Some(rest) = expected.strip_prefix(prefix) {
            // "with 2 elements" stays.
            return Some(format!("{words}{}", rest.trim_start_matches(is_of_name)));
        }
    }
    // "with 2 elements" goes: they are the fields, which an array can have instead.
    let is_object = OBJECTS.iter().any(|prefix| expected.starts_with(prefix));
    is_object.then(|| OBJECT.to_owned())
}

/// Returns what a type of numbers is called.
fn number(name: &str) -> Option<&'static str> {
    Some(match name {
        "u8" => "an integer from 0 to 255",
        "u16" => "an integer from 0 to 65535",
        "u32" => "an integer from 0 to 4294967295",
        "u64" | "u128" | "usize" => COUNT,
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => INTEGER,
        "f32" | "f64" => NUMBER,
        name if name.starts_with("a nonzero u") => POSITIVE,
        name if name.starts_with("a nonzero i") => "an integer other than 0",
        _ => return None,
    })
}

/// Whether a character can be one of a type's or a variant's name.
fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | ':' | '<' | '>')
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct CreateRequest {
        name: String,
        count: u32,
    }

    #[derive(Debug, Deserialize)]
    #[serde(tag = "type", rename_all = "snake_case")]
    #[expect(dead_code, reason = "only read")]
    enum Item {
        Call { name: String },
    }

    #[derive(Debug, Deserialize)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "only read")]
    enum TextOrNumber {
        Text(String),
        Number(u8),
    }

    fn of_text<T: DeserializeOwned + std::fmt::Debug>(json: &str) -> String {
        describe(&serde_json::from_str::<T>(json).unwrap_err())
    }

    fn of_value<T: DeserializeOwned + std::fmt::Debug>(json: Value) -> String {
        describe(&serde_json::from_value::<T>(json).unwrap_err())
    }

    #[test]
    fn messages_name_no_types_of_rust() {
        for (json, described) in [
            (
                "5",
                "invalid type: integer `5`, expected an object at line 1 column ",
            ),
            ("[]", "invalid length 0, expected an object at line 1 column "),
        ] {
            let message = of_text::<CreateRequest>(json);
            assert!(message.starts_with(described), "{message}");
        }
        assert_eq!(
            of_value::<CreateRequest>(json!("a, expected struct B")),
            "invalid type: string \"a, expected struct B\", expected an object"
        );
        assert_eq!(
            of_value::<CreateRequest>(json!({"name": "a", "count": -1})),
            "invalid value: integer `-1`, expected an integer from 0 to 4294967295"
        );
        let item = of_text::<Item>("5");
        assert!(item.contains("expected an object"), "{item}");
        assert_eq!(
            of_value::<TextOrNumber>(json!([])),
            "the value has none of the accepted forms"
        );
        assert_eq!(
            of_value::<Vec<CreateRequest>>(json!([1])),
            "invalid type: integer `1`, expected an object"
        );
    }

    #[test]
    fn words_of_the_framework_name_no_types_either() {
        let body = format!("{TARGET}: a: invalid type: null, expected struct X at line 1 column 4");
        assert_eq!(
            describe(&body),
            "the JSON body is invalid: a: invalid type: null, expected an object at line 1 column 4"
        );
        assert_eq!(
            describe("Invalid URL: Cannot parse `x` to a `u32`"),
            "Invalid URL: Cannot parse `x`, expected an integer from 0 to 4294967295"
        );
        assert_eq!(
            describe("invalid length 1, expected tuple struct Pair with 2 elements"),
            "invalid length 1, expected an array with 2 elements"
        );
    }

    #[test]
    fn other_messages_are_unchanged() {
        for message in [
            "missing field `code`",
            "unknown field `cod`, expected `code`",
            "invalid type: integer `1`, expected a string",
            "expected value at line 1 column 1",
            "unknown variant `x`, expected one of `a`, `b`",
        ] {
            assert_eq!(describe(message), message);
        }
    }
}
