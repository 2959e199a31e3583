//! `cargo xtask dist`: builds everything that a release consists of, into `dist/`, and tries it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;

use self::engine::Engine;
use self::tools::ReleaseTools;

mod archive;
mod container;
mod deb;
mod engine;
mod glibc;
mod images;
mod install;
pub(crate) mod tools;
mod wheel;

/// A part of a release. They are built in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum ReleasePart {
    /// The Python package with the program inside, the program alone, and its components
    Wheel,
    /// The program with its license and documents
    Tarball,
    /// The ready images `core` and `default`, and an index, which makes `dist/` a mirror
    Images,
    /// The Debian package; if there is podman or docker, it is installed and its service started in
    /// a container
    Deb,
    /// The SHA-256 of everything above
    Sums,
    /// Installs everything into empty homes and runs cells there
    Install,
    /// Container images with the ready images inside, in the store of podman or docker, run in
    /// every way of the guide, or in that of buildah
    Container,
}

impl ReleasePart {
    /// Tells whether programs of the release must run for it, which needs a machine of their kind.
    fn runs_programs(self) -> bool {
        matches!(self, Self::Images | Self::Install | Self::Container)
    }
}

/// Machine that a release runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(non_camel_case_types, reason = "these are the names of the machines")]
pub enum Machine {
    /// 64-bit x86
    #[value(name = "x86_64")]
    x86_64,
    /// 64-bit ARM
    #[value(name = "aarch64")]
    aarch64,
}

impl Machine {
    /// Returns the machine that this program runs on.
    pub fn own() -> Result<Self> {
        Self::from_str(std::env::consts::ARCH, false)
            .map_err(|_| anyhow::anyhow!("nothing is released for `{}`", std::env::consts::ARCH))
    }

    /// Returns its name.
    fn name(self) -> &'static str {
        match self {
            Self::x86_64 => "x86_64",
            Self::aarch64 => "aarch64",
        }
    }
}

/// One release, being built.
#[derive(Debug)]
struct Release {
    root: PathBuf,
    /// Everything that is published.
    out: PathBuf,
    /// Cargo's folder.
    target: PathBuf,
    machine: Machine,
    version: String,
    tools: ReleaseTools,
}

/// Builds the parts, or all of them if there are none, for a machine.
pub fn run(root: &Path, machine: Option<Machine>, parts: &[ReleasePart]) -> Result<bool> {
    let machine = machine.map_or_else(Machine::own, Ok)?;
    let own = machine == Machine::own()?;
    let mut parts = parts.to_vec();
    if parts.is_empty() {
        let all = ReleasePart::value_variants().iter();
        parts.extend(all.filter(|part| own || !part.runs_programs()));
        if Engine::find().is_none() {
            eprintln!("not built: containers, because there is neither podman nor docker");
            parts.retain(|part| *part != ReleasePart::Container);
        }
    }
    parts.sort_unstable();
    parts.dedup();
    let release = Release::new(root, machine)?;
    for part in parts {
        eprintln!(
            "== {} ==",
            part.to_possible_value().unwrap_or_default().get_name()
        );
        match part {
            ReleasePart::Wheel => wheel::build(&release)?,
            ReleasePart::Tarball => archive::tarball(&release)?,
            ReleasePart::Images => images::export(&release)?,
            ReleasePart::Deb => deb::build(&release)?,
            ReleasePart::Sums => archive::sums(&release)?,
            ReleasePart::Install => install::test(&release)?,
            ReleasePart::Container => container::build(&release)?,
        }
    }
    Ok(true)
}

impl Release {
    fn new(root: &Path, machine: Machine) -> Result<Self> {
        let target = crate::target_folder(root);
        let target = std::path::absolute(target)?;
        let out = root.join("dist");
        fs::create_dir_all(&out).with_context(|| format!("create `{}`", out.display()))?;
        Ok(Self {
            tools: ReleaseTools::install(&target.join("dist-tools"))?,
            root: root.to_owned(),
            out,
            target,
            machine,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }

    /// Returns the name of the machine as compilers know it.
    fn triple(&self) -> String {
        format!("{}-unknown-linux-gnu", self.machine.name())
    }

    /// Returns the program, once the wheel is built.
    fn binary(&self) -> Result<PathBuf> {
        let path = self.target.join(self.triple()).join("dist/cellblock");
        if !path.is_file() {
            bail!(
                "`{}` is missing: run `cargo xtask dist wheel` first",
                path.display()
            );
        }
        Ok(path)
    }

    /// Returns the archive of an image.
    fn image(&self, name: &str) -> Result<PathBuf> {
        let beginning = format!("cellblock-image-{name}-{}-", self.machine.name());
        for entry in fs::read_dir(&self.out)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(&beginning) {
                return Ok(entry.path());
            }
        }
        bail!("`dist/{beginning}….tar.zst` is missing: run `cargo xtask dist images` first")
    }

    /// Fails if the release is not for this machine, on which a part must run.
    fn needs_own_machine(&self, part: &str) -> Result<()> {
        if self.machine != Machine::own()? {
            bail!(
                "`{part}` runs programs of the release: build it on {}",
                self.machine.name()
            );
        }
        Ok(())
    }

    /// Returns the file of the release with this name, which begins with the version and ends as given.
    fn file(&self, end: &str) -> PathBuf {
        self.out
            .join(format!("cellblock-{}-{}{end}", self.version, self.triple()))
    }
}
