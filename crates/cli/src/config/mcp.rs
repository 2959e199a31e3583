//! Settings for serving MCP.

use std::path::PathBuf;

use cellblock_interpreter::toolset::TOOLSETS;
use cellblock_mcp::Options;

use super::check::Check;
use super::{ConfigError, LoadedConfig};

impl LoadedConfig {
    /// Returns the options of the MCP server if it is enabled. Fails if one of its datasets cannot be read.
    pub(crate) fn mcp(&self) -> Result<Option<Options>, ConfigError> {
        let mut options = self.settings.mcp.clone();
        let mut check = Check::new(&self.tree);
        for (name, path) in &mut options.datasets {
            // Whoever is told of it later has another working directory.
            match std::fs::canonicalize(self.path(path)).and_then(readable) {
                Ok(found) => *path = found,
                Err(error) => check.failed(&["mcp", "datasets", name], &error),
            }
        }
        if !check.mistakes.is_empty() {
            return Err(ConfigError::Wrong(check.mistakes));
        }
        // Each once, in the order in which they are listed.
        options.toolsets = TOOLSETS
            .into_iter()
            .filter(|kind| options.toolsets.contains(kind))
            .collect();
        options.cell_timeout = self.settings.limits.cell_timeout.0;
        options.max_cell_timeout = self.settings.limits.max_cell_timeout.0;
        Ok(options.serve.then_some(options))
    }
}

fn readable(path: PathBuf) -> std::io::Result<PathBuf> {
    let file = std::fs::File::open(&path)?;
    if file.metadata()?.is_file() {
        Ok(path)
    } else {
        Err(std::io::Error::other("not a file"))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use cellblock_interpreter::toolset::python;
    use cellblock_interpreter::{derivation, workbench};

    use super::super::Sources;
    use super::*;

    fn load(folder: &Path, text: &str) -> Result<Option<Options>, String> {
        let file = folder.join("cellblock.yaml");
        std::fs::write(&file, text).unwrap();
        let sources = Sources {
            file: Some(file),
            ..Sources::default()
        };
        let loaded = sources.load().and_then(|loaded| loaded.mcp());
        loaded.map_err(|error| error.to_string().replace(&format!("{}/", folder.display()), ""))
    }

    #[test]
    fn it_is_served_with_what_is_written_unless_it_is_switched_off() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("wine.csv"), "a").unwrap();
        let usual = load(folder.path(), "").unwrap().unwrap();
        assert_eq!(usual.toolsets, [python::KIND]);
        let text = "mcp: {toolsets: [workbench, derivation], max_tokens: 900, idle_timeout: 5m, \
                    max_sessions: 9, max_sessions_per_key: 3, task_after: 500ms, \
                    datasets: {wine: wine.csv}}\n\
                    limits: {cell_timeout: 10, max_cell_timeout: 20}";
        let options = load(folder.path(), text).unwrap().unwrap();
        assert_eq!(options.toolsets, [workbench::KIND, derivation::KIND]);
        assert_eq!(
            (
                options.max_tokens,
                options.max_sessions,
                options.max_sessions_per_key
            ),
            (900, 9, 3)
        );
        assert_eq!(options.idle_timeout, Duration::from_mins(5));
        assert_eq!(options.task_after, Duration::from_millis(500));
        assert_eq!(options.cell_timeout, Duration::from_secs(10));
        assert_eq!(options.max_cell_timeout, Duration::from_secs(20));
        let path = folder.path().join("wine.csv").canonicalize().unwrap();
        assert_eq!(options.datasets, [("wine".to_owned(), path)].into());
        assert!(load(folder.path(), "mcp: {serve: false}").unwrap().is_none());
    }

    #[test]
    fn mistakes_are_told_with_their_place_and_a_repair() {
        let folder = tempfile::tempdir().unwrap();
        for (text, told) in [
            (
                "mcp: {toolset: []}",
                "1:7: `mcp.toolset`: unknown key; did you mean `toolsets`?",
            ),
            (
                "mcp: {toolsets: []}",
                "1:17: `mcp.toolsets`: must list at least one toolset; to offer none, set `serve: false`",
            ),
            (
                "mcp: {network: loopback, toolsets: [derivation]}",
                "1:16: `mcp.network`: must be `none` if `toolsets` lists `derivation`, whose code never \
                 has a network",
            ),
            (
                "mcp: {toolsets: [workbensh]}",
                "1:18: `mcp.toolsets.0`: `workbensh`: unknown value; did you mean `workbench`?",
            ),
            (
                "mcp:\n  max_tokens: 10",
                "2:15: `mcp.max_tokens`: must be from 500 to 1000000",
            ),
            (
                "mcp: {idle_timeout: 0}",
                "1:21: `mcp.idle_timeout`: must be greater than 0",
            ),
            (
                "mcp: {max_sessions: 0}",
                "1:21: `mcp.max_sessions`: must be at least 1; to offer no sessions, set `serve: false`",
            ),
            (
                "mcp: {datasets: {wine: none.csv}}",
                "1:24: `mcp.datasets.wine`: No such file or directory (os error 2)",
            ),
            (
                "mcp: {datasets: {wine: .}}",
                "1:24: `mcp.datasets.wine`: not a file",
            ),
        ] {
            let expected = format!("read the configuration: cellblock.yaml:{told}");
            assert_eq!(load(folder.path(), text).unwrap_err(), expected);
        }
    }
}
