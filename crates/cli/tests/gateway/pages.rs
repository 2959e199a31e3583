//! The commands of the README and the guides run as written: each page in a home and a folder of
//! its own, with the repository's examples.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use cellblock_testkit::{binary, fenced, workspace_root};

use crate::server::{Server, ServerHome};

/// Pages whose commands have a test of their own, which also compares what the page says they print.
const OWN_TESTS: [(&str, &str); 4] = [
    ("docs/guides/containers.md", "it/deploy.rs"),
    ("docs/guides/data-agent.md", "gateway/agent.rs"),
    ("docs/guides/install.md", "../../../xtask/src/dist/install.rs"),
    ("docs/guides/workbench.md", "session/guide.rs"),
];

/// Beginnings of shell lines that do not run here, and what runs them.
const ELSEWHERE: [(&str, &str); 6] = [
    (
        "(cd javascript ",
        "`.ci/run`, and the test of the client in `clients/suites.rs`",
    ),
    (
        "cargo run ",
        "`.ci/run`, which builds the program with all features",
    ),
    ("docker run ", "`cargo xtask dist container`, with Podman"),
    (
        "npm install ",
        "the test of the client in `clients/suites.rs`, in its own folder",
    ),
    (
        "pip install ",
        "`cargo xtask dist install`, with the wheel that it built",
    ),
    ("uvx ", "`cargo xtask dist install`, with the wheel that it built"),
];

/// Address of the server in the pages.
const ADDRESS: &str = "127.0.0.1:8080";

/// A reader who pastes one block after another.
struct PageReader {
    place: ServerHome,
    folder: tempfile::TempDir,
    server: Option<Server>,
}

impl PageReader {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let examples = Command::new("cp")
            .arg("-R")
            .arg(workspace_root().join("examples"))
            .arg(folder.path())
            .status()?;
        ensure!(examples.success(), "copy the examples");
        let bin = folder.path().join("bin");
        fs::create_dir(&bin)?;
        std::os::unix::fs::symlink(binary()?, bin.join("cellblock"))?;
        // An answer with an error ends curl with an error.
        fs::write(folder.path().join(".curlrc"), "fail\n")?;
        Ok(Self {
            place: ServerHome::new(),
            folder,
            server: None,
        })
    }

    /// Runs a block of the shell; a server goes on in the background.
    fn paste(&mut self, block: &str) -> Result<()> {
        let (before, server, after) = around_server(block);
        self.shell(&before)?;
        if let Some(arguments) = server {
            self.server = None;
            self.server = Some(self.place.serve_in(&self.folder(&before), &arguments, &[]));
        }
        self.shell(&after)
    }

    /// Returns the folder in which a block is after its first lines.
    fn folder(&self, before: &str) -> PathBuf {
        let entered = before.lines().filter_map(|line| line.strip_prefix("cd "));
        entered.fold(self.folder.path().to_owned(), |folder, name| folder.join(name))
    }

    fn shell(&self, script: &str) -> Result<()> {
        let address = self.server.as_ref().map(|server| server.address);
        let script = at_address(script, address);
        let path = std::env::var("PATH").unwrap_or_default();
        let output = Command::new("sh")
            .args(["-euc", &script])
            .current_dir(self.folder.path())
            .env(
                "PATH",
                format!("{}:{path}", self.folder.path().join("bin").display()),
            )
            .env("CELLBLOCK_HOME", self.place.home())
            .env("CURL_HOME", self.folder.path())
            .stdin(Stdio::null())
            .output()?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}\n{script}\n{stderr}", output.status);
        Ok(())
    }
}

/// Returns a script with the address of the server that runs.
fn at_address(script: &str, address: Option<SocketAddr>) -> String {
    address.map_or_else(
        || script.to_owned(),
        |it| script.replace(ADDRESS, &it.to_string()),
    )
}

/// Splits a block at the command that starts a server: the lines before it, its arguments, the
/// lines after it.
fn around_server(block: &str) -> (String, Option<Vec<&str>>, String) {
    let start = "cellblock serve";
    let Some(at) = block.lines().position(|line| line.starts_with(start)) else {
        return (block.to_owned(), None, String::new());
    };
    let lines: Vec<_> = block.lines().collect();
    let command = lines[at].split(" #").next().unwrap_or_default();
    // The test's own server has a model that needs none.
    let arguments = command[start.len()..]
        .split_whitespace()
        .filter(|argument| !["--demo", "--no-model"].contains(argument));
    (
        lines[..at].join("\n"),
        Some(arguments.collect()),
        lines[at + 1..].join("\n"),
    )
}

/// Returns a block without the lines that something else runs, which are noted.
fn for_here(block: &str, noted: &mut BTreeSet<&'static str>) -> String {
    let here = block.lines().filter(|line| {
        let elsewhere = ELSEWHERE.iter().find(|(begin, _)| line.starts_with(begin));
        noted.extend(elsewhere.map(|(begin, _)| *begin));
        elsewhere.is_none()
    });
    here.collect::<Vec<_>>().join("\n")
}

/// Returns the README and the guides, by their paths in the repository.
fn pages() -> Result<Vec<PathBuf>> {
    let guides = fs::read_dir(workspace_root().join("docs/guides"))?;
    let mut pages = vec![PathBuf::from("README.md")];
    for guide in guides {
        let page = Path::new("docs/guides").join(guide?.file_name());
        // The others are pictures.
        if page.extension().is_some_and(|kind| kind == "md") {
            pages.push(page);
        }
    }
    pages.sort();
    Ok(pages)
}

#[test]
fn the_commands_of_the_readme_and_the_guides_run_as_written() -> Result<()> {
    let mut noted = BTreeSet::new();
    for page in pages()? {
        if OWN_TESTS.iter().any(|(tested, _)| page == Path::new(tested)) {
            continue;
        }
        let text = fs::read_to_string(workspace_root().join(&page))?;
        let mut reader = PageReader::new()?;
        for block in fenced(&text, "sh") {
            let block = for_here(block, &mut noted);
            let pasted = reader.paste(&block);
            pasted.with_context(|| format!("{} says:\n{block}", page.display()))?;
        }
    }
    let listed = ELSEWHERE.iter().map(|(begin, _)| *begin).collect();
    assert_eq!(noted, listed, "an exception that no page needs");
    Ok(())
}

#[test]
fn the_pages_with_tests_of_their_own_are_there() {
    for (page, test) in OWN_TESTS {
        let test = workspace_root().join("crates/cli/tests").join(test);
        let test = fs::read_to_string(test).unwrap();
        assert!(test.contains(page), "the test of {page} does not read it");
    }
}

#[test]
fn a_block_is_split_at_its_server() {
    let (before, server, after) = around_server("cd a\ncellblock serve --demo --port 1   # why\ncurl x");
    assert_eq!(
        (before.as_str(), server, after.as_str()),
        ("cd a", Some(vec!["--port", "1"]), "curl x")
    );
    assert_eq!(around_server("true"), ("true".to_owned(), None, String::new()));
}
