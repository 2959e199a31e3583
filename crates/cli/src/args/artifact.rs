//! The command line of artifacts.

use std::path::PathBuf;

use cellblock_interpreter::picture::PictureFormat;
use clap::{Args, Subcommand, ValueEnum};

/// Command for artifacts.
#[derive(Args, Clone, Debug)]
pub(crate) struct ArtifactArgs {
    #[command(subcommand)]
    pub(crate) command: ArtifactCommand,
}

/// Command for artifacts.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ArtifactCommand {
    /// List artifacts, newest first
    List {
        /// Print one JSON object as the only line of stdout
        #[arg(long)]
        json: bool,
    },
    /// Write an artifact's bytes to stdout, or describe it
    ///
    /// On a terminal, the artifact is described instead.
    #[command(aliases = ["get", "inspect"])]
    Show {
        #[command(flatten)]
        artifact: ArtifactArg,
        /// Describe the artifact as one JSON object, the only line of stdout
        #[arg(long)]
        json: bool,
    },
    /// Check that the bytes of all artifacts match their sha256
    ///
    /// Exits with 1 if some do not.
    Verify {
        /// Restore missing and damaged artifacts from the store that `CELLBLOCK_REMOTE_STORE` names
        #[arg(long)]
        repair: bool,
        /// Print one JSON object as the only line of stdout
        #[arg(long)]
        json: bool,
    },
    /// Open an artifact in the desktop's default program
    ///
    /// Charts open as a page in the browser. Without a desktop, the path of the file is printed.
    Open {
        #[command(flatten)]
        artifact: ArtifactArg,
        #[command(flatten)]
        renderer: RendererArg,
        /// Print one JSON object as the only line of stdout
        #[arg(long)]
        json: bool,
    },
    /// Save an artifact to a file
    ///
    /// Charts and Vega-Lite specifications can be converted with `--format`.
    Export {
        #[command(flatten)]
        artifact: ArtifactArg,
        /// Convert a chart to this format [default: the artifact's bytes unchanged]
        #[arg(long, value_name = "FORMAT", value_enum)]
        format: Option<ChartFormat>,
        /// File to write [default: a file in the current directory, named after the artifact]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        #[command(flatten)]
        renderer: RendererArg,
        /// Print one JSON object as the only line of stdout
        #[arg(long)]
        json: bool,
    },
}

/// Artifact to use.
#[derive(Args, Clone, Debug)]
pub(crate) struct ArtifactArg {
    /// Beginning of the artifact's sha256, at least 4 digits, or its name
    #[arg(value_name = "ARTIFACT")]
    pub(crate) artifact: String,
}

/// Renderer of charts.
#[derive(Args, Clone, Debug)]
pub(crate) struct RendererArg {
    /// Image whose renderer draws charts: a name, an ID, or a TOML file that describes one
    #[arg(long, value_name = "IMAGE", default_value = "default")]
    pub(crate) image: String,
}

/// Format to which a chart can be converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChartFormat {
    /// A PNG image
    Png,
    /// An SVG image
    Svg,
    /// A page that shows the chart in a browser without a network
    Html,
    /// A Vega-Lite specification with its data, as JSON
    VegaLite,
}

impl ChartFormat {
    /// Returns the extension of its files.
    pub(crate) const fn extension(self) -> &'static str {
        match self.picture() {
            Some(picture) => picture.extension(),
            None => "vl.json",
        }
    }

    /// The picture that it is, if it has to be drawn.
    pub(crate) const fn picture(self) -> Option<PictureFormat> {
        match self {
            Self::Png => Some(PictureFormat::Png),
            Self::Svg => Some(PictureFormat::Svg),
            Self::Html => Some(PictureFormat::Html),
            Self::VegaLite => None,
        }
    }
}
