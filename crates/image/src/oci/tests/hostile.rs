//! Layers that want something else than to be unpacked.

use std::fs;

use tar::EntryType;

use super::{
    LIMITS, Layout, Limits, RootFormat, assert_empty, file, gzip, hard_link, import_with, link, member,
    source, tar,
};

#[test]
fn names_that_lead_out_are_rejected() {
    for (name, problem) in [
        ("../evil", "leads out of the image"),
        ("a/../../evil", "leads out of the image"),
        ("/etc/evil", "is absolute"),
    ] {
        let error = Layout::new().layer(vec![file(name, "x")]).error();
        assert!(error.contains(name) && error.contains(problem), "{error}");
    }
    let part = "x".repeat(256);
    let long = member(
        "././@LongLink",
        EntryType::GNULongName,
        0o644,
        part.as_bytes(),
        "",
    );
    let error = Layout::new().layer(vec![long, file("short", "1")]).error();
    assert!(error.contains("more than 255 bytes"), "{error}");
    let record = "19 path=a/../../b\n\n";
    let pax = member("pax", EntryType::XHeader, 0o644, &record.as_bytes()[..18], "");
    let error = Layout::new().layer(vec![pax, file("short", "1")]).error();
    assert!(
        error.contains("damaged") || error.contains("leads out"),
        "{error}"
    );
}

#[test]
fn a_link_never_leads_a_later_member_out_of_the_image() {
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().to_str().unwrap();
    // The folder does not exist in the image, so the link leads nowhere.
    let error = Layout::new()
        .layer(vec![link("out", target), file("out/evil", "x")])
        .error();
    assert!(error.contains("out/evil"), "{error}");
    // A link with the member's own name is replaced, not followed.
    fs::write(outside.path().join("victim"), "unharmed").unwrap();
    let victim = format!("{target}/victim");
    let up = format!("../../../../../../../../..{victim}");
    let (_home, tree) = Layout::new()
        .layer(vec![
            link("file", &victim),
            file("file", "x"),
            link("up", &up),
            file("up", "y"),
        ])
        .tree();
    assert!(!tree.join("file").is_symlink() && !tree.join("up").is_symlink());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "unharmed");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[test]
fn a_whiteout_removes_nothing_outside() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("victim"), "unharmed").unwrap();
    let target = outside.path().to_str().unwrap();
    let (_home, _tree) = Layout::new()
        .layer(vec![
            link("out", target),
            file("out/.wh.victim", ""),
            file("out/.wh..wh..opq", ""),
            file(".wh.out", ""),
        ])
        .tree();
    assert_eq!(
        fs::read_to_string(outside.path().join("victim")).unwrap(),
        "unharmed"
    );
    for name in ["x/.wh..", "x/.wh...", "x/.wh."] {
        let error = Layout::new().layer(vec![file(name, "")]).error();
        assert!(error.contains("removes nothing"), "{error}");
    }
}

#[test]
fn hard_links_to_anything_but_files_of_the_image_are_rejected() {
    let outside = tempfile::NamedTempFile::new().unwrap();
    let outside = outside.path().to_str().unwrap();
    for (name, members) in [
        ("absolute", vec![hard_link("absolute", outside)]),
        ("up", vec![hard_link("up", "../../../etc/passwd")]),
        ("missing", vec![hard_link("missing", "nothing")]),
        ("through", vec![link("l", outside), hard_link("through", "l")]),
        ("folder", vec![super::folder("f"), hard_link("folder", "f")]),
    ] {
        let error = Layout::new().layer(members).error();
        assert!(error.contains(&format!("hard link `{name}`")), "{error}");
    }
}

#[test]
fn devices_pipes_and_sparse_files_are_named() {
    for (kind, problem) in [
        (EntryType::Char, "is a device"),
        (EntryType::Block, "is a device"),
        (EntryType::Fifo, "is a named pipe"),
        (EntryType::GNUSparse, "is a sparse file"),
        (EntryType::new(b'Z'), "is of an unknown kind"),
    ] {
        let error = Layout::new()
            .layer(vec![member("strange", kind, 0o666, b"", "")])
            .error();
        assert!(error.contains("`strange`") && error.contains(problem), "{error}");
    }
    let (_home, image) = Layout::new()
        .layer(vec![member("dev/sda", EntryType::Block, 0o666, b"", "")])
        .import();
    let image = image.unwrap();
    assert!(!image.tree().join("dev/sda").exists());
    assert_eq!(image.manifest().notes, ["1 device below its /dev was left out"]);
}

