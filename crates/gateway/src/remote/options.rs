//! How a gateway gives sandboxes.

/// How a gateway gives sandboxes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteOptions {
    /// Whether other Cellblocks may have sandboxes of this one, to run in them what they like.
    pub serve: bool,
}
