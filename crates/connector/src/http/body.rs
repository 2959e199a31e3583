//! Bodies of answers, within limits.

use std::io::{self, Write as _};

use cellblock_interpreter::connector::{Blob, BlobWriter};
use reqwest::Response;

/// Maximum size of an error's body in bytes; the text of a larger one is not shown.
const ERROR: u64 = 64 << 10;
/// Maximum number of characters of an error's text.
const CHARS: usize = 300;

/// Reason that there is no body.
#[derive(Debug)]
pub enum BodyError {
    /// It has more bytes than the limit; the number that was announced, if any.
    TooLarge(Option<u64>),
    /// The connection failed.
    Broken(reqwest::Error),
    /// The file for a large one could not be written.
    Unkept(io::Error),
}

/// Reads a body of at most so many bytes, into a file if it is large.
pub async fn whole(mut response: Response, limit: u64) -> Result<Blob, BodyError> {
    let announced = response.content_length();
    if announced.is_some_and(|announced| announced > limit) {
        return Err(BodyError::TooLarge(announced));
    }
    let (mut body, mut read) = (BlobWriter::default(), 0);
    while let Some(piece) = response.chunk().await.map_err(BodyError::Broken)? {
        read += piece.len() as u64;
        if read > limit {
            return Err(BodyError::TooLarge(None));
        }
        body.write_all(&piece).map_err(BodyError::Unkept)?;
    }
    body.finish().map_err(BodyError::Unkept)
}

/// Returns the text of an error, without what `clean` removes.
pub(super) async fn error(response: Response, clean: impl Fn(&str) -> String) -> String {
    let body = whole(response, ERROR).await;
    let Ok(Blob::Memory(body)) = body else {
        return String::new();
    };
    let text = String::from_utf8_lossy(&body);
    // Shortened at the end: half a secret would not be found.
    let text = clean(&text);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().take(CHARS).collect()
}
