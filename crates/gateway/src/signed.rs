//! Small facts that the gateway signs, hands out and reads again.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac::{HMAC_SHA256, Key, sign as hmac, verify as is_hmac};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::OnceCell;

use crate::random;
use crate::records::{Records, RecordsError, responses};

/// The name in the records of a key that signs one kind of fact.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SigningKey(pub(crate) &'static str);

impl SigningKey {
    /// Returns the key, which is made once and kept in the records.
    pub(crate) async fn of<'a>(
        self,
        records: &Records,
        read: &'a OnceCell<Key>,
    ) -> Result<&'a Key, RecordsError> {
        read.get_or_try_init(|| async {
            let new = random::<32>();
            let key = records.with(move |database| responses::secret(database, self.0, &new));
            Ok(Key::new(HMAC_SHA256, &key.await?))
        })
        .await
    }
}

/// Returns a fact with its signature, as text for addresses and cookies.
pub(crate) fn sign(key: &Key, fact: &impl Serialize) -> String {
    let text = serde_json::to_vec(fact).unwrap_or_default();
    URL_SAFE_NO_PAD.encode([hmac(key, &text).as_ref(), &text].concat())
}

/// Reads a fact if this key has signed it.
pub(crate) fn verify<T: DeserializeOwned>(key: &Key, text: &str) -> Option<T> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (signature, text) = bytes.split_at_checked(HMAC_SHA256.digest_algorithm().output_len())?;
    is_hmac(key, text, signature).ok()?;
    serde_json::from_slice(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_that_was_changed_or_signed_with_another_key_is_none() {
        let key = |byte| Key::new(HMAC_SHA256, &[byte; 32]);
        let fact = ("ann".to_owned(), 8000);
        let text = sign(&key(1), &fact);
        assert_eq!(verify(&key(1), &text), Some(fact));
        assert_eq!(verify::<(String, u16)>(&key(2), &text), None);
        let bytes = URL_SAFE_NO_PAD.decode(&text).unwrap();
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            let changed = URL_SAFE_NO_PAD.encode(&changed);
            assert_eq!(verify::<(String, u16)>(&key(1), &changed), None);
            let cut = URL_SAFE_NO_PAD.encode(&bytes[..place]);
            assert_eq!(verify::<(String, u16)>(&key(1), &cut), None);
        }
    }
}
