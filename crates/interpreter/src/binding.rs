//! Tool results on their way into a sandbox: one document, and where in it each value is.

use std::fmt::Write;

use cellblock_protocol::{InputFormat, Reference};

use crate::alias::{AliasStore, Content};
use crate::error::{Error, Result};

/// The document's path for the guest; code finds it as `/cellblock/inputs.json`.
const DOCUMENT: &str = "/tmp/data/.cellblock/inputs.json";

/// Tool results that a cell finds bound.
#[derive(Debug)]
pub(crate) struct Binding {
    aliases: AliasStore,
    /// The names to bind, and what to.
    names: Vec<(String, String)>,
    key: String,
    bytes: u64,
}

/// Files to write into a sandbox, with their paths there, and where a kernel finds the values in them.
#[derive(Debug)]
pub(crate) struct InputFiles {
    pub(crate) files: Vec<(String, Content)>,
    pub(crate) references: Vec<Reference>,
}

impl Binding {
    /// Binds every result by its alias, and some by other names as well.
    pub(crate) fn new<'a>(
        aliases: &AliasStore,
        others: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) -> Result<Self> {
        let mut names: Vec<_> = aliases
            .aliases()
            .into_iter()
            .map(|alias| (alias.clone(), alias))
            .collect();
        for (name, alias) in others {
            if name != alias {
                names.push((name.clone(), alias.clone()));
            }
        }
        let (mut key, mut bytes) = (String::new(), 0);
        for (name, alias) in &names {
            let entry = aliases.entry(alias)?;
            let _ = write!(key, "{name}={alias}@{};", entry.sha256);
            // A table is in a file of its own, once for all its names.
            if entry.table_file().is_none() || name == alias {
                bytes += entry.bytes;
            }
        }
        Ok(Self {
            aliases: aliases.clone(),
            names,
            key,
            bytes,
        })
    }

    /// Bindings of equal keys put equal files into a sandbox.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// The names that are bound, with their aliases.
    pub(crate) fn names(&self) -> &[(String, String)] {
        &self.names
    }

    /// Bytes of the values.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Opens what has to be written.
    pub(crate) async fn open(&self, limit: u64) -> Result<InputFiles> {
        if self.bytes > limit {
            return Err(Error::Input {
                name: "tool results".to_owned(),
                reason: format!(
                    "they have {} bytes, the limit for inputs is {limit}; record less, or raise `data_bytes`",
                    self.bytes
                ),
            });
        }
        let splice = self.aliases.splice(&self.names).await?;
        let mut files = vec![(DOCUMENT.to_owned(), splice.content)];
        let mut references = Vec::with_capacity(splice.spans.len());
        for span in splice.spans {
            let (format, path, offset, length) = match span.table {
                Some(table) => {
                    if files.iter().all(|(path, _)| *path != table.path) {
                        files.push((table.path.clone(), self.aliases.content(&span.alias).await?));
                    }
                    (table.format, table.path, 0, table.bytes)
                }
                None => (InputFormat::Value, DOCUMENT.to_owned(), span.offset, span.length),
            };
            references.push(Reference {
                name: span.name,
                alias: span.alias,
                format,
                path,
                offset,
                length,
            });
        }
        Ok(InputFiles { files, references })
    }
}
