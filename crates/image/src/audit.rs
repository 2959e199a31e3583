//! The search for network clients in an image or layer: the first of the four layers that prevent
//! egress.
//!
//! Clients of the standard library (`urllib`, `http`, `socket`) are not findings: they come with
//! every Python, removing them breaks ordinary code, and the sandbox has no network for them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::digest::walk;
use super::error::{ImageError, IoResultExt, Result};
use super::manifest::Package;
use super::requirement::normalise;
use super::spec::PackagePolicy;

/// The way in which a network client was detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detection {
    /// By its installation record.
    Installed,
    /// By an importable module, whichever package contains it.
    Importable,
    /// By a copy inside another package.
    Vendored,
    /// By an archive that contains it, or that cannot be read.
    Bundled,
}

/// A network client that was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AuditFinding {
    /// Name of the distribution.
    pub client: String,
    /// Purpose of the client.
    pub reason: String,
    /// Method of the detection.
    pub how: Detection,
    /// Path below the audited directory.
    pub path: String,
    /// Whether the policy allows it.
    pub allowed: bool,
}

/// Result of an audit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditReport {
    /// Number of audited distributions.
    pub packages: usize,
    /// Number of known network clients.
    pub known_clients: usize,
    /// Findings, sorted.
    pub findings: Vec<AuditFinding>,
}

impl AuditReport {
    /// Returns whether the policy allows all findings.
    pub fn passed(&self) -> bool {
        self.findings.iter().all(|it| it.allowed)
    }

    /// Describes the forbidden findings for people.
    pub fn summary(&self) -> String {
        let forbidden: BTreeSet<_> = self
            .findings
            .iter()
            .filter(|it| !it.allowed)
            .map(|it| format!("{} ({}, at {})", it.client, it.reason, it.path))
            .collect();
        if forbidden.is_empty() {
            "none".to_owned()
        } else {
            forbidden.into_iter().collect::<Vec<_>>().join(", ")
        }
    }

    /// Returns the report, or an error if it did not pass.
    pub fn enforce(self) -> Result<Self> {
        if self.passed() {
            Ok(self)
        } else {
            Err(ImageError::Audit {
                report: Box::new(self),
            })
        }
    }
}

#[derive(Deserialize)]
struct Clients {
    client: Vec<AuditClient>,
}

#[derive(Deserialize)]
struct AuditClient {
    name: String,
    imports: Vec<String>,
    reason: String,
}

fn clients() -> Vec<AuditClient> {
    let known: Clients =
        toml::from_str(include_str!("clients.toml")).expect("a test reads the embedded list");
    known.client
}

/// Directories in which packages keep copies of others.
const VENDORS: [&str; 9] = [
    "_vendor",
    "vendor",
    "vendored",
    "_vendored",
    "extern",
    "_extern",
    "externals",
    "third_party",
    "thirdparty",
];

