//! An image for machines that are started.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use cellblock_image::OpenImage;

use crate::lean_image::with_preload;

/// The default image in another home, whose template imports these libraries alone, and whose files
/// are its own: a machine's disk has nothing that symbolic links could lead to. Several programs
/// may use the home.
pub(crate) fn machine_image(image: &OpenImage, home: &Path, preload: &[&str]) -> OpenImage {
    fs::create_dir_all(home).unwrap();
    let alone = File::create(home.join("image.lock")).unwrap();
    alone.lock().unwrap();
    let image = with_preload(image, home, preload);
    for entry in fs::read_dir(image.root()).unwrap().flatten() {
        if entry.file_type().unwrap().is_symlink() {
            let file = fs::canonicalize(entry.path()).unwrap();
            fs::remove_file(entry.path()).unwrap();
            let copy = |how| Command::new("cp").arg(how).arg(&file).arg(entry.path()).status();
            assert!(copy("-al").unwrap().success() || copy("-a").unwrap().success());
        }
    }
    image
}
