//! Location of a server's records.

use std::path::Path;

use cellblock_connector::GivenValue;
use cellblock_gateway::records::{PostgresUrl, RecordsPlace};

use super::check::Check;
use super::{ConfigError, LoadedConfig, Settings};

/// The file of records, below the directory of the state.
const FILE: &str = "records.sqlite";

/// The key of the database.
const KEY: &[&str] = &["records"];

impl Settings {
    pub(super) fn check_records(&self, check: &mut Check<'_>) {
        match &self.records {
            Some(GivenValue::Text(url)) => match PostgresUrl::new(url, Path::new("")) {
                Ok(url) if url.has_password() => check.wrong(
                    KEY,
                    "must not contain a password; read the URL with `{env: NAME}` or `{file: PATH}`",
                ),
                Ok(_) => {}
                Err(error) => check.failed(KEY, &error),
            },
            Some(GivenValue::Secret(source)) => {
                if let Err(problem) = source.read(None) {
                    check.wrong(KEY, problem);
                }
            }
            None => {}
        }
    }
}

impl LoadedConfig {
    /// Returns the location of the records: in the database that the configuration names, or in a file of the
    /// state. The URL is read now.
    pub(crate) fn records(&self, home: &Path) -> Result<RecordsPlace, ConfigError> {
        let mut check = Check::new(&self.tree);
        let url = match &self.settings.records {
            None => return Ok(RecordsPlace::File(self.state(home).join(FILE))),
            Some(GivenValue::Text(url)) => Some(url.clone()),
            Some(GivenValue::Secret(source)) => self.secret(KEY, source, &mut check),
        };
        let url = url.map(|url| PostgresUrl::new(&url, &self.folder()));
        match url {
            Some(Ok(url)) => return Ok(RecordsPlace::Postgres(Box::new(url))),
            Some(Err(error)) => check.failed(KEY, &error),
            None => {}
        }
        Err(ConfigError::Wrong(check.mistakes))
    }
}
