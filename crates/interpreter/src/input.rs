//! Data that a session's code finds bound to a name.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use cellblock_protocol::InputFormat;
use cellblock_sandbox::Limits;

use crate::error::{Error, Result};

/// Something to bind, and the name to bind it to.
#[derive(Clone, Debug)]
pub struct Input {
    pub(crate) name: String,
    pub(crate) format: InputFormat,
    pub(crate) source: InputSource,
}

#[derive(Clone, Debug)]
pub(crate) enum InputSource {
    Path(PathBuf),
    Open(Arc<File>),
    Bytes(Vec<u8>),
}

impl Input {
    /// An open file, which need not have a name any more. It must be one that can be opened again,
    /// not a pipe.
    pub fn from_file(name: impl Into<String>, format: InputFormat, file: File) -> Self {
        Self {
            name: name.into(),
            format,
            source: InputSource::Open(Arc::new(file)),
        }
    }

    /// A file of the host, read as its name's extension says; one without a known extension is
    /// bound as bytes.
    pub fn file(name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self {
            name: name.into(),
            format: format_of(&path),
            source: InputSource::Path(path),
        }
    }

    /// Bytes in a format.
    pub fn bytes(name: impl Into<String>, format: InputFormat, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            name: name.into(),
            format,
            source: InputSource::Bytes(bytes.into()),
        }
    }

    /// A JSON document, bound as the equal Python object.
    pub fn value(name: impl Into<String>, value: &serde_json::Value) -> Self {
        Self::bytes(name, InputFormat::Value, value.to_string())
    }

    /// Its name in the kernel.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether it can be bound, as far as this can be checked without a sandbox.
    pub fn check(&self, limits: &Limits) -> Result<()> {
        self.open(limits.data_bytes).map(drop)
    }

    /// Returns its path in the sandbox.
    pub(crate) fn sandbox_path(&self) -> String {
        format!("/tmp/data/{}.{}", self.name, extension_of(self.format))
    }

    /// Opens its content, and refuses what cannot be bound before a sandbox is troubled with it.
    pub(crate) fn open(&self, limit: u64) -> Result<InputContent> {
        if !is_identifier(&self.name) {
            return Err(self.refuse("the name must be a Python identifier such as `sales_2024`"));
        }
        let content = match &self.source {
            InputSource::Bytes(bytes) => InputContent::Bytes(std::io::Cursor::new(bytes.clone())),
            InputSource::Open(file) => {
                // Opened anew, as each reader needs a place of its own in it.
                let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
                let refuse = |error: std::io::Error| self.refuse(format!("could not read it again: {error}"));
                let file = File::open(path).map_err(refuse)?;
                let length = file.metadata().map_err(refuse)?.len();
                InputContent::File(file, length)
            }
            InputSource::Path(path) => {
                let file = File::open(path).map_err(|error| self.refuse(describe(path, &error)))?;
                let metadata = file
                    .metadata()
                    .map_err(|error| self.refuse(describe(path, &error)))?;
                if !metadata.is_file() {
                    return Err(self.refuse(format!("`{}` is not a regular file", path.display())));
                }
                InputContent::File(file, metadata.len())
            }
        };
        match content.len() {
            0 if self.format != InputFormat::Bytes => Err(self.refuse(format!(
                "the {} input is empty; give a file with content",
                extension_of(self.format)
            ))),
            size if size > limit => Err(self.refuse(format!(
                "it has {size} bytes, the limit for inputs is {limit}; give a smaller file \
                 or raise `data_bytes`"
            ))),
            _ => Ok(content),
        }
    }

    pub(crate) fn refuse(&self, reason: impl Into<String>) -> Error {
        Error::Input {
            name: self.name.clone(),
            reason: reason.into(),
        }
    }
}

fn describe(path: &Path, error: &std::io::Error) -> String {
    format!("could not open `{}`: {error}", path.display())
}

/// An input's bytes, read from the beginning.
#[derive(Debug)]
pub(crate) enum InputContent {
    File(File, u64),
    Bytes(std::io::Cursor<Vec<u8>>),
}

