//! Images of Python that tests share.

use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::{Cli, workspace_root};

/// Building an image may download its packages.
const LIMIT: Duration = Duration::from_mins(10);

type BuildResult = OnceLock<Result<String, String>>;

/// Returns the file of an image without packages, which it builds where it is missing.
///
/// A server spends seconds of processor time on the libraries of the default image before its first
/// cell. As `CELLBLOCK_IMAGE`, this one saves them.
pub fn bare_image() -> Result<&'static str> {
    static BUILT: BuildResult = OnceLock::new();
    built(&BUILT, || described("bare.toml"))
}

/// Returns the file of an image with numpy, pandas and pyarrow, which it builds where it is missing.
pub fn small_image() -> Result<&'static str> {
    static BUILT: BuildResult = OnceLock::new();
    built(&BUILT, || described("small.toml"))
}

/// Returns the name of the image with Polars that comes with Cellblock, which it builds where it is missing.
pub fn polars_image() -> Result<&'static str> {
    static BUILT: BuildResult = OnceLock::new();
    built(&BUILT, || "polars".to_owned())
}

fn described(file: &str) -> String {
    let path = workspace_root().join("crates/testkit/images").join(file);
    path.to_string_lossy().into_owned()
}

fn built(once: &'static BuildResult, image: impl FnOnce() -> String) -> Result<&'static str> {
    let build = || {
        let image = image();
        match Cli::new(["image", "build", &image]).limit(LIMIT).run() {
            Ok(finished) if finished.code() == 0 => Ok(image),
            Ok(finished) => Err(format!("build the image `{image}`: {}", finished.stderr)),
            Err(error) => Err(format!("build the image `{image}`: {error:#}")),
        }
    };
    match once.get_or_init(build) {
        Ok(image) => Ok(image),
        Err(error) => bail!("{error}"),
    }
}
