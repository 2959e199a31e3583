//! Seals what a client keeps for us: only this gateway reads it, only unchanged, and only for its owner.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cellblock_agent::turn::ProgramStart;
use cellblock_agent::wire::{ApiError, ErrorKind};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::random;
use crate::records::responses;
use crate::state::Gateway;

/// The form of what is sealed: a [`ConversationSummary`] as JSON.
const VERSION: u8 = 2;
/// The form before that: the summary alone.
const SUMMARY: u8 = 1;

/// The form of the start of a program, as JSON.
const PROGRAM: u8 = 3;

/// A conversation in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConversationSummary {
    pub(crate) summary: String,
    /// The container that it has used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) container: Option<String>,
    /// Whether it replaces everything that was said before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) replaces: bool,
}

/// A key that seals and opens.
#[derive(Debug)]
pub(crate) struct Seal(LessSafeKey);

impl Seal {
    /// The gateway's own; it is made once and kept in the records.
    pub(crate) async fn of(gateway: &Gateway) -> Result<&Seal, ApiError> {
        let seal = gateway.responses.seal.get_or_try_init(|| async {
            let new = random::<32>();
            let key = gateway
                .records
                .with(move |connection| responses::secret(connection, "compaction", &new))
                .await?;
            Self::new(&key).ok_or_else(broken)
        });
        seal.await
    }

    fn new(key: &[u8]) -> Option<Self> {
        let key = UnboundKey::new(&CHACHA20_POLY1305, key).ok()?;
        Some(Self(LessSafeKey::new(key)))
    }

    /// Seals a conversation for its owner.
    pub(crate) fn close(&self, owner: &str, compacted: &ConversationSummary) -> Result<String, ApiError> {
        self.close_as(VERSION, aad(owner), &json!(compacted))
    }

    /// Seals the start of a program for its owner.
    pub(crate) fn close_program(
        &self,
        owner: &str,
        call_id: &str,
        code: &str,
        start: &ProgramStart,
    ) -> Result<String, ApiError> {
        self.close_as(PROGRAM, program_aad(owner, call_id, code), &json!(start))
    }

    fn close_as(&self, version: u8, aad: Aad<Vec<u8>>, value: &Value) -> Result<String, ApiError> {
        // 96 random bits repeat among 2³² texts with a chance of 2⁻³³, and nobody seals that often.
        let nonce = random::<NONCE_LEN>();
        let mut sealed = value.to_string().into_bytes();
        self.0
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut sealed)
            .map_err(|_| broken())?;
        Ok(URL_SAFE_NO_PAD.encode([&[version][..], &nonce, &sealed].concat()))
    }

    /// The conversation, if it was sealed here, for this owner, and was not changed.
    pub(crate) fn open(&self, owner: &str, sealed: &str) -> Option<ConversationSummary> {
        let (version, text) = self.open_as(&[SUMMARY, VERSION], aad(owner), sealed)?;
        if version == VERSION {
            return serde_json::from_slice(&text).ok();
        }
        let summary = String::from_utf8(text).ok()?;
        Some(ConversationSummary {
            summary,
            container: None,
            replaces: false,
        })
    }

    /// The start of a program, if it was sealed here, for this owner, call id and code, and was not changed.
    pub(crate) fn open_program(
        &self,
        owner: &str,
        call_id: &str,
        code: &str,
        sealed: &str,
    ) -> Option<ProgramStart> {
        let (_, text) = self.open_as(&[PROGRAM], program_aad(owner, call_id, code), sealed)?;
        serde_json::from_slice(&text).ok()
    }

    fn open_as(&self, versions: &[u8], aad: Aad<Vec<u8>>, sealed: &str) -> Option<(u8, Vec<u8>)> {
        let sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (version, rest) = sealed.split_first()?;
        if !versions.contains(version) {
            return None;
        }
        let (nonce, rest) = rest.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut rest = rest.to_vec();
        let text = self.0.open_in_place(nonce, aad, &mut rest).ok()?;
        Some((*version, text.to_vec()))
    }
}

