//! The console's files, compressed in the binary, and the policy under which browsers run them.

use std::io::Read as _;

use axum::extract::Path;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use flate2::read::GzDecoder;
use include_dir::{Dir, include_dir};
use sha2::{Digest as _, Sha256};

/// Files that `npm run build` in `console/` has written, each as gzip.
static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/console");

/// Scripts and styles of this server alone, none in the page and none made of text; pictures and
/// frames of bytes that the page has fetched. Frames get this policy too, so that HTML of a sandbox
/// runs nothing even without their own sandbox.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src blob: data:; \
    connect-src 'self'; frame-src blob:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";
/// Names of assets contain a hash of their content.
const FOREVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// The page names the current assets, so browsers ask whether it has changed.
const ASK: HeaderValue = HeaderValue::from_static("no-cache");
/// Nothing of another origin shares a window or a process with the console.
const ALONE: [(HeaderName, HeaderValue); 2] = [
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

/// The page.
pub(super) async fn page(headers: HeaderMap) -> Response {
    file("index.html", ASK, &headers)
}

/// A file that it uses.
pub(super) async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    file(&format!("assets/{name}"), FOREVER, &headers)
}

fn file(name: &str, cache: HeaderValue, asked: &HeaderMap) -> Response {
    let Some(file) = FILES.get_file(format!("{name}.gz")) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let text = |name: &HeaderName| asked.get(name).and_then(|value| value.to_str().ok());
    // Weak, because it is that of both encodings.
    let digest = Sha256::digest(file.contents());
    let hash = u64::from_be_bytes(std::array::from_fn(|at| digest[at]));
    let tag = format!("W/\"{hash:016x}\"");
    let mut answer = HeaderMap::from_iter(ALONE);
    answer.insert(CACHE_CONTROL, cache);
    answer.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    answer.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        answer.insert(ETAG, tag);
    }
    if text(&IF_NONE_MATCH).is_some_and(|known| known.contains(&tag)) {
        return (StatusCode::NOT_MODIFIED, answer).into_response();
    }
    answer.insert(CONTENT_TYPE, HeaderValue::from_static(media_type(name)));
    if text(&ACCEPT_ENCODING).is_some_and(accepts_gzip) {
        answer.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        return (answer, file.contents()).into_response();
    }
    let mut plain = Vec::new();
    match GzDecoder::new(file.contents()).read_to_end(&mut plain) {
        Ok(_) => (answer, plain).into_response(),
        Err(error) => {
            tracing::error!(%error, name, "decompress a file of the console");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

fn accepts_gzip(accepted: &str) -> bool {
    let mut codings = accepted.split(',').map(str::trim);
    codings.any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        name.trim().eq_ignore_ascii_case("gzip") && weight.trim() != "q=0"
    })
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "css" => "text/css; charset=utf-8",
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_page_names_only_assets_that_are_embedded() {
        let answer = page(HeaderMap::new()).await;
        let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await.unwrap();
        let html = String::from_utf8(body.to_vec()).unwrap();
        let named: Vec<_> = html
            .split('"')
            .filter_map(|part| part.strip_prefix("/console/assets/"))
            .collect();
        assert!(named.len() >= 2, "{html}");
        for name in named {
            assert_eq!(
                asset(Path(name.to_owned()), HeaderMap::new()).await.status(),
                StatusCode::OK,
                "{name}"
            );
        }
        let other = asset(Path("other.js".to_owned()), HeaderMap::new()).await;
        assert_eq!(other.status(), StatusCode::NOT_FOUND);
    }

    #[tokio::test]
    async fn a_browser_that_has_a_file_gets_it_once() {
        let mut asked = HeaderMap::new();
        asked.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip, deflate"));
        let first = page(asked.clone()).await;
        assert_eq!(first.headers()[CONTENT_ENCODING], "gzip");
        asked.insert(IF_NONE_MATCH, first.headers()[ETAG].clone());
        assert_eq!(page(asked).await.status(), StatusCode::NOT_MODIFIED);
    }

    #[test]
    fn gzip_is_sent_to_those_who_read_it() {
        for (accepted, expected) in [
            ("gzip, br", true),
            ("br;q=1, GZIP;q=0.5", true),
            ("identity", false),
            ("gzip;q=0", false),
            ("", false),
        ] {
            assert_eq!(accepts_gzip(accepted), expected, "{accepted}");
        }
    }

    #[test]
    fn all_files_together_are_below_their_limit() {
        let assets = FILES.get_dir("assets").unwrap();
        let sizes = FILES
            .files()
            .chain(assets.files())
            .map(|file| file.contents().len());
        assert!(sizes.sum::<usize>() <= 1_500_000);
    }
}
