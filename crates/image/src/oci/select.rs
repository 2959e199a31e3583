//! Choosing an image and its layers: the one with the given tag, for this kind of machine.

use std::io;
use std::path::PathBuf;

use super::blobs::{self, Blobs, blob_path, decompressed, expect, parse};
use super::documents::{Configuration, Descriptor, DockerImage, ImageManifest, Index, Platform};
use super::layer::Unpacker;
use super::{Config, RootFormat, RootSource};
use crate::digest::HashingReader;
use crate::error::invalid;
use crate::{ImageError, Result};

/// Maximum number of layers.
const MAX_LAYERS: usize = 1000;
/// Maximum number of indexes, one in the other.
const MAX_DEPTH: usize = 4;
/// Annotation with the tag of an image.
const TAG: &str = "org.opencontainers.image.ref.name";

/// An image to unpack.
#[derive(Debug)]
pub(super) struct ImageSelection {
    pub(super) config: Config,
    pub(super) layers: Vec<Layer>,
}

/// A layer to unpack.
#[derive(Debug)]
pub(super) struct Layer {
    path: PathBuf,
    /// Digest of the file, if the source gives one.
    digest: Option<String>,
    /// Digest of what it unpacks to, if the configuration gives one.
    unpacked: Option<String>,
}

impl Layer {
    /// Unpacks it, and fails if it is not what its digests say.
    pub(super) fn unpack(&self, blobs: &Blobs, unpacker: &mut Unpacker<'_>) -> Result<()> {
        let origin = unpacker.origin;
        let damaged = |error: io::Error| invalid(origin, format!("a layer is cut short or damaged: {error}"));
        let mut file = HashingReader::new(blobs.open(&self.path, origin)?);
        let mut content = HashingReader::new(decompressed(&mut file).map_err(damaged)?);
        unpacker.unpack(&mut content)?;
        // Both digests are those of everything, with what follows the last member.
        let actual = content.finish().map_err(damaged)?;
        if let Some(digest) = &self.unpacked {
            expect(digest, &actual, origin)?;
        }
        let actual = file.finish().map_err(damaged)?;
        match &self.digest {
            Some(digest) => expect(digest, &actual, origin),
            None => Ok(()),
        }
    }
}

/// Finds the image of a layout or archive.
pub(super) fn choose(blobs: &Blobs, source: &RootSource, origin: &str) -> Result<ImageSelection> {
    match source.format {
        RootFormat::DockerArchive => of_docker(blobs, source, origin),
        RootFormat::OciLayout | RootFormat::Directory => of_layout(blobs, source, origin),
    }
}

fn of_layout(blobs: &Blobs, source: &RootSource, origin: &str) -> Result<ImageSelection> {
    let bytes = blobs.bytes("index.json".as_ref(), origin)?;
    let index: Index = parse(&bytes, "index.json", origin)?;
    let mut manifests = index.manifests;
    if let Some(tag) = &source.tag {
        let known = tags(&manifests);
        manifests.retain(|it| it.annotations.get(TAG) == Some(tag));
        if manifests.is_empty() {
            return Err(unknown_tag(tag, &known, origin));
        }
    }
    let tag = manifests.first().and_then(|it| it.annotations.get(TAG)).cloned();
    let several = tags(&manifests);
    if several.len() > 1 {
        return Err(ambiguous(&several, origin));
    }
    let descriptor = for_this_machine(blobs, manifests, 0, origin)?;
    let manifest: ImageManifest = blobs.document(&descriptor, origin)?;
    let configuration: Configuration = blobs.document(&manifest.config, origin)?;
    check_machine(&configuration, origin)?;
    let layers = manifest
        .layers
        .into_iter()
        .map(|it| Ok((blob_path(&it.digest, origin)?, Some(it.digest))));
    let layers = layers.collect::<Result<Vec<_>>>()?;
    chosen(configuration, Some(manifest.config.digest), tag, layers, origin)
}

/// Returns the only manifest for this kind of machine, looking into indexes.
fn for_this_machine(
    blobs: &Blobs,
    manifests: Vec<Descriptor>,
    depth: usize,
    origin: &str,
) -> Result<Descriptor> {
    let is_ours = |platform: &Platform| {
        platform.os == "linux" && machine_of(&platform.architecture) == std::env::consts::ARCH
    };
    let (ours, others): (Vec<_>, Vec<_>) = manifests
        .into_iter()
        .partition(|it| it.platform.as_ref().is_none_or(is_ours));
    let mut ours = ours.into_iter();
    let Some(first) = ours.next() else {
        let others: Vec<_> = others
            .iter()
            .filter_map(|it| it.platform.as_ref())
            .map(|it| format!("{}/{}", it.os, it.architecture))
            .collect();
        return Err(other_machine(&others.join(", "), origin));
    };
    if ours.next().is_some_and(|it| it.digest != first.digest) {
        return Err(invalid(
            origin,
            format!("it has several images for {} machines", std::env::consts::ARCH),
        ));
    }
    if first.media_type.contains(".image.index.") || first.media_type.contains(".manifest.list.") {
        if depth == MAX_DEPTH {
            return Err(invalid(
                origin,
                format!("it has more than {MAX_DEPTH} indexes, one in the other"),
            ));
        }
        let index: Index = blobs.document(&first, origin)?;
        return for_this_machine(blobs, index.manifests, depth + 1, origin);
    }
    Ok(first)
}

