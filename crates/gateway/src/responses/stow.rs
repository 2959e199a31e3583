//! Pictures of kept items: their bytes are in the artifact store, once for equal ones, and the
//! records refer to them.
//!
//! Only addresses of pictures are changed, so that nothing else that a client sends can be taken
//! for such a reference; one of a client that looks like a reference is marked.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cellblock_agent::turn::KeptResult;
use cellblock_agent::wire::{FunctionOutput, InterpreterOutput, Item, Part};
use cellblock_artifact::{ArtifactDescription, ArtifactId, Kind, Store};

use crate::state::Gateway;

/// The beginning of a reference: the SHA-256 and the media type follow.
const SCHEME: &str = "artifact:";
/// The beginning of a client's own address that begins like a reference.
const MARKED: &str = "artifact:=";
/// Characters of an address below which it is kept as it is.
const LEAST: usize = 512;
/// A picture of one clear point, in the place of one whose bytes are gone.
const GONE: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

/// Returns the name of the owner of a turn's pictures.
pub(super) fn owner(turn: &str) -> String {
    format!("{turn}.pictures")
}

/// Puts references in the place of pictures, whose bytes are kept as long as the turn, and returns
/// these. What cannot be stored stays as it is.
pub(super) async fn stow(gateway: &Gateway, turn: &str, items: &mut [Item]) -> Vec<KeptResult> {
    let mut pictures = Vec::new();
    for url in items.iter_mut().flat_map(urls) {
        if let Some(rest) = url.strip_prefix(SCHEME) {
            *url = format!("{MARKED}{rest}");
            continue;
        }
        let Some((media_type, bytes)) = picture(url) else {
            continue;
        };
        let size = bytes.len() as u64;
        match keep(gateway, turn, &media_type, bytes).await {
            Ok(id) => {
                *url = format!("{SCHEME}{id};{media_type}");
                pictures.push(KeptResult {
                    sha256: id.to_string(),
                    bytes: size,
                });
            }
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "store a picture of a response"
            ),
        }
    }
    pictures
}

async fn keep(
    gateway: &Gateway,
    turn: &str,
    media_type: &str,
    bytes: Vec<u8>,
) -> Result<ArtifactId, cellblock_artifact::ArtifactError> {
    let about = ArtifactDescription {
        kind: Kind::Image,
        media_type: media_type.to_owned(),
        origin: None,
    };
    let id = gateway.store.put(bytes, &about).await?;
    gateway.store.pin(&owner(turn), [id]).await?;
    Ok(id)
}

/// Puts pictures in the place of references.
pub(super) async fn restore(store: &Store, items: &mut [Item]) {
    for url in items.iter_mut().flat_map(urls) {
        if let Some(rest) = url.strip_prefix(MARKED) {
            *url = format!("{SCHEME}{rest}");
            continue;
        }
        let Some((id, media_type)) = url.strip_prefix(SCHEME).and_then(|rest| rest.split_once(';')) else {
            continue;
        };
        let Ok(id) = id.parse::<ArtifactId>() else {
            continue;
        };
        *url = match store.get(id).await {
            Ok(bytes) => format!("data:{media_type};base64,{}", STANDARD.encode(&bytes)),
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "read a picture of a response"
                );
                GONE.to_owned()
            }
        };
    }
}

/// Whether there may be references in what was kept.
pub(super) fn has_references(text: &str) -> bool {
    text.contains("\"artifact:")
}

/// The addresses of an item's pictures.
fn urls(item: &mut Item) -> Vec<&mut String> {
    match item {
        Item::Message(message) => in_parts(&mut message.content),
        Item::FunctionCallOutput(output) => in_output(&mut output.output),
        Item::CustomToolCallOutput(output) => in_output(&mut output.output),
        Item::CodeInterpreterCall(call) => {
            let outputs = call.outputs.iter_mut().flatten();
            outputs
                .filter_map(|output| match output {
                    InterpreterOutput::Image { url } => Some(url),
                    InterpreterOutput::Logs { .. } => None,
                })
                .collect()
        }
        _ => Vec::new(),
    }
}

fn in_output(output: &mut FunctionOutput) -> Vec<&mut String> {
    match output {
        FunctionOutput::Parts(parts) => in_parts(parts),
        FunctionOutput::Text(_) => Vec::new(),
    }
}

fn in_parts(parts: &mut [Part]) -> Vec<&mut String> {
    parts
        .iter_mut()
        .filter_map(|part| match part {
            Part::InputImage { image_url, .. } => image_url.as_mut(),
            _ => None,
        })
        .collect()
}

/// The media type and bytes of a `data:` URL, if it is worth storing and can be made again from them.
fn picture(url: &str) -> Option<(String, Vec<u8>)> {
    if url.len() < LEAST {
        return None;
    }
    let (media_type, text) = url.strip_prefix("data:")?.split_once(";base64,")?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/+.-".contains(&byte);
    if !media_type.bytes().all(plain) {
        return None;
    }
    let bytes = STANDARD.decode(text).ok()?;
    (STANDARD.encode(&bytes) == text).then(|| (media_type.to_owned(), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pictures_that_can_be_made_again_are_stored() {
        let text = STANDARD.encode([7; 600]);
        let (media_type, bytes) = picture(&format!("data:image/png;base64,{text}")).unwrap();
        assert_eq!((media_type.as_str(), bytes), ("image/png", vec![7; 600]));
        for url in [
            "data:image/png;base64,AAAA".to_owned(),
            format!("https://example.com/{text}"),
            format!("data:image/png;charset=x;base64,{text}"),
            format!("data:image/png;base64,{text}\n"),
        ] {
            assert_eq!(picture(&url), None, "{url}");
        }
    }
}
