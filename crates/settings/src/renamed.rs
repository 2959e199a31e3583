//! Names that changed: the old ones are accepted for one release, with a warning that names the new one.

/// A setting that has another name now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// Where it is: a section of the configuration, a request, or a command.
    pub within: &'static str,
    /// The name that it had.
    pub old: &'static str,
    /// The name that it has.
    pub new: &'static str,
}

const fn renamed(within: &'static str, old: &'static str, new: &'static str) -> Renamed {
    Renamed { within, old, new }
}

/// Keys of the configuration by section; `*` is the name of a provider.
pub const KEYS: &[Renamed] = &[
    renamed("containers", "brief_idle", "one_shot_idle_timeout"),
    renamed("containers", "concurrent", "max_concurrent"),
    renamed("containers", "idle", "idle_timeout"),
    renamed("containers", "inline_picture", "max_inline_image"),
    renamed("containers", "kept", "retention"),
    renamed("containers", "max_idle", "max_idle_timeout"),
    renamed("containers", "one_shots", "max_one_shots"),
    renamed("containers", "per_owner", "max_per_key"),
    renamed("containers", "sandboxes", "max_sandboxes"),
    renamed("containers", "wait", "wait_timeout"),
    renamed("execute", "concurrent", "max_concurrent"),
    renamed("files", "inline_text", "max_inline_text"),
    renamed("files", "max_size", "max_upload"),
    renamed("files", "picture", "max_image"),
    renamed("responses", "background", "max_background"),
    renamed("responses", "patience", "stall_timeout"),
    renamed("responses", "queue", "max_queued"),
    renamed("responses", "socket", "socket_timeout"),
    renamed("sessions", "cells", "max_cells"),
    renamed("sessions", "data", "max_data"),
    renamed("sessions", "idle", "idle_timeout"),
    renamed("sessions", "max_idle", "max_idle_timeout"),
    renamed("sessions", "per_owner", "max_per_key"),
];
