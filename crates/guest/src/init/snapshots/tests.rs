//! Snapshots of trees of the tests' own.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::*;

/// Two folders in the place of a room's.
struct RoomFolders {
    folder: tempfile::TempDir,
    roots: Roots,
}

fn place() -> RoomFolders {
    let folder = tempfile::tempdir().unwrap();
    for name in ["workspace", "tmp", "tmp/data"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    let open = |name: &str| -> OwnedFd { fs::File::open(folder.path().join(name)).unwrap().into() };
    let roots = Roots::of(open("workspace"), open("tmp"), open("tmp/data"));
    RoomFolders { folder, roots }
}

impl RoomFolders {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    /// Everything that a restoration must bring back.
    fn state(&self) -> BTreeMap<PathBuf, (u32, SystemTime, Vec<u8>)> {
        let mut all = BTreeMap::new();
        let mut open = vec![self.path("workspace"), self.path("tmp")];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(&directory).unwrap() {
                let path = entry.unwrap().path();
                let about = fs::symlink_metadata(&path).unwrap();
                let content = if about.is_dir() {
                    open.push(path.clone());
                    Vec::new()
                } else if about.is_symlink() {
                    fs::read_link(&path)
                        .unwrap()
                        .into_os_string()
                        .into_encoded_bytes()
                } else {
                    fs::read(&path).unwrap()
                };
                if !path.starts_with(self.path("tmp/data")) {
                    all.insert(path, (about.mode(), about.modified().unwrap(), content));
                }
            }
        }
        all
    }
}

const LIMIT: u64 = 1 << 20;

#[test]
fn a_restoration_brings_back_contents_modes_times_links_and_directories() {
    let place = place();
    fs::create_dir_all(place.path("workspace/a/b")).unwrap();
    place.write("workspace/a/b/deep", "deep");
    place.write("workspace/changed", "before");
    place.write("workspace/removed", "removed");
    place.write("workspace/replaced", "a file");
    place.write("tmp/script", "#!");
    place.write("workspace/old", "old");
    fs::set_permissions(place.path("tmp/script"), fs::Permissions::from_mode(0o751)).unwrap();
    symlink("a/b/deep", place.path("workspace/link")).unwrap();
    fs::hard_link(
        place.path("workspace/changed"),
        place.path("workspace/other name"),
    )
    .unwrap();
    let old = fs::File::options()
        .write(true)
        .open(place.path("workspace/old"))
        .unwrap();
    old.set_modified(SystemTime::now() - Duration::from_secs(1000))
        .unwrap();
    let mut snapshots = Snapshots::default();
    let saved = snapshots.save(&place.roots, 1, LIMIT).unwrap();
    assert_eq!(saved.files, 8);
    let before = place.state();
    let inode = fs::metadata(place.path("workspace/changed")).unwrap().ino();

    for round in 0..2 {
        place.write("workspace/changed", "after, and longer");
        fs::remove_file(place.path("workspace/removed")).unwrap();
        fs::remove_file(place.path("workspace/replaced")).unwrap();
        fs::create_dir(place.path("workspace/replaced")).unwrap();
        place.write("workspace/replaced/inside", "x");
        fs::remove_dir_all(place.path("workspace/a")).unwrap();
        fs::create_dir_all(place.path("workspace/locked/in")).unwrap();
        place.write("workspace/locked/in/file", "x");
        fs::set_permissions(place.path("workspace/locked"), fs::Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(place.path("tmp/script"), fs::Permissions::from_mode(0o400)).unwrap();
        fs::remove_file(place.path("workspace/link")).unwrap();
        symlink("/etc/passwd", place.path("workspace/link")).unwrap();
        place.write("tmp/data/mine", "stays");
        snapshots.restore(&place.roots, 1).unwrap();
        assert_eq!(place.state(), before, "round {round}");
        for name in ["workspace/changed", "workspace/other name"] {
            assert_eq!(fs::metadata(place.path(name)).unwrap().ino(), inode, "{name}");
        }
        assert_eq!(fs::read_to_string(place.path("tmp/data/mine")).unwrap(), "stays");
    }
}

#[test]
fn a_link_that_was_put_in_the_place_of_a_directory_is_not_followed() {
    let place = place();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("file"), "outside").unwrap();
    fs::create_dir(place.path("workspace/folder")).unwrap();
    place.write("workspace/folder/file", "inside");
    let mut snapshots = Snapshots::default();
    snapshots.save(&place.roots, 1, LIMIT).unwrap();
    fs::remove_dir_all(place.path("workspace/folder")).unwrap();
    symlink(outside.path(), place.path("workspace/folder")).unwrap();
    let more = snapshots.save(&place.roots, 2, LIMIT).unwrap();
    assert_eq!(more.files, 1, "the link itself");
    snapshots.restore(&place.roots, 1).unwrap();
    assert_eq!(
        fs::read_to_string(place.path("workspace/folder/file")).unwrap(),
        "inside"
    );
    assert_eq!(
        fs::read_to_string(outside.path().join("file")).unwrap(),
        "outside"
    );
}

