//! How containers are set up.

use std::time::Duration;

/// How containers are set up.
#[derive(Clone, Debug)]
pub struct ContainerOptions {
    /// After how long without use one expires that says nothing of it.
    pub idle: Duration,
    /// The longest such time that a client may ask for.
    pub max_idle: Duration,
    /// The most containers that an owner has at a time.
    pub per_owner: usize,
    /// How long code waits for a container where an owner has the most.
    pub wait: Duration,
    /// The most bytes of memory that a client may ask for; the machine's memory, where nothing is said.
    pub max_memory: Option<u64>,
    /// How long expired containers and their files are remembered.
    pub kept: Duration,
    /// The most bytes of a picture that is sent as a `data:` URL; of others an address is sent.
    pub inline_picture: u64,
    /// What stands before such addresses, such as `https://cellblock.example`; nothing, where clients know the host.
    pub public_url: String,
}

impl Default for ContainerOptions {
    fn default() -> Self {
        Self {
            idle: Duration::from_mins(20),
            max_idle: Duration::from_hours(24),
            per_owner: 128,
            wait: Duration::from_secs(30),
            max_memory: None,
            kept: Duration::from_hours(7 * 24),
            inline_picture: 4 << 20,
            public_url: String::new(),
        }
    }
}
