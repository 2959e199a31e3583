//! URLs of artifacts.

use crate::ArtifactId;

/// Builds URLs. Without a base they are `artifact:<sha256>`, which names the artifact but no
/// location.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Urls {
    base: Option<String>,
}

/// A base that URLs cannot start with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "artifacts cannot be served below {base:?}: expected https://host/path, http://host/path or a path \
     such as /artifacts, without query, fragment or spaces"
)]
pub struct UrlsError {
    base: String,
}

impl Urls {
    /// Builds `<base>/<sha256>.<extension>`, below an `http` or `https` URL, or below a path of the
    /// server.
    pub fn below(base: impl Into<String>) -> Result<Self, UrlsError> {
        let base = base.into();
        let rest = ["https://", "http://"]
            .into_iter()
            .find_map(|scheme| base.strip_prefix(scheme));
        let placed = match rest {
            Some(rest) => !rest.is_empty() && !rest.starts_with('/'),
            // Two slashes would start a host name.
            None => base.starts_with('/') && !base.starts_with("//"),
        };
        let plain = base
            .chars()
            .all(|c| c.is_ascii_graphic() && !matches!(c, '?' | '#' | '"' | '\'' | '<' | '>' | '\\' | '`'));
        if !placed || !plain || base.split('/').any(|part| part == "..") {
            return Err(UrlsError { base });
        }
        Ok(Self {
            base: Some(base.trim_end_matches('/').to_owned() + "/"),
        })
    }

    /// Returns the URL of an artifact.
    pub fn of(&self, id: ArtifactId, media_type: &str) -> String {
        match &self.base {
            Some(base) => format!("{base}{id}.{}", extension(media_type)),
            None => format!("artifact:{id}"),
        }
    }
}

/// Returns the file name extension for a media type.
pub fn extension(media_type: &str) -> &'static str {
    let plain = media_type.split(';').next().unwrap_or_default().trim();
    match plain.to_ascii_lowercase().as_str() {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "application/vnd.apache.parquet" => "parquet",
        "application/vnd.apache.arrow.file" | "application/vnd.apache.arrow.stream" => "arrow",
        "application/pdf" => "pdf",
        "text/csv" => "csv",
        "text/html" => "html",
        "text/plain" => "txt",
        json if json == "application/json" || json.ends_with("+json") => "json",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_below_the_base_with_an_extension() {
        let id = ArtifactId::of(b"x");
        for (base, media_type, url) in [
            (
                "https://host/charts/",
                "image/png",
                format!("https://host/charts/{id}.png"),
            ),
            (
                "http://host:81",
                "application/json; charset=utf-8",
                format!("http://host:81/{id}.json"),
            ),
            ("/artifacts", "Image/JPEG", format!("/artifacts/{id}.jpg")),
            ("/", "x/y", format!("/{id}.bin")),
        ] {
            assert_eq!(Urls::below(base).expect(base).of(id, media_type), url);
        }
        assert_eq!(Urls::default().of(id, "image/png"), format!("artifact:{id}"));
    }

    #[test]
    fn a_base_that_names_a_file_or_another_location_is_rejected() {
        for base in [
            "",
            "artifacts",
            "file:///tmp",
            "//host/x",
            "https://",
            "https:///x",
            "/a b",
            "/a?b",
            "/a#b",
            "/a/../b",
            "javascript:alert(1)",
            "/a\"b",
        ] {
            assert!(Urls::below(base).is_err(), "{base}");
        }
        let error = Urls::below("x").expect_err("no URL");
        assert!(
            error
                .to_string()
                .starts_with("artifacts cannot be served below \"x\": expected https://")
        );
    }
}
