//! A build without the feature `kubernetes`, whose configuration cannot ask for pods.

use std::future::{Ready, ready};

use cellblock_gateway::{Engine, Options};
use cellblock_image::Home;
use cellblock_settings::MissingFeature;
use tokio::net::TcpListener;

use crate::config::{LoadedConfig, PodSite};
use crate::error::{Error, Result};

/// A server that has its port, and no pod.
#[expect(dead_code, reason = "no pod is claimed")]
pub(super) struct StartingServer<'a> {
    pub(super) listener: &'a TcpListener,
    pub(super) options: &'a Options,
    pub(super) announce: &'a dyn Fn(),
}

pub(super) fn engine(
    _: &LoadedConfig,
    _: &PodSite,
    _: &Home,
    _: &StartingServer<'_>,
) -> Ready<Result<Engine>> {
    ready(Err(Error::Refused(MissingFeature("kubernetes").to_string())))
}
