//! Tokens that LibreChat signs for its users.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::Value;

use super::JwtOptions;
use super::error::Problem;
use super::jwk::PublicKey;

/// Maximum time between a token's making and its end, in seconds.
const LIFETIME: i64 = 300;
/// Maximum difference between the clocks of both servers, in seconds.
const SKEW: i64 = 30;
/// Maximum length of a token.
const MAX_TOKEN: usize = 16 * 1024;
/// Maximum length of `jti`, and of the other names in a token.
const MAX_NAME: usize = 256;

/// Checks tokens.
#[derive(Debug)]
pub(super) struct Verifier {
    keys: HashMap<String, Result<PublicKey, String>>,
    issuer: String,
    audience: String,
}

/// The user of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct User {
    pub(super) tenant: String,
    pub(super) subject: String,
}

#[derive(Debug, Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    crit: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Claims {
    iss: Option<String>,
    aud: Option<Audience>,
    sub: Option<String>,
    iat: Option<i64>,
    nbf: Option<i64>,
    exp: Option<i64>,
    jti: Option<String>,
    tenant_id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

impl Verifier {
    /// Reads the keys. One that cannot be read refuses its tokens, and says so in the log.
    pub(super) fn new(options: &JwtOptions) -> Self {
        let keys = options.keys.iter().map(|key| {
            let shown = key.file.display();
            let read = std::fs::read(&key.file).map_err(|error| error.to_string());
            let read = read.and_then(|content| PublicKey::read(&content));
            if let Err(reason) = &read {
                tracing::error!(kid = key.kid, file = %shown, reason, "read a key of LibreChat's tokens");
            }
            (key.kid.clone(), read)
        });
        Self {
            keys: keys.collect(),
            issuer: options.issuer.clone(),
            audience: options.audience.clone(),
        }
    }

    /// Returns the user of a token that counts now, in seconds since 1970.
    pub(super) fn verify(&self, token: &str, now: i64) -> Result<User, Problem> {
        self.check(token, now)
            .map_err(|reason| Problem::unauthorized(format!("the token is not accepted: {reason}")))
    }

    fn check(&self, token: &str, now: i64) -> Result<User, String> {
        if token.len() > MAX_TOKEN {
            return Err(format!("it has more than {MAX_TOKEN} characters"));
        }
        let parts: Vec<_> = token.split('.').collect();
        let &[header, claims, signature] = &parts[..] else {
            return Err("it does not have three parts".to_owned());
        };
        let decoded = |name: &str, part: &str| {
            let bytes = URL_SAFE_NO_PAD.decode(part);
            bytes.map_err(|_| format!("its {name} is not base64url"))
        };
        let parsed: Header = serde_json::from_slice(&decoded("header", header)?)
            .map_err(|_| "its header is not one of a token".to_owned())?;
        if parsed.crit.is_some() {
            return Err("its header has `crit`, of which nothing is understood".to_owned());
        }
        let kid = parsed.kid.ok_or("its header has no `kid`")?;
        let key = self.keys.get(&kid).ok_or("its `kid` is not known here")?;
        let key = key
            .as_ref()
            .map_err(|_| "the server cannot read the key of its `kid`")?;
        // The key says what a signature is, never the token.
        if parsed.alg != key.algorithm() {
            return Err(format!(
                "its `alg` is not `{}`, which its key is for",
                key.algorithm()
            ));
        }
        let message = &token[..header.len() + 1 + claims.len()];
        if !key.verifies(message.as_bytes(), &decoded("signature", signature)?) {
            return Err("its signature is wrong".to_owned());
        }
        let claims: Claims = serde_json::from_slice(&decoded("claims", claims)?)
            .map_err(|error| format!("its claims have a wrong form: {error}"))?;
        self.judge(claims, now)
    }

    fn judge(&self, claims: Claims, now: i64) -> Result<User, String> {
        let needed = |name: &str, value: Option<String>| match value {
            Some(value) if value.is_empty() || value.len() > MAX_NAME => {
                Err(format!("its `{name}` must have from 1 to {MAX_NAME} bytes"))
            }
            Some(value) => Ok(value),
            None => Err(format!("it has no `{name}`")),
        };
        let time = |name: &str, value: Option<i64>| value.ok_or_else(|| format!("it has no `{name}`"));
        if needed("iss", claims.iss)? != self.issuer {
            return Err(format!("its `iss` is not `{}`", self.issuer));
        }
        let audience = match &claims.aud {
            Some(Audience::One(one)) => *one == self.audience,
            Some(Audience::Many(many)) => many.contains(&self.audience),
            None => return Err("it has no `aud`".to_owned()),
        };
        if !audience {
            return Err(format!("its `aud` is not `{}`", self.audience));
        }
        let (made, ends) = (time("iat", claims.iat)?, time("exp", claims.exp)?);
        if ends.saturating_sub(made) > LIFETIME || ends <= made {
            return Err(format!("it must end within {LIFETIME} seconds of its `iat`"));
        }
        if now >= ends.saturating_add(SKEW) {
            return Err("it has expired".to_owned());
        }
        let begins = claims.nbf.map_or(made, |nbf| nbf.max(made));
        if now < begins.saturating_sub(SKEW) {
            return Err("it is not valid yet; compare the clocks of both servers".to_owned());
        }
        needed("jti", claims.jti)?;
        Ok(User {
            subject: needed("sub", claims.sub)?,
            tenant: needed(
                "tenant_id",
                Some(claims.tenant_id.unwrap_or_else(|| "legacy".to_owned())),
            )?,
        })
    }
}

#[cfg(test)]
mod tests;
