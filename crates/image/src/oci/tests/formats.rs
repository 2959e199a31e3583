//! Formats in which images are saved.

use std::fs;

use serde_json::json;

use super::{Layout, RootFormat, file, folder, gzip, import, import_with, link, member, python, source, tar};
use crate::archive::tests::store;
use crate::layer::LayerError;
use crate::{Sink, layer};
use tar::EntryType;

#[test]
fn the_configuration_is_recorded_and_decides_the_environment() {
    let mut layout = Layout::new();
    layout.runtime = json!({
        "Env": ["PATH=/usr/bin", "GREETING=a=b"], "User": "app", "Entrypoint": ["/run.sh"],
        "Cmd": ["--serve"], "WorkingDir": "/srv",
    });
    let (_home, image) = layout.import();
    let image = image.unwrap();
    let manifest = image.manifest();
    assert_eq!(
        (manifest.name.as_str(), manifest.python.as_str()),
        ("mine", "3.11.9")
    );
    assert_eq!(manifest.interpreter, "usr/bin/python3");
    let root = manifest.root.as_ref().unwrap();
    assert_eq!(root.environment["GREETING"], "a=b");
    assert_eq!(root.user.as_deref(), Some("app"));
    assert_eq!(manifest.notes.len(), 3, "{:?}", manifest.notes);
    assert!(
        manifest.notes[0].contains("`/run.sh --serve` is not run"),
        "{:?}",
        manifest.notes
    );
    for wrong in [
        json!({"Env": ["=x"]}),
        json!({"Env": ["x"]}),
        json!({"Env": ["a=b\u{0}"]}),
    ] {
        layout.runtime = wrong;
        assert!(layout.error().contains("is not a name and a value"));
    }
}

#[test]
fn the_image_for_this_machine_is_chosen_also_from_an_index_in_the_index() {
    let layout = Layout::new();
    let ours = layout.write_image();
    let other = json!({"digest": format!("sha256:{}", "0".repeat(64)),
        "platform": {"architecture": "riscv64", "os": "linux"}});
    let inner = json!({"manifests": [other, ours]});
    let digest = layout.blob(inner.to_string().as_bytes());
    layout.write_index(&[json!({"digest": digest, "mediaType": "application/vnd.oci.image.index.v1+json"})]);
    assert!(import(RootFormat::OciLayout, layout.path()).1.is_ok());
    layout.write_index(&[other]);
    let error = import(RootFormat::OciLayout, layout.path())
        .1
        .unwrap_err()
        .to_string();
    assert!(error.contains("only for linux/riscv64"), "{error}");
    let mut layout = Layout::new();
    layout.architecture = "s390x";
    let manifest = layout.write_image();
    layout.write_index(&[json!({"digest": manifest["digest"]})]);
    let error = import(RootFormat::OciLayout, layout.path())
        .1
        .unwrap_err()
        .to_string();
    assert!(error.contains("only for linux/s390x"), "{error}");
}

#[test]
fn one_of_several_tags_is_chosen_by_name() {
    let layout = Layout::new();
    let tagged = |tag: &str, image: &serde_json::Value| {
        let mut image = image.clone();
        image["annotations"] = json!({"org.opencontainers.image.ref.name": tag});
        image
    };
    let image = layout.write_image();
    let other = json!({"digest": format!("sha256:{}", "0".repeat(64))});
    layout.write_index(&[tagged("lib/app:1.0", &image), tagged("lib/app:2.0", &other)]);
    let mut source = source(RootFormat::OciLayout, layout.path());
    source.name = None;
    let error = |source| import_with(&source, &super::LIMITS).1.unwrap_err().to_string();
    assert!(error(source.clone()).contains("`lib/app:1.0`, `lib/app:2.0`; choose one with `--tag`"));
    source.tag = Some("3.0".to_owned());
    assert!(error(source.clone()).contains("no image with the tag `3.0`"));
    source.tag = Some("lib/app:1.0".to_owned());
    let (_home, image) = import_with(&source, &super::LIMITS);
    assert_eq!(image.unwrap().manifest().name, "app-1.0");
}

#[test]
fn compressed_layers_and_archives_are_the_same_image() {
    let plain = Layout::new();
    let (_home, image) = plain.import();
    let id = image.unwrap().id().to_owned();
    let mut whole = vec![file("oci-layout", "{}")];
    for entry in fs::read_dir(plain.path().join("blobs/sha256")).unwrap().flatten() {
        let name = format!("./blobs/sha256/{}", entry.file_name().to_str().unwrap());
        whole.push(member(
            &name,
            EntryType::Regular,
            0o644,
            &fs::read(entry.path()).unwrap(),
            "",
        ));
    }
    whole.push(member(
        "index.json",
        EntryType::Regular,
        0o644,
        &fs::read(plain.path().join("index.json")).unwrap(),
        "",
    ));
    let whole = tar(whole);
    let packed = [whole.clone(), gzip(&whole), zstd::encode_all(&*whole, 1).unwrap()];
    for bytes in packed {
        let archive = tempfile::NamedTempFile::new().unwrap();
        fs::write(archive.path(), bytes).unwrap();
        let (_home, image) = import(RootFormat::OciLayout, archive.path());
        let manifest = image.unwrap().manifest().clone();
        assert_eq!((manifest.name.as_str(), manifest.id), ("mine", id.clone()));
    }
    for pack in [gzip, |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap()] {
        let layout = Layout::new();
        let content = &layout.layers[0];
        let unpacked = layout.blob(content);
        let packed = layout.blob(&pack(content));
        let config =
            json!({"architecture": layout.architecture, "os": "linux", "rootfs": {"diff_ids": [unpacked]}});
        let config = layout.blob(config.to_string().as_bytes());
        let manifest = json!({"config": {"digest": config}, "layers": [{"digest": packed}]});
        layout.write_index(&[json!({"digest": layout.blob(manifest.to_string().as_bytes())})]);
        let (_home, image) = import(RootFormat::OciLayout, layout.path());
        assert_eq!(
            fs::read_to_string(image.unwrap().tree().join("usr/lib/python3.11/os.py")).unwrap(),
            "import sys\n"
        );
    }
}

