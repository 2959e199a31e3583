//! URIs of resources.
//!
//! `cellblock://artifacts/{sha256}` is what a call made,
//! `cellblock://sessions/{session}/files/{path}` a file as it is now,
//! `cellblock://sessions/{session}/datasets/{name}` data that a session's code finds, and
//! `cellblock://projects/{project}/datasets/{slug}` a dataset that sessions have published.

use cellblock_artifact::ArtifactId;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

const ARTIFACTS: &str = "cellblock://artifacts/";
const SESSIONS: &str = "cellblock://sessions/";
const PROJECTS: &str = "cellblock://projects/";
/// Characters that a URI's path contains literally.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'/');

/// The template of artifacts.
pub(crate) const ARTIFACT_TEMPLATE: &str = "cellblock://artifacts/{sha256}";
/// The template of files.
pub(crate) const FILE_TEMPLATE: &str = "cellblock://sessions/{session}/files{+path}";
/// The template of datasets.
pub(crate) const DATASET_TEMPLATE: &str = "cellblock://sessions/{session}/datasets/{name}";

/// The template of published datasets.
pub(crate) const PUBLISHED_TEMPLATE: &str = "cellblock://projects/{project}/datasets/{slug}";

/// Object that a URI names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UriTarget {
    Artifact(ArtifactId),
    File { session: String, path: String },
    Dataset { session: String, name: String },
    Published { project: String, slug: String },
}

pub(crate) fn artifact(id: ArtifactId) -> String {
    format!("{ARTIFACTS}{id}")
}

/// A file by its absolute path in the sandbox.
pub(crate) fn file(session: &str, path: &str) -> String {
    format!("{SESSIONS}{session}/files{}", utf8_percent_encode(path, PLAIN))
}

pub(crate) fn dataset(session: &str, name: &str) -> String {
    format!(
        "{SESSIONS}{session}/datasets/{}",
        utf8_percent_encode(name, PLAIN)
    )
}

/// A published dataset. Its names need no encoding.
pub(crate) fn published(project: &str, slug: &str) -> String {
    format!("{PROJECTS}{project}/datasets/{slug}")
}

/// Parses a URI; returns nothing if it is none of these.
pub(crate) fn parse(uri: &str) -> Option<UriTarget> {
    if let Some(id) = uri.strip_prefix(ARTIFACTS) {
        return id.parse().ok().map(UriTarget::Artifact);
    }
    if let Some(rest) = uri.strip_prefix(PROJECTS) {
        let (project, slug) = rest.split_once("/datasets/")?;
        let (project, slug) = (project.to_owned(), slug.to_owned());
        return Some(UriTarget::Published { project, slug });
    }
    let (session, rest) = uri.strip_prefix(SESSIONS)?.split_once('/')?;
    let session = session.to_owned();
    let decode = |text: &str| Some(percent_decode_str(text).decode_utf8().ok()?.into_owned());
    if let Some(path) = rest.strip_prefix("files/") {
        let path = format!("/{}", decode(path)?);
        return Some(UriTarget::File { session, path });
    }
    let name = decode(rest.strip_prefix("datasets/")?)?;
    Some(UriTarget::Dataset { session, name })
}

/// A file's media type by its name.
pub(crate) fn media_type(name: &str) -> &'static str {
    let extension = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    match extension.as_str() {
        "csv" => "text/csv",
        "tsv" => "text/tab-separated-values",
        "txt" | "log" => "text/plain",
        "md" => "text/markdown",
        "py" => "text/x-python",
        "json" => "application/json",
        "html" => "text/html",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "svg" => "image/svg+xml",
        "pdf" => "application/pdf",
        "parquet" => "application/vnd.apache.parquet",
        "arrow" | "feather" => "application/vnd.apache.arrow.file",
        "xlsx" => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_round_trips() {
        let id = ArtifactId::of(b"");
        assert_eq!(parse(&artifact(id)), Some(UriTarget::Artifact(id)));
        let path = "/workspace/a b/ü%2F?#.csv".to_owned();
        let uri = file("sess_1", &path);
        assert_eq!(
            uri,
            "cellblock://sessions/sess_1/files/workspace/a%20b/%C3%BC%252F%3F%23.csv"
        );
        let session = "sess_1".to_owned();
        assert_eq!(parse(&uri), Some(UriTarget::File { session, path }));
        let session = "sess_1".to_owned();
        let name = "wine.csv".to_owned();
        assert_eq!(
            parse(&dataset("sess_1", "wine.csv")),
            Some(UriTarget::Dataset { session, name })
        );
        let (project, slug) = ("macro".to_owned(), "gdp".to_owned());
        assert_eq!(
            parse(&published("macro", "gdp")),
            Some(UriTarget::Published { project, slug })
        );
    }

    #[test]
    fn other_uris_name_nothing() {
        for uri in [
            "file:///etc/passwd",
            "cellblock://artifacts/abc",
            "cellblock://sessions/s",
            "cellblock://sessions/s/files",
            "cellblock://sessions/s/other/x",
            "cellblock://projects/macro",
            "cellblock://projects/macro/datasets",
            "",
        ] {
            assert_eq!(parse(uri), None, "{uri}");
        }
    }
}
