//! Building a root filesystem from a Containerfile, with `buildah`.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{RootFormat, RootSource};
use crate::error::IoResultExt as _;
use crate::{ImageError, ImageStore, OpenImage, Result, Sink, build, process};

/// A Containerfile or Dockerfile to build.
#[derive(Clone, Debug)]
pub struct Containerfile {
    /// The file.
    pub path: PathBuf,
    /// Folder from which it copies; by default that of the file.
    pub context: Option<PathBuf>,
    /// Name of the image; by default one that follows from the name of that folder.
    pub name: Option<String>,
}

impl ImageStore {
    /// Builds a Containerfile with `buildah`, and imports the result. Its instructions run as
    /// buildah confines them, not in a sandbox.
    pub async fn build_containerfile(&self, file: Containerfile, sink: Sink) -> Result<OpenImage> {
        let store = self.clone();
        let (source, built) = tokio::task::spawn_blocking({
            let sink = sink.clone();
            move || store.run_buildah(&file, &sink)
        })
        .await??;
        let imported = self.import_root(source, sink).await;
        build::remove(&built)?;
        imported
    }

    fn run_buildah(&self, file: &Containerfile, sink: &Sink) -> Result<(RootSource, PathBuf)> {
        let path = std::path::absolute(&file.path).at("make absolute", &file.path)?;
        let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
        let context = file.context.clone().unwrap_or(folder);
        let context = context.canonicalize().at("open", &context)?;
        let name = file.name.clone().or_else(|| {
            let name = context.file_name()?.to_string_lossy().into_owned();
            Some(name)
        });
        // Of this process alone: two builds of one file do not meet.
        let built = self
            .home()
            .staging(&format!("containerfile-{}", std::process::id()));
        build::remove(&built)?;
        std::fs::create_dir_all(&built).at("create", &built)?;
        sink.stage(format!("building {} with buildah", path.display()));
        let layout = built.join("layout");
        let mut command = Command::new("buildah");
        command.args(["build", "--format", "oci", "--file"]).arg(&path);
        command
            .arg("--tag")
            .arg(format!("oci:{}:built", layout.display()));
        command.arg(&context).stdin(Stdio::null());
        let ran = process::run(&mut command, "build the Containerfile", |line| sink.line(line));
        if let Err(error) = ran {
            build::remove(&built)?;
            return Err(match error {
                ImageError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                    ImageError::NoBuildah
                }
                other => other,
            });
        }
        let source = RootSource {
            format: RootFormat::OciLayout,
            path: layout,
            name,
            tag: None,
        };
        Ok((source, built))
    }
}