#[test]
fn folders_cannot_be_nested_without_a_limit() {
    let deep = "d/".repeat(40);
    // Each link leads to the end of what the one before made.
    let mut members = vec![super::folder(&deep), link("l0", &deep)];
    for number in 0..8 {
        members.push(super::folder(&format!("l{number}/{deep}")));
        members.push(link(&format!("l{}", number + 1), &format!("l{number}/{deep}")));
    }
    let error = Layout::new().layer(members).error();
    assert!(error.contains("more than 256 folders deep"), "{error}");
}

#[test]
fn sizes_and_counts_have_limits() {
    let mut huge = file("huge", "");
    huge.header.set_size(7 << 30);
    let layout = Layout::new().layer(vec![huge]);
    let few = Limits {
        bytes: 1 << 30,
        ..LIMITS
    };
    layout.write_index(&[layout.write_image()]);
    let (home, image) = import_with(&source(RootFormat::OciLayout, layout.path()), &few);
    let error = image.unwrap_err().to_string();
    assert!(
        error.contains("more than 1073741824 bytes") && error.contains("`huge`"),
        "{error}"
    );
    assert_empty(&home);
    let few = Limits {
        entries: 100,
        ..LIMITS
    };
    let many = (0..100).map(|number| file(&format!("f{number}"), "")).collect();
    let layout = Layout::new().layer(many);
    layout.write_index(&[layout.write_image()]);
    let (home, image) = import_with(&source(RootFormat::OciLayout, layout.path()), &few);
    let error = image.unwrap_err().to_string();
    assert!(error.contains("more than 100 files"), "{error}");
    assert_empty(&home);
    // A header that is read as a whole has a limit of its own.
    let long = member(
        "././@LongLink",
        EntryType::GNULongName,
        0o644,
        &vec![b'x'; 2 << 20],
        "",
    );
    let error = Layout::new().layer(vec![long]).error();
    assert!(error.contains("the limit is 1048576"), "{error}");
}

#[test]
fn a_layer_that_ends_early_is_rejected() {
    let mut layout = Layout::new().layer(vec![file("a", &"x".repeat(4096))]);
    layout.layers[1].truncate(1024);
    assert!(layout.error().contains("`a`"));
    let mut layout = Layout::new();
    let mut packed = gzip(&tar(vec![file("a", &"abc".repeat(4096))]));
    packed.truncate(packed.len() - 20);
    layout.layers.push(packed);
    let error = layout.error();
    assert!(error.contains("damaged") || error.contains("`a`"), "{error}");
}

#[test]
fn what_does_not_have_its_digest_is_rejected() {
    let layout = Layout::new().layer(vec![file("a", "x")]);
    layout.write_index(&[layout.write_image()]);
    let folder = layout.path().join("blobs/sha256");
    for name in fs::read_dir(&folder).unwrap().flatten().map(|it| it.file_name()) {
        let path = folder.join(&name);
        let before = fs::read(&path).unwrap();
        let mut changed = before.clone();
        // At the end of a tar it changes no member, and in JSON it is white space.
        changed.extend([b' '; 512]);
        fs::write(&path, changed).unwrap();
        let (home, image) = super::import(RootFormat::OciLayout, layout.path());
        let error = image.unwrap_err().to_string();
        assert!(error.contains("SHA-256"), "{error}");
        assert_empty(&home);
        fs::write(&path, before).unwrap();
    }
    assert!(layout.import().1.is_ok());
}

#[test]
fn digests_are_no_paths() {
    let layout = Layout::new();
    for digest in ["sha256:../../../etc/passwd", "md5:00", "sha256:ABC", ""] {
        layout.write_index(&[serde_json::json!({"digest": digest})]);
        let (home, image) = super::import(RootFormat::OciLayout, layout.path());
        let error = image.unwrap_err().to_string();
        assert!(error.contains("is not a SHA-256"), "{error}");
        assert_empty(&home);
    }
}
