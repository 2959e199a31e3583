//! Reading an image from one file.

use std::io::{self, Read};
use std::path::Path;

use tar::{Archive, Entry, EntryType};

use super::MANIFEST;
use super::unpack::{MAX_TEXT, read_text, unpack};
use crate::digest::HashingReader;
use crate::error::IoResultExt as _;
use crate::error::invalid;
use crate::libraries::{MissingLibraries, described};
use crate::lock::Lock;
use crate::stop::BuildGuard;
use crate::{ImageStore, Manifest, OpenImage, Result, Sink, build};

/// Requirements for an archive to be imported.
pub(crate) struct ArchiveExpectation<'a> {
    /// SHA-256 of the archive, in hex, if it is known.
    pub(crate) sha256: Option<&'a str>,
    /// Returns the reason why an image is rejected.
    pub(crate) manifest: &'a dyn Fn(&Manifest) -> Result<(), String>,
}

/// Reads to the end and compares the hash of everything with the expected one.
fn expect(from: HashingReader<impl Read>, sha256: Option<&str>, origin: &str) -> Result<()> {
    let Some(expected) = sha256 else { return Ok(()) };
    let actual = from
        .finish()
        .map_err(|error| invalid(origin, format!("it cannot be read: {error}")))?;
    if !actual.eq_ignore_ascii_case(expected) {
        return Err(invalid(
            origin,
            format!("its SHA-256 is {actual}, and {expected} was expected"),
        ));
    }
    Ok(())
}

impl ImageStore {
    /// Adds the image of an archive to this store and returns it. `origin` is how errors call the archive.
    ///
    /// Nothing is kept unless the whole archive is read, its SHA-256 is `sha256` (hex) where that
    /// is given, and its files have the address that its manifest names. An image that is here
    /// already is returned without reading on.
    pub async fn import(
        &self,
        from: impl Read + Send + 'static,
        origin: &str,
        sha256: Option<&str>,
        sink: Sink,
    ) -> Result<OpenImage> {
        let (store, origin, sha256) = (self.clone(), origin.to_owned(), sha256.map(str::to_owned));
        let work = move || {
            let expected = ArchiveExpectation {
                sha256: sha256.as_deref(),
                manifest: &|_| Ok(()),
            };
            store.import_blocking(from, &origin, &expected, &sink)
        };
        tokio::task::spawn_blocking(work).await?
    }

    pub(crate) fn import_blocking(
        &self,
        from: impl Read,
        origin: &str,
        expected: &ArchiveExpectation<'_>,
        sink: &Sink,
    ) -> Result<OpenImage> {
        let damaged = |error: io::Error| invalid(origin, format!("it cannot be read: {error}"));
        let mut from = HashingReader::new(from);
        let decoder = zstd::Decoder::new(&mut from).map_err(damaged)?;
        let mut archive = Archive::new(decoder);
        // Raw: long names are read here, where their length is checked.
        let mut entries = archive.entries().map_err(damaged)?.raw(true);
        let manifest = match entries.next() {
            Some(first) => read_manifest(first.map_err(damaged)?, origin)?,
            None => return Err(invalid(origin, "it is empty")),
        };
        (expected.manifest)(&manifest).map_err(|problem| invalid(origin, problem))?;
        if let Ok(image) = OpenImage::open(self.home(), &manifest.id) {
            sink.line(format!("the image {} is here already", manifest.short_id()));
            return Ok(image);
        }
        let missing = MissingLibraries::of(&manifest);
        if !missing.needed.is_empty() {
            let problem = format!(
                "the image needs system libraries that this machine lacks: {}",
                described(&missing.needed)
            );
            return Err(invalid(origin, problem));
        }
        if !missing.optional.is_empty() {
            sink.line(format!(
                "some modules of the standard library cannot be imported here, because system libraries \
                 are missing: {}",
                described(&missing.optional)
            ));
        }
        self.home().check_programs_run()?;
        self.check_space(&manifest, origin)?;
        let running = BuildGuard::start()?;
        let waiting = || sink.waiting(format!("another process that imports {}", manifest.short_id()));
        let _lock = Lock::exclusive(&self.home().lock(&format!("import-{}", manifest.id)), waiting)?;
        if let Ok(image) = OpenImage::open(self.home(), &manifest.id) {
            return Ok(image);
        }
        let staging = self.home().staging(&format!("import-{}", manifest.id));
        build::remove(&staging)?;
        sink.stage(format!("importing {} {}", manifest.name, manifest.short_id()));
        let unpacked = unpack(entries, &staging, &manifest, origin, sink);
        drop(archive);
        let finished = unpacked
            .and_then(|()| expect(from, expected.sha256, origin))
            .and_then(|()| build::put_in_place(&staging, &self.home().images().join(&manifest.id)));
        if finished.is_err() {
            // The disk may be full, and nothing of it is of use.
            let _ = build::remove(&staging);
        }
        drop(running);
        finished?;
        OpenImage::open(self.home(), &manifest.id)
    }

    fn check_space(&self, manifest: &Manifest, origin: &str) -> Result<()> {
        let root = self.home().root();
        let disk = rustix::fs::statvfs(root).at("look at", root)?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        if manifest.size > free {
            let problem = format!(
                "its files have {} bytes, and the disk of `{}` has {free} bytes left; free some, \
                 or set CELLBLOCK_HOME",
                manifest.size,
                root.display()
            );
            return Err(invalid(origin, problem));
        }
        Ok(())
    }
}

fn read_manifest(mut entry: Entry<'_, impl Read>, origin: &str) -> Result<Manifest> {
    let path = entry.path().map_err(|error| invalid(origin, error.to_string()))?;
    if *path != *Path::new(MANIFEST) || entry.header().entry_type() != EntryType::Regular {
        return Err(invalid(origin, format!("it does not start with `{MANIFEST}`")));
    }
    drop(path);
    let text = read_text(&mut entry, origin, MAX_TEXT, MANIFEST)?;
    let manifest = Manifest::parse(&text).map_err(|problem| invalid(origin, problem))?;
    if manifest.machine != std::env::consts::ARCH {
        return Err(invalid(
            origin,
            format!(
                "the image is for {} machines, and this one is {}; export it on a machine of the same kind",
                manifest.machine.escape_debug(),
                std::env::consts::ARCH
            ),
        ));
    }
    Ok(manifest)
}