#[test]
fn archives_of_docker_are_read_with_layers_that_are_links() {
    let layout = Layout::new();
    let layers = [tar(python()), tar(vec![file("second", "2")])];
    let digests = layers.each_ref().map(|it| layout.blob(it));
    let config = json!({"architecture": layout.architecture, "os": "linux", "rootfs": {"diff_ids": digests}});
    let index = json!([{"Config": "abc.json", "RepoTags": ["docker.io/library/app:slim"],
        "Layers": ["1/layer.tar", "2/layer.tar", ]}]);
    let members = |config: &str| {
        vec![
            member("shared.tar", EntryType::Regular, 0o644, &layers[0], ""),
            folder("1"),
            link("1/layer.tar", "../shared.tar"),
            member("2/layer.tar", EntryType::Regular, 0o644, &layers[1], ""),
            file("abc.json", config),
            file("manifest.json", &index.to_string()),
        ]
    };
    let archive = tempfile::NamedTempFile::new().unwrap();
    fs::write(archive.path(), gzip(&tar(members(&config.to_string())))).unwrap();
    let mut source = source(RootFormat::DockerArchive, archive.path());
    source.name = None;
    let (_home, image) = import_with(&source, &super::LIMITS);
    let image = image.unwrap();
    assert_eq!(image.manifest().name, "app-slim");
    assert_eq!(fs::read_to_string(image.tree().join("second")).unwrap(), "2");
    let swapped = json!({"architecture": layout.architecture, "os": "linux",
        "rootfs": {"diff_ids": [digests[1], digests[0]]}});
    fs::write(archive.path(), tar(members(&swapped.to_string()))).unwrap();
    let error = import(RootFormat::DockerArchive, archive.path())
        .1
        .unwrap_err()
        .to_string();
    assert!(error.contains("SHA-256"), "{error}");
}

#[test]
fn a_folder_is_copied_without_sockets_and_with_hard_links() {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("usr/bin/python3.12", "x"),
        ("usr/lib/python3.12/os.py", ""),
        ("usr/share/one", "1"),
    ] {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let program = dir.path().join("usr/bin/python3.12");
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    fs::hard_link(dir.path().join("usr/share/one"), dir.path().join("usr/share/two")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
    let (_home, image) = import(RootFormat::Directory, dir.path());
    let image = image.unwrap();
    assert_eq!(image.manifest().python, "3.12");
    let inode =
        |name: &str| std::os::unix::fs::MetadataExt::ino(&fs::metadata(image.tree().join(name)).unwrap());
    assert_eq!(inode("usr/share/one"), inode("usr/share/two"));
    assert!(!image.tree().join("socket").exists());
    assert_eq!(
        image.manifest().notes,
        ["1 mounts, sockets, pipes and devices were left out"]
    );
}

#[tokio::test]
async fn a_root_filesystem_moves_to_another_store_as_one_file() {
    let layout = Layout::new().layer(vec![
        folder("empty/inner"),
        link("abs", "/usr/bin"),
        link("up", "../../.."),
    ]);
    let (_home, image) = layout.import();
    let image = image.unwrap();
    let archive = tempfile::NamedTempFile::new().unwrap();
    image
        .export(archive.reopen().unwrap(), archive.path(), 1, Sink::silent())
        .await
        .unwrap();
    let (_other, store) = store();
    let imported = store
        .import(archive.reopen().unwrap(), "file", None, Sink::silent())
        .await
        .unwrap();
    assert_eq!(imported.manifest(), image.manifest());
    imported.verify().await.unwrap();
    assert!(imported.tree().join("empty/inner").is_dir());
    assert_eq!(
        fs::read_link(imported.tree().join("up")).unwrap().to_str(),
        Some("../../..")
    );
    assert_eq!(super::super::check_mount_points(&imported.tree()), Ok(()));
}

#[tokio::test]
async fn packages_are_not_added_to_a_root_filesystem() {
    let (_home, image) = Layout::new().import();
    let error = layer::resolve_layer(&image.unwrap(), &["six".to_owned()], u64::MAX, Sink::silent())
        .await
        .unwrap_err();
    assert!(matches!(error, LayerError::RootFilesystem { .. }), "{error}");
}

#[test]
fn a_name_must_be_given_where_none_follows() {
    let layout = Layout::new();
    layout.write_index(&[layout.write_image()]);
    let mut source = source(RootFormat::OciLayout, layout.path());
    source.name = Some("../x".to_owned());
    let error = import_with(&source, &super::LIMITS).1.unwrap_err().to_string();
    assert!(error.contains("the name `../x`"), "{error}");
    source.name = Some("default".to_owned());
    let error = import_with(&source, &super::LIMITS).1.unwrap_err().to_string();
    assert!(error.contains("an image that comes along"), "{error}");
}
