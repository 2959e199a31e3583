//! What an image says about itself.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::audit::Report;
use super::digest::hex;
use super::spec::Policy;

/// Grows when an image of older make cannot be used any more.
pub const LAYOUT: u32 = 1;

/// Above this a manifest is not one of ours.
const LARGEST: usize = 4 << 20;

/// One installed distribution.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Package {
    /// Its normalised name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// What an image says about itself: `manifest.json` beside its `python` directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`LAYOUT`] when it was built.
    pub layout: u32,
    /// The content address: of the `python` directory, the name, the modules to preload and the policy.
    pub id: String,
    /// The specification's name.
    pub name: String,
    /// The interpreter's full version.
    pub python: String,
    /// The interpreter below the `python` directory.
    pub interpreter: String,
    /// The standard library below the `python` directory.
    pub stdlib: String,
    /// Where below the `python` directory the loader must be pointed (`LD_LIBRARY_PATH`), if anywhere.
    pub library_path: Option<String>,
    /// Libraries of the system that the interpreter's own modules need, by soname.
    pub system_libraries: Vec<String>,
    /// What is installed, sorted.
    pub packages: Vec<Package>,
    /// The modules that the template imports.
    pub preload: Vec<String>,
    /// What it may hold.
    pub policy: Policy,
    /// When it was built, in seconds since 1970.
    pub created: u64,
    /// Bytes of its files.
    pub size: u64,
    /// How many files it has.
    pub files: u64,
    /// The machine that it runs on, such as `x86_64`.
    pub machine: String,
    /// What whoever built it should know.
    pub notes: Vec<String>,
    /// What the audit found when it was built.
    pub audit: Report,
}

impl Manifest {
    /// Reads one, saying what is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > LARGEST {
            return Err(format!(
                "its manifest has {} bytes, the limit is {LARGEST}",
                bytes.len()
            ));
        }
        let manifest: Self =
            serde_json::from_slice(bytes).map_err(|error| format!("its manifest cannot be read: {error}"))?;
        if manifest.layout != LAYOUT {
            return Err(format!(
                "its layout is {}, this Cellblock's is {LAYOUT}",
                manifest.layout
            ));
        }
        if !is_id(&manifest.id) {
            return Err("its id is not a sha256".to_owned());
        }
        let inside = |path: &str| {
            !path.is_empty()
                && path
                    .split('/')
                    .all(|part| !matches!(part, "" | "." | "..") && !part.contains('\0'))
        };
        let paths = [
            Some(&manifest.interpreter),
            Some(&manifest.stdlib),
            manifest.library_path.as_ref(),
        ];
        if paths.into_iter().flatten().any(|it| !inside(it)) {
            return Err("a path in its manifest leads out of it".to_owned());
        }
        Ok(manifest)
    }

    /// The content address: of the files, and of what else decides how a sandbox starts from them.
    pub(crate) fn address(&self, files: &str) -> String {
        let rest = serde_json::json!([
            self.name,
            self.interpreter,
            self.stdlib,
            self.library_path,
            self.preload,
            self.policy,
        ]);
        hex(&Sha256::digest(format!("{files}\n{rest}")))
    }

    /// Enough of the id for people.
    pub fn short_id(&self) -> &str {
        short(&self.id)
    }
}

/// Whether this is a full content address.
pub(crate) fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
}

/// Enough of an id for people.
pub(crate) fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}
