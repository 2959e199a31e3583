//! Targets on the host that probes try to reach, laid out by `bait.py`.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::probe::folder;

/// The bait; it is taken away when this is dropped.
#[derive(Debug)]
pub(crate) struct Bait {
    keeper: Child,
    /// Secret that only the runner knows.
    pub(crate) secret: String,
    /// Text that probes receive.
    pub(crate) told: String,
}

impl Bait {
    /// Lays it out with this interpreter.
    pub(crate) fn lay(python: &std::path::Path) -> Self {
        let mut keeper = Command::new(python)
            .args(["-I", "-B"])
            .arg(folder().join("bait.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(keeper.stdout.take().unwrap());
        said.read_line(&mut line).unwrap();
        let mut told: Value = serde_json::from_str(&line).unwrap();
        let secret = told["secret"].as_str().unwrap().to_owned();
        told.as_object_mut().unwrap().remove("secret");
        Self {
            keeper,
            secret,
            told: told.to_string(),
        }
    }
}

impl Drop for Bait {
    fn drop(&mut self) {
        // The end of its input is its sign to clean up.
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}
