//! Checks of options that types cannot make.

use cellblock_interpreter::project::check_name;

use crate::config::Settings;
use crate::config::check::Check;

/// Smallest request body that can be allowed.
const MIN_BODY: usize = 1 << 10;
/// More sandboxes would only fill the memory of any machine.
const MAX_READY: usize = 1024;

impl Settings {
    pub(in crate::config) fn check_options(&self, check: &mut Check<'_>) {
        let Self {
            pool,
            turn,
            models,
            responses,
            containers,
            files,
            sessions,
            skills,
            uploads,
            volumes,
            execute,
            http,
            ..
        } = self;
        for (section, key, timeout) in [
            ("pool", "acquire_timeout", pool.acquire_timeout),
            ("models", "list_timeout", models.list_timeout),
            ("responses", "keep_alive", responses.keep_alive),
            ("responses", "stall_timeout", responses.stall_timeout),
            ("responses", "function_timeout", responses.function_timeout),
            ("responses", "socket_timeout", responses.socket_timeout),
            ("containers", "idle_timeout", containers.idle_timeout),
            ("sessions", "idle_timeout", sessions.idle_timeout),
            ("sessions", "hibernation_timeout", sessions.hibernation_timeout),
            ("execute", "timeout", execute.timeout),
            ("uploads", "timeout", uploads.timeout),
            ("http", "header_timeout", http.header_timeout),
            ("http", "body_timeout", http.body_timeout),
            ("http", "write_timeout", http.write_timeout),
        ] {
            check.positive(&[section, key], timeout);
        }
        for (section, key, timeout, most) in [
            (
                "containers",
                "idle_timeout",
                containers.idle_timeout,
                containers.max_idle_timeout,
            ),
            (
                "sessions",
                "idle_timeout",
                sessions.idle_timeout,
                sessions.max_idle_timeout,
            ),
            ("execute", "timeout", execute.timeout, execute.max_timeout),
        ] {
            check.below_maximum(&[section, key], timeout, most);
        }
        for (section, key, count) in [
            ("turn", "max_steps", Some(turn.max_steps as usize)),
            ("turn", "max_attempts", Some(turn.max_attempts as usize)),
            ("containers", "max_per_key", Some(containers.max_per_key)),
            ("containers", "max_sandboxes", containers.max_sandboxes),
            ("containers", "max_concurrent", containers.max_concurrent),
            ("skills", "max_per_key", Some(skills.max_per_key)),
            ("volumes", "max_files", Some(volumes.max_files as usize)),
            ("volumes", "max_per_key", Some(volumes.max_per_key)),
            ("execute", "max_concurrent", Some(execute.max_concurrent)),
            ("http", "max_connections", Some(http.max_connections)),
        ] {
            if count == Some(0) {
                check.wrong(&[section, key], "must be at least 1");
            }
        }
        if !self.dialects.requirements.is_empty()
            && let Err(error) = self.requirements.check(&self.dialects.requirements)
        {
            check.wrong(&["dialects", "requirements"], error.to_string());
        }
        if let Some(Err(reason)) = containers.project.as_deref().map(check_name) {
            check.wrong(&["containers", "project"], reason);
        }
        if pool.ready > MAX_READY {
            check.wrong(&["pool", "ready"], format!("must be at most {MAX_READY}"));
        }
        for (section, most) in [("files", files.max_upload), ("sessions", sessions.max_upload)] {
            if most > uploads.max_bytes_per_key {
                let most = "must be at most `uploads.max_bytes_per_key`, so that a key can send such a file";
                check.wrong(&[section, "max_upload"], most);
            }
        }
        if uploads.max_bytes_per_key > uploads.max_bytes {
            check.wrong(
                &["uploads", "max_bytes_per_key"],
                "must be at most `uploads.max_bytes`",
            );
        }
        if http.max_body < MIN_BODY {
            check.wrong(&["http", "max_body"], "must be at least 1KiB");
        }
    }
}
