//! The guest's kernel: a distribution's image, and the modules with which it finds its devices.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::snapshot::hex;

/// Modules with which a machine finds its devices, its disk and its serial port. What is built into
/// a kernel is not a file.
const MODULES: [&str; 3] = ["virtio_mmio", "virtio_blk", "virtio_console"];
/// File with the dependencies of a kernel's modules, as `depmod` writes it.
const DEPENDENCIES: &str = "modules.dep";
const ELF: &[u8] = b"\x7fELF";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
/// Begins a stream of LZ4's older format, which the kernel's build writes.
const LZ4: &[u8] = b"\x02\x21\x4c\x18";
/// Maximum size of one of its blocks when it is unpacked.
const LZ4_BLOCK: usize = 8 << 20;
/// Maximum size of an unpacked kernel.
const MAX: u64 = 512 << 20;

/// A kernel that was found.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    pub(super) path: PathBuf,
    /// Such as `6.12.95+deb12-cloud-amd64`; empty if the file's name does not contain it.
    pub(super) release: String,
}

impl Kernel {
    /// Returns the configured kernel, or the newest below `/boot`, one for clouds before others.
    pub(super) fn find(configured: Option<&Path>) -> Result<Self, String> {
        let path = match configured {
            Some(path) if path.is_file() => path.to_owned(),
            Some(path) => return Err(format!("the kernel `{}` is not a file", path.display())),
            None => newest(Path::new("/boot")).ok_or("there is no kernel `/boot/vmlinuz-*`")?,
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let release = name.strip_prefix("vmlinuz-").unwrap_or_default().to_owned();
        Ok(Self { path, release })
    }

    /// Returns the sha256 of the file.
    pub(super) fn sha256(&self) -> io::Result<String> {
        Ok(hex(&Sha256::digest(fs::read(&self.path)?)))
    }

    /// Returns the kernel in the form that needs no further unpacking by the machine, if that is known.
    pub(super) fn unpacked(&self) -> io::Result<Vec<u8>> {
        let image = fs::read(&self.path)?;
        if Self::is_unpacked(&image) {
            return Ok(image);
        }
        for at in 0..image.len() {
            let unpacked = match &image[at..] {
                stream if stream.starts_with(ZSTD) => unzstd(stream),
                stream if stream.starts_with(LZ4) => unlz4(&stream[LZ4.len()..]),
                _ => continue,
            };
            if Self::is_unpacked(&unpacked) {
                return Ok(unpacked);
            }
        }
        // Compressed by other means.
        Ok(image)
    }

    /// Returns whether an image is in that form.
    pub(super) fn is_unpacked(image: &[u8]) -> bool {
        image.starts_with(ELF)
    }

    /// Returns the files of the modules that every machine needs, of some more, and of those that
    /// these need, in the order in which they are loaded.
    pub(super) fn modules(&self, more: &[&str]) -> Vec<PathBuf> {
        let beside = self
            .path
            .parent()
            .and_then(Path::parent)
            .unwrap_or(Path::new("/"));
        let folders = ["lib/modules", "usr/lib/modules"].map(|it| beside.join(it).join(&self.release));
        let read = |folder: PathBuf| Some((fs::read_to_string(folder.join(DEPENDENCIES)).ok()?, folder));
        let Some((dependencies, folder)) = folders.into_iter().find_map(read) else {
            return Vec::new();
        };
        let wanted = MODULES.iter().chain(more);
        let files = wanted.flat_map(|name| with_dependencies(&dependencies, name));
        let mut found = Vec::new();
        for file in files.map(|file| folder.join(file)) {
            if !found.contains(&file) {
                found.push(file);
            }
        }
        found
    }
}

/// Unpacks a stream. The image goes on after it, where reading fails.
fn unzstd(stream: &[u8]) -> Vec<u8> {
    let mut unpacked = Vec::new();
    if let Ok(decoder) = zstd::Decoder::new(stream) {
        let _ = decoder.take(MAX).read_to_end(&mut unpacked);
    }
    unpacked
}

/// Unpacks blocks, each after its packed size, to the first that is none.
fn unlz4(mut blocks: &[u8]) -> Vec<u8> {
    let mut unpacked = Vec::new();
    let mut buffer = vec![0; LZ4_BLOCK];
    while let Some((size, rest)) = blocks.split_first_chunk()
        && let Some((block, rest)) = rest.split_at_checked(u32::from_le_bytes(*size) as usize)
        && let Ok(length @ 1..) = lz4_flex::block::decompress_into(block, &mut buffer)
        && unpacked.len() as u64 <= MAX
    {
        unpacked.extend_from_slice(&buffer[..length]);
        blocks = rest;
    }
    unpacked
}

/// Returns the files that loading a module takes, those that it needs first.
fn with_dependencies<'a>(dependencies: &'a str, name: &str) -> Vec<&'a str> {
    let lines = dependencies.lines().filter_map(|line| line.split_once(':'));
    let is_named = |path: &str| {
        let file = path.rsplit('/').next().unwrap_or(path);
        file.split('.').next() == Some(name)
    };
    let Some((own, needed)) = lines.into_iter().find(|(path, _)| is_named(path)) else {
        return Vec::new();
    };
    needed.split_whitespace().rev().chain([own]).collect()
}