fn aad(owner: &str) -> Aad<Vec<u8>> {
    Aad::from([b"compaction of ", owner.as_bytes()].concat())
}

/// Binds the start of a program to its owner, its call id and its code.
fn program_aad(owner: &str, call_id: &str, code: &str) -> Aad<Vec<u8>> {
    // As JSON, because clients choose both texts, and no separator would be safe from them.
    let parts = json!(["program", owner, call_id, code]);
    Aad::from(parts.to_string().into_bytes())
}

fn broken() -> ApiError {
    ApiError {
        kind: ErrorKind::ServerError,
        code: Some("server_error".to_owned()),
        message: "the gateway's key for sealed items cannot be used".to_owned(),
        param: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_item_opens_only_unchanged_for_its_owner_and_key() {
        let seal = Seal::new(&[7; 32]).unwrap();
        let compacted = ConversationSummary {
            summary: "the secret is cobalt".to_owned(),
            container: Some("cntr_1".to_owned()),
            replaces: true,
        };
        let sealed = seal.close("ann", &compacted).unwrap();
        assert_eq!(seal.open("ann", &sealed).unwrap(), compacted);
        assert_eq!(seal.open("bob", &sealed), None);
        assert_eq!(Seal::new(&[8; 32]).unwrap().open("ann", &sealed), None);
        let bytes = URL_SAFE_NO_PAD.decode(&sealed).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("cobalt"));
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            assert_eq!(
                seal.open("ann", &URL_SAFE_NO_PAD.encode(changed)),
                None,
                "byte {place}"
            );
        }
        for length in 0..bytes.len() {
            assert_eq!(seal.open("ann", &URL_SAFE_NO_PAD.encode(&bytes[..length])), None);
        }
        assert_eq!(seal.open("ann", "no base64!"), None);
    }

    #[test]
    fn the_start_of_a_program_opens_only_for_its_owner_call_and_code() {
        let seal = Seal::new(&[7; 32]).unwrap();
        let start = ProgramStart {
            started_ms: 5,
            container: "cntr_1".to_owned(),
        };
        let sealed = seal.close_program("ann", "call_1", "text(1)", &start).unwrap();
        assert_eq!(
            seal.open_program("ann", "call_1", "text(1)", &sealed),
            Some(start)
        );
        for (owner, call_id, code) in [
            ("bob", "call_1", "text(1)"),
            ("ann", "call_2", "text(1)"),
            ("ann", "call_1", "text(2)"),
        ] {
            assert_eq!(seal.open_program(owner, call_id, code, &sealed), None);
        }
        assert_eq!(seal.open("ann", &sealed), None);
        let start = ProgramStart {
            started_ms: 5,
            container: "cntr_1".to_owned(),
        };
        let sealed = seal.close_program("ann", "a\nb", "c", &start).unwrap();
        assert_eq!(seal.open_program("ann", "a", "b\nc", &sealed), None);
    }

    #[test]
    fn the_same_text_is_sealed_differently_each_time() {
        let seal = Seal::new(&[7; 32]).unwrap();
        let compacted = ConversationSummary {
            summary: "x".to_owned(),
            container: None,
            replaces: false,
        };
        assert_ne!(
            seal.close("ann", &compacted).unwrap(),
            seal.close("ann", &compacted).unwrap()
        );
    }

    #[test]
    fn a_summary_that_an_earlier_version_sealed_is_still_read() {
        let seal = Seal::new(&[7; 32]).unwrap();
        let nonce = [9; NONCE_LEN];
        let mut sealed = b"short".to_vec();
        seal.0
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad("ann"), &mut sealed)
            .unwrap();
        let sealed = URL_SAFE_NO_PAD.encode([&[SUMMARY][..], &nonce, &sealed].concat());
        let opened = seal.open("ann", &sealed).unwrap();
        assert_eq!((opened.summary.as_str(), opened.container), ("short", None));
    }
}
