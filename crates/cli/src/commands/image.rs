//! `cellblock image`: what sandboxes start from.

mod transfer;

use std::fmt::Write as _;
use std::path::Path;

use cellblock_artifact::Store;
use cellblock_image::layer::prune_layers;
use cellblock_image::{
    AuditReport, Containerfile, Home, ImageSpec, ImageStore, Manifest, Mirror, OpenImage, RootSource,
    SHIPPED_IMAGES,
};
use cellblock_interpreter::Interpreter;
use serde_json::json;

use crate::args::ImageCommand;
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::progress::Display;
use crate::render::json::{self, print};
use crate::render::table::{counted, grouped};
use crate::render::{BAD, FAINT, GOOD, STRONG, Screen, styled};
use crate::sanitize;
use cellblock_settings::Size;

/// Does it, prints, and says how it ended.
pub(crate) async fn run(command: ImageCommand) -> ExitCode {
    let json = match command {
        ImageCommand::Build { json, .. }
        | ImageCommand::List { json }
        | ImageCommand::Show { json, .. }
        | ImageCommand::Export { json, .. }
        | ImageCommand::Pull { json, .. }
        | ImageCommand::Import { json, .. }
        | ImageCommand::Prune { json, .. }
        | ImageCommand::Audit { json, .. } => json,
        ImageCommand::Remove { .. } => false,
    };
    match act(command).await {
        Ok(code) => code,
        Err(error) => json::failed(&error, json),
    }
}

/// Returns the mirror to pull from: the one that is named, or else that of the environment.
fn mirror(named: Option<Mirror>) -> Result<Option<Mirror>> {
    match named {
        Some(mirror) => Ok(Some(mirror)),
        None => Mirror::from_env().map_err(Error::Refused),
    }
}

/// Gives the image that a user names, pulling or building it first where that is needed and possible.
pub(crate) async fn ready(
    home: &Home,
    reference: &str,
    named: Option<Mirror>,
    display: &Display,
) -> Result<OpenImage> {
    let store = ImageStore::new(home.clone()).mirror(self::mirror(named)?);
    let image = store.open(reference, display.sink()).await;
    display.clear();
    Ok(image?)
}

/// Starts an interpreter for one session from the image that a user names.
pub(crate) async fn interpreter(home: &Home, store: &Store, reference: &str) -> Result<Interpreter> {
    let display = Display::on_stderr();
    let image = Cancel::listen()?
        .unless(ready(home, reference, None, &display))
        .await?;
    let interpreter = Interpreter::builder()
        .image(image)
        .single_session()
        .store(store.clone())
        .build()
        .await?;
    interpreter.warmed().await?;
    Ok(interpreter)
}

async fn act(command: ImageCommand) -> Result<ExitCode> {
    let store = ImageStore::find()?.mirror(mirror(None)?);
    match command {
        ImageCommand::Build {
            containerfile: Some(path),
            context,
            name,
            json,
            ..
        } => {
            let file = Containerfile { path, context, name };
            let built = transfer::build_containerfile(&store, file).await?;
            answer(json, built.manifest(), || describe(built.manifest()));
        }
        ImageCommand::Build {
            image, force, json, ..
        } => {
            let built = build(&store, &image, force).await?;
            answer(json, built.manifest(), || describe(built.manifest()));
        }
        ImageCommand::List { json } => {
            let images = store.list()?;
            answer(json, &json!({ "images": images }), || list(&images));
        }
        ImageCommand::Show { image, json } => {
            let image = store.resolve(&image)?;
            answer(json, image.manifest(), || inspect(&image));
        }
        ImageCommand::Export {
            image,
            out,
            level,
            index,
            json,
        } => {
            let image = store.resolve(&image)?;
            transfer::export(&image, &out, level, index, json).await?;
        }
        ImageCommand::Pull {
            image,
            from,
            sha256,
            json,
        } => {
            let image = transfer::pull(&store, &image, from, sha256.as_deref()).await?;
            answer(json, image.manifest(), || describe(image.manifest()));
        }
        ImageCommand::Import {
            format,
            path,
            name,
            tag,
            sha256,
            json,
        } => {
            let image = match transfer::root(format, &path)? {
                None if name.is_some() || tag.is_some() => return Err(named_export(&path)),
                None => transfer::import(&store, &path, sha256.as_deref()).await?,
                Some(format) => {
                    let source = RootSource {
                        format,
                        path,
                        name,
                        tag,
                    };
                    transfer::import_root(&store, source).await?
                }
            };
            answer(json, image.manifest(), || describe(image.manifest()));
        }
        ImageCommand::Remove { image } => {
            let id = store.remove(&image).await?;
            Screen::new().show(&format!("removed {id}"));
        }
        ImageCommand::Prune { unused_for, json } => {
            let removed = prune_layers(store.home(), unused_for).await?;
            let value = json!({ "removed": removed.layers, "bytes": removed.bytes });
            answer(json, &value, || {
                let layers = counted(removed.layers, "layer");
                format!("removed {layers} of packages, {}", Size(removed.bytes))
            });
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

fn named_export(path: &Path) -> Error {
    Error::Refused(format!(
        "`{}` is a file that `export` wrote, whose name is in it; write a format, such as \
         `docker-archive`, before the path of a root filesystem",
        path.display()
    ))
}

async fn build(store: &ImageStore, reference: &str, force: bool) -> Result<OpenImage> {
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
        "{} {}  Python {}, {}, {}",
        styled(STRONG, &sanitize::line(&manifest.name)),
        manifest.short_id(),
        sanitize::line(&manifest.python),
        counted(manifest.packages.len(), "package"),
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

fn inspect(image: &OpenImage) -> String {
    let manifest = image.manifest();
    let mut text = describe(manifest);
    let mut field = |name: &str, value: &str| {
        let _ = write!(text, "\n{} {value}", styled(FAINT, &format!("{name:<12}")));
    };
    field("id", image.id());
    field("directory", &sanitize::line(&image.root().to_string_lossy()));
    field("machine", &sanitize::line(&manifest.machine));
    if let Some(root) = &manifest.root {
        let variables: Vec<_> = root.environment.keys().map(String::as_str).collect();
        field("root", "a whole root filesystem");
        field(
            "interpreter",
            &sanitize::line(&format!("/{}", manifest.interpreter)),
        );
        field("variables", &sanitize::line(&variables.join(", ")));
    } else {
        field(
            "libraries",
            &sanitize::line(&manifest.system_libraries.join(", ")),
        );
    }
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
        ": {} searched for {} known network clients",
        counted(report.packages, "package"),
        report.known_clients
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
