//! Images on their way between machines: `export`, `import` and `pull`.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use cellblock_image::{
    Containerfile, ImageStore, Mirror, MirrorEntry, OpenImage, RootFormat, RootSource, add_to_mirror,
    archive_name,
};
use cellblock_settings::Size;
use serde_json::json;

use super::{answer, mirror};
use crate::cancel::Cancel;
use crate::env_vars::IMAGE_MIRROR;
use crate::error::{Error, Result};
use crate::progress::Display;
use crate::render::{STRONG, styled};
use crate::sanitize;

/// Writes an image to one file, and lists it in the index of its folder if asked to.
pub(super) async fn export(image: &OpenImage, out: &Path, level: i32, index: bool, json: bool) -> Result<()> {
    let display = Display::on_stderr();
    let mut cancel = Cancel::listen()?;
    if out == Path::new("-") {
        if json || index {
            let option = if json { "--json" } else { "--index" };
            return Err(Error::Refused(format!(
                "`--out -` writes the archive to stdout and cannot be combined with `{option}`"
            )));
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
    if index {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let entry = MirrorEntry::new(image.manifest(), &name, exported.bytes, &exported.sha256);
        add_to_mirror(folder.unwrap_or(Path::new(".")), entry)?;
    }
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

/// Adds an image from a file or from stdin.
pub(super) async fn import(store: &ImageStore, file: &Path, sha256: Option<&str>) -> Result<OpenImage> {
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

/// Returns the format of what is imported, if it is a root filesystem.
pub(super) fn root(named: Option<RootFormat>, path: &Path) -> Result<Option<RootFormat>> {
    match named {
        Some(RootFormat::Directory) if !path.is_dir() => Err(Error::Refused(format!(
            "`{}` is not a folder; write `docker-archive` or `oci-layout` for a file",
            path.display()
        ))),
        Some(format) => Ok(Some(format)),
        None if path.join("oci-layout").is_file() => Ok(Some(RootFormat::OciLayout)),
        None => Ok(path.is_dir().then_some(RootFormat::Directory)),
    }
}

/// Adds a root filesystem of another tool.
pub(super) async fn import_root(store: &ImageStore, source: RootSource) -> Result<OpenImage> {
    let display = Display::on_stderr();
    let imported = Cancel::listen()?
        .unless(store.import_root(source, display.sink()))
        .await;
    display.clear();
    imported
}

/// Builds a Containerfile and adds the result.
pub(super) async fn build_containerfile(store: &ImageStore, file: Containerfile) -> Result<OpenImage> {
    let display = Display::on_stderr();
    let built = Cancel::listen()?
        .unless(store.build_containerfile(file, display.sink()))
        .await;
    display.clear();
    built
}

/// Downloads an image from a mirror: the one that is named here, or else that of the environment.
pub(super) async fn pull(
    store: &ImageStore,
    image: &str,
    from: Option<Mirror>,
    sha256: Option<&str>,
) -> Result<OpenImage> {
    let mirror = mirror(from)?.ok_or_else(|| {
        Error::Refused(format!(
            "there is no mirror to pull from: name one with `--from`, or set {}",
            IMAGE_MIRROR.name
        ))
    })?;
    let display = Display::on_stderr();
    let pulled = Cancel::listen()?
        .unless(store.pull(image, &mirror, sha256, display.sink()))
        .await;
    display.clear();
    pulled
}
