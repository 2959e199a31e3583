//! Media types of what came out of a sandbox: which of them a browser may show.

use axum::http::HeaderValue;

/// Types that a browser shows without running anything.
const PASSIVE: [&str; 15] = [
    "application/json",
    "application/octet-stream",
    "application/vnd.apache.arrow.file",
    "application/vnd.apache.arrow.stream",
    "application/vnd.apache.parquet",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/zip",
    "image/gif",
    "image/jpeg",
    "image/png",
    "image/webp",
    "text/csv",
    "text/markdown",
    "text/plain",
    "text/tab-separated-values",
];

/// Whether a browser might run something of this type, as far as that is not known to be otherwise.
pub(crate) fn is_active(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    let chart = essence.starts_with("application/vnd.vega") && essence.ends_with("+json");
    let ours = essence.starts_with("application/vnd.cellblock.") && essence.ends_with("+json");
    !(chart
        || ours
        || PASSIVE
            .iter()
            .any(|passive| passive.eq_ignore_ascii_case(essence)))
}

/// Returns the header's value. An invalid type, which code may have set, becomes bytes.
pub(crate) fn header(media_type: &str) -> HeaderValue {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/.+-_; =\"".contains(c);
    let text = media_type.starts_with("text/") && !media_type.contains("charset");
    let (named, value) = (media_type.split('/').count() == 2, media_type.to_owned());
    let value = if text {
        format!("{value}; charset=utf-8")
    } else {
        value
    };
    let usable = named && media_type.len() <= 128 && media_type.chars().all(plain);
    let bytes = HeaderValue::from_static("application/octet-stream");
    if usable {
        HeaderValue::try_from(value).unwrap_or(bytes)
    } else {
        bytes
    }
}

/// The type of a file of a sandbox, by its name.
pub(crate) fn type_of(name: &str) -> &'static str {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension.to_ascii_lowercase().as_str() {
        "csv" => "text/csv",
        "gif" => "image/gif",
        "htm" | "html" => "text/html",
        "jpeg" | "jpg" => "image/jpeg",
        "json" => "application/json",
        "md" => "text/markdown",
        "parquet" => "application/vnd.apache.parquet",
        "pdf" => "application/pdf",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "tsv" => "text/tab-separated-values",
        "log" | "py" | "txt" => "text/plain",
        "webp" => "image/webp",
        "xlsx" => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "zip" => "application/zip",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_harmless_types_are_shown() {
        for passive in [
            "image/png",
            "text/csv; charset=utf-8",
            "application/vnd.vegalite.v5+json",
        ] {
            assert!(!is_active(passive), "{passive}");
        }
        for active in [
            "text/html",
            "image/svg+xml",
            "application/pdf",
            "text/xml",
            "",
            "text/javascript",
        ] {
            assert!(is_active(active), "{active}");
        }
    }

    #[test]
    fn a_type_that_code_made_up_is_bytes() {
        for made_up in ["", "html", "a/b/c", "text/html\r\nX-Y: z", "text/<b>"] {
            assert_eq!(header(made_up), "application/octet-stream", "{made_up:?}");
        }
        assert_eq!(header("text/csv"), "text/csv; charset=utf-8");
        assert_eq!(header("image/png"), "image/png");
    }
}
