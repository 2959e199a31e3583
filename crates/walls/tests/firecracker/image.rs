//! An image for tests whose sandboxes are machines.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::Path;

use cellblock_image::{Home, ImageStore, OpenImage};
use serde_json::{Value, json};

/// The default image in another home, whose template imports these libraries alone. Restoring a
/// machine costs the more the more memory its template has.
pub(crate) fn with_preload(image: &OpenImage, home: &Path, preload: &[&str]) -> OpenImage {
    let folder = home.join("images").join(image.id());
    fs::create_dir_all(&folder).unwrap();
    let text = fs::read(image.root().join("manifest.json")).unwrap();
    let mut manifest: Value = serde_json::from_slice(&text).unwrap();
    manifest["preload"] = json!(preload);
    manifest["outputs"] = json!({});
    let (path, text) = (folder.join("manifest.json"), manifest.to_string());
    // Others may be reading it.
    if fs::read_to_string(&path).ok().as_ref() != Some(&text) {
        fs::write(path, text).unwrap();
    }
    for entry in fs::read_dir(image.root()).unwrap().flatten() {
        if entry.file_name() != "manifest.json" {
            match symlink(entry.path(), folder.join(entry.file_name())) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => made.unwrap(),
            }
        }
    }
    ImageStore::new(Home::at(home).unwrap())
        .resolve(image.id())
        .unwrap()
}
