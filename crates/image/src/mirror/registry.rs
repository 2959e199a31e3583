//! Archives in an OCI registry: a manifest with one layer, which is the archive.
//!
//! Pushed with `oras push HOST/REPOSITORY:NAME-MACHINE
//! FILE:application/vnd.cellblock.image.v1.tar+zstd`. The protocol is that of the OCI distribution
//! specification 1.1.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use reqwest::{StatusCode, Url, header};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::download::Request;
use super::{ArchiveLocation, ArchiveOffer, read_small};
use crate::digest::hex;
use crate::http::reasons;
use crate::manifest::is_id;

/// Media type of an archive's layer.
const LAYER: &str = "application/vnd.cellblock.image.v1.tar+zstd";
const ACCEPT: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
                      application/vnd.docker.distribution.manifest.v2+json";
/// Maximum size of a manifest or a token in bytes: that of the specification.
const MAX_ANSWER: u64 = 4 << 20;

/// A repository of a registry.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Repository {
    /// Root of the registry, with a user and a password if it needs one.
    registry: Url,
    name: String,
    /// Tag or digest; by default `NAME-MACHINE` of the image.
    reference: Option<String>,
}

#[derive(Deserialize)]
struct RegistryManifest {
    #[serde(default)]
    manifests: Vec<Descriptor>,
    #[serde(default)]
    layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: String,
    digest: String,
    size: u64,
    platform: Option<Platform>,
}

#[derive(Deserialize)]
struct Platform {
    architecture: String,
}

#[derive(Deserialize)]
struct Token {
    #[serde(alias = "access_token")]
    token: String,
}

impl Repository {
    /// Finds the archive of an image for this machine.
    pub(super) fn find(&self, name: &str) -> Result<ArchiveOffer, String> {
        let machine = std::env::consts::ARCH;
        let tag = format!("{name}-{machine}");
        let reference = self.reference.as_deref().unwrap_or(&tag);
        let request = Request::new(self.address("manifests", reference)?)?.accept(ACCEPT);
        let (mut manifest, request) = self.manifest(request, reference)?;
        if !manifest.manifests.is_empty() {
            let architecture = match machine {
                "x86_64" => "amd64",
                "aarch64" => "arm64",
                other => other,
            };
            let fits = |it: &&Descriptor| {
                it.platform
                    .as_ref()
                    .is_some_and(|it| it.architecture == architecture)
            };
            let fitting = manifest.manifests.iter().find(fits);
            let digest = &fitting
                .ok_or_else(|| format!("`{reference}` has no image for {architecture}"))?
                .digest;
            let next = request.at(self.address("manifests", digest)?);
            manifest = self.manifest(next, digest)?.0;
        }
        let layer = match &manifest.layers[..] {
            [only] => only,
            several => several
                .iter()
                .find(|it| it.media_type == LAYER)
                .ok_or_else(|| format!("`{reference}` has no layer of the type {LAYER}"))?,
        };
        let sha256 = layer.digest.strip_prefix("sha256:").filter(|it| is_id(it));
        let sha256 =
            sha256.ok_or_else(|| format!("the layer of `{reference}` has no SHA-256 as its digest"))?;
        Ok(ArchiveOffer {
            origin: self.to_string(),
            id: None,
            sha256: Some(sha256.to_owned()),
            bytes: Some(layer.size),
            place: ArchiveLocation::Web(request.at(self.address("blobs", &layer.digest)?)),
        })
    }

    /// Gets a manifest, with a token if the registry asks for one; returns the request that had success.
    fn manifest(&self, mut request: Request, reference: &str) -> Result<(RegistryManifest, Request), String> {
        let mut response = request.send(0).map_err(|error| reasons(&error))?;
        if response.status() == StatusCode::UNAUTHORIZED {
            let challenge = response.headers().get(header::WWW_AUTHENTICATE);
            let challenge = challenge.and_then(|it| it.to_str().ok()).unwrap_or_default();
            request = request.clone().bearer(self.token(&request, challenge)?);
            response = request.send(0).map_err(|error| reasons(&error))?;
        }
        if response.status() == StatusCode::NOT_FOUND {
            return Err(format!("it has no `{reference}`"));
        }
        let response = response
            .error_for_status()
            .map_err(|error| reasons(&error.without_url()))?;
        let text = read_small(response, MAX_ANSWER, "the manifest")?;
        if let Some(digest) = reference.strip_prefix("sha256:") {
            let actual = hex(&Sha256::digest(&text));
            if actual != digest {
                return Err(format!(
                    "the manifest has the SHA-256 {actual}, and {digest} was expected"
                ));
            }
        }
        let manifest = serde_json::from_slice(&text)
            .map_err(|error| format!("the manifest of `{reference}` cannot be read: {error}"))?;
        Ok((manifest, request))
    }

