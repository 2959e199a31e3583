//! The guide is true: a scripted model that errs makes its calls, and the answers are those that stand there.
//!
//! `CELLBLOCK_UPDATE=1` writes the answers into the guide.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use cellblock_testkit::{binary, polars_image, require, workspace_root};
use serde_json::Value;

use crate::support::World;

/// A part of the page: text, or a fenced block of a language.
#[derive(Clone, Debug, PartialEq, Eq)]
enum GuidePart {
    Text(String),
    Fence { language: String, body: String },
}

/// The session that the page has.
struct GuideReader {
    world: World,
    id: String,
    /// The last script.
    script: String,
    /// The answer of the last call.
    answer: Option<Value>,
}

#[test]
fn the_guide_of_the_workbench_is_as_it_says() -> Result<()> {
    // Tracebacks are those of its version.
    require!(Python313);
    polars_image()?;
    let page = workspace_root().join("docs/guides/workbench.md");
    let kept = fs::read_to_string(&page)?;
    let world = World::new()?;
    symlink(workspace_root().join("examples"), world.work().join("examples"))?;
    let mut reader = GuideReader {
        world,
        id: String::new(),
        script: String::new(),
        answer: None,
    };
    let mut parts = parts(&kept);
    for part in &mut parts {
        if let GuidePart::Fence { language, body } = part {
            *body = reader
                .read(language, body)
                .with_context(|| format!("at this block:\n{body}"))?;
        }
    }
    let made = join(&parts);
    if std::env::var_os("CELLBLOCK_UPDATE").is_some() {
        fs::write(&page, &made)?;
    }
    assert_eq!(
        without_times(&fs::read_to_string(&page)?),
        without_times(&made),
        "docs/guides/workbench.md is stale; run `cargo xtask generate`"
    );
    assert!(
        made.contains("not unique") && made.contains("AttributeError"),
        "the model errs no more"
    );
    Ok(())
}

impl GuideReader {
    /// Does what the block says; gives what it has to hold.
    fn read(&mut self, language: &str, body: &str) -> Result<String> {
        match language {
            "console" => self.console(body),
            "python" => {
                body.clone_into(&mut self.script);
                Ok(body.to_owned())
            }
            "json" => {
                if let Some(answer) = self.answer.take() {
                    return Ok(format!("{answer:#}\n"));
                }
                self.answer = Some(self.call(&serde_json::from_str(body)?)?);
                Ok(body.to_owned())
            }
            _ => Ok(body.to_owned()),
        }
    }

    fn call(&self, call: &Value) -> Result<Value> {
        let mut arguments = call["parameters"].clone();
        if arguments["content"] == "…" {
            arguments["content"] = self.script.clone().into();
        }
        let tool = call["tool"].as_str().context("no tool")?;
        self.world.call(&self.id, tool, &arguments)?.json()
    }

    /// Runs the block's commands; what follows each is what it prints.
    fn console(&mut self, body: &str) -> Result<String> {
        let mut made = String::new();
        for command in body.lines().filter_map(|line| line.strip_prefix("$ ")) {
            let starts = command.starts_with("id=");
            let tail = if starts { "; printf %s \"$id\"" } else { "" };
            let output = Command::new("sh")
                .args(["-uc", &format!("{command}{tail}")])
                .current_dir(self.world.work())
                .env("CELLBLOCK_HOME", self.world.home())
                .env("PATH", path()?)
                .env("id", &self.id)
                .output()?;
            let (said, complaints) = (
                String::from_utf8(output.stdout)?,
                String::from_utf8(output.stderr)?,
            );
            ensure!(
                output.status.success() && complaints.is_empty(),
                "{command}: {complaints}"
            );
            writeln!(made, "$ {command}")?;
            if starts {
                self.id = said;
            } else {
                made += &said.replace(&self.id, "0123456789abcdef0123");
            }
        }
        Ok(made)
    }
}

/// Returns the directories in which shells look for programs: first where `cellblock` is that is tested.
fn path() -> Result<std::ffi::OsString> {
    let own = binary()?;
    let usual = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = own
        .parent()
        .map(PathBuf::from)
        .into_iter()
        .chain(std::env::split_paths(&usual))
        .collect();
    Ok(std::env::join_paths(folders)?)
}

fn parts(page: &str) -> Vec<GuidePart> {
    let mut parts = Vec::new();
    let (mut text, mut fence) = (String::new(), None);
    for line in page.split_inclusive('\n') {
        match (&mut fence, line.trim_end().strip_prefix("```")) {
            (None, Some(language)) => {
                parts.push(GuidePart::Text(std::mem::take(&mut text)));
                fence = Some((language.to_owned(), String::new()));
            }
            (Some((language, body)), Some(_)) => {
                parts.push(GuidePart::Fence {
                    language: std::mem::take(language),
                    body: std::mem::take(body),
                });
                fence = None;
            }
            (Some((_, body)), None) => body.push_str(line),
            (None, None) => text.push_str(line),
        }
    }
    parts.push(GuidePart::Text(text));
    parts
}

fn join(parts: &[GuidePart]) -> String {
    let text = |part: &GuidePart| match part {
        GuidePart::Text(text) => text.clone(),
        GuidePart::Fence { language, body } => format!("```{language}\n{body}```\n"),
    };
    parts.iter().map(text).collect()
}

/// The page without how long commands took, which no two runs agree on.
fn without_times(page: &str) -> String {
    let cut = |line: &str| match line.split_once("\"execution_time\": ") {
        Some((before, after)) => format!(
            "{before}\"execution_time\": *{}\n",
            after
                .trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')
                .trim_end()
        ),
        None => line.to_owned(),
    };
    page.split_inclusive('\n').map(cut).collect()
}

#[test]
fn a_split_page_is_rejoined_unchanged() {
    let page = "# A\n\n```sh\nx\n```\n\nb\n```json\n```\n";
    assert_eq!(join(&parts(page)), page);
    assert_eq!(
        without_times("  \"execution_time\": 0.25,\n"),
        without_times("  \"execution_time\": 12.0,\n")
    );
}
