//! Secrets in every form in which a far side repeats them.

use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE};
use base64::{Engine as _, engine};

use super::*;

fn each_byte(form: impl Fn(u8) -> String) -> String {
    SECRET.bytes().map(form).collect::<Vec<_>>().concat()
}

#[tokio::test]
async fn secrets_are_removed_from_answers_and_descriptions() {
    let it = Fixture::new();
    let nested = json!({"a": [format!("x{SECRET}y"), {SECRET: 1}], "b": "kept"});
    let (answer, _) = it.get("echo", json!({ "city": nested })).await.unwrap();
    assert_eq!(
        answer,
        json!({"a": ["x[redacted]y", {"[redacted]": 1}], "b": "kept"})
    );
    let bundles = it.grants.bundles().await;
    let echo = bundles[0].functions.iter().find(|card| card.name == "echo");
    assert_eq!(echo.unwrap().description, "Uses the key [redacted].");
}

#[test]
fn secrets_are_found_raw_url_encoded_and_in_base64() {
    let redaction = Redaction::new([SECRET, "", "short"]);
    assert_eq!(redaction.text("a short text"), "a short text");
    for hidden in [
        SECRET.to_owned(),
        "s3cr3t%2Fkey%2B1%3D%3D".to_owned(),
        "s3cr3t%2fkey%2b1%3d%3d".to_owned(),
        each_byte(|byte| format!("%{byte:02x}")),
        SECRET.replace('/', "\\/"),
        each_byte(|byte| format!("\\u00{byte:02X}")),
        json!({ "key": SECRET }).to_string(),
        STANDARD.encode(SECRET),
        STANDARD_NO_PAD.encode(SECRET),
        URL_SAFE.encode(SECRET),
    ] {
        let text = redaction.text(&hidden);
        assert!(text.contains("[redacted]"), "{hidden}: {text}");
        assert!(!text.contains("s3cr3t"), "{hidden}: {text}");
    }
    for (before, after) in [
        ("", ":"),
        ("u", ""),
        ("us", "x"),
        ("user:", "\n"),
        ("user", "tail"),
    ] {
        let engines: [&engine::GeneralPurpose; 2] = [&STANDARD, &URL_SAFE];
        for engine in engines {
            let text = engine.encode(format!("{before}{SECRET}{after}"));
            assert!(redaction.text(&text).contains("[redacted]"), "{before} {after}");
        }
    }
}

#[test]
fn a_secret_of_digits_is_found_in_numbers() {
    let redaction = Redaction::new(["4815162342"]);
    let mut value = json!({"a": 4_815_162_342_u64, "b": [1, 2.5], "c": "4815162342"});
    redaction.value(&mut value);
    assert_eq!(
        value,
        json!({"a": "[redacted]", "b": [1, 2.5], "c": "[redacted]"})
    );
}

#[test]
fn quotes_and_spaces_in_a_secret_do_not_hide_it() {
    let secret = "pass \"word\" ü";
    let redaction = Redaction::new([secret]);
    for hidden in [
        json!(secret).to_string(),
        "pass%20%22word%22%20%C3%BC".to_owned(),
        "pass+%22word%22+%C3%BC".to_owned(),
        "pass \\\"word\\\" \\u00fc".to_owned(),
    ] {
        assert!(redaction.text(&hidden).contains("[redacted]"), "{hidden}");
    }
}

#[test]
fn a_long_secret_and_one_within_another_leave_nothing() {
    let long = "0123456789abcdef".repeat(4000);
    let redaction = Redaction::new(["abcdef0", "abcdef0123", &long]);
    assert_eq!(redaction.text("x abcdef0123 y"), "x [redacted] y");
    assert_eq!(redaction.text(&format!("<{long}>")), "<[redacted]>");
}
