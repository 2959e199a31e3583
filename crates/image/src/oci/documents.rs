//! The JSON documents of OCI and Docker archives, as far as they are needed. Everything in them is
//! checked where it is used.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The index of an OCI layout, or one that is in it.
#[derive(Debug, Deserialize)]
pub(super) struct Index {
    #[serde(default)]
    pub(super) manifests: Vec<Descriptor>,
}

/// The address of a document or a layer.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    #[serde(default)]
    pub(super) media_type: String,
    pub(super) digest: String,
    pub(super) platform: Option<Platform>,
    #[serde(default)]
    pub(super) annotations: BTreeMap<String, String>,
}

/// The machine that an image is for.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Platform {
    pub(super) architecture: String,
    pub(super) os: String,
}

/// A manifest: a configuration and layers.
#[derive(Debug, Deserialize)]
pub(super) struct ImageManifest {
    pub(super) config: Descriptor,
    #[serde(default)]
    pub(super) layers: Vec<Descriptor>,
}

/// The configuration of an image.
#[derive(Debug, Deserialize)]
pub(super) struct Configuration {
    #[serde(default)]
    pub(super) architecture: String,
    #[serde(default)]
    pub(super) os: String,
    #[serde(default)]
    pub(super) config: Option<Runtime>,
    pub(super) rootfs: Layers,
}

/// Settings with which a container of an image would be started.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Runtime {
    pub(super) user: Option<String>,
    pub(super) env: Option<Vec<String>>,
    pub(super) entrypoint: Option<Vec<String>>,
    pub(super) cmd: Option<Vec<String>>,
    pub(super) working_dir: Option<String>,
}

/// The digests of the unpacked layers.
#[derive(Debug, Deserialize)]
pub(super) struct Layers {
    #[serde(default)]
    pub(super) diff_ids: Vec<String>,
}

/// An image of Docker's `manifest.json`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct DockerImage {
    pub(super) config: String,
    #[serde(default)]
    pub(super) repo_tags: Option<Vec<String>>,
    #[serde(default)]
    pub(super) layers: Vec<String>,
}
