//! `cellblock image`: what sandboxes start from.

use std::fmt::Write as _;
use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use cellblock_image::{
    AuditReport, Home, Image, ImageError, ImageSpec, Manifest, SHIPPED_IMAGES, Store, archive_name,
};
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
use cellblock_settings::Size;

/// Does it, prints, and says how it ended.
pub(crate) async fn run(command: ImageCommand) -> ExitCode {
    let json = match command {
        ImageCommand::Build { json, .. }
        | ImageCommand::List { json }
        | ImageCommand::Inspect { json, .. }
        | ImageCommand::Export { json, .. }
        | ImageCommand::Import { json, .. }
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
        ImageCommand::Export {
            image,
            out,
            level,
            json,
        } => export(&store.resolve(&image)?, &out, level, json).await?,
        ImageCommand::Import { file, sha256, json } => {
            let image = import(&store, &file, sha256.as_deref()).await?;
            answer(json, image.manifest(), || describe(image.manifest()));
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

async fn export(image: &Image, out: &Path, level: i32, json: bool) -> Result<()> {
    let display = Display::on_stderr();
    let mut cancel = Cancel::listen()?;
    if out == Path::new("-") {
        if json {
            return Err(Error::Refused(
                "`--out -` writes the archive to stdout, so `--json` cannot".to_owned(),
            ));
        }
        let exported = image.export(std::io::stdout(), out, level, display.sink());
        cancel.unless(exported).await?;
        display.clear();
        return Ok(());
    }
    let path = if out.is_dir() {
        out.join(archive_name(image.manifest()))
    } else {
        out.to_owned()
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    // Whoever sees the file sees all of it.
    let failed = || Error::user_file("write", &path);
    let file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).map_err(failed())?;
    let to = file.reopen().map_err(failed())?;
    let exported = cancel
        .unless(image.export(to, &path, level, display.sink()))
        .await;
    display.clear();
    let exported = exported?;
    file.as_file()
        .set_permissions(Permissions::from_mode(0o644))
        .map_err(failed())?;
    file.persist(&path)
        .map_err(|error| error.error)
        .map_err(failed())?;
    let report = json!({
        "image": image.id(),
        "path": path,
        "bytes": exported.bytes,
        "sha256": exported.sha256,
    });
    answer(json, &report, || {
        format!(
            "{}  {}\nsha256 {}",
            styled(STRONG, &sanitize::line(&path.to_string_lossy())),
            Size(exported.bytes),
            exported.sha256
        )
    });
    Ok(())
}

async fn import(store: &Store, file: &Path, sha256: Option<&str>) -> Result<Image> {
    let display = Display::on_stderr();
    let mut cancel = Cancel::listen()?;
    let imported = if file == Path::new("-") {
        let work = store.import(std::io::stdin(), "stdin", sha256, display.sink());
        cancel.unless(work).await
    } else {
        let from = File::open(file).map_err(Error::user_file("open", file))?;
        let origin = file.to_string_lossy();
        let work = store.import(from, &origin, sha256, display.sink());
        cancel.unless(work).await
    };
    display.clear();
    imported
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

fn audit(report: &AuditReport) -> String {
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
