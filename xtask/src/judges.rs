//! Strangers' suites against a server of this workspace, and the table of what they said.
//!
//! A judge is a program that prints one line of JSON at its end: `passed`, `failed`, `skipped` and `errors`, and in `skips` why each
//! skipped test was. The table is `docs/judges.md`; what passed once has to pass again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, fs};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

/// A stranger's suite.
#[derive(Debug)]
struct Judge {
    name: &'static str,
    /// What the suite is, with its version.
    suite: &'static str,
    /// The command; `{url}` is the server's address and `{folder}` a folder for what it installs.
    command: &'static [&'static str],
    /// A variable without which the suite cannot run, and what it names.
    needs: Option<(&'static str, &'static str)>,
}

const PYTHON_PACKAGES: &str = "integrations/judge.py";

const JUDGES: &[Judge] = &[
    Judge {
        name: "mcp-2025-11-25",
        suite: "`@modelcontextprotocol/conformance`, revision 2025-11-25",
        command: &["python3", "tests/judges/mcp.py", "--url", "{url}", "2025-11-25"],
        needs: None,
    },
    Judge {
        name: "mcp-2026-07-28",
        suite: "`@modelcontextprotocol/conformance`, revision 2026-07-28",
        command: &["python3", "tests/judges/mcp.py", "--url", "{url}", "2026-07-28"],
        needs: None,
    },
    of_package(
        "langchain",
        "`langchain-tests` `SandboxIntegrationTests`, deepagents 0.7",
        &package("langchain"),
    ),
    of_package(
        "langchain-0.6",
        "the same, deepagents 0.6",
        &package("langchain-0.6"),
    ),
    of_package(
        "inspect",
        "Inspect AI `self_check` of sandboxes",
        &package("inspect"),
    ),
    of_package(
        "openai-agents",
        "our own tests: OpenAI Agents has no suite for sandboxes",
        &package("openai-agents"),
    ),
    of_package(
        "pydantic-ai",
        "Pydantic AI `WorkspaceBackendSuite`, and our own tests",
        &package("pydantic-ai"),
    ),
    Judge {
        name: "e2b",
        suite: "`e2b-dev/code-interpreter`, `python/tests`",
        command: &[
            "python3",
            "tests/judges/e2b.py",
            "--url",
            "{url}",
            "--venvs",
            "{folder}",
        ],
        needs: Some(("CELLBLOCK_JUDGE_E2B", "a checkout of `e2b-dev/code-interpreter`")),
    },
];

/// The command of one of `integrations`.
const fn package(name: &'static str) -> [&'static str; 7] {
    [
        "python3",
        PYTHON_PACKAGES,
        "--url",
        "{url}",
        "--venvs",
        "{folder}",
        name,
    ]
}

const fn of_package(name: &'static str, suite: &'static str, command: &'static [&'static str]) -> Judge {
    Judge {
        name,
        suite,
        command,
        needs: None,
    }
}

/// What a judge said.
#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
struct Verdict {
    passed: u64,
    failed: u64,
    skipped: u64,
    errors: u64,
    /// Why tests were skipped, by their names.
    skips: BTreeMap<String, String>,
}

/// A line of the table.
#[derive(Debug)]
struct Line {
    judge: &'static Judge,
    verdict: Result<Verdict, String>,
}

const PAGE: &str = "docs/judges.md";
const HEAD: &str = "\
# Judges

Suites that other people wrote, run against a server of this repository by `cargo xtask judges`. A number of passed tests that was
once reached is never lower: the command fails if it is.

| judge | suite | passed | failed | skipped |
|---|---|---|---|---|
";

/// Runs the judges of these names, or all, and writes the table if all have run. Returns whether no number fell.
pub fn run(root: &Path, names: &[String]) -> Result<bool> {
    if let Some(unknown) = names
        .iter()
        .find(|name| JUDGES.iter().all(|judge| judge.name != **name))
    {
        let known: Vec<_> = JUDGES.iter().map(|judge| judge.name).collect();
        bail!("there is no judge `{unknown}`; there are {}", known.join(", "));
    }
    let before = passed_before(&fs::read_to_string(root.join(PAGE)).unwrap_or_default());
    let server = Server::start(root)?;
    let chosen = JUDGES
        .iter()
        .filter(|judge| names.is_empty() || names.iter().any(|name| name == judge.name));
    let mut lines = Vec::new();
    for judge in chosen {
        println!("== {} ==", judge.name);
        let verdict = judge.run(root, &server.url).map_err(|error| format!("{error:#}"));
        println!("{verdict:?}");
        lines.push(Line { judge, verdict });
    }
    drop(server);
    let mut stands = true;
    for line in &lines {
        let now = line.verdict.as_ref().map_or(0, |verdict| verdict.passed);
        let was = before.get(line.judge.name).copied().unwrap_or_default();
        let could_run = line
            .judge
            .needs
            .is_none_or(|(variable, _)| env::var_os(variable).is_some());
        if now < was && could_run {
            println!("{}: {now} tests passed, and {was} did before", line.judge.name);
            stands = false;
        }
    }
    if names.is_empty() && stands {
        fs::write(root.join(PAGE), page(&lines)).context("write the table")?;
    }
    Ok(stands)
}