#[test]
fn an_unchanged_file_is_copied_once_and_freed_with_its_last_snapshot() {
    let place = place();
    place.write("workspace/large", &"x".repeat(100_000));
    settle(&place, "workspace/large");
    let mut snapshots = Snapshots::default();
    assert_eq!(snapshots.save(&place.roots, 1, LIMIT).unwrap().bytes, 100_000);
    place.write("workspace/small", "x");
    assert_eq!(snapshots.save(&place.roots, 2, LIMIT).unwrap().bytes, 1);
    snapshots.remove(1);
    fs::remove_file(place.path("workspace/large")).unwrap();
    snapshots.restore(&place.roots, 2).unwrap();
    assert_eq!(
        fs::metadata(place.path("workspace/large")).unwrap().len(),
        100_000
    );
    let refusal = snapshots.restore(&place.roots, 1).unwrap_err();
    assert_eq!(refusal.code, "not_found");
    snapshots.remove(2);
    assert!(snapshots.arena.is_none());
}

#[test]
fn an_unchanged_file_is_not_copied_again_when_the_last_snapshot_is_gone() {
    let place = place();
    place.write("workspace/large", &"x".repeat(100_000));
    settle(&place, "workspace/large");
    let mut snapshots = Snapshots::default();
    snapshots.save(&place.roots, 1, LIMIT).unwrap();
    snapshots.save(&place.roots, 2, LIMIT).unwrap();
    snapshots.remove(2);
    assert_eq!(snapshots.save(&place.roots, 3, LIMIT).unwrap().bytes, 0);
}

/// Waits until a change of the file would show in its state.
fn settle(place: &RoomFolders, name: &str) {
    while tree::FileState::of(&rustix::fs::stat(place.path(name)).unwrap()).is_none() {
        std::thread::yield_now();
    }
}

#[test]
fn what_cannot_be_saved_is_named_and_leaves_nothing_behind() {
    let place = place();
    place.write("workspace/a", "xxxx");
    place.write("workspace/b", "xxxx");
    let mut snapshots = Snapshots::default();
    let refusal = snapshots.save(&place.roots, 1, 7).unwrap_err();
    assert_eq!(refusal.code, "too_large");
    assert!(
        refusal.message.contains("which has 4 bytes"),
        "{}",
        refusal.message
    );
    let _socket = std::os::unix::net::UnixListener::bind(place.path("tmp/socket")).unwrap();
    let refusal = snapshots.save(&place.roots, 1, LIMIT).unwrap_err();
    assert_eq!(refusal, Refusal::new("special_file", "`/tmp/socket` is a socket"));
    assert!(snapshots.kept.is_empty());
    fs::remove_file(place.path("tmp/socket")).unwrap();
    snapshots.save(&place.roots, 1, 8).unwrap();
}

/// Returns the differences from a snapshot, as texts.
fn changes(snapshots: &Snapshots, place: &RoomFolders, most: u32) -> (Vec<String>, u64) {
    let differences = snapshots.changes(&place.roots, 1, most).unwrap();
    let found = differences.found.into_iter();
    let found = found.map(|it| format!("{:?} {}", it.change, it.path)).collect();
    (found, differences.total)
}

#[test]
fn differences_are_those_of_content_kind_and_mode() {
    let place = place();
    fs::create_dir_all(place.path("workspace/folder")).unwrap();
    for name in ["same", "written again", "changed", "removed", "mode", "folder/in"] {
        place.write(&format!("workspace/{name}"), "before");
    }
    fs::hard_link(place.path("workspace/changed"), place.path("workspace/linked")).unwrap();
    symlink("same", place.path("workspace/link")).unwrap();
    let mut snapshots = Snapshots::default();
    snapshots.save(&place.roots, 1, LIMIT).unwrap();
    assert_eq!(changes(&snapshots, &place, 100), (Vec::new(), 0));

    place.write("workspace/written again", "before");
    place.write("workspace/changed", "after!");
    fs::remove_file(place.path("workspace/removed")).unwrap();
    fs::set_permissions(place.path("workspace/mode"), fs::Permissions::from_mode(0o400)).unwrap();
    fs::remove_dir_all(place.path("workspace/folder")).unwrap();
    fs::remove_file(place.path("workspace/link")).unwrap();
    symlink("/etc/passwd", place.path("workspace/link")).unwrap();
    fs::create_dir(place.path("tmp/new")).unwrap();
    place.write("tmp/new/file", "x");
    place.write("tmp/data/mine", "the host's");
    let expected = [
        "Changed /workspace/changed",
        "Changed /workspace/link",
        "Changed /workspace/linked",
        "Changed /workspace/mode",
        "Removed /workspace/folder/",
        "Removed /workspace/folder/in",
        "Removed /workspace/removed",
        "Created /tmp/new/",
        "Created /tmp/new/file",
    ];
    let (found, total) = changes(&snapshots, &place, 100);
    assert_eq!((found, total), (expected.map(str::to_owned).to_vec(), 9));
    let (first, total) = changes(&snapshots, &place, 2);
    assert_eq!((&first[..], total), (&expected.map(str::to_owned)[..2], 9));

    snapshots.restore(&place.roots, 1).unwrap();
    assert_eq!(changes(&snapshots, &place, 100), (Vec::new(), 0));
    let refusal = snapshots.changes(&place.roots, 2, 1).unwrap_err();
    assert_eq!(refusal.code, "not_found");
}

