//! `cellblock artifact`: what cells made, by the sha256 of its bytes or by its name.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cellblock_artifact::{ArtifactId, Metadata, Store, extension};
use cellblock_image::Home;
use chrono::{DateTime, SecondsFormat};
use serde_json::{Value, json};

mod convert;
mod find;
mod verify;

use crate::args::artifact::{ArtifactArgs, ArtifactCommand, ChartFormat};
use crate::artifact_store::{self, failed};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::render::json::{self, print};
use crate::render::{FAINT, STRONG, Screen, styled};
use crate::sanitize;
use cellblock_settings::Size;

/// Digits of a sha256 that are shown.
const SHORT: usize = 12;

/// Does it, prints, and says how it ended.
pub(crate) async fn run(args: ArtifactArgs) -> ExitCode {
    let json = match args.command {
        ArtifactCommand::List { json }
        | ArtifactCommand::Show { json, .. }
        | ArtifactCommand::Verify { json, .. }
        | ArtifactCommand::Open { json, .. }
        | ArtifactCommand::Export { json, .. } => json,
    };
    match act(args.command).await {
        Ok(code) => code,
        Err(error) => json::failed(&error, json),
    }
}

async fn act(command: ArtifactCommand) -> Result<ExitCode> {
    let home = Home::find()?;
    let store = artifact_store::open(&home).await?;
    match command {
        ArtifactCommand::List { json } => {
            let all = find::all(&store).await?;
            if json {
                let reports: Vec<_> = all.iter().map(|it| report(it, &store)).collect();
                print(&json!({ "artifacts": reports }));
            } else {
                Screen::new().show(&list(&all));
            }
        }
        ArtifactCommand::Show { artifact, json } => {
            let found = find::one(&store, &artifact.artifact).await?;
            if json {
                print(&report(&found, &store));
            } else if std::io::stdout().is_terminal() {
                Screen::new().show(&describe(&found, &store));
            } else {
                copy(
                    &store,
                    found.sha256,
                    &mut std::io::stdout().lock(),
                    Path::new("stdout"),
                )
                .await?;
            }
        }
        ArtifactCommand::Verify { repair, json } => return verify::verify(&store, repair, json).await,
        ArtifactCommand::Open {
            artifact,
            renderer,
            json,
        } => {
            let found = find::one(&store, &artifact.artifact).await?;
            let format = convert::is_chart(&found).then_some(ChartFormat::Html);
            let folder = home.root().join("cache").join("open");
            std::fs::create_dir_all(&folder).map_err(Error::own_file("make the directory", &folder))?;
            let path = folder.join(file_name(&found, format));
            save(&home, &store, &found, format, &renderer.image, &path).await?;
            let opened = open(&path);
            if json {
                print(&json!({ "sha256": found.sha256, "path": path, "opened": opened }));
            } else if opened {
                Screen::new().tell(&format!("opened {}", json::path(&path)));
            } else {
                Screen::new().show(&json::path(&path));
            }
        }
        ArtifactCommand::Export {
            artifact,
            format,
            out,
            renderer,
            json,
        } => {
            let found = find::one(&store, &artifact.artifact).await?;
            let path = out.unwrap_or_else(|| PathBuf::from(file_name(&found, format)));
            save(&home, &store, &found, format, &renderer.image, &path).await?;
            if json {
                let bytes = std::fs::metadata(&path)
                    .map_err(Error::user_file("read", &path))?
                    .len();
                print(&json!({ "sha256": found.sha256, "path": path, "bytes": bytes }));
            } else {
                Screen::new().show(&json::path(&path));
            }
        }
    }
    Ok(ExitCode::Success)
}