    /// Gets a token as `WWW-Authenticate: Bearer realm="…",service="…",scope="…"` asks for it.
    fn token(&self, request: &Request, challenge: &str) -> Result<String, String> {
        let denied = || {
            let challenge = challenge.escape_debug();
            format!("it needs a user and a password, or other ones: oci://USER:PASSWORD@HOST/… ({challenge})")
        };
        let (kind, fields) = challenge.split_once(' ').ok_or_else(denied)?;
        let field = |name: &str| {
            let start = fields.find(&format!("{name}=\""))? + name.len() + 2;
            fields[start..].split('"').next()
        };
        let realm = field("realm").filter(|_| kind.eq_ignore_ascii_case("bearer"));
        let mut url = Url::parse(realm.ok_or_else(denied)?)
            .map_err(|error| format!("its token server is not a URL: {error}"))?;
        if url.scheme() != self.registry.scheme() && url.scheme() != "https" {
            return Err("its token server is not encrypted".to_owned());
        }
        for name in ["service", "scope"] {
            if let Some(value) = field(name) {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        // An address that takes no user stays without one.
        let _ = url.set_username(self.registry.username());
        let _ = url.set_password(self.registry.password());
        let answer = request.at(url).get()?;
        let token: Token = serde_json::from_slice(&read_small(answer, MAX_ANSWER, "the token")?)
            .map_err(|error| format!("its token cannot be read: {error}"))?;
        Ok(token.token)
    }

    /// Returns the address of a manifest or a blob. The client sends its user and password as a header.
    fn address(&self, kind: &str, reference: &str) -> Result<Url, String> {
        self.registry
            .join(&format!("/v2/{}/{kind}/{reference}", self.name))
            .map_err(|error| error.to_string())
    }
}

impl FromStr for Repository {
    type Err = String;

    /// Reads `[USER:PASSWORD@]HOST[:PORT]/REPOSITORY[:TAG|@DIGEST]`. A registry of this machine
    /// needs no encryption.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "a registry's mirror is `oci://HOST/REPOSITORY`, with `:TAG` or `@sha256:…` for one image"
                .to_owned()
        };
        let (host, path) = text.split_once('/').ok_or_else(wrong)?;
        let mut registry =
            Url::parse(&format!("https://{host}/")).map_err(|error| format!("it is not a host: {error}"))?;
        let address = registry.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let is_local = address == "localhost" || address.parse().is_ok_and(|it: IpAddr| it.is_loopback());
        if is_local {
            registry = Url::parse(&format!("http://{host}/"))
                .map_err(|error| format!("it is not a host: {error}"))?;
        }
        let (name, reference) = match path.split_once('@').or_else(|| path.split_once(':')) {
            Some((name, reference)) => (name, Some(reference)),
            None => (path, None),
        };
        let plain = |text: &str, also: &str| {
            !text.is_empty()
                && text
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || also.contains(c))
        };
        let parts_are_plain = name
            .split('/')
            .all(|part| plain(part, "._-") && !part.starts_with('.'));
        if !parts_are_plain || reference.is_some_and(|it| !plain(it, "._-:") || it.starts_with('.')) {
            return Err(wrong());
        }
        Ok(Self {
            registry,
            name: name.to_owned(),
            reference: reference.map(str::to_owned),
        })
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self
            .registry
            .port()
            .map_or_else(String::new, |port| format!(":{port}"));
        let host = self.registry.host_str().unwrap_or_default();
        write!(f, "oci://{host}{port}/{}", self.name)?;
        match &self.reference {
            Some(digest) if digest.contains(':') => write!(f, "@{digest}"),
            Some(tag) => write!(f, ":{tag}"),
            None => Ok(()),
        }
    }
}