fn of_docker(blobs: &Blobs, source: &RootSource, origin: &str) -> Result<ImageSelection> {
    if !blobs.has("manifest.json".as_ref()) && blobs.has("index.json".as_ref()) {
        let problem = "it is an OCI layout; import it as `oci-layout`";
        return Err(invalid(origin, problem));
    }
    let bytes = blobs.bytes("manifest.json".as_ref(), origin)?;
    let mut images: Vec<DockerImage> = parse(&bytes, "manifest.json", origin)?;
    let tags_of = |images: &[DockerImage]| -> Vec<String> {
        images
            .iter()
            .flat_map(|it| it.repo_tags.clone().unwrap_or_default())
            .collect()
    };
    if let Some(tag) = &source.tag {
        let known = tags_of(&images);
        images.retain(|it| it.repo_tags.iter().flatten().any(|it| it == tag));
        if images.is_empty() {
            return Err(unknown_tag(tag, &known, origin));
        }
    }
    let tags = tags_of(&images);
    let mut images = images.into_iter();
    let (Some(image), None) = (images.next(), images.next()) else {
        return Err(if tags.is_empty() {
            invalid(origin, "it has no image")
        } else {
            ambiguous(&tags, origin)
        });
    };
    let path = blobs::member_path(&image.config, origin)?;
    let bytes = blobs.bytes(&path, origin)?;
    let configuration: Configuration = parse(&bytes, &image.config, origin)?;
    check_machine(&configuration, origin)?;
    if configuration.rootfs.diff_ids.len() != image.layers.len() {
        return Err(wrong_count(image.layers.len(), &configuration, origin));
    }
    let digest = format!("sha256:{}", blobs::sha256_of(&bytes));
    let layers = image
        .layers
        .iter()
        .map(|it| Ok((blobs::member_path(it, origin)?, None)));
    let layers = layers.collect::<Result<Vec<_>>>()?;
    let tag = image.repo_tags.unwrap_or_default().into_iter().next();
    chosen(configuration, Some(digest), tag, layers, origin)
}

fn chosen(
    configuration: Configuration,
    digest: Option<String>,
    tag: Option<String>,
    layers: Vec<(PathBuf, Option<String>)>,
    origin: &str,
) -> Result<ImageSelection> {
    if layers.len() > MAX_LAYERS {
        return Err(invalid(
            origin,
            format!("it has {} layers, the limit is {MAX_LAYERS}", layers.len()),
        ));
    }
    let unpacked = &configuration.rootfs.diff_ids;
    if !unpacked.is_empty() && unpacked.len() != layers.len() {
        return Err(wrong_count(layers.len(), &configuration, origin));
    }
    let unpacked = unpacked.iter().cloned().map(Some).chain(std::iter::repeat(None));
    let layers = layers.into_iter().zip(unpacked);
    Ok(ImageSelection {
        layers: layers
            .map(|((path, digest), unpacked)| Layer {
                path,
                digest,
                unpacked,
            })
            .collect(),
        config: Config {
            digest,
            tag,
            runtime: configuration.config.unwrap_or_default(),
        },
    })
}

fn check_machine(configuration: &Configuration, origin: &str) -> Result<()> {
    let (os, architecture) = (&*configuration.os, &*configuration.architecture);
    if os == "linux" && machine_of(architecture) == std::env::consts::ARCH {
        return Ok(());
    }
    Err(other_machine(&format!("{os}/{architecture}"), origin))
}

/// Returns Rust's name of an architecture that has Go's.
fn machine_of(architecture: &str) -> &str {
    match architecture {
        "amd64" => "x86_64",
        "arm64" => "aarch64",
        other => other,
    }
}

fn other_machine(found: &str, origin: &str) -> ImageError {
    let ours = std::env::consts::ARCH;
    invalid(
        origin,
        format!(
            "it has no image for linux/{ours}, only for {}",
            found.escape_debug()
        ),
    )
}

fn wrong_count(layers: usize, configuration: &Configuration, origin: &str) -> ImageError {
    let named = configuration.rootfs.diff_ids.len();
    invalid(
        origin,
        format!("it has {layers} layers, and its configuration names {named}"),
    )
}

fn tags(manifests: &[Descriptor]) -> Vec<String> {
    let mut tags: Vec<_> = manifests
        .iter()
        .filter_map(|it| it.annotations.get(TAG))
        .cloned()
        .collect();
    tags.sort();
    tags.dedup();
    tags
}

fn listed(tags: &[String]) -> String {
    let shown: Vec<_> = tags
        .iter()
        .take(10)
        .map(|it| format!("`{}`", it.escape_debug()))
        .collect();
    shown.join(", ")
}

fn ambiguous(tags: &[String], origin: &str) -> ImageError {
    invalid(
        origin,
        format!("it has several images: {}; choose one with `--tag`", listed(tags)),
    )
}

fn unknown_tag(tag: &str, known: &[String], origin: &str) -> ImageError {
    let known = if known.is_empty() {
        "none".to_owned()
    } else {
        listed(known)
    };
    invalid(
        origin,
        format!(
            "it has no image with the tag `{}` (tags: {known})",
            tag.escape_debug()
        ),
    )
}
