//! How the configuration has MCP served.

use cellblock_mcp::{Dataset, Options};

use super::check::Check;
use super::{ConfigError, Loaded};

impl Loaded {
    /// How MCP is served, if it is. Datasets are looked for now.
    pub(crate) fn mcp(&self) -> Result<Option<Options>, ConfigError> {
        let mcp = &self.settings.mcp;
        let mut check = Check::new(&self.tree);
        let mut datasets = Vec::new();
        for (name, path) in &mcp.datasets {
            // Whoever is told of it later has another working directory.
            match std::fs::canonicalize(self.path(path)).and_then(|path| readable(path)) {
                Ok(path) => datasets.push(Dataset {
                    name: name.clone(),
                    path,
                }),
                Err(error) => check.failed(&["mcp", "datasets", name], &error),
            }
        }
        if !check.mistakes.is_empty() {
            return Err(ConfigError::Wrong(check.mistakes));
        }
        Ok(mcp.serve.then(|| Options {
            toolsets: mcp.toolsets.iter().map(|&toolset| toolset.into()).collect(),
            tokens: usize::try_from(mcp.tokens).unwrap_or(usize::MAX),
            idle: mcp.idle.0,
            sessions: mcp.sessions,
            sessions_per_owner: mcp.sessions_per_owner,
            task_after: mcp.task_after.0,
            cell_time: self.settings.limits.cell_timeout.0,
            max_cell_time: self.settings.limits.max_cell_timeout.0,
            datasets,
            ..Options::default()
        }))
    }
}

fn readable(path: std::path::PathBuf) -> std::io::Result<std::path::PathBuf> {
    let file = std::fs::File::open(&path)?;
    if file.metadata()?.is_file() {
        Ok(path)
    } else {
        Err(std::io::Error::other("it is not a file"))
    }
}
