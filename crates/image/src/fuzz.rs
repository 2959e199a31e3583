//! Entry points for fuzzers.

use super::manifest::Manifest;

/// Reads any bytes as a manifest: a valid one must survive being written and read again.
pub fn fuzz_manifest(bytes: &[u8]) {
    if let Ok(manifest) = Manifest::parse(bytes) {
        let written = serde_json::json!(manifest).to_string();
        assert_eq!(
            Manifest::parse(written.as_bytes()),
            Ok(manifest),
            "a manifest reads back equal"
        );
    }
}
