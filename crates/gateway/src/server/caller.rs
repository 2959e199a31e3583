//! Who calls.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

/// Who calls. What a caller makes belongs to its owner, and nobody else sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    /// Whose things these are: the id of a key, or `local` where no keys are asked for.
    pub owner: String,
}

impl Caller {
    /// The one caller of a gateway without keys.
    pub fn local() -> Self {
        let owner = "local".to_owned();
        Self { owner }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or_else(Self::local))
    }
}