impl InputContent {
    fn len(&self) -> u64 {
        match self {
            Self::File(_, length) => *length,
            Self::Bytes(bytes) => bytes.get_ref().len() as u64,
        }
    }
}

impl std::io::Read for InputContent {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::File(file, _) => file.read(buffer),
            Self::Bytes(bytes) => bytes.read(buffer),
        }
    }
}

/// Extensions of compressed files.
const COMPRESSED: [&str; 5] = ["gz", "bz2", "xz", "zst", "zip"];

fn format_of(path: &Path) -> InputFormat {
    let extension = |path: &Path| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.unwrap_or_default().to_ascii_lowercase()
    };
    let outer = extension(path);
    if COMPRESSED.contains(&outer.as_str()) {
        // Only texts are decompressed where they are read.
        return match format_of(&path.with_extension("")) {
            text @ (InputFormat::Csv | InputFormat::Tsv | InputFormat::Json | InputFormat::Ndjson) => text,
            _ => InputFormat::Bytes,
        };
    }
    match outer.as_str() {
        "csv" => InputFormat::Csv,
        "tsv" | "tab" => InputFormat::Tsv,
        "parquet" | "pq" => InputFormat::Parquet,
        "json" => InputFormat::Json,
        "ndjson" | "jsonl" => InputFormat::Ndjson,
        "arrow" | "feather" | "ipc" => InputFormat::Arrow,
        "xlsx" | "xlsm" | "xls" | "xlsb" | "ods" => InputFormat::Xlsx,
        _ => InputFormat::Bytes,
    }
}

const fn extension_of(format: InputFormat) -> &'static str {
    match format {
        InputFormat::Csv => "csv",
        InputFormat::Tsv => "tsv",
        InputFormat::Parquet => "parquet",
        InputFormat::Json | InputFormat::Value => "json",
        InputFormat::Ndjson => "ndjson",
        InputFormat::Arrow => "arrow",
        InputFormat::Xlsx => "xlsx",
        InputFormat::Bytes => "bin",
    }
}

fn is_identifier(name: &str) -> bool {
    let mut characters = name.chars();
    characters
        .next()
        .is_some_and(|first| first.is_alphabetic() || first == '_')
        && characters.all(|next| next.is_alphanumeric() || next == '_')
        && name.len() <= 128
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_determines_the_format() {
        for (path, format) in [
            ("a.CSV", InputFormat::Csv),
            ("a.b.jsonl", InputFormat::Ndjson),
            ("a.feather", InputFormat::Arrow),
            ("a", InputFormat::Bytes),
            ("a.csv.gz", InputFormat::Csv),
            ("a.b.JSONL.ZST", InputFormat::Ndjson),
            ("a.parquet.gz", InputFormat::Bytes),
            ("a.zip", InputFormat::Bytes),
            ("gz", InputFormat::Bytes),
            ("a.ods", InputFormat::Xlsx),
            ("a.XLS", InputFormat::Xlsx),
        ] {
            assert_eq!(Input::file("x", path).format, format, "{path}");
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = Input::file("x", "/nowhere/x.csv").open(1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "bind input `x`: could not open `/nowhere/x.csv`: No such file or directory (os error 2)"
        );
    }

    #[test]
    fn a_name_that_python_cannot_bind_is_rejected() {
        for name in ["", "1a", "a-b", "a b", "../x"] {
            assert!(
                Input::bytes(name, InputFormat::Bytes, *b"x").open(9).is_err(),
                "{name}"
            );
        }
    }

    #[test]
    fn an_empty_table_and_an_oversized_one_are_rejected() {
        let empty = Input::bytes("x", InputFormat::Csv, *b"").open(9).unwrap_err();
        assert_eq!(
            empty.to_string(),
            "bind input `x`: the csv input is empty; give a file with content"
        );
        let large = Input::bytes("x", InputFormat::Csv, *b"a,b\n1,2\n")
            .open(7)
            .unwrap_err();
        assert_eq!(
            large.to_string(),
            "bind input `x`: it has 8 bytes, the limit for inputs is 7; give a smaller file \
             or raise `data_bytes`"
        );
    }
}
