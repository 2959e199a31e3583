//! Events for a host while tools work.

use std::path::PathBuf;

use cellblock_protocol::Stream;
use tokio::sync::broadcast;

use crate::execution::Event;
use crate::session::Listener;

/// Something that happens while a tool works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolEvent {
    /// Code or a command wrote these bytes to stdout.
    Stdout(Vec<u8>),
    /// Code or a command wrote these bytes to stderr.
    Stderr(Vec<u8>),
    /// A command left a picture in `/tmp/output`.
    Visualization {
        /// Path of the picture: in the host's folder for this session; without such a folder its name below
        /// `/tmp/output`.
        path: PathBuf,
        /// The artifact with its bytes.
        sha256: String,
        /// `image/png`, `image/jpeg` or `image/svg+xml`. The bytes begin as such a picture does; a
        /// drawing (SVG) may hold scripts.
        media_type: String,
    },
}

impl ToolEvent {
    /// The same event of a cell. Outputs are part of its result.
    pub(crate) fn of_cell(event: Event) -> Option<Self> {
        match event {
            Event::Stdout(bytes) => Some(Self::Stdout(bytes)),
            Event::Stderr(bytes) => Some(Self::Stderr(bytes)),
            Event::Output(_) | Event::Display(_) | Event::Clear { .. } => None,
        }
    }
}

impl Listener for broadcast::Sender<ToolEvent> {
    fn wrote(&self, stream: Stream, bytes: Vec<u8>) {
        let event = match stream {
            Stream::Stdout => ToolEvent::Stdout(bytes),
            Stream::Stderr => ToolEvent::Stderr(bytes),
        };
        // Nobody has to listen.
        let _ = self.send(event);
    }
}
