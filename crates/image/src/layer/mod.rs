//! Layers: packages that a cell requires, resolved and installed on the host, read-only in the
//! sandbox.
//!
//! A layer contains only packages that the image lacks, in versions that fit those of the image.
//! Its address is that of its content, and it is found again by the image and the requirements, so
//! that the second use starts no program. The sandbox itself never has a network.

mod error;
mod explain;
mod options;
mod resolve;
mod room;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{Home, Lock, OpenImage, Package, Result, Sink, hex, is_id, names, remove};

pub use crate::requirement::{Requirement, RequirementError};
pub use error::LayerError;
pub use options::RequirementOptions;
pub use room::{LayerUse, RemovedLayers};

/// Path of the layers' directory in a sandbox.
pub const LAYERS_IN_SANDBOX: &str = "/opt/layers";

/// Maximum number of requirements of a cell.
const MOST: usize = 64;

/// Packages on top of an image's.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Content address.
    pub id: String,
    /// Directory on the host.
    pub dir: PathBuf,
    /// Packages of the layer, without those of the image.
    pub packages: Vec<Package>,
    /// Keeps it on the disk.
    pub used: LayerUse,
}

impl Layer {
    /// Returns its directory in a sandbox, for Python's search path.
    pub fn dir_in_sandbox(&self) -> String {
        format!("{LAYERS_IN_SANDBOX}/{}", self.id)
    }
}

/// Returns the layer that satisfies these requirements on top of this image, if it exists.
pub async fn find_layer(image: &OpenImage, requirements: &[String]) -> Result<Option<Layer>, LayerError> {
    let wanted = parse(image, requirements)?;
    let image = image.clone();
    tokio::task::spawn_blocking(move || resolve::made(&image, &key(image.id(), &wanted)))
        .await
        .map_err(|error| LayerError::Image(error.into()))
}

/// Returns the layer that satisfies these requirements on top of this image, creating it if it is
/// missing and there is room.
pub async fn resolve_layer(
    image: &OpenImage,
    requirements: &[String],
    max_bytes: u64,
    sink: Sink,
) -> Result<Layer, LayerError> {
    let wanted = parse(image, requirements)?;
    let image = image.clone();
    tokio::task::spawn_blocking(move || resolve::resolve(&image, &wanted, max_bytes, &sink))
        .await
        .map_err(|error| LayerError::Image(error.into()))?
}

/// Removes the layers that no session uses and none has used for so long, and empties the
/// installer's cache unless something is built.
pub async fn prune_layers(home: &Home, unused: Duration) -> Result<RemovedLayers> {
    let home = home.clone();
    let pruned = tokio::task::spawn_blocking(move || {
        let _room = Lock::exclusive(&home.lock("layers"), || ())?;
        resolve::clean_cache(&home, 0);
        room::remove_unused(&home, unused, u64::MAX)
    });
    pruned.await?
}

fn check_count(requirements: &[String]) -> Result<(), LayerError> {
    let (actual, limit) = (requirements.len(), MOST);
    if (1..=limit).contains(&actual) {
        Ok(())
    } else {
        Err(LayerError::Count { actual, limit })
    }
}

fn parse(image: &OpenImage, requirements: &[String]) -> Result<Vec<Requirement>, LayerError> {
    check_count(requirements)?;
    // Resolving them would run the image's Python outside of a sandbox.
    if image.is_root() {
        return Err(LayerError::RootFilesystem {
            image: image.manifest().name.clone(),
        });
    }
    let mut wanted = requirements
        .iter()
        .map(|it| it.parse())
        .collect::<Result<Vec<Requirement>, _>>()?;
    wanted.sort();
    wanted.dedup();
    Ok(wanted)
}

/// Returns whether this is a valid layer id, which may be part of a path.
pub fn is_layer(id: &str) -> bool {
    is_id(id)
}

/// Reads any bytes as a requirement: a valid one must be a single harmless line that reads back
/// equal, and the error for an invalid one must be a short line.
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
            let shown = error.to_string();
            assert!(!shown.chars().any(cellblock_protocol::text::acts), "{shown:?}");
            assert!(shown.len() <= 4096, "{shown}");
        }
    }
}

/// Directory of records beside the layers, which sandboxes do not see.
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

/// Returns the key of a request, independent of the order of its requirements.
fn key(image: &str, wanted: &[Requirement]) -> String {
    let mut all = Sha256::new();
    all.update(image);
    for requirement in wanted {
        all.update(format!("\n{requirement}"));
    }
    hex(&all.finalize())
}

/// Removes the layers of an image, except those that another image uses, too.
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
