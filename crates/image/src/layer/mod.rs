//! Layers: packages that a cell asks for, resolved and installed on the host, read-only in the sandbox.
//!
//! A layer holds only what the image lacks, in versions that fit those of the image. It is addressed by what it holds
//! and found again by the image and the requirements, so that the second use starts no program. The sandbox itself
//! never has a network.

mod error;
mod explain;
mod marker;
mod requirement;
mod resolve;
mod scan;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{Home, Image, Package, Result, Sink, hex, is_id, names, remove};

pub use error::LayerError;
pub use requirement::{Requirement, RequirementError};

/// Where a backend shows the directory of layers in a sandbox.
pub const LAYERS_IN_SANDBOX: &str = "/opt/layers";

/// How many requirements one cell may have.
const MOST: usize = 64;

/// Packages on top of an image's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// The content address.
    pub id: String,
    /// Its directory on the host.
    pub dir: PathBuf,
    /// What it holds, without what the image has.
    pub packages: Vec<Package>,
}

impl Layer {
    /// Its directory in a sandbox, to be put on Python's search path.
    pub fn dir_in_sandbox(&self) -> String {
        format!("{LAYERS_IN_SANDBOX}/{}", self.id)
    }
}

/// Gives the layer that satisfies these requirements on top of this image, made where it is not there.
pub async fn resolve_layer(image: &Image, requirements: &[String], sink: Sink) -> Result<Layer, LayerError> {
    if requirements.is_empty() || requirements.len() > MOST {
        return Err(LayerError::Count {
            actual: requirements.len(),
            limit: MOST,
        });
    }
    let mut wanted = requirements
        .iter()
        .map(|it| it.parse())
        .collect::<Result<Vec<Requirement>, _>>()?;
    wanted.sort();
    wanted.dedup();
    let image = image.clone();
    tokio::task::spawn_blocking(move || resolve::resolve(&image, &wanted, &sink))
        .await
        .map_err(|error| LayerError::Image(error.into()))?
}

/// Whether this is the id of a layer, which a path may be made of.
pub fn is_layer(id: &str) -> bool {
    is_id(id)
}

/// Reads any bytes as a requirement: what is accepted must be one harmless line that reads back equal, what is refused must be told
/// in a short line.
pub fn fuzz_requirement(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match text.parse::<Requirement>() {
        Ok(requirement) => {
            let written = requirement.to_string();
            assert!(
                written.starts_with(|c: char| c.is_ascii_alphanumeric()),
                "{written}"
            );
            assert!(
                written.chars().all(|c| matches!(c, ' '..='~'))
                    && !written.contains(['$', '#', '@', '/', '\\', '%']),
                "{written}"
            );
            assert!(!written.contains(" -"), "{written}");
            assert!(written.starts_with(requirement.name()), "{written}");
            assert_eq!(written.parse(), Ok(requirement), "a requirement reads back equal");
        }
        Err(error) => {
            let told = error.to_string();
            assert!(!told.chars().any(cellblock_protocol::text::acts), "{told:?}");
            assert!(told.len() <= 4096, "{told}");
        }
    }
}

/// What is kept beside the layers, where no sandbox sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    id: String,
    image: String,
    packages: Vec<Package>,
}

impl Record {
    fn read(home: &Home, key: &str) -> Option<Self> {
        let record: Self = serde_json::from_slice(&fs::read(home.layer_index().join(key)).ok()?).ok()?;
        is_id(&record.id).then_some(record)
    }
}

/// Addresses a request, whatever order its requirements come in.
fn key(image: &str, wanted: &[Requirement]) -> String {
    let mut all = Sha256::new();
    all.update(image);
    for requirement in wanted {
        all.update(format!("\n{requirement}"));
    }
    hex(&all.finalize())
}

/// Removes the layers that were made for an image and are not another's too.
pub(crate) fn forget_image(home: &Home, image: &str) -> Result<()> {
    let index = home.layer_index();
    let mut kept = Vec::new();
    let mut gone = Vec::new();
    for key in names(&index)? {
        match Record::read(home, &key) {
            Some(record) if record.image != image => kept.push(record.id),
            Some(record) => {
                remove(&index.join(&key))?;
                gone.push(record.id);
            }
            None => remove(&index.join(&key))?,
        }
    }
    gone.retain(|it| !kept.contains(it));
    gone.iter().try_for_each(|id| remove(&home.layers().join(id)))
}
