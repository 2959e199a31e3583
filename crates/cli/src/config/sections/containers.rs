//! Containers: the sandboxes of conversations.

use cellblock_gateway::{ContainerOptions, Options};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::check::Check;
use crate::config::units::{Bytes, Time};

/// Containers: the sandboxes of conversations.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Containers {
    /// How long a container is kept that is not used, unless its client says.
    pub(crate) idle: Time,
    /// The longest such time that a client may ask for.
    pub(crate) max_idle: Time,
    /// The most that an owner has at a time.
    pub(crate) per_owner: usize,
    /// How long code waits for one where an owner has the most.
    pub(crate) wait: Time,
    /// The most memory that a client may ask for; without it, the machine's.
    pub(crate) max_memory: Option<Bytes>,
    /// How long expired ones and their files are remembered.
    pub(crate) kept: Time,
    /// The largest picture that is sent within an answer; of others an address is sent.
    pub(crate) inline_picture: Bytes,
    /// What such addresses begin with, such as `https://cellblock.example`; without it they begin with `/`.
    pub(crate) public_url: String,
}

impl Default for Containers {
    fn default() -> Self {
        let options = ContainerOptions::default();
        Self {
            idle: Time(options.idle),
            max_idle: Time(options.max_idle),
            per_owner: options.per_owner,
            wait: Time(options.wait),
            max_memory: options.max_memory.map(Bytes),
            kept: Time(options.kept),
            inline_picture: Bytes(options.inline_picture),
            public_url: options.public_url,
        }
    }
}

impl Containers {
    pub(in crate::config) fn apply(&self, options: &mut Options) {
        options.containers = ContainerOptions {
            idle: self.idle.0,
            max_idle: self.max_idle.0,
            per_owner: self.per_owner,
            wait: self.wait.0,
            max_memory: self.max_memory.map(|bytes| bytes.0),
            kept: self.kept.0,
            inline_picture: self.inline_picture.0,
            public_url: self.public_url.clone(),
        };
    }

    pub(in crate::config) fn check(&self, check: &mut Check<'_>) {
        check.positive(&["containers", "idle"], self.idle);
        if self.idle > self.max_idle {
            let (time, most) = (self.idle, self.max_idle);
            let message =
                format!("{time} are more than `containers.max_idle`, {most}; raise that one, or lower this");
            check.wrong(&["containers", "idle"], message);
        }
        if self.per_owner == 0 {
            check.wrong(
                &["containers", "per_owner"],
                "without a container no code runs; write 1 or more",
            );
        }
    }
}