/// Searches everything below `root`; the directories `sites` are on Python's search path.
pub(crate) fn audit(root: &Path, sites: &[&Path], policy: &PackagePolicy) -> Result<AuditReport> {
    let known = clients();
    let allowed = |client: &str| {
        !policy.forbid_network_clients || policy.allow.iter().any(|it| normalise(it) == normalise(client))
    };
    let mut report = AuditReport {
        known_clients: known.len(),
        ..AuditReport::default()
    };
    let mut note = |client: &AuditClient, how, path: &Path| {
        report.findings.push(AuditFinding {
            client: client.name.clone(),
            reason: client.reason.clone(),
            how,
            path: path
                .strip_prefix(root)
                .unwrap_or(path)
                .to_string_lossy()
                .into_owned(),
            allowed: allowed(&client.name),
        });
    };
    let mut packages = 0;
    for site in sites {
        for (package, path) in installed(site)? {
            packages += 1;
            if let Some(client) = known.iter().find(|it| it.name == package.name) {
                note(client, Detection::Installed, &path);
            }
        }
        for client in &known {
            for import in &client.imports {
                if let Some(path) = importable(site, import) {
                    note(client, Detection::Importable, &path);
                }
            }
        }
    }
    let mut archives = Vec::new();
    let mut vendors = BTreeSet::new();
    walk(root, &mut |path, _| {
        if path
            .extension()
            .is_some_and(|it| it == "whl" || it == "egg" || it == "pyz")
        {
            archives.push(path.to_owned());
        }
        let inside = path.ancestors().skip(1).take_while(|it| *it != root);
        vendors.extend(
            inside
                .filter(|it| it.file_name().is_some_and(is_vendor))
                .map(Path::to_owned),
        );
        Ok(())
    })?;
    for vendor in &vendors {
        for client in &known {
            for path in client.imports.iter().filter_map(|it| importable(vendor, it)) {
                note(client, Detection::Vendored, &path);
            }
        }
    }
    let sealed = AuditClient {
        name: "archive".to_owned(),
        imports: Vec::new(),
        reason: "code that cannot be audited".to_owned(),
    };
    for archive in &archives {
        let Some(held) = held_by(archive) else {
            note(&sealed, Detection::Bundled, archive);
            continue;
        };
        for client in known
            .iter()
            .filter(|it| it.imports.iter().any(|import| holds(&held, import)))
        {
            note(client, Detection::Bundled, archive);
        }
    }
    report.packages = packages;
    report.findings.sort();
    Ok(report)
}

/// Returns the names in an archive of modules, or `None` if it cannot be read.
fn held_by(archive: &Path) -> Option<Vec<String>> {
    fs::symlink_metadata(archive).ok().filter(fs::Metadata::is_file)?;
    let archive = zip::ZipArchive::new(fs::File::open(archive).ok()?).ok()?;
    archive
        .file_names()
        .map(|it| it.ok().map(std::borrow::Cow::into_owned))
        .collect()
}

/// Returns whether one of these names is the module's, at the top level or among vendored copies.
fn holds(names: &[String], import: &str) -> bool {
    let module = import.replace('.', "/");
    names.iter().any(|name| {
        name.split_once(&format!("{module}/__init__.py"))
            .or_else(|| name.split_once(&format!("{module}.py")))
            .is_some_and(|(above, _)| {
                above.is_empty() || (above.ends_with('/') && above.split('/').any(|it| VENDORS.contains(&it)))
            })
    })
}

fn is_vendor(name: &std::ffi::OsStr) -> bool {
    VENDORS.iter().any(|it| name == *it)
}

/// Finds a module `a.b` below a directory of the search path, as a package, a source file or an extension.
fn importable(site: &Path, import: &str) -> Option<std::path::PathBuf> {
    let module = site.join(import.replace('.', "/"));
    if module.is_dir() {
        return Some(module);
    }
    let stem = module.file_name()?.to_str()?;
    let mut beside = fs::read_dir(module.parent()?).ok()?.flatten();
    beside
        .find(|it| {
            it.file_name()
                .to_str()
                .and_then(|it| it.strip_prefix(stem))
                .is_some_and(is_module_suffix)
        })
        .map(|it| it.path())
}

fn is_module_suffix(suffix: &str) -> bool {
    matches!(suffix, ".py" | ".pyc")
        || suffix
            .strip_suffix(".so")
            .is_some_and(|it| it.is_empty() || it.starts_with('.'))
}

fn entry_is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|it| it.is_symlink())
}

