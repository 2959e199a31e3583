//! The kinds of content that a client's answers have beside text.

use rmcp::model::Implementation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::options::Options;

/// Clients that show a model the images of an answer, by the names that they give themselves. Most
/// others drop images, or put their base64 into the model's text.
const SHOW_IMAGES: [&str; 5] = [
    // Claude Desktop and claude.ai.
    "claude-ai",
    "claude-code",
    "cursor-vscode",
    "Visual Studio Code",
    "mcp-inspector",
];

/// Clients that get charts and pictures as images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImageDisplay {
    /// Clients that are known to show images to their model.
    #[default]
    Auto,
    /// All clients.
    Always,
    /// No client.
    Never,
}

impl std::str::FromStr for ImageDisplay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            _ => Err(format!(
                "`{text}` does not say who gets images; choose `auto`, `always` or `never`"
            )),
        }
    }
}

/// The content that follows the text of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AnswerDisplay {
    pub(crate) images: bool,
    pub(crate) links: bool,
}

impl AnswerDisplay {
    /// Returns the content that a client gets.
    pub(crate) fn of(options: &Options, shows_images: bool) -> Self {
        Self {
            images: match options.images {
                ImageDisplay::Auto => shows_images,
                ImageDisplay::Always => true,
                ImageDisplay::Never => false,
            },
            links: options.links,
        }
    }
}

/// Whether this client is known to show images.
pub(crate) fn shows_images(client: &Implementation) -> bool {
    SHOW_IMAGES.contains(&client.name.as_str())
}
