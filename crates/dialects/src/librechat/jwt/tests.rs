//! Tokens that count, and all the ways in which they do not.

use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::json;

use super::*;

const NOW: i64 = 1_800_000_000;

/// A key pair, with the verifier of its tokens.
fn keys() -> (Ed25519KeyPair, Verifier) {
    let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap();
    let key = PublicKey::Ed25519(pair.public_key().as_ref().to_vec());
    let verifier = Verifier {
        keys: HashMap::from([
            ("k1".to_owned(), Ok(key)),
            ("k2".to_owned(), Err("no file".to_owned())),
        ]),
        issuer: "librechat".to_owned(),
        audience: "codeapi".to_owned(),
    };
    (pair, verifier)
}

fn claims() -> Value {
    json!({
        "iss": "librechat", "aud": "codeapi", "sub": "user-1", "iat": NOW, "nbf": NOW, "exp": NOW + 120,
        "jti": "j", "tenant_id": "acme", "role": "USER",
    })
}

fn token(pair: &Ed25519KeyPair, header: &Value, claims: &Value) -> String {
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", encode(header), encode(claims));
    let signature = pair.sign(message.as_bytes());
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fn header() -> Value {
    json!({"alg": "EdDSA", "typ": "JWT", "kid": "k1"})
}

#[test]
fn a_token_names_its_user_and_tenant() {
    let (pair, verifier) = keys();
    let user = verifier.check(&token(&pair, &header(), &claims()), NOW).unwrap();
    assert_eq!((user.tenant.as_str(), user.subject.as_str()), ("acme", "user-1"));
    let mut several = claims();
    several["aud"] = json!(["other", "codeapi"]);
    several.as_object_mut().unwrap().remove("tenant_id");
    let user = verifier.check(&token(&pair, &header(), &several), NOW).unwrap();
    assert_eq!(user.tenant, "legacy");
}

#[test]
fn a_token_that_does_not_count_is_refused_with_the_reason() {
    let (pair, verifier) = keys();
    for (claim, value, reason) in [
        ("iss", json!("other"), "`iss` is not `librechat`"),
        ("iss", Value::Null, "has no `iss`"),
        ("aud", json!("other"), "`aud` is not `codeapi`"),
        ("aud", json!([]), "`aud` is not `codeapi`"),
        ("aud", Value::Null, "has no `aud`"),
        ("sub", Value::Null, "has no `sub`"),
        ("sub", json!(""), "`sub` must have"),
        ("jti", Value::Null, "has no `jti`"),
        ("jti", json!("x".repeat(257)), "`jti` must have"),
        ("exp", Value::Null, "has no `exp`"),
        ("iat", Value::Null, "has no `iat`"),
        ("exp", json!(NOW + 301), "within 300 seconds"),
        ("exp", json!(i64::MAX), "within 300 seconds"),
        ("exp", json!(NOW), "within 300 seconds"),
        ("nbf", json!(NOW + 31), "not valid yet"),
        ("iat", json!("soon"), "wrong form"),
    ] {
        let mut wrong = claims();
        wrong[claim] = value;
        let refused = verifier.check(&token(&pair, &header(), &wrong), NOW).unwrap_err();
        assert!(refused.contains(reason), "{claim}: {refused}");
    }
    let token = token(&pair, &header(), &claims());
    assert!(verifier.check(&token, NOW + 149).is_ok());
    assert_eq!(verifier.check(&token, NOW + 150).unwrap_err(), "it has expired");
    assert!(verifier.check(&token, NOW - 30).is_ok());
    assert!(
        verifier
            .check(&token, NOW - 31)
            .unwrap_err()
            .contains("not valid yet")
    );
}

#[test]
fn the_key_says_which_algorithm_counts() {
    let (pair, verifier) = keys();
    for (name, value, reason) in [
        ("alg", json!("none"), "`alg` is not `EdDSA`"),
        ("alg", json!("HS256"), "`alg` is not `EdDSA`"),
        ("alg", json!("RS256"), "`alg` is not `EdDSA`"),
        ("kid", json!("other"), "`kid` is not known"),
        ("kid", json!("k2"), "cannot read the key"),
        ("kid", Value::Null, "has no `kid`"),
        ("crit", json!(["b64"]), "`crit`"),
    ] {
        let mut wrong = header();
        wrong[name] = value;
        let refused = verifier.check(&token(&pair, &wrong, &claims()), NOW).unwrap_err();
        assert!(refused.contains(reason), "{name}: {refused}");
    }
}

#[test]
fn a_token_that_was_changed_is_refused() {
    let (pair, verifier) = keys();
    let good = token(&pair, &header(), &claims());
    let parts: Vec<_> = good.split('.').collect();
    let mut other = claims();
    other["sub"] = json!("admin");
    let other = URL_SAFE_NO_PAD.encode(other.to_string());
    let forged = format!("{}.{other}.{}", parts[0], parts[2]);
    assert_eq!(
        verifier.check(&forged, NOW).unwrap_err(),
        "its signature is wrong"
    );
    let unsigned = format!("{}.{}.", parts[0], parts[1]);
    assert_eq!(
        verifier.check(&unsigned, NOW).unwrap_err(),
        "its signature is wrong"
    );
    for broken in [
        "",
        "a.b",
        "a.b.c.d",
        "!.!.!",
        "e30.e30.",
        &"x".repeat(MAX_TOKEN + 1),
    ] {
        assert!(verifier.check(broken, NOW).is_err(), "{broken:.20}");
    }
    let (stranger, _) = keys();
    let strange = token(&stranger, &header(), &claims());
    assert_eq!(
        verifier.check(&strange, NOW).unwrap_err(),
        "its signature is wrong"
    );
}

#[test]
fn keys_are_read_from_pem_and_jwk() {
    let (pair, _) = keys();
    let raw = pair.public_key().as_ref().to_vec();
    let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode(&raw)});
    let expected = PublicKey::Ed25519(raw.clone());
    assert_eq!(PublicKey::read(jwk.to_string().as_bytes()).unwrap(), expected);
    let mut der = vec![
        0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
    ];
    der.extend(&raw);
    let body = base64::engine::general_purpose::STANDARD.encode(der);
    let pem = format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n");
    assert_eq!(PublicKey::read(pem.as_bytes()).unwrap(), expected);
    let private = json!({"kty": "OKP", "crv": "Ed25519", "x": "eA", "d": "eA"});
    assert!(
        PublicKey::read(private.to_string().as_bytes())
            .unwrap_err()
            .contains("private")
    );
    assert!(PublicKey::read(b"nothing").is_err());
}

#[test]
fn rsa_keys_verify_tokens_from_pem_and_jwk() {
    let token = include_str!("rsa.token.txt").trim();
    for file in [&include_bytes!("rsa.pub.pem")[..], include_bytes!("rsa.jwk.json")] {
        let key = PublicKey::read(file).unwrap();
        assert_eq!(key.algorithm(), "RS256");
        let (_, mut verifier) = keys();
        verifier.keys.insert("rsa".to_owned(), Ok(key));
        assert_eq!(verifier.check(token, NOW).unwrap().subject, "user-2");
        let changed = token.replace("eyJhbGciOiAiUlMyNTYi", "eyJhbGciOiAiUlMyNTYg");
        assert!(verifier.check(&changed, NOW).is_err());
    }
}
