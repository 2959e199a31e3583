//! An image's description of itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::audit::AuditReport;
use super::digest::hex;
use super::spec::PackagePolicy;

/// Increased when images with an older layout can no longer be used.
pub const LAYOUT: u32 = 1;

/// Folder of an image that holds an interpreter and its packages.
const PYTHON: &str = "python";
/// Folder of an image that holds a whole root filesystem.
const ROOT: &str = "root";

/// Maximum size of a manifest.
const LARGEST: usize = 4 << 20;

/// One installed distribution.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Package {
    /// Normalized name.
    pub name: String,
    /// Version.
    pub version: String,
}

/// Properties of an image that is a whole root filesystem, with separate programs and libraries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RootFilesystem {
    /// Digest of the OCI configuration that it was made of, such as `sha256:…`, if there was one.
    pub config: Option<String>,
    /// Directories of the interpreter's packages, below the root.
    pub sites: Vec<String>,
    /// Environment of kernels and commands, except for the variables that every sandbox sets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// User of the OCI configuration; cells run as the sandbox's own user.
    pub user: Option<String>,
    /// Entry point of the OCI configuration, which is not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entrypoint: Vec<String>,
    /// Command of the OCI configuration, which is not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Working directory of the OCI configuration; cells start in `/workspace`.
    pub working_directory: Option<String>,
}

/// An image's description of itself: `manifest.json` beside its tree of files, `python` or `root`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`LAYOUT`] when it was built.
    pub layout: u32,
    /// Content address, computed from the tree, the name, the modules to preload, the policy and the
    /// rest that decides how a sandbox starts.
    pub id: String,
    /// Name in the specification.
    pub name: String,
    /// Full version of the interpreter.
    pub python: String,
    /// Path of the interpreter below the tree. In a root filesystem it may lead through links.
    pub interpreter: String,
    /// Path of the standard library below the tree.
    pub stdlib: String,
    /// Directory below the tree that the loader must search (`LD_LIBRARY_PATH`), if any.
    pub library_path: Option<String>,
    /// Libraries of the system that the interpreter's own modules need, by soname.
    pub system_libraries: Vec<String>,
    /// Installed packages, sorted.
    pub packages: Vec<Package>,
    /// Modules that the template imports.
    pub preload: Vec<String>,
    /// Converters of outputs, as `module:function`, by the class whose values they convert.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, String>,
    /// Additional properties if it is a whole root filesystem; otherwise it is an interpreter with its
    /// packages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<RootFilesystem>,
    /// Policy for its packages.
    pub policy: PackagePolicy,
    /// Time of the build, in seconds since 1970.
    pub created: u64,
    /// Total size of its files in bytes.
    pub size: u64,
    /// Number of files.
    pub files: u64,
    /// Type of the machine that it runs on, such as `x86_64`.
    pub machine: String,
    /// Notes for the person who built it.
    pub notes: Vec<String>,
    /// Result of the audit after the build.
    pub audit: AuditReport,
}

impl Manifest {
    /// Reads a manifest; returns the problem if it is invalid.
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
        let sites = manifest.root.iter().flat_map(|it| &it.sites);
        if paths.into_iter().flatten().chain(sites).any(|it| !inside(it)) {
            return Err("a path in its manifest leads out of it".to_owned());
        }
        Ok(manifest)
    }

    /// Computes the content address from the files and everything else that decides how a sandbox
    /// starts.
    pub(crate) fn address(&self, files: &str) -> String {
        let mut rest = serde_json::json!([
            self.name,
            self.interpreter,
            self.stdlib,
            self.library_path,
            self.preload,
            self.policy,
        ]);
        // Images without them keep their addresses.
        if let (Value::Array(parts), false) = (&mut rest, self.outputs.is_empty()) {
            parts.push(serde_json::json!(self.outputs));
        }
        if let (Value::Array(parts), Some(root)) = (&mut rest, &self.root) {
            parts.push(serde_json::json!({ "root": root }));
        }
        hex(&Sha256::digest(format!("{files}\n{rest}")))
    }

    /// Returns the name of the folder with the image's files.
    pub(crate) const fn tree(&self) -> &'static str {
        if self.root.is_some() { ROOT } else { PYTHON }
    }

    /// Returns the interpreter's minor version.
    pub fn python_minor(&self) -> Option<u32> {
        minor_version(&self.python)
    }

    /// Returns the modules that a template imports: those to preload, and those with converters of outputs.
    pub fn template_modules(&self) -> Vec<String> {
        let mut modules = self.preload.clone();
        for module in converter_modules(&self.outputs) {
            if !modules.iter().any(|known| known == module) {
                modules.push(module.to_owned());
            }
        }
        modules
    }

    /// Returns the first digits of the id, enough for people.
    pub fn short_id(&self) -> &str {
        short(&self.id)
    }
}

/// Returns the minor version of Python 3.
pub(crate) fn minor_version(version: &str) -> Option<u32> {
    let digits = version.strip_prefix("3.")?;
    let end = digits
        .find(|it: char| !it.is_ascii_digit())
        .unwrap_or(digits.len());
    digits[..end].parse().ok()
}

/// Returns whether this is a full content address.
pub(crate) fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns the first digits of an id, enough for people.
pub(crate) fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

/// Returns the modules of converters, which are written as `module:function`.
pub(crate) fn converter_modules(outputs: &BTreeMap<String, String>) -> impl Iterator<Item = &str> {
    outputs.values().filter_map(|it| it.split(':').next())
}
