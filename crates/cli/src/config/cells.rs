//! The code that a configuration has run before the first cell of each session.

use std::path::Path;

use cellblock_gateway::options::CellOptions;
use cellblock_interpreter::session::SetupSnippet;

use super::check::Check;
use super::{ConfigError, LoadedConfig};

/// Maximum size of a file of setup code in bytes.
const MAX_SETUP: u64 = 1 << 20;

/// Reason that there is no setup code.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetupError {
    #[error(transparent)]
    Read(#[from] std::io::Error),
    #[error("the file has {0} bytes; setup code can have at most {MAX_SETUP}")]
    TooLarge(u64),
    #[error("the file is not valid UTF-8")]
    NotText,
}

impl LoadedConfig {
    /// Returns the options of cells, with the code of the files that they name.
    pub(crate) fn cells(&self) -> Result<CellOptions, ConfigError> {
        let mut options = self.settings.cells.clone();
        let mut check = Check::new(&self.tree);
        for (index, path) in options.setup.iter().enumerate() {
            match snippet(&self.path(path)) {
                Ok(snippet) => options.snippets.push(snippet),
                Err(error) => check.failed(&["cells", "setup", &index.to_string()], &error),
            }
        }
        if check.mistakes.is_empty() {
            Ok(options)
        } else {
            Err(ConfigError::Wrong(check.mistakes))
        }
    }
}

/// Reads setup code of this machine's owner. The sandbox learns the file's name, not where it is.
pub(crate) fn snippet(path: &Path) -> Result<SetupSnippet, SetupError> {
    let size = std::fs::metadata(path)?.len();
    if size > MAX_SETUP {
        return Err(SetupError::TooLarge(size));
    }
    let code = String::from_utf8(std::fs::read(path)?).map_err(|_| SetupError::NotText)?;
    Ok(SetupSnippet {
        name: path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        code,
        guarded: false,
    })
}

#[cfg(test)]
mod tests {
    use cellblock_interpreter::cell::Guard;

    use super::super::Sources;
    use super::*;

    fn load(folder: &Path, text: &str) -> Result<CellOptions, String> {
        let file = folder.join("cellblock.yaml");
        std::fs::write(&file, text).unwrap();
        let sources = Sources {
            file: Some(file),
            ..Sources::default()
        };
        let loaded = sources.load().and_then(|loaded| loaded.cells());
        loaded.map_err(|error| error.to_string().replace(&format!("{}/", folder.display()), ""))
    }

    #[test]
    fn setup_files_are_read_beside_the_configuration() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("setup.py"), "x = 1").unwrap();
        let cells = load(folder.path(), "cells: {guard: strict, setup: [setup.py]}").unwrap();
        assert_eq!(cells.guard, Guard::Strict);
        let expected = SetupSnippet {
            name: "setup.py".into(),
            code: "x = 1".into(),
            guarded: false,
        };
        assert_eq!(cells.snippets, [expected]);
        let usual = load(folder.path(), "").unwrap();
        assert_eq!((usual.guard, usual.snippets.len()), (Guard::Off, 0));
    }

    #[test]
    fn mistakes_are_reported_with_their_place() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("bytes.py"), [0xff]).unwrap();
        for (text, message) in [
            (
                "cells: {guard: strickt}",
                "1:16: `cells.guard`: `strickt`: unknown value; did you mean `strict`?",
            ),
            (
                "cells: {setup: [none.py]}",
                "1:17: `cells.setup.0`: No such file or directory (os error 2)",
            ),
            (
                "cells: {setup: [bytes.py]}",
                "1:17: `cells.setup.0`: the file is not valid UTF-8",
            ),
        ] {
            let expected = format!("read the configuration: cellblock.yaml:{message}");
            assert_eq!(load(folder.path(), text).unwrap_err(), expected);
        }
    }
}
