//! Layers over each other.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use super::{Layout, file, folder, hard_link, link, member, program};
use tar::EntryType;

#[test]
fn later_layers_replace_remove_and_keep_files() {
    let layout = Layout::new()
        .layer(vec![
            file("a/kept", "1"),
            file("a/replaced", "1"),
            file("a/removed", "1"),
            file("b/deep/file", "1"),
            file("c/lower", "1"),
            file("file_then_folder", "1"),
            file("folder_then_file/x", "1"),
        ])
        .layer(vec![
            file("a/replaced", "2"),
            file("a/.wh.removed", ""),
            file(".wh.b", ""),
            file("c/upper", "2"),
            file("c/.wh..wh..opq", ""),
            file("file_then_folder/x", "2"),
            file("folder_then_file", "2"),
        ]);
    // A file cannot be a folder of a later member unless the layer says so.
    assert!(layout.error().contains("file_then_folder/x"));
    let mut layout = layout;
    layout.layers.pop();
    let layout = layout.layer(vec![
        file("a/replaced", "2"),
        file("a/.wh.removed", ""),
        file(".wh.b", ""),
        file("c/upper", "2"),
        file("c/.wh..wh..opq", ""),
        folder("file_then_folder"),
        file("file_then_folder/x", "2"),
        file("folder_then_file", "2"),
    ]);
    let (_home, tree) = layout.tree();
    let read = |path: &str| fs::read_to_string(tree.join(path)).ok();
    assert_eq!(read("a/kept").as_deref(), Some("1"));
    assert_eq!(read("a/replaced").as_deref(), Some("2"));
    assert_eq!(read("c/upper").as_deref(), Some("2"));
    assert_eq!(read("file_then_folder/x").as_deref(), Some("2"));
    assert_eq!(read("folder_then_file").as_deref(), Some("2"));
    for gone in ["a/removed", "a/.wh.removed", "b", "c/lower", "c/.wh..wh..opq"] {
        assert!(!tree.join(gone).exists(), "{gone}");
    }
}

#[test]
fn a_whiteout_of_a_missing_file_and_of_the_same_layer_remove_nothing() {
    let (_home, tree) = Layout::new()
        .layer(vec![
            file("x/.wh.missing", ""),
            file("x/own", "1"),
            file("x/.wh.own", ""),
            file("y/.wh..wh.plnk", ""),
        ])
        .tree();
    assert_eq!(fs::read_to_string(tree.join("x/own")).unwrap(), "1");
}

#[test]
fn an_opaque_folder_keeps_what_its_own_layer_wrote_before() {
    let (_home, tree) = Layout::new()
        .layer(vec![file("x/sub/lower", "1")])
        .layer(vec![
            file("x/sub/upper", "2"),
            folder("x/sub"),
            folder("x"),
            file("x/.wh..wh..opq", ""),
        ])
        .tree();
    assert!(!tree.join("x/sub/lower").exists());
    assert_eq!(fs::read_to_string(tree.join("x/sub/upper")).unwrap(), "2");
}

#[test]
fn hard_links_share_a_file_also_across_layers_and_a_replaced_one_stays() {
    let (_home, tree) = Layout::new()
        .layer(vec![file("one", "1"), hard_link("two", "one")])
        .layer(vec![hard_link("three", "./one"), file("one", "new")])
        .tree();
    let inode = |path: &str| fs::metadata(tree.join(path)).unwrap().ino();
    assert_eq!(inode("two"), inode("three"));
    assert_eq!(fs::read_to_string(tree.join("three")).unwrap(), "1");
    assert_eq!(fs::read_to_string(tree.join("one")).unwrap(), "new");
}

#[test]
fn folders_behind_links_are_those_of_the_image() {
    let outside = tempfile::tempdir().unwrap();
    let (_home, tree) = Layout::new()
        .layer(vec![
            folder("usr/lib64"),
            link("lib64", "usr/lib64"),
            link("abs", "/usr/lib64"),
        ])
        .layer(vec![
            file("lib64/libc.so", "c"),
            file("abs/libm.so", "m"),
            link("out", outside.path().to_str().unwrap()),
        ])
        .tree();
    assert_eq!(fs::read_to_string(tree.join("usr/lib64/libc.so")).unwrap(), "c");
    assert_eq!(fs::read_to_string(tree.join("usr/lib64/libm.so")).unwrap(), "m");
    assert!(tree.join("out").is_symlink());
}

#[test]
fn modes_are_those_of_files_and_programs_and_nothing_changes_the_user() {
    let (_home, tree) = Layout::new()
        .layer(vec![
            member("usr/bin/su", EntryType::Regular, 0o4755, b"su", ""),
            member("etc/shadow", EntryType::Regular, 0o600, b"secret", ""),
            member("private", EntryType::Directory, 0o2700, b"", ""),
            program("tool", "x"),
        ])
        .tree();
    let mode = |path: &str| fs::metadata(tree.join(path)).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode("usr/bin/su"), 0o755);
    assert_eq!(mode("etc/shadow"), 0o644);
    assert_eq!(mode("private"), 0o755);
    assert_eq!(mode("tool"), 0o755);
    let owner = fs::metadata(tree.join("tool")).unwrap().uid();
    assert_eq!(owner, rustix::process::geteuid().as_raw());
}

#[test]
fn long_names_are_read() {
    let name = format!("deep/{}/{}", "a".repeat(120), "b".repeat(120));
    let long = member(
        "././@LongLink",
        EntryType::GNULongName,
        0o644,
        format!("{name}\0").as_bytes(),
        "",
    );
    let record = format!("{} path=x/{name}\n", name.len() + 12);
    assert_eq!(record.len(), name.len() + 12);
    let pax = member("pax", EntryType::XHeader, 0o644, record.as_bytes(), "");
    let (_home, tree) = Layout::new()
        .layer(vec![long, file("short", "1"), pax, file("short", "2")])
        .tree();
    assert_eq!(fs::read_to_string(tree.join(&name)).unwrap(), "1");
    assert_eq!(fs::read_to_string(tree.join("x").join(&name)).unwrap(), "2");
}

#[test]
fn mount_points_are_folders_of_the_image_whatever_it_had_there() {
    let (_home, tree) = Layout::new()
        .layer(vec![
            link("workspace", "/root"),
            file("tmp/left", "x"),
            link("etc/passwd", "/proc/self/environ"),
            file("mnt/data/old", "x"),
            link("opt", "/elsewhere"),
        ])
        .tree();
    assert_eq!(super::super::check_mount_points(&tree), Ok(()));
    assert!(!tree.join("tmp/left").exists());
    assert_eq!(fs::read_to_string(tree.join("etc/passwd")).unwrap(), "");
    fs::remove_dir(tree.join("workspace")).unwrap();
    std::os::unix::fs::symlink("/root", tree.join("workspace")).unwrap();
    let problem = super::super::check_mount_points(&tree).unwrap_err();
    assert!(problem.contains("`/workspace`"), "{problem}");
}
