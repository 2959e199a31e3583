//! Options of the type `files`.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FilesConnector;
use crate::card::name_mistakes;
use crate::options::{CellType, TypeOptions};
use crate::recipe::{ConnectorRecipe, ConnectorResult, checked};

/// Options of the type `files` only.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FilesOptions {
    /// Folder of the files, or `s3://bucket/prefix/`, whose credentials and server are in the
    /// environment (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL` and related variables). A relative path
    /// counts from the configuration's own folder.
    pub root: Option<PathBuf>,
    /// Tables by name, each a function: a pattern of Parquet, CSV or JSON lines files below `root`,
    /// such as `trips/year=*/*.parquet`.
    pub tables: IndexMap<String, String>,
    /// Types of columns of CSV and JSON lines files, by table and column. The types of others are
    /// inferred from the first file.
    pub columns: IndexMap<String, IndexMap<String, CellType>>,
}

impl ConnectorRecipe for TypeOptions<FilesOptions> {
    fn connector(&self, name: &str, folder: Option<&Path>) -> ConnectorResult {
        let mut mistakes = self.calls.mistakes();
        mistakes.extend(name_mistakes("tables", self.own.tables.keys()));
        let root = folder.zip(self.own.root.as_deref());
        let root = root.map_or_else(PathBuf::new, |(folder, root)| folder.join(root));
        checked(mistakes, FilesConnector::new(name, self, root))
    }
}
