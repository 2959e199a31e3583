//! The manifest of a frozen template: everything about its process except the content of its memory.

use std::fs::{File, Metadata};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::MetadataExt;

use cellblock_jail::error::SyscallResult;
use cellblock_jail::{Error, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Form of the manifest and of the memory's file; part of the key.
pub(super) const FORMAT: u32 = 1;
/// Maximum size of a manifest, which has about a hundred KiB.
const MAX_SIZE: u64 = 16 << 20;
/// Length of the checksum at its beginning.
const CHECKSUM: usize = 64;

/// Identity and state of a file that is mapped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileStamp {
    pub(super) size: u64,
    pub(super) inode: u64,
    /// Time of the last change of its content or its inode: seconds and nanoseconds. Programs cannot
    /// set it.
    pub(super) changed: (i64, i64),
}

impl FileStamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            size: metadata.len(),
            inode: metadata.ino(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// A file of the image or the system.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct MappedFile {
    /// Path in the keep.
    pub(super) path: String,
    pub(super) stamp: FileStamp,
}

/// Bytes that are copied instead of mapped.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct CopiedRange {
    pub(super) start: u64,
    pub(super) length: u64,
    /// Offset in the memory's file.
    pub(super) offset: u64,
}

/// Source of a mapping.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PartSource {
    /// The memory's file.
    Memory { offset: u64 },
    /// A file of the image or the system.
    File { index: usize, offset: u64, shared: bool },
    /// No file.
    Anonymous {
        /// Additional flags of `mmap`.
        flags: i32,
        /// Arguments of `madvise`.
        advice: Vec<i32>,
        copied: Vec<CopiedRange>,
    },
}

/// A range of addresses to map.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct FrozenPart {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) protection: i32,
    pub(super) source: PartSource,
}

/// State of the only thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ThreadState {
    /// General registers, in the order of `struct sigcontext`.
    pub(super) registers: Vec<u64>,
    /// `fxsave` area: registers of the other kinds need not survive a system call.
    pub(super) extended: Vec<u64>,
    pub(super) blocked: u64,
    pub(super) base: u64,
    /// Address and length.
    pub(super) robust_list: (u64, u64),
    /// Address, length and signature.
    pub(super) restartable: (u64, u32, u32),
    /// Address of the thread's id.
    pub(super) id_at: u64,
}

/// Fields of `struct prctl_mm_map`, without its last two.
pub(super) const LAYOUT: usize = 11;

/// A frozen process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct FrozenManifest {
    pub(super) key: String,
    /// The file with the content of its memory.
    pub(super) memory: Option<FileStamp>,
    pub(super) program: String,
    pub(super) files: Vec<MappedFile>,
    pub(super) parts: Vec<FrozenPart>,
    /// Mappings of Linux itself: name, start and end.
    pub(super) special: Vec<(String, u64, u64)>,
    pub(super) layout: [u64; LAYOUT],
    pub(super) auxiliary: Vec<u64>,
    pub(super) thread: ThreadState,
    /// Signals with handlers or ignored: number and `struct kernel_sigaction`.
    pub(super) signals: Vec<(i32, [u64; 4])>,
}

impl FrozenManifest {
    /// Writes it to a new file.
    pub(super) fn write(&self, mut file: &File) -> Result<()> {
        let body = serde_json::to_vec(self)?;
        let mut text = checksum(&body).into_bytes();
        text.extend(body);
        file.write_all(&text)
            .during("write the manifest of a frozen template")?;
        file.sync_all().during("keep the manifest of a frozen template")
    }

    /// Reads it, unless it is damaged or of another key.
    pub(super) fn read(file: File, key: &str) -> Result<Self> {
        let mut text = Vec::new();
        file.take(MAX_SIZE)
            .read_to_end(&mut text)
            .during("read the manifest of a frozen template")?;
        let damaged = || Error::Child("its manifest is damaged".into());
        let (sum, body) = text.split_at_checked(CHECKSUM).ok_or_else(damaged)?;
        if sum != checksum(body).as_bytes() {
            return Err(damaged());
        }
        let manifest: Self = serde_json::from_slice(body)?;
        if manifest.key == key {
            Ok(manifest)
        } else {
            Err(Error::Child("its manifest belongs to another template".into()))
        }
    }
}

/// Returns a digest as text.
pub(super) fn checksum(bytes: &[u8]) -> String {
    let digest: [u8; CHECKSUM / 2] = Sha256::digest(bytes).into();
    digest
        .iter()
        .fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}
