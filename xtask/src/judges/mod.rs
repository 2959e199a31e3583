//! Suites of other projects against a server of this workspace, and the table of what they say,
//! `docs/judges.md`.
//!
//! ```text
//! cargo xtask judges ──┬─> programs against one server ──> a last line of JSON ──┬─> docs/judges.md
//!                      └─> tests, which start servers ───> judged.jsonl ─────────┘         │
//! cargo xtask ci ─────────> all tests ───────────────────> judged.jsonl ──> check <────────┘
//! ```
//!
//! A program prints at its end one line of JSON: `passed`, `failed`, `skipped` and `errors`, and in
//! `skips` why each skipped test was.

use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context as _, Result, bail};

use crate::suite::of_package;
use list::{JUDGES, Judge, SuiteRunner};
use server::JudgedServer;
use table::{Page, Verdict};

use crate::{cargo, image_home, target_folder};

mod check;
mod list;
mod server;
mod table;

pub(crate) use check::{begin, check};

const PAGE: &str = "docs/judges.md";

/// Runs the judges of these names, or all, and writes their rows of the table. Returns whether no
/// number fell.
pub fn run(root: &Path, names: &[String]) -> Result<bool> {
    if let Some(unknown) = names
        .iter()
        .find(|name| JUDGES.iter().all(|judge| judge.name != **name))
    {
        let known: Vec<_> = JUDGES.iter().map(|judge| judge.name).collect();
        bail!("there is no judge `{unknown}`; there are {}", known.join(", "));
    }
    let chosen: Vec<_> = JUDGES
        .iter()
        .filter(|judge| names.is_empty() || names.iter().any(|name| name == judge.name))
        .collect();
    let before = Page::read(&fs::read_to_string(root.join(PAGE)).unwrap_or_default());
    let mut now = before.clone();
    let is_program = |judge: &&Judge| matches!(judge.how, SuiteRunner::Program { .. });
    let server = chosen.iter().copied().any(|judge| is_program(&judge));
    let server = server.then(|| JudgedServer::start(root)).transpose()?;
    let url = server.as_ref().map_or("", |server| &server.url);
    for judge in chosen {
        println!("== {} ==", judge.name);
        if let Some(missing) = judge.missing().filter(|_| before.row(judge.name).is_some()) {
            println!("{missing}; its row stays as it is");
            continue;
        }
        let verdict = judge.run(root, url).map_err(|error| format!("{error:#}"));
        println!("{verdict:?}");
        now.set(judge.name, judge.suite, verdict.as_ref().map_err(String::as_str));
    }
    drop(server);
    let fallen = check::fallen(&now, &before);
    for problem in &fallen {
        println!("{problem}");
    }
    if fallen.is_empty() {
        fs::write(root.join(PAGE), now.text()).context("write the table")?;
    }
    Ok(fallen.is_empty())
}

impl Judge {
    /// Returns what it lacks to run, if it lacks something.
    fn missing(&self) -> Option<String> {
        let SuiteRunner::Program {
            needs: Some((variable, what)),
            ..
        } = self.how
        else {
            return None;
        };
        env::var_os(variable)
            .is_none()
            .then(|| format!("not run: `{variable}` names {what}"))
    }

    fn run(&self, root: &Path, url: &str) -> Result<Verdict> {
        if let Some(missing) = self.missing() {
            bail!(missing);
        }
        match self.how {
            SuiteRunner::Program { command, .. } => program(root, url, command),
            SuiteRunner::Test {
                package,
                target,
                test,
            } => {
                begin(root);
                let mut cargo = cargo(root);
                cargo.arg("test").args(of_package(package));
                cargo.args(["--test", target, "--", "--exact", test]);
                let ran = cargo.status().context("run cargo")?;
                let verdict = check::recorded(&check::file(root))?.remove(self.name);
                verdict.with_context(|| {
                    format!(
                        "`{test}` ended with {ran} and reported nothing; tests/clients/README.md \
                         installs its clients"
                    )
                })
            }
        }
    }
}

/// Runs a program that judges a server, and reads its last line.
fn program(root: &Path, url: &str, command: &[&str]) -> Result<Verdict> {
    let folder = target_folder(root).join("judges");
    fs::create_dir_all(&folder)?;
    let folder = folder.to_string_lossy();
    let words: Vec<_> = command
        .iter()
        .map(|word| word.replace("{url}", url).replace("{folder}", &folder))
        .collect();
    let (program, arguments) = words.split_first().context("no command")?;
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root)
        .env("CELLBLOCK_HOME", image_home(root))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("run {program}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().next_back().unwrap_or_default();
    serde_json::from_str(last).with_context(|| {
        format!(
            "the judge ended with {} and no line of numbers: `{last}`",
            output.status
        )
    })
}