fn newest(boot: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(boot).ok()?.flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let kernels = names.filter(|name| name.starts_with("vmlinuz-"));
    let newest = kernels.max_by_key(|name| (name.contains("cloud"), numbers(name)))?;
    Some(boot.join(newest))
}

/// Returns the numbers in a name, which sort releases as `6.9 < 6.12`.
fn numbers(name: &str) -> Vec<u32> {
    let parts = name.split(|character: char| !character.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_kernel_for_clouds_is_preferred() {
        let boot = tempfile::tempdir().unwrap();
        assert_eq!(newest(boot.path()), None);
        for name in [
            "vmlinuz-6.1.0-40-amd64",
            "config-9.9",
            "vmlinuz-6.9.7-cloud-amd64",
        ] {
            fs::write(boot.path().join(name), "").unwrap();
        }
        let found = |name: &str| Some(boot.path().join(name));
        assert_eq!(newest(boot.path()), found("vmlinuz-6.9.7-cloud-amd64"));
        fs::write(boot.path().join("vmlinuz-6.12.1-cloud-amd64"), "").unwrap();
        assert_eq!(newest(boot.path()), found("vmlinuz-6.12.1-cloud-amd64"));
    }

    #[test]
    fn a_kernel_is_unpacked() {
        let boot = tempfile::tempdir().unwrap();
        let path = boot.path().join("vmlinuz-6.1-x");
        let elf: Vec<u8> = ELF
            .iter()
            .copied()
            .chain(std::iter::repeat_n(7, 9 << 20))
            .collect();
        let blocks = elf.chunks(LZ4_BLOCK).flat_map(|chunk| {
            let block = lz4_flex::block::compress(chunk);
            [&u32::try_from(block.len()).unwrap().to_le_bytes()[..], &block].concat()
        });
        for packed in [
            zstd::encode_all(&*elf, 3).unwrap(),
            LZ4.iter().copied().chain(blocks).collect(),
        ] {
            let image = [
                b"MZ setup ",
                ZSTD,
                b" none ",
                LZ4,
                b" none ",
                &*packed,
                b"what follows",
            ]
            .concat();
            fs::write(&path, image).unwrap();
            let kernel = Kernel::find(Some(&path)).unwrap();
            assert_eq!(kernel.release, "6.1-x");
            assert!(kernel.unpacked().unwrap() == elf);
        }
        fs::write(&path, "packed in another way").unwrap();
        let kernel = Kernel::find(Some(&path)).unwrap();
        assert_eq!(kernel.unpacked().unwrap(), b"packed in another way");
        let missing = Kernel::find(Some(Path::new("/nowhere/vmlinuz"))).unwrap_err();
        assert_eq!(missing, "the kernel `/nowhere/vmlinuz` is not a file");
    }

    #[test]
    fn modules_are_found_with_those_that_they_need() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("lib/modules/6.1-x");
        fs::create_dir_all(&folder).unwrap();
        fs::create_dir_all(root.path().join("boot")).unwrap();
        let lines = "a/virtio_mmio.ko.xz: a/virtio.ko.xz a/virtio_ring.ko.xz\n\
                     a/virtio.ko.xz: a/virtio_ring.ko.xz\n\
                     a/virtio_ring.ko.xz:\nb/virtio_blk.ko.xz: a/virtio.ko.xz a/virtio_ring.ko.xz\n\
                     c/vsock.ko.xz:\nc/other.ko.xz:\n";
        fs::write(folder.join("modules.dep"), lines).unwrap();
        let path = root.path().join("boot/vmlinuz-6.1-x");
        fs::write(&path, "").unwrap();
        let kernel = Kernel::find(Some(&path)).unwrap();
        let modules = [
            "a/virtio_ring.ko.xz",
            "a/virtio.ko.xz",
            "a/virtio_mmio.ko.xz",
            "b/virtio_blk.ko.xz",
            "c/vsock.ko.xz",
        ];
        assert_eq!(kernel.modules(&["vsock"]), modules.map(|it| folder.join(it)));
    }
}
