//! The file of results: everything that a run measured, one series on a line, with place and time.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use cellblock_image::OpenImage;
use serde_json::{Value, json};

use crate::samples::Samples;

/// A run.
#[derive(Debug, Default)]
pub(crate) struct Results {
    pub(crate) circumstances: Value,
    pub(crate) missing: MissingPrograms,
    /// Turns that failed.
    pub(crate) failures: Vec<String>,
    pub(crate) samples: Samples,
}

/// Peers and floors that this machine does not have, with reasons.
pub(crate) type MissingPrograms = BTreeMap<String, String>;

impl Results {
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
            self.circumstances,
            serde_json::to_string(&self.missing)?,
            serde_json::to_string(&self.failures)?,
        );
        for (index, (name, values)) in self.samples.iter().enumerate() {
            let comma = if index == 0 { "" } else { ",\n" };
            write!(text, "{comma}\"{name}\": {}", serde_json::to_string(values)?)?;
        }
        text.push_str("\n}\n}\n");
        Ok(text)
    }
}

/// Facts that a reader needs to compare a run with another. The date is in UTC, a commit has a plus sign
/// if files were changed, and a quiet machine has nearly no load.
pub(crate) fn circumstances(image: &OpenImage) -> Value {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let (cpu, memory) = (read("/proc/cpuinfo"), read("/proc/meminfo"));
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name"));
    let memory = memory.split_whitespace().nth(1);
    let memory: Option<u64> = memory.and_then(|kib| kib.parse().ok());
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let command = format!("cargo xtask bench {}", arguments.join(" "));
    let changed = output("git", &["status", "--porcelain", "--untracked-files=no"]);
    let plus = if changed.is_empty() { "" } else { "+" };
    let version = |program| output(program, &["--version"]).lines().next().map(str::to_owned);
    json!({
        "date": output("date", &["--utc", "+%Y-%m-%dT%H:%M:%SZ"]),
        "seconds": 0,
        "command": command.trim_end(),
        "commit": output("git", &["rev-parse", "--short=12", "HEAD"]) + plus,
        "cpu": model.unwrap_or_default().trim_start_matches([' ', '\t', ':']),
        "cpus": std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        "memory_mib": memory.unwrap_or_default() / 1024,
        "kernel": read("/proc/sys/kernel/osrelease").trim(),
        "load": read("/proc/loadavg").split(' ').next(),
        "image": image.id()[..12],
        "python": image.manifest().python,
        "bwrap": version("bwrap"),
        "runsc": version("runsc"),
    })
}

/// Returns the output of a program; empty if it cannot be run.
fn output(program: &str, arguments: &[&str]) -> String {
    Command::new(program)
        .args(arguments)
        .output()
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_json_with_one_series_on_a_line() {
        let mut results = Results::default();
        let read = |results: &Results| -> Value { serde_json::from_str(&results.text().unwrap()).unwrap() };
        assert_eq!(read(&results)["samples"], json!({}));
        results.samples = [("cellblock/warm", vec![0.27, 0.3]), ("floor/fork", vec![6.7])]
            .map(|(name, values)| (name.to_owned(), values))
            .into();
        results.missing.insert("runsc".into(), "\"not\" installed".into());
        let text = results.text().unwrap();
        assert_eq!(read(&results)["samples"]["cellblock/warm"][1], 0.3);
        assert_eq!(read(&results)["missing"]["runsc"], "\"not\" installed");
        assert!(text.contains("\n\"cellblock/warm\": [0.27,0.3],\n\"floor/fork\": [6.7]\n"));
    }
}
