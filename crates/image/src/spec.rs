//! An image's specification, as a user writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;
use std::str::FromStr;

use cellblock_jail::network::NetworkPolicy;
use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest as _, Sha256};

use super::error::{ImageError, Result};
use super::manifest::{LAYOUT, Manifest};
use super::requirement::{Requirement, normalise};

/// A feature version of Python, such as 3.13.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PythonVersion {
    /// Major version: 3.
    pub major: u8,
    /// The part after the dot.
    pub minor: u8,
}

impl PythonVersion {
    /// Oldest version that the guest's kernel supports.
    pub const OLDEST: Self = Self { major: 3, minor: 11 };
}

impl fmt::Display for PythonVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for PythonVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a Python version such as \"3.13\"");
        let (major, minor) = text.split_once('.').ok_or_else(wrong)?;
        let version = Self {
            major: major.parse().map_err(|_| wrong())?,
            minor: minor.parse().map_err(|_| wrong())?,
        };
        if version.major != 3 || version < Self::OLDEST {
            return Err(format!(
                "Python {text} is not supported; the oldest supported version is {}",
                Self::OLDEST
            ));
        }
        Ok(version)
    }
}

impl<'de> Deserialize<'de> for PythonVersion {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// Policy for the packages of an image, and for the network of its sandboxes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PackagePolicy {
    /// Rejects packages whose purpose is network access.
    pub forbid_network_clients: bool,
    /// Distributions that are allowed anyway.
    pub allow: Vec<String>,
    /// Widest network policy of its sandboxes, whatever the server and the key allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_network: Option<NetworkPolicy>,
}

impl PackagePolicy {
    /// Returns whether no network client is allowed.
    pub const fn is_closed(&self) -> bool {
        self.forbid_network_clients && self.allow.is_empty()
    }
}

impl Default for PackagePolicy {
    fn default() -> Self {
        Self {
            forbid_network_clients: true,
            allow: Vec::new(),
            max_network: None,
        }
    }
}

/// Specification of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImageSpec {
    /// Name of the image.
    pub name: String,
    /// Wanted version.
    pub python: PythonVersion,
    /// Requirements, one per line.
    pub requirements: String,
    /// Every package with version and hashes; resolved during the build if missing.
    pub lock: Option<String>,
    /// Modules that the template imports.
    pub preload: Vec<String>,
    /// Modules that are compiled, with all that they import, in addition to those to preload.
    /// Without it, every module is compiled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compile: Option<Vec<String>>,
    /// Converters of outputs, as `module:function`, by the class whose values they convert.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, String>,
    /// Packages whose font files programs find without code.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fonts: Vec<String>,
    /// Policy for its packages.
    pub policy: PackagePolicy,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SpecFile {
    name: String,
    #[serde(default = "newest")]
    python: PythonVersion,
    packages: Option<Vec<String>>,
    requirements: Option<String>,
    lock: Option<String>,
    #[serde(default)]
    preload: Vec<String>,
    compile: Option<Vec<String>>,
    #[serde(default)]
    outputs: BTreeMap<String, String>,
    #[serde(default)]
    fonts: Vec<String>,
    #[serde(default)]
    policy: PackagePolicy,
}

fn newest() -> PythonVersion {
    PythonVersion { major: 3, minor: 13 }
}

