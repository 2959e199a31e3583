//! Tokens of sandboxes, and signatures of file addresses.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use cellblock_interpreter::mint;
use sha2::{Digest as _, Sha256};

/// A token of a sandbox: 160 bits that nobody can guess.
#[derive(Clone)]
pub(super) struct Token(String);

/// Operation that a signed address allows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    Read,
    Write,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    pub(super) fn new() -> Self {
        Self(mint(""))
    }

    /// One that was made elsewhere.
    pub(super) const fn known(text: String) -> Self {
        Self(text)
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// Whether this is the token, in a time that does not depend on it.
    pub(super) fn is(&self, given: &str) -> bool {
        is_same(&self.0, given)
    }

    /// Whether a signature is that of a path, user and expiration.
    pub(super) fn signed(
        &self,
        given: &str,
        path: &str,
        operation: Operation,
        user: &str,
        expiration: Option<u64>,
    ) -> bool {
        let operation = match operation {
            Operation::Read => "read",
            Operation::Write => "write",
        };
        let mut text = format!("{path}:{operation}:{user}:{}", self.0);
        if let Some(expiration) = expiration {
            text = format!("{text}:{expiration}");
        }
        let expected = format!("v1_{}", STANDARD_NO_PAD.encode(Sha256::digest(text.as_bytes())));
        is_same(&expected, given)
    }
}

/// Compares hashes of both, so that the time says nothing about a secret.
fn is_same(secret: &str, given: &str) -> bool {
    Sha256::digest(secret.as_bytes()) == Sha256::digest(given.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_for_one_path_operation_user_and_time() {
        let token = Token("tok".to_owned());
        // What e2b 2.63.0 computes for these.
        let signature = "v1_yOzmuU8chHGnwaJF3rJaw4gn3fIopkPGsY6aoSyrk08";
        assert!(token.signed(signature, "/home/user/a", Operation::Read, "user", None));
        assert!(!token.signed(signature, "/home/user/b", Operation::Read, "user", None));
        let own = format!("v1_{}", STANDARD_NO_PAD.encode(Sha256::digest("a b:read::tok")));
        assert!(token.signed(&own, "a b", Operation::Read, "", None));
        assert!(!token.signed(&own, "a b", Operation::Write, "", None));
        assert!(!token.signed(&own, "a c", Operation::Read, "", None));
        assert!(!token.signed(&own, "a b", Operation::Read, "user", None));
        let expiring = format!("v1_{}", STANDARD_NO_PAD.encode(Sha256::digest("a:read::tok:1")));
        assert!(token.signed(&expiring, "a", Operation::Read, "", Some(1)));
        assert!(!token.signed(&expiring, "a", Operation::Read, "", Some(2)));
    }

    #[test]
    fn a_token_is_not_shown() {
        assert_eq!(format!("{:?}", Token::new()), "Token(…)");
    }
}