impl Judge {
    fn run(&self, root: &Path, url: &str) -> Result<Verdict> {
        if let Some((variable, what)) = self.needs
            && env::var_os(variable).is_none()
        {
            bail!("not run: `{variable}` names {what}");
        }
        let folder = target(root).join("judges");
        fs::create_dir_all(&folder)?;
        let folder = folder.to_string_lossy();
        let words: Vec<_> = self
            .command
            .iter()
            .map(|word| word.replace("{url}", url).replace("{folder}", &folder))
            .collect();
        let (program, arguments) = words.split_first().context("no command")?;
        let output = Command::new(program)
            .args(arguments)
            .current_dir(root)
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
}

/// Reads how many tests passed from a table.
fn passed_before(page: &str) -> BTreeMap<String, u64> {
    let cells = |line: &str| -> Option<(String, u64)> {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let name = cells.next()?.trim_matches('`').to_owned();
        Some((name, cells.nth(1)?.parse().ok()?))
    };
    page.lines().filter_map(cells).collect()
}

fn page(lines: &[Line]) -> String {
    let mut page = HEAD.to_owned();
    let mut notes = String::new();
    for Line { judge, verdict } in lines {
        let numbers = match verdict {
            Ok(verdict) => {
                for (reason, tests) in by_reason(&verdict.skips) {
                    let _ = writeln!(notes, "- `{}`, {} skipped: {reason}", judge.name, tests);
                }
                let failed = verdict.failed + verdict.errors;
                format!("{} | {failed} | {}", verdict.passed, verdict.skipped)
            }
            Err(reason) => {
                let _ = writeln!(notes, "- `{}`: {reason}", judge.name);
                "– | – | –".to_owned()
            }
        };
        let _ = writeln!(page, "| `{}` | {} | {numbers} |", judge.name, judge.suite);
    }
    if !notes.is_empty() {
        page += "\n## What was not run\n\n";
        page += &notes;
    }
    page
}

/// Counts the skipped tests of each reason.
fn by_reason(skips: &BTreeMap<String, String>) -> BTreeMap<&str, usize> {
    let mut reasons = BTreeMap::new();
    for reason in skips.values() {
        *reasons.entry(reason.as_str()).or_default() += 1;
    }
    reasons
}

/// The server that is judged. It ends with this.
#[derive(Debug)]
struct Server {
    url: String,
    child: Child,
    _state: tempfile::TempDir,
}

impl Server {
    fn start(root: &Path) -> Result<Self> {
        let program = target(root).join("debug/cellblock");
        let built = Command::new(env!("CARGO"))
            .args(["build", "--package", "cellblock"])
            .current_dir(root)
            .status()
            .context("start cargo")?;
        if !built.success() {
            bail!("build `cellblock`: cargo ended with {built}");
        }
        let state = tempfile::tempdir()?;
        let home =
            env::var_os("CELLBLOCK_HOME").map_or_else(|| target(root).join("cellblock-home"), PathBuf::from);
        let mut child = Command::new(program)
            .args([
                "serve",
                "--no-model",
                "--listen",
                "127.0.0.1:0",
                "--config",
                "tests/judges/cellblock.yaml",
            ])
            .current_dir(root)
            .env("CELLBLOCK_HOME", home)
            .env("CELLBLOCK_SERVE__STATE", state.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("start the server")?;
        let output = child.stdout.take().context("no output of the server")?;
        let mut first = String::new();
        BufReader::new(output).read_line(&mut first)?;
        let Some(url) = first.trim().strip_prefix("listening on ") else {
            let _ = child.kill();
            bail!("the server did not start: `{first}`");
        };
        Ok(Self {
            url: url.to_owned(),
            child,
            _state: state,
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It ends its sandboxes on this signal.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}

fn target(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_back_and_says_why_tests_did_not_run() {
        let verdict = Verdict {
            passed: 12,
            failed: 1,
            skipped: 2,
            errors: 1,
            skips: [("one", "needs a GPU"), ("two", "needs a GPU")]
                .map(|(name, reason)| (name.to_owned(), reason.to_owned()))
                .into(),
        };
        let lines = [
            Line {
                judge: &JUDGES[0],
                verdict: Ok(verdict),
            },
            Line {
                judge: &JUDGES[1],
                verdict: Err("not run: `X` names a folder".to_owned()),
            },
        ];
        let page = page(&lines);
        assert!(page.contains("| 12 | 2 | 2 |"), "{page}");
        assert!(page.contains(", 2 skipped: needs a GPU"), "{page}");
        assert!(page.contains(": not run: `X` names a folder"), "{page}");
        assert_eq!(passed_before(&page), [(JUDGES[0].name.to_owned(), 12)].into());
    }
}
