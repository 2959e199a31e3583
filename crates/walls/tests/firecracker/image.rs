//! An image for machines that no processor runs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use cellblock_image::{Home, ImageStore, OpenImage};
use serde_json::{Value, json};

/// The default image without libraries that its template imports.
pub(crate) fn small_image(image: &OpenImage, home: &Path) -> OpenImage {
    let folder = home.join("images").join(image.id());
    fs::create_dir_all(&folder).unwrap();
    let text = fs::read(image.root().join("manifest.json")).unwrap();
    let mut manifest: Value = serde_json::from_slice(&text).unwrap();
    manifest["preload"] = json!([]);
    manifest["outputs"] = json!({});
    fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
    for entry in fs::read_dir(image.root()).unwrap().flatten() {
        if entry.file_name() != "manifest.json" {
            symlink(entry.path(), folder.join(entry.file_name())).unwrap();
        }
    }
    ImageStore::new(Home::at(home).unwrap())
        .resolve(image.id())
        .unwrap()
}