/// Reads the installation records in a directory of the search path.
pub(crate) fn installed(site: &Path) -> Result<Vec<(Package, std::path::PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(site).at("list", site)? {
        let path = entry.at("list", site)?.path();
        let (record, text) = match path.extension().and_then(|it| it.to_str()) {
            Some("dist-info") => (path.join("METADATA"), true),
            Some("egg-info") if path.is_dir() => (path.join("PKG-INFO"), true),
            Some("egg-info") => (path.clone(), true),
            _ => (path.clone(), false),
        };
        if !text {
            continue;
        }
        // A link of an imported root filesystem means another file there than here.
        let is_own = !entry_is_link(&path) && fs::symlink_metadata(&record).is_ok_and(|it| it.is_file());
        if !is_own {
            continue;
        }
        let bytes = fs::read(&record).at("read", &record)?;
        let text = String::from_utf8_lossy(&bytes);
        let field = |name: &str| {
            let head = text.lines().take_while(|it| !it.is_empty());
            head.filter_map(|it| it.split_once(':'))
                .find(|it| it.0.eq_ignore_ascii_case(name))
                .map(|it| it.1.trim().to_owned())
        };
        let (Some(name), Some(version)) = (field("Name"), field("Version")) else {
            return Err(ImageError::Broken {
                problem: format!("`{}` contains no package name and version", record.display()),
            });
        };
        found.push((
            Package {
                name: normalise(&name),
                version,
            },
            path,
        ));
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    fn found(files: &[(&str, &str)], policy: &PackagePolicy) -> Vec<(String, Detection, bool)> {
        let site = site(files);
        let report = audit(site.path(), &[site.path()], policy).unwrap();
        report
            .findings
            .into_iter()
            .map(|it| (it.client, it.how, it.allowed))
            .collect()
    }

    #[test]
    fn a_client_is_found_by_its_record_its_module_and_a_vendored_copy() {
        let files = [
            (
                "Requests-2.0.dist-info/METADATA",
                "Metadata-Version: 2.1\nName: Requests\nVersion: 2.0\n\nbody",
            ),
            ("httpx/__init__.py", ""),
            ("pycurl.cpython-313-x86_64-linux-gnu.so", ""),
            ("tool/_vendor/urllib3/__init__.py", ""),
            ("tool/bundled/pip-24.whl", ""),
        ];
        let expected = [
            ("archive", Detection::Bundled),
            ("httpx", Detection::Importable),
            ("pycurl", Detection::Importable),
            ("requests", Detection::Installed),
            ("urllib3", Detection::Vendored),
        ];
        let expected: Vec<_> = expected.iter().map(|it| (it.0.to_owned(), it.1, false)).collect();
        assert_eq!(found(&files, &PackagePolicy::default()), expected);
    }

    #[test]
    fn an_archive_that_contains_a_client_is_a_finding() {
        let names = ["pip/_vendor/requests/__init__.py", "httpx.py", "mine/redis.py"].map(str::to_owned);
        let held: Vec<_> = ["requests", "httpx", "redis", "urllib3"]
            .into_iter()
            .filter(|it| holds(&names, it))
            .collect();
        assert_eq!(held, ["requests", "httpx"]);
    }

    #[test]
    fn a_package_module_named_like_a_client_is_not_a_finding() {
        let files = [
            ("mine/requests.py", ""),
            ("mine/dns/__init__.py", ""),
            ("requestsish.py", ""),
            ("mine/redis.so", ""),
        ];
        assert_eq!(found(&files, &PackagePolicy::default()), []);
    }

    #[test]
    fn a_policy_allows_clients_by_name_or_all_of_them() {
        let files = [("websocket/__init__.py", "")];
        let by_name = PackagePolicy {
            forbid_network_clients: true,
            allow: vec!["WebSocket_Client".to_owned()],
            ..PackagePolicy::default()
        };
        let altogether = PackagePolicy {
            forbid_network_clients: false,
            ..PackagePolicy::default()
        };
        let expected = [("websocket-client".to_owned(), Detection::Importable, true)];
        assert_eq!(found(&files, &by_name), expected);
        assert_eq!(found(&files, &altogether), expected);
    }

    #[test]
    fn a_report_with_a_forbidden_finding_is_an_error_that_names_it() {
        let site = site(&[("httpx/__init__.py", "")]);
        let error = audit(site.path(), &[site.path()], &PackagePolicy::default())
            .unwrap()
            .enforce()
            .unwrap_err();
        assert!(
            error
                .to_string()
                .contains("it contains httpx (HTTP client, at httpx);"),
            "{error}"
        );
    }

    #[test]
    fn the_known_clients_are_normalized_and_unique() {
        let known = clients();
        let names: BTreeSet<_> = known.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names.len(), known.len());
        for name in names {
            assert_eq!(normalise(name), name);
        }
    }
}
