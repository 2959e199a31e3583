//! Images of Python that tests share.

use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::{Cli, workspace_root};

/// Building an image may download its packages.
const LIMIT: Duration = Duration::from_mins(10);

type Built = OnceLock<Result<String, String>>;

/// Returns the file of an image without packages, which it builds where it is missing.
///
/// A server spends seconds of processor time on the libraries of the default image before its first cell. As `CELLBLOCK_IMAGE`, this one
/// saves them.
pub fn bare_image() -> Result<&'static str> {
    static BUILT: Built = OnceLock::new();
    built(&BUILT, "bare.toml")
}

/// Returns the file of an image with numpy, pandas and pyarrow, which it builds where it is missing.
pub fn small_image() -> Result<&'static str> {
    static BUILT: Built = OnceLock::new();
    built(&BUILT, "small.toml")
}

fn built(once: &'static Built, name: &str) -> Result<&'static str> {
    let build = || {
        let file = workspace_root().join("crates/testkit/images").join(name);
        let file = file.to_string_lossy().into_owned();
        match Cli::new(["image", "build", &file]).limit(LIMIT).run() {
            Ok(finished) if finished.code() == 0 => Ok(file),
            Ok(finished) => Err(finished.stderr),
            Err(error) => Err(format!("{error:#}")),
        }
    };
    match once.get_or_init(build) {
        Ok(file) => Ok(file),
        Err(error) => bail!("build the image of `{name}`: {error}"),
    }
}
