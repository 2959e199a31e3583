//! Tests of root filesystems, whose layers are made by hand and whose Python is a few bytes.

mod formats;
mod hostile;
mod layers;
mod pythons;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use tar::{EntryType, Header};
use tempfile::TempDir;

use super::{LIMITS, Limits, RootFormat, RootSource};
use crate::archive::tests::store;
use crate::digest::hex;
use crate::{ImageStore, OpenImage, Result, Sink};

/// A member of a layer.
struct LayerMember {
    header: Header,
    content: Vec<u8>,
}

/// Makes a member with exactly this name, which the library's own builder would reject in many cases.
fn member(name: &str, kind: EntryType, mode: u32, content: &[u8], target: &str) -> LayerMember {
    let mut header = Header::new_ustar();
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(content.len() as u64);
    header.set_uid(1234);
    header.set_gid(5678);
    LayerMember {
        header,
        content: content.to_vec(),
    }
}

fn file(name: &str, content: &str) -> LayerMember {
    member(name, EntryType::Regular, 0o644, content.as_bytes(), "")
}

fn program(name: &str, content: &str) -> LayerMember {
    member(name, EntryType::Regular, 0o755, content.as_bytes(), "")
}

fn folder(name: &str) -> LayerMember {
    member(name, EntryType::Directory, 0o755, b"", "")
}

fn link(name: &str, target: &str) -> LayerMember {
    member(name, EntryType::Symlink, 0o777, b"", target)
}

fn hard_link(name: &str, target: &str) -> LayerMember {
    member(name, EntryType::Link, 0o644, b"", target)
}

/// Writes a tar of members.
fn tar(members: Vec<LayerMember>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for mut member in members {
        member.header.set_cksum();
        bytes.extend(member.header.as_bytes());
        bytes.extend(&member.content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

/// The members that every image needs.
fn python() -> Vec<LayerMember> {
    vec![
        program("usr/bin/python3.11", "ELF\x003.11.9\0"),
        link("usr/bin/python3", "python3.11"),
        file("usr/lib/python3.11/os.py", "import sys\n"),
    ]
}

/// A layout of the Open Container Initiative that is made in steps.
struct Layout {
    dir: TempDir,
    architecture: &'static str,
    layers: Vec<Vec<u8>>,
    runtime: serde_json::Value,
}

impl Layout {
    /// Starts with one layer, which has a Python.
    fn new() -> Self {
        let architecture = if std::env::consts::ARCH == "x86_64" {
            "amd64"
        } else {
            "arm64"
        };
        Self {
            dir: tempfile::tempdir().unwrap(),
            architecture,
            layers: vec![tar(python())],
            runtime: serde_json::json!({}),
        }
    }

    fn layer(mut self, members: Vec<LayerMember>) -> Self {
        self.layers.push(tar(members));
        self
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a blob and returns its digest.
    fn blob(&self, content: &[u8]) -> String {
        let digest = hex(&Sha256::digest(content));
        let folder = self.path().join("blobs/sha256");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(&digest), content).unwrap();
        format!("sha256:{digest}")
    }

    /// Writes everything except for the index; returns the manifest's descriptor.
    fn write_image(&self) -> serde_json::Value {
        let digests: Vec<_> = self.layers.iter().map(|it| self.blob(it)).collect();
        let config = serde_json::json!({
            "architecture": self.architecture, "os": "linux", "config": self.runtime,
            "rootfs": {"type": "layers", "diff_ids": digests},
        });
        let config = self.blob(config.to_string().as_bytes());
        let layers: Vec<_> = digests
            .iter()
            .map(|it| serde_json::json!({"digest": it}))
            .collect();
        let manifest = serde_json::json!({"config": {"digest": config}, "layers": layers});
        let digest = self.blob(manifest.to_string().as_bytes());
        serde_json::json!({
            "mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest,
            "platform": {"architecture": self.architecture, "os": "linux"},
        })
    }

    fn write_index(&self, manifests: &[serde_json::Value]) {
        let index = serde_json::json!({"manifests": manifests});
        fs::write(self.path().join("index.json"), index.to_string()).unwrap();
    }

    /// Writes the layout and imports it.
    fn import(&self) -> (TempDir, Result<OpenImage>) {
        self.write_index(&[self.write_image()]);
        import(RootFormat::OciLayout, self.path())
    }

    /// Imports the layout and returns the image's files.
    fn tree(&self) -> (TempDir, PathBuf) {
        let (home, image) = self.import();
        (home, image.unwrap().tree())
    }

    /// Imports the layout, which must fail without leaving anything; returns the error.
    fn error(&self) -> String {
        let (home, image) = self.import();
        assert_empty(&home);
        image.unwrap_err().to_string()
    }
}

fn source(format: RootFormat, path: &Path) -> RootSource {
    RootSource {
        format,
        path: path.to_owned(),
        name: Some("mine".to_owned()),
        tag: None,
    }
}

fn import_with(source: &RootSource, limits: &Limits) -> (TempDir, Result<OpenImage>) {
    let (home, store): (_, ImageStore) = store();
    let image = store.import_root_blocking(source, limits, &Sink::silent());
    (home, image)
}

fn import(format: RootFormat, path: &Path) -> (TempDir, Result<OpenImage>) {
    import_with(&source(format, path), &LIMITS)
}

/// Fails if a failed import has left something.
fn assert_empty(home: &TempDir) {
    for folder in ["images", "staging"] {
        let left = fs::read_dir(home.path().join(folder))
            .into_iter()
            .flatten()
            .count();
        assert_eq!(left, 0, "{folder}");
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
