//! Tool results on their way into a sandbox: one document, and where in it each value is.

use std::io::Read;

use cellblock_protocol::{InputFormat, Reference};

use crate::error::{Error, Result};

/// The document's path for the guest; code finds it as `/cellblock/inputs.json`.
const DOCUMENT: &str = "/tmp/data/.cellblock/inputs.json";

/// Content to be read from its beginning.
pub(crate) type Content = Box<dyn Read + Send>;

/// Where content comes from, as often as it is needed.
pub(crate) trait Source: Send + Sync + std::fmt::Debug {
    /// Opens it.
    fn open(&self) -> std::io::Result<Content>;
}

/// Tool results that a cell finds bound.
#[derive(Debug)]
pub(crate) struct Binding {
    key: String,
    references: Vec<Reference>,
    document: Box<dyn Source>,
    bytes: u64,
    tables: Vec<Table>,
}

/// A result that is a file of its own.
#[derive(Debug)]
pub(crate) struct Table {
    /// Its path in the sandbox.
    pub(crate) path: String,
    pub(crate) content: Box<dyn Source>,
    pub(crate) bytes: u64,
}

/// A value in the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// The name that it is bound to.
    pub(crate) name: String,
    pub(crate) alias: String,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

impl Binding {
    /// Binds the spans of a document of so many bytes. Documents with equal keys are equal.
    pub(crate) fn new(key: String, document: Box<dyn Source>, bytes: u64, spans: Vec<Span>) -> Self {
        let references = spans.into_iter().map(|span| Reference {
            name: span.name,
            alias: span.alias,
            format: InputFormat::Value,
            path: DOCUMENT.to_owned(),
            offset: span.offset,
            length: span.length,
        });
        Self {
            key,
            references: references.collect(),
            document,
            bytes,
            tables: Vec::new(),
        }
    }

    /// Reads an alias from a file of its own instead.
    #[must_use]
    pub(crate) fn with_table(mut self, alias: &str, format: InputFormat, table: Table) -> Self {
        for reference in self.references.iter_mut().filter(|it| it.alias == alias) {
            reference.format = format;
            reference.path.clone_from(&table.path);
            (reference.offset, reference.length) = (0, table.bytes);
        }
        self.tables.push(table);
        self
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn references(&self) -> &[Reference] {
        &self.references
    }

    /// Bytes of all that is put into the sandbox.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes + self.tables.iter().map(|table| table.bytes).sum::<u64>()
    }

    /// The files to write, with their paths in the sandbox.
    pub(crate) fn open(&self, limit: u64) -> Result<Vec<(String, Content)>> {
        let refuse = |reason: String| Error::Input {
            name: "tool results".to_owned(),
            reason,
        };
        if self.bytes() > limit {
            return Err(refuse(format!(
                "they have {} bytes, the limit for inputs is {limit}; bind fewer, or raise `data_bytes`",
                self.bytes()
            )));
        }
        let opened = |source: &dyn Source| {
            source
                .open()
                .map_err(|error| refuse(format!("could not read what is stored of them: {error}")))
        };
        let mut files = vec![(DOCUMENT.to_owned(), opened(self.document.as_ref())?)];
        for table in &self.tables {
            files.push((table.path.clone(), opened(table.content.as_ref())?));
        }
        Ok(files)
    }
}

impl PartialEq for Binding {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Binding {}