impl ImageSpec {
    /// Reads a specification and the files that it names.
    pub fn load(path: &Path) -> Result<Self> {
        let origin = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|error| ImageError::Spec {
            origin: origin.clone(),
            problem: format!("it cannot be read: {error}"),
        })?;
        let beside = path.parent().unwrap_or(Path::new("."));
        Self::parse(&text, &origin, |file| {
            fs::read_to_string(beside.join(file)).map_err(|error| error.to_string())
        })
    }

    pub(super) fn parse(
        text: &str,
        origin: &str,
        read: impl Fn(&str) -> Result<String, String>,
    ) -> Result<Self> {
        let wrong = |problem: String| ImageError::Spec {
            origin: origin.to_owned(),
            problem,
        };
        let written: SpecFile = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let read = |file: &str| {
            read(file).map_err(|error| wrong(format!("the file `{file}` that it names: {error}")))
        };
        let requirements = match (written.packages, written.requirements) {
            (Some(packages), None) => packages.iter().fold(String::new(), |all, it| all + it + "\n"),
            (None, Some(file)) => read(&file)?,
            (None, None) => {
                return Err(wrong(
                    "it has neither `packages` nor a `requirements` file".to_owned(),
                ));
            }
            (Some(_), Some(_)) => {
                return Err(wrong(
                    "it has both `packages` and a `requirements` file; keep one".to_owned(),
                ));
            }
        };
        for line in requirements
            .lines()
            .map(without_comment)
            .filter(|it| !it.is_empty())
        {
            line.parse::<Requirement>()
                .map_err(|error| wrong(error.to_string()))?;
        }
        if !is_name(&written.name) {
            return Err(wrong(format!(
                "the name `{}` is not 1 to 64 letters, digits, dots, dashes or underscores",
                written.name.escape_debug()
            )));
        }
        for (key, modules) in [
            ("preload", Some(&written.preload)),
            ("compile", written.compile.as_ref()),
            ("fonts", Some(&written.fonts)),
        ] {
            if let Some(module) = modules.into_iter().flatten().find(|it| !is_module(it)) {
                return Err(wrong(format!(
                    "`{}` in `{key}` is not a module name",
                    module.escape_debug()
                )));
            }
        }
        for (class, converter) in &written.outputs {
            if !is_module(class) || !class.contains('.') {
                return Err(wrong(format!(
                    "`{}` in `outputs` is not a class such as `geopandas.GeoDataFrame`",
                    class.escape_debug()
                )));
            }
            let parts = converter.split_once(':');
            if !parts.is_some_and(|(module, function)| is_module(module) && is_module(function)) {
                return Err(wrong(format!(
                    "`{}` in `outputs` is not a function such as `module:function`",
                    converter.escape_debug()
                )));
            }
        }
        Ok(Self {
            name: written.name,
            python: written.python,
            requirements,
            lock: written.lock.map(|file| read(&file)).transpose()?,
            preload: written.preload,
            compile: written.compile,
            outputs: written.outputs,
            fonts: written.fonts,
            policy: written.policy,
        })
    }

    /// Returns whether an image matches: its name, Python version and policy, and exactly the
    /// packages of the lock. Without a lock the versions are unknown, and no image matches.
    pub(super) fn describes(&self, manifest: &Manifest) -> bool {
        let Some(lock) = &self.lock else { return false };
        let locked = lock.lines().filter_map(|line| {
            let (name, version) = line.split_once("==")?;
            let version = version.split([' ', '\\', ';']).next()?;
            Some((normalise(name.trim()), version.to_owned()))
        });
        // A universal lock has several versions of a package, for different versions of Python.
        let locked: BTreeSet<_> = locked.collect();
        let names = locked.iter().map(|(name, _)| name).collect::<BTreeSet<_>>().len();
        let mut packages = manifest.packages.iter();
        let all_locked = packages.all(|it| locked.contains(&(it.name.clone(), it.version.clone())));
        self.name == manifest.name
            && manifest.python.starts_with(&format!("{}.", self.python))
            && self.preload == manifest.preload
            && self.outputs == manifest.outputs
            && self.policy == manifest.policy
            && all_locked
            && manifest.packages.len() == names
    }

    /// Returns the key of the request on this kind of machine; the same request finds the same built image.
    pub fn key(&self) -> String {
        let asked = serde_json::json!({
            "layout": LAYOUT,
            "machine": std::env::consts::ARCH,
            "spec": self,
        });
        super::digest::hex(&Sha256::digest(asked.to_string()))
    }
}

/// Removes a comment after `#`, and surrounding space.
fn without_comment(line: &str) -> &str {
    line.split('#').next().unwrap_or_default().trim()
}

/// Returns whether an image can have this name.
pub(crate) fn is_name(name: &str) -> bool {
    let usable = |it: char| it.is_ascii_alphanumeric() || "._-".contains(it);
    !name.is_empty() && name.len() <= 64 && name.chars().all(usable)
}

fn is_module(name: &str) -> bool {
    name.len() <= 128
        && name.split('.').all(|part| {
            part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ImageSpec, String> {
        ImageSpec::parse(text, "it.toml", |_| Err("no such file".to_owned()))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_short_specification_gets_the_strict_policy_and_the_newest_python() {
        let spec = parse("name = \"tiny\"\npackages = [\"six\", \"attrs>=23\"]").unwrap();
        assert_eq!(spec.requirements, "six\nattrs>=23\n");
        assert_eq!(spec.python, PythonVersion { major: 3, minor: 13 });
        assert_eq!(
            spec.policy,
            PackagePolicy {
                forbid_network_clients: true,
                allow: vec![],
                max_network: None,
            }
        );
        assert_eq!(spec.lock, None);
    }

    #[test]
    fn different_requests_have_different_keys() {
        let one = parse("name = \"tiny\"\npackages = [\"six\"]").unwrap();
        let other = parse("name = \"tiny\"\npackages = [\"six==1.17.0\"]").unwrap();
        assert_ne!(one.key(), other.key());
        assert_eq!(one.key(), one.clone().key());
    }

    #[test]
    fn errors_in_a_specification_are_explained() {
        let cases = [
            (
                "name = \"x\"",
                "it has neither `packages` nor a `requirements` file",
            ),
            (
                "name = \"x\"\npackages = [\"-r /etc/passwd\"]",
                "`-r /etc/passwd`",
            ),
            (
                "name = \"x\"\npackages = []\npython = \"3.8\"",
                "the oldest supported version is 3.11",
            ),
            (
                "name = \"x\"\npackages = []\npython = \"three\"",
                "is not a Python version",
            ),
            ("name = \"../x\"\npackages = []", "the name `../x`"),
            (
                "name = \"x\"\npackages = []\npreload = [\"os; evil\"]",
                "`os; evil` in `preload` is not a module name",
            ),
            (
                "name = \"x\"\npackages = []\noutputs = {GeoDataFrame = \"a:b\"}",
                "`GeoDataFrame` in `outputs` is not a class such as `geopandas.GeoDataFrame`",
            ),
            (
                "name = \"x\"\npackages = []\noutputs = {\"a.B\" = \"a.convert\"}",
                "`a.convert` in `outputs` is not a function such as `module:function`",
            ),
            (
                "name = \"x\"\npackages = []\ncompile = [\"a b\"]",
                "`a b` in `compile` is not a module name",
            ),
            (
                "name = \"x\"\nrequirements = \"r.in\"",
                "the file `r.in` that it names: no such file",
            ),
            ("name = \"x\"\npackage = []", "unknown field `package`"),
        ];
        for (text, expected) in cases {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
