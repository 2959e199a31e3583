//! `cellblock image`: what sandboxes start from.

use std::fmt::Write as _;
use std::path::Path;

use cellblock_image::{Home, Image, ImageError, ImageSpec, Manifest, Report, SHIPPED_IMAGES, Store};
use serde_json::json;

use crate::args::ImageCommand;
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::progress::Display;
use crate::render::json::{self, print};
use crate::render::table::grouped;
use crate::render::{BAD, FAINT, GOOD, STRONG, Screen, styled};
use crate::sanitize;
use crate::size::Size;

/// Does it, prints, and says how it ended.
pub(crate) async fn run(command: ImageCommand) -> ExitCode {
    let json = match command {
        ImageCommand::Build { json, .. }
        | ImageCommand::List { json }
        | ImageCommand::Inspect { json, .. }
        | ImageCommand::Audit { json, .. } => json,
        ImageCommand::Remove { .. } => false,
    };
    match act(command).await {
        Ok(code) => code,
        Err(error) => json::failed(&error, json),
    }
}

/// Gives the image that a user names, building it first where that is needed and possible.
pub(crate) async fn ready(home: &Home, reference: &str, display: &Display) -> Result<Image, ImageError> {
    let store = Store::new(home.clone());
    let image = store.open(reference, display.sink()).await;
    display.clear();
    image
}

async fn act(command: ImageCommand) -> Result<ExitCode> {
    let store = Store::find()?;
    match command {
        ImageCommand::Build { image, force, json } => {
            let built = build(&store, &image, force).await?;
            answer(json, built.manifest(), || describe(built.manifest()));
        }
        ImageCommand::List { json } => {
            let images = store.list()?;
            answer(json, &json!({ "images": images }), || list(&images));
        }
        ImageCommand::Inspect { image, json } => {
            let image = store.resolve(&image)?;
            answer(json, image.manifest(), || inspect(&image));
        }
        ImageCommand::Remove { image } => {
            let id = store.remove(&image).await?;
            Screen::new().show(&format!("removed {id}"));
        }
        ImageCommand::Audit { image, json } => {
            let image = store.resolve(&image)?;
            let report = image.audit().await?;
            let passed = report.passed() || !image.manifest().policy.forbid_network_clients;
            answer(
                json,
                &json!({ "image": image.id(), "passed": passed, "report": report }),
                || audit(&report),
            );
            return Ok(if passed {
                ExitCode::Success
            } else {
                ExitCode::Refused
            });
        }
    }
    Ok(ExitCode::Success)
}

async fn build(store: &Store, reference: &str, force: bool) -> Result<Image> {
    let spec = if let Some(spec) = ImageSpec::shipped(reference)? {
        spec
    } else if Path::new(reference)
        .extension()
        .is_some_and(|extension| extension == "toml")
    {
        ImageSpec::load(Path::new(reference))?
    } else {
        return Err(Error::Refused(format!(
            "`{reference}` names nothing that can be built: write {}, or a file that ends in `.toml`",
            SHIPPED_IMAGES.map(|name| format!("`{name}`")).join(", ")
        )));
    };
    let display = Display::on_stderr();
    let built = Cancel::listen()?
        .unless(store.build(&spec, force, display.sink()))
        .await;
    display.clear();
    built
}

fn answer(json: bool, value: &impl serde::Serialize, text: impl FnOnce() -> String) {
    if json {
        print(value);
    } else {
        Screen::new().show(&text());
    }
}

fn describe(manifest: &Manifest) -> String {
    let mut text = format!(
        "{} {}  Python {}, {} packages, {}",
        styled(STRONG, &sanitize::line(&manifest.name)),
        manifest.short_id(),
        sanitize::line(&manifest.python),
        manifest.packages.len(),
        Size(manifest.size)
    );
    for note in &manifest.notes {
        let _ = write!(text, "\n  {}", sanitize::text(note));
    }
    text
}

fn list(images: &[Manifest]) -> String {
    if images.is_empty() {
        return "no image is built yet; `cellblock image build` builds the default one".to_owned();
    }
    images.iter().map(describe).collect::<Vec<_>>().join("\n")
}

fn inspect(image: &Image) -> String {
    let manifest = image.manifest();
    let mut text = describe(manifest);
    let mut field = |name: &str, value: &str| {
        let _ = write!(text, "\n{} {value}", styled(FAINT, &format!("{name:<12}")));
    };
    field("id", image.id());
    field("directory", &sanitize::line(&image.root().to_string_lossy()));
    field("machine", &sanitize::line(&manifest.machine));
    field("files", &grouped(manifest.files));
    let policy = if manifest.policy.forbid_network_clients {
        "no network clients"
    } else {
        "network clients may be in it"
    };
    field("policy", policy);
    field("preloaded", &sanitize::line(&manifest.preload.join(", ")));
    let packages: Vec<_> = manifest
        .packages
        .iter()
        .map(|it| format!("{} {}", it.name, it.version))
        .collect();
    field("packages", &sanitize::line(&packages.join(", ")));
    text
}

fn audit(report: &Report) -> String {
    let mut text = if report.passed() {
        styled(GOOD, "passed")
    } else {
        styled(BAD, "failed")
    };
    let _ = write!(
        text,
        ": {} packages searched for {} known network clients",
        report.packages, report.known_clients
    );
    for finding in &report.findings {
        let verdict = if finding.allowed { "allowed" } else { "forbidden" };
        let line = format!(
            "{verdict}: {} ({}) at {}",
            finding.client, finding.reason, finding.path
        );
        let _ = write!(text, "\n  {}", sanitize::line(&line));
    }
    text
}
