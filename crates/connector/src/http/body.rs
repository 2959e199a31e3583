//! Bodies of answers, within limits.

use reqwest::Response;

/// Maximum size of an error's body in bytes; the text of a larger one is not shown.
const ERROR: u64 = 64 << 10;
/// Maximum number of characters of an error's text.
const CHARS: usize = 300;

/// Why there is no body.
#[derive(Debug)]
pub(super) enum BodyError {
    TooLarge,
    Broken(reqwest::Error),
}

/// Reads a body of at most so many bytes.
pub(super) async fn whole(mut response: Response, limit: u64) -> Result<Vec<u8>, BodyError> {
    if response.content_length().is_some_and(|length| length > limit) {
        return Err(BodyError::TooLarge);
    }
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(BodyError::Broken)? {
        if (body.len() + piece.len()) as u64 > limit {
            return Err(BodyError::TooLarge);
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// Returns the text of an error, without what `clean` removes.
pub(super) async fn error(response: Response, clean: impl Fn(&str) -> String) -> String {
    let body = whole(response, ERROR).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&body);
    // Shortened at the end: half a secret would not be found.
    let text = clean(&text);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().take(CHARS).collect()
}
