//! Places of sessions: who is alive, who is swept, and who is refused.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn places() -> (tempfile::TempDir, Places) {
    let home = tempfile::tempdir().unwrap();
    let places = Places::at(HostKind::Session, home.path()).unwrap();
    (home, places)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_place_lives_as_long_as_its_lock_is_held_and_is_swept_after() {
    let (_home, places) = places();
    let (place, held) = places.create().unwrap();
    let shared = held.share().unwrap();
    drop(held);
    assert_eq!(place.is_live().unwrap(), Some(true));
    place.sweep().unwrap();
    assert!(place.path().exists(), "one that is in use stays");
    assert_eq!(places.open(place.id()).unwrap().id(), place.id());
    assert_eq!(places.live().unwrap().len(), 1);
    drop(shared);
    assert_eq!(place.is_live().unwrap(), Some(false));
    assert_eq!(places.live().unwrap().len(), 0);
    assert!(!place.path().exists());
    assert_eq!(place.is_live().unwrap(), None);
}

#[test]
fn the_last_words_of_a_dead_host_are_reported_once() {
    let (_home, places) = places();
    let (place, held) = places.create().unwrap();
    place.open_log().unwrap().write_all(b"out of luck\n").unwrap();
    drop(held);
    let id = place.id();
    let error = places.open(id).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("session `{id}` is over: its host process is gone; its last words: out of luck")
    );
    let error = places.open(id).unwrap_err();
    assert_eq!(error.to_string(), format!("there is no session `{id}`"));
}

#[test]
fn new_files_are_private() {
    let (_home, places) = places();
    let (place, _held) = places.create().unwrap();
    drop(place.open_log().unwrap());
    assert_eq!(mode(&places.root), 0o700);
    assert_eq!(mode(&place.path()), 0o700);
    assert_eq!(mode(&place.file(LOCK)), 0o600);
    assert_eq!(mode(&place.file(LOG)), 0o600);
}

#[test]
fn a_directory_that_others_can_enter_or_that_is_a_link_is_rejected() {
    let (home, places) = places();
    fs::set_permissions(&places.root, fs::Permissions::from_mode(0o755)).unwrap();
    let error = Places::at(HostKind::Session, home.path()).unwrap_err();
    assert_eq!(error.exit_code() as u8, 78);
    fs::set_permissions(&places.root, fs::Permissions::from_mode(0o700)).unwrap();
    let other = tempfile::tempdir().unwrap();
    symlink(&places.root, other.path().join("sessions")).unwrap();
    assert!(Places::at(HostKind::Session, other.path()).is_err());
}

#[test]
fn a_log_is_not_written_through_a_link() {
    let (home, places) = places();
    let (place, _held) = places.create().unwrap();
    let elsewhere = home.path().join("elsewhere");
    symlink(&elsewhere, place.file(LOG)).unwrap();
    assert!(place.open_log().is_err());
    assert!(!elsewhere.exists());
}

#[test]
fn a_socket_is_reached_however_long_the_path_of_the_home_is() {
    let home = tempfile::tempdir().unwrap();
    let deep = home.path().join("d".repeat(200));
    fs::create_dir(&deep).unwrap();
    let places = Places::at(HostKind::Session, &deep).unwrap();
    let (place, _held) = places.create().unwrap();
    let listener = place
        .at_socket(|path| std::os::unix::net::UnixListener::bind(path))
        .unwrap();
    let near = place
        .at_socket(|path| std::os::unix::net::UnixStream::connect(path))
        .unwrap();
    listener.accept().unwrap();
    drop(near);
}

#[test]
fn the_host_signs_the_lock_and_knows_it_again() {
    let (_home, places) = places();
    let (place, held) = places.create().unwrap();
    assert_eq!(place.host(), None);
    let us = rustix::process::getpid();
    held.sign(us).unwrap();
    assert_eq!(place.host(), Some(us));
    assert!(place.is_lock(&held.share().unwrap()));
    assert!(!place.is_lock(&place.open_log().unwrap()));
}

#[test]
fn a_host_with_a_chosen_id_is_made_once_while_it_lives() {
    let home = tempfile::tempdir().unwrap();
    let places = Places::at(HostKind::Warm, home.path()).unwrap();
    let id = SessionId::random();
    let (place, held) = places.create_as(&id).unwrap().unwrap();
    place
        .open_log()
        .unwrap()
        .write_all(b"words of the first")
        .unwrap();
    assert!(places.create_as(&id).unwrap().is_none());
    drop(held);
    let (place, _held) = places.create_as(&id).unwrap().unwrap();
    assert_eq!(place.log(), "", "nothing of the first is left");
}
