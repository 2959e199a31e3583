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

impl Renamed {
    /// Tells to use the new name.
    pub fn warning(&self) -> String {
        format!("renamed to `{}`; the next release rejects the old name", self.new)
    }

    /// Tells that both names are used.
    pub fn both(&self) -> String {
        format!(
            "this is the old name of `{}`, which is set too; remove this one",
            self.new
        )
    }
}

const fn renamed(within: &'static str, old: &'static str, new: &'static str) -> Renamed {
    Renamed { within, old, new }
}

/// Fields of requests and answers of the REST API; answers have both names.
pub const FIELDS: &[Renamed] = &[IDLE_SECONDS];

/// The idle timeout of a session.
pub const IDLE_SECONDS: Renamed = renamed("/v1/sessions", "idle_seconds", "idle_timeout");

/// Flags by command.
pub const FLAGS: &[Renamed] = &[
    renamed("mcp", "--idle", "--idle-timeout"),
    renamed("session start", "--idle", "--idle-timeout"),
];

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
    renamed("mcp", "idle", "idle_timeout"),
    renamed("mcp", "sessions", "max_sessions"),
    renamed("mcp", "sessions_per_owner", "max_sessions_per_key"),
    renamed("mcp", "tokens", "max_tokens"),
    renamed("providers.*.retries", "first", "first_wait"),
    renamed("providers.*.retries", "most", "max_wait"),
    renamed("responses", "background", "max_background"),
    renamed("responses", "patience", "stall_timeout"),
    renamed("responses", "queue", "max_queued"),
    renamed("responses", "socket", "socket_timeout"),
    renamed("sessions", "cells", "max_cells"),
    renamed("sessions", "data", "max_data"),
    renamed("sessions", "idle", "idle_timeout"),
    renamed("sessions", "max_idle", "max_idle_timeout"),
    renamed("sessions", "per_owner", "max_per_key"),
    renamed("turn", "tool_tokens", "max_tool_tokens"),
];
