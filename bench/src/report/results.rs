//! The file of results: everything that a run measured, one series on a line.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::machine::Circumstances;
use crate::samples::Samples;

/// A run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) circumstances: Circumstances,
    /// Peers and floors that this machine does not have, with reasons.
    pub(crate) missing: BTreeMap<String, String>,
    /// Turns that failed.
    pub(crate) failures: Vec<String>,
    pub(crate) samples: Samples,
}

impl Results {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("read `{}`", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("understand `{}`", path.display()))
    }

    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).context("make the directory of results")?;
        }
        std::fs::write(path, self.text()?).with_context(|| format!("write `{}`", path.display()))
    }

    /// JSON that differs between two runs line by line.
    fn text(&self) -> Result<String> {
        let mut text = format!(
            "{{\n\"circumstances\": {},\n\"missing\": {},\n\"failures\": {},\n\"samples\": {{\n",
            serde_json::to_string(&self.circumstances)?,
            serde_json::to_string(&self.missing)?,
            serde_json::to_string(&self.failures)?,
        );
        for (index, (name, values)) in self.samples.series().enumerate() {
            let comma = if index == 0 { "" } else { ",\n" };
            write!(text, "{comma}\"{name}\": {}", serde_json::to_string(values)?)?;
        }
        text.push_str("\n}\n}\n");
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_results_are_read_again() {
        let mut results = Results::default();
        results.samples.add("cellblock", "warm", 0.27);
        results.samples.add("cellblock", "warm", 0.3);
        results.samples.add("floor", "fork", 6.7);
        results.missing.insert("runsc".into(), "\"not\" installed".into());
        let text = results.text().unwrap();
        assert_eq!(serde_json::from_str::<Results>(&text).unwrap(), results);
        assert!(text.contains("\n\"cellblock/warm\": [0.27,0.3],\n\"floor/fork\": [6.7]\n"));
        assert_eq!(
            serde_json::from_str::<Results>(&Results::default().text().unwrap()).unwrap(),
            Results::default()
        );
    }
}