/// Writes an artifact, or what it is converted to, into a file.
async fn save(
    home: &Home,
    store: &Store,
    found: &Metadata,
    format: Option<ChartFormat>,
    image: &str,
    path: &Path,
) -> Result<()> {
    let create = || std::fs::File::create(path).map_err(Error::user_file("create", path));
    match format {
        None => copy(store, found.sha256, &mut create()?, path).await,
        Some(format) => {
            let bytes = convert::convert(home, store, found, format, image).await?;
            create()?
                .write_all(&bytes)
                .map_err(Error::user_file("write", path))
        }
    }
}

async fn copy(store: &Store, id: ArtifactId, to: &mut impl Write, path: &Path) -> Result<()> {
    let mut reader = store.reader(id).await.map_err(failed("read the artifact"))?;
    while let Some(piece) = reader.next().await.map_err(failed("read the artifact"))? {
        to.write_all(&piece).map_err(Error::user_file("write", path))?;
    }
    to.flush().map_err(Error::user_file("write", path))
}

/// Starts the desktop's program for a file; says whether there is one.
fn open(path: &Path) -> bool {
    let desktop = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some());
    let started = || {
        let mut opener = Command::new("xdg-open");
        opener
            .arg(path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        opener.status().is_ok_and(|status| status.success())
    };
    desktop && started()
}

/// A file's name of our own words and digits: what a sandbox calls an artifact is not one.
fn file_name(found: &Metadata, format: Option<ChartFormat>) -> String {
    let kind = kind(found);
    let digits = &found.sha256.to_string()[..SHORT];
    let extension = format.map_or_else(|| extension(&found.media_type), ChartFormat::extension);
    format!("{kind}_{digits}.{extension}")
}

fn kind(found: &Metadata) -> String {
    json!(found.kind).as_str().unwrap_or("artifact").to_owned()
}

fn name(found: &Metadata) -> Option<&str> {
    found
        .origins
        .iter()
        .rev()
        .find_map(|origin| origin.name.as_deref())
}

fn report(found: &Metadata, store: &Store) -> Value {
    json!({
        "sha256": found.sha256,
        "name": name(found),
        "kind": found.kind,
        "media_type": found.media_type,
        "bytes": found.bytes,
        "created_at": date(found.created_unix_ms),
        "path": store.local_path(found.sha256),
        "origins": found.origins,
    })
}

fn list(all: &[Metadata]) -> String {
    if all.is_empty() {
        return "no artifacts; `cellblock run` keeps the tables, charts and files that code makes".to_owned();
    }
    let lines = all.iter().map(|it| {
        let digits = it.sha256.to_string();
        let (kind, size) = (kind(it), Size(it.bytes).to_string());
        let name = name(it)
            .map(|name| format!("  {}", sanitize::line(name)))
            .unwrap_or_default();
        let rest = format!("{}  {}", date(it.created_unix_ms), sanitize::line(&it.media_type));
        format!(
            "{}  {kind:<9}  {size:>10}  {}{name}",
            styled(STRONG, &digits[..SHORT]),
            styled(FAINT, &rest)
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn describe(found: &Metadata, store: &Store) -> String {
    let path = store.local_path(found.sha256);
    let fields = [
        ("sha256", found.sha256.to_string()),
        ("name", name(found).unwrap_or_default().to_owned()),
        ("kind", kind(found)),
        ("media type", found.media_type.clone()),
        ("size", Size(found.bytes).to_string()),
        ("created", date(found.created_unix_ms)),
        (
            "path",
            path.map(|path| path.to_string_lossy().into_owned())
                .unwrap_or_default(),
        ),
    ];
    let lines = fields
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(field, value)| {
            format!(
                "{} {}",
                styled(FAINT, &format!("{field:<12}")),
                sanitize::line(value)
            )
        });
    lines.collect::<Vec<_>>().join("\n")
}

fn date(unix_ms: u64) -> String {
    let date = i64::try_from(unix_ms)
        .ok()
        .and_then(DateTime::from_timestamp_millis);
    date.map(|date| date.to_rfc3339_opts(SecondsFormat::Secs, true))
        .unwrap_or_default()
}