#[test]
fn a_link_in_the_place_of_a_directory_is_a_difference_and_is_not_followed() {
    let place = place();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("file"), "outside").unwrap();
    fs::create_dir(place.path("workspace/folder")).unwrap();
    let mut snapshots = Snapshots::default();
    snapshots.save(&place.roots, 1, LIMIT).unwrap();
    fs::remove_dir(place.path("workspace/folder")).unwrap();
    symlink(outside.path(), place.path("workspace/folder")).unwrap();
    let (found, _) = changes(&snapshots, &place, 100);
    assert_eq!(found, ["Changed /workspace/folder"]);
}

/// A stream of a snapshot of another room.
fn stream(list: &str, contents: &str) -> Vec<u8> {
    let mut stream = (list.len() as u64).to_be_bytes().to_vec();
    stream.extend(list.bytes());
    stream.extend(contents.bytes());
    stream
}

#[test]
fn a_snapshot_arrives_in_another_room_in_parts_of_any_size() {
    let here = place();
    fs::create_dir_all(here.path("workspace/a/b")).unwrap();
    here.write("workspace/a/b/deep", "deep");
    here.write("workspace/empty", "");
    here.write("workspace/large", &"0123456789".repeat(1000));
    fs::hard_link(here.path("workspace/large"), here.path("workspace/a/same")).unwrap();
    fs::set_permissions(here.path("workspace/a/b/deep"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("a/b", here.path("workspace/link")).unwrap();
    here.write("tmp/t", "temporary");
    let mut snapshots = Snapshots::default();
    snapshots.save(&here.roots, 1, LIMIT).unwrap();
    let names = |place: &RoomFolders| -> BTreeMap<PathBuf, (u32, SystemTime, Vec<u8>)> {
        let state = place.state().into_iter();
        let shortened =
            state.map(|(path, it)| (path.strip_prefix(place.folder.path()).unwrap().to_owned(), it));
        shortened.collect()
    };
    for size in [1, 7, 4096, LIMIT] {
        let there = place();
        there.write("workspace/other", "goes");
        let mut arrived = Snapshots::default();
        let mut offset = 0;
        loop {
            let (part, last) = snapshots.read(1, offset, size).unwrap();
            offset += part.len() as u64;
            arrived.write(9, &part, last).unwrap();
            if last {
                break;
            }
        }
        arrived.restore(&there.roots, 9).unwrap();
        assert_eq!(names(&there), names(&here), "{size}");
        let inode = |name: &str| fs::metadata(there.path(name)).unwrap().ino();
        assert_eq!(inode("workspace/large"), inode("workspace/a/same"));
        arrived.remove(9);
    }
}

#[test]
fn a_broken_snapshot_of_another_room_is_refused() {
    let file = |path: &str, length: u64| {
        format!(
            r#"{{"path":"{path}","mode":420,"modified":[0,0],"kind":{{"file":{{"length":{length},"shared":false}}}}}}"#
        )
    };
    for (list, contents) in [
        (format!("[[{}],[]]", file("../x", 1)), "x"),
        (format!("[[{}],[]]", file("/etc/x", 1)), "x"),
        (format!("[[{}],[]]", file("x", 2)), "x"),
        (format!("[[{}],[]]", file("x", 1)), "xx"),
        (format!("[[{},{}],[]]", file("x", u64::MAX), file("y", 2)), "x"),
        ("[[]]".to_owned(), ""),
        ("[[],[]".to_owned(), ""),
    ] {
        let mut snapshots = Snapshots::default();
        let refused = snapshots.write(1, &stream(&list, contents), true).unwrap_err();
        assert_eq!(refused.code, "broken", "{list}: {}", refused.message);
        assert!(snapshots.restore(&place().roots, 1).is_err());
    }
    let mut snapshots = Snapshots::default();
    let endless = snapshots.write(1, &u64::MAX.to_be_bytes(), false);
    assert_eq!(endless.unwrap_err().code, "broken");
}
