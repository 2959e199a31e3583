//! Finds, reads and checks a configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cellblock_agent::provider::script::Script;
use cellblock_gateway::options::{Options, TlsOptions};

use super::check::Check;
use super::decode::decode;
use super::listen::Listen;
use super::mistake::Mistake;
use super::node::{Node, Origin, Value};
use super::sections::connectors::Connectors;
use super::sections::providers::check_names;
use super::{Settings, env, yaml};

/// The file that is read where none is named, if it is there.
pub(crate) const DEFAULT_FILE: &str = "cellblock.yaml";
/// Maximum size of a configuration in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Sources of a configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    /// The file that was named.
    pub(crate) file: Option<PathBuf>,
    /// Address from the command line.
    pub(crate) listen: Option<Listen>,
    /// The database of records that the command line names.
    pub(crate) records: Option<String>,
    /// Environment variables.
    pub(crate) variables: Vec<(String, String)>,
}

/// A configuration that was read and checked.
#[derive(Clone, Debug)]
pub(crate) struct LoadedConfig {
    pub(crate) settings: Settings,
    pub(super) tree: Node,
    /// The file, where there is one.
    pub(crate) file: Option<PathBuf>,
}

/// Reason that there is no configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The file cannot be read.
    #[error("read the configuration `{}`", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// It is not a configuration, or a broken one.
    #[error("read the configuration: {}", listed(.0))]
    Wrong(Vec<Mistake>),
}

fn listed(mistakes: &[Mistake]) -> String {
    match mistakes {
        [mistake] => mistake.to_string(),
        mistakes => {
            let lines = mistakes.iter().map(|mistake| format!("\n  {mistake}"));
            format!("{} errors{}", mistakes.len(), lines.collect::<String>())
        }
    }
}

impl Sources {
    /// The sources of this process.
    pub(crate) fn of_process(file: Option<PathBuf>, listen: Option<Listen>) -> Self {
        Self {
            file,
            listen,
            records: None,
            // A variable that is no text is none of ours: it could not be read.
            variables: std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
        }
    }

    /// With the database of records that the command line names.
    pub(crate) fn with_records(self, records: Option<String>) -> Self {
        Self { records, ..self }
    }

    /// Reads and checks.
    pub(crate) fn load(self) -> Result<LoadedConfig, ConfigError> {
        let file = match self.file {
            Some(file) => Some(file),
            None => Some(PathBuf::from(DEFAULT_FILE)).filter(|file| file.exists()),
        };
        let wrong = |mistake| ConfigError::Wrong(vec![mistake]);
        let mut tree = match &file {
            Some(path) => yaml::parse(&read(path)?, path).map_err(wrong)?,
            None => Node {
                value: Value::Map(Vec::new()),
                origin: Origin::File {
                    path: Arc::new(DEFAULT_FILE.into()),
                    line: 1,
                    column: 1,
                },
            },
        };
        env::overlay(&mut tree, self.variables).map_err(wrong)?;
        if let Some(Listen(address)) = self.listen {
            let listen = Node {
                value: Value::Text(address.to_string()),
                origin: Origin::Argument("--listen"),
            };
            tree.set(&["listen".to_owned()], listen);
        }
        if let Some(url) = self.records {
            let records = Node {
                value: Value::Text(url),
                origin: Origin::Argument("--records"),
            };
            tree.set(&["records".to_owned()], records);
        }
        let mut check = Check::new(&tree);
        check_names(&mut check);
        if !check.mistakes.is_empty() {
            return Err(ConfigError::Wrong(check.mistakes));
        }
        let mut settings: Settings = decode(&tree).map_err(wrong)?;
        settings.connectors = Connectors::read(&mut check);
        settings.unite(&mut check);
        settings.check(&mut check);
        match check.mistakes {
            none if none.is_empty() => Ok(LoadedConfig { settings, tree, file }),
            mistakes => Err(ConfigError::Wrong(mistakes)),
        }
    }
}

impl LoadedConfig {
    /// A path that was written: a relative one counts from the configuration's own directory.
    pub(crate) fn path(&self, path: &Path) -> PathBuf {
        let base = self.file.as_deref().and_then(Path::parent);
        base.map_or_else(|| path.to_owned(), |base| base.join(path))
    }

    /// Returns the configuration's own folder, from which relative paths count.
    pub(crate) fn folder(&self) -> PathBuf {
        let folder = self.path(Path::new(""));
        if folder.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            folder
        }
    }

    /// Returns the options of the gateway.
    pub(crate) fn options(&self) -> Options {
        let mut options = self.settings.options();
        let tls = &self.settings.tls;
        if let (Some(certificates), Some(key)) = (&tls.certificates, &tls.key) {
            options.tls = Some(TlsOptions {
                certificates: self.path(certificates),
                key: self.path(key),
            });
        }
        options
    }

    /// The directory of the state.
    pub(crate) fn state(&self, home: &Path) -> PathBuf {
        let written = self.settings.state.as_deref();
        written.map_or_else(|| home.join("gateway"), |state| self.path(state))
    }
}

/// Reads a script of answers.
pub(super) fn script(path: &Path) -> Result<Script, ConfigError> {
    let tree = yaml::parse(&read(path)?, path);
    let script = tree.and_then(|tree| decode(&tree));
    script.map_err(|mistake| ConfigError::Wrong(vec![mistake]))
}

fn read(path: &Path) -> Result<String, ConfigError> {
    let failed = |source| ConfigError::Read {
        path: path.to_owned(),
        source,
    };
    let size = std::fs::metadata(path).map_err(failed)?.len();
    if size > MAX_BYTES {
        let source = std::io::Error::other(format!("the file has {size} bytes; the maximum is {MAX_BYTES}"));
        return Err(failed(source));
    }
    std::fs::read_to_string(path).map_err(failed)
}
