//! Uploads within and beyond their limits.

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use futures_util::stream;

use super::*;
use crate::hosting::Owner;

const MAX: MaxUpload = MaxUpload {
    bytes: 1000,
    setting: "sessions.max_upload",
};

/// An allowance of so many bytes.
#[derive(Debug)]
struct ByteAllowance(u64);

impl UploadAllowance for ByteAllowance {
    fn take(&mut self, bytes: u64) -> Result<(), MeterDenial> {
        self.0 = self
            .0
            .checked_sub(bytes)
            .ok_or_else(|| MeterDenial("used up".to_owned()))?;
        Ok(())
    }

    fn keep(&mut self) {}
}

fn room(folder: &Path) -> UploadRoom {
    let limits = UploadLimits {
        max_bytes: 1500,
        max_bytes_per_owner: 1200,
        timeout: Duration::from_mins(1),
    };
    UploadRoom::new(limits, Some(folder.to_owned()))
}

fn begin(room: &UploadRoom, owner: &str, size: DeclaredSize) -> Result<Upload, UploadError> {
    room.begin(&Owner::new(owner), Box::new(()), size, MAX)
}

/// A body of so many pieces with 100 bytes each, which notes how many were taken.
fn pieces(count: usize, taken: &mut usize) -> impl Stream<Item = Result<Bytes, Infallible>> + Unpin {
    stream::iter(0..count).map(move |_| {
        *taken += 1;
        Ok(Bytes::from_static(&[0; 100]))
    })
}

/// Files in the folder that have a name, apart from its lock.
fn named(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count() - 1
}

#[tokio::test]
async fn a_chunked_upload_ends_with_the_piece_that_exceeds_a_limit_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let room = room(folder.path());
    let mut taken = 0;
    let mut upload = begin(&room, "one", DeclaredSize::Unknown).unwrap();
    let error = upload
        .receive_named(".csv", pieces(50, &mut taken))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "receive the upload: the file has more than 1000 bytes, `sessions.max_upload` allows 1000; send a \
         smaller file"
    );
    assert_eq!((taken, named(folder.path())), (11, 0));

    taken = 0;
    let allowance = Box::new(ByteAllowance(250));
    let mut upload = room
        .begin(&Owner::new("one"), allowance, DeclaredSize::Unknown, MAX)
        .unwrap();
    let error = upload
        .receive_named(".csv", pieces(50, &mut taken))
        .await
        .unwrap_err();
    assert!(matches!(error, UploadError::Denied(_)), "{error}");
    assert_eq!((taken, named(folder.path())), (3, 0));
    // Neither left anything in the room.
    let mut upload = begin(&room, "one", DeclaredSize::File(1000)).unwrap();
    let received = upload.receive(pieces(10, &mut taken)).await.unwrap();
    assert_eq!(received.bytes, 1000);
}

#[tokio::test]
async fn bytes_at_a_time_are_bounded_per_owner_and_in_all_until_they_are_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let room = room(folder.path());
    let mut taken = 0;
    let mut upload = begin(&room, "one", DeclaredSize::Unknown).unwrap();
    let first = upload.receive(pieces(10, &mut taken)).await.unwrap();
    let refused = begin(&room, "one", DeclaredSize::File(300)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "receive the upload: 1000 bytes are being received for this key, and `uploads.max_bytes_per_key` \
         allows 1200 at a time; wait until another upload has ended"
    );
    taken = 0;
    let mut other = begin(&room, "two", DeclaredSize::Unknown).unwrap();
    let refused = other.receive(pieces(10, &mut taken)).await.unwrap_err();
    assert!(
        matches!(
            refused,
            UploadError::Busy {
                is_owner: false,
                used: 1500,
                limit: 1500
            }
        ),
        "{refused}"
    );
    assert_eq!(taken, 6);
    drop(first);
    let mut other = begin(&room, "two", DeclaredSize::File(1000)).unwrap();
    other.receive(pieces(10, &mut taken)).await.unwrap();
}

#[tokio::test]
async fn files_of_one_form_share_a_file_and_its_permit() {
    let folder = tempfile::tempdir().unwrap();
    let room = room(folder.path());
    let mut taken = 0;
    let mut upload = begin(&room, "one", DeclaredSize::Unknown).unwrap();
    let mut spool = upload.spool().unwrap();
    for (count, place) in [(2, 0..200), (0, 200..200), (3, 200..500)] {
        let received = upload.append(&mut spool, pieces(count, &mut taken)).await;
        assert_eq!(received.unwrap(), place);
    }
    assert_eq!(spool.content.metadata().unwrap().len(), 500);
    begin(&room, "one", DeclaredSize::File(800)).unwrap_err();
    drop(spool);
    begin(&room, "one", DeclaredSize::File(800)).unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_upload_that_takes_too_long_ends_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let room = room(folder.path());
    let mut upload = begin(&room, "one", DeclaredSize::Unknown).unwrap();
    let slow = stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_secs(20)).await;
        Some((Ok::<_, Infallible>(Bytes::from_static(b"x")), ()))
    });
    let error = upload.receive_named("", std::pin::pin!(slow)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "receive the upload: it was not complete after 60 seconds, the limit that `uploads.timeout` sets; \
         send a smaller file, or use a faster connection"
    );
    assert_eq!(named(folder.path()), 0);
}

#[test]
fn what_a_process_that_is_gone_has_left_is_removed_unless_another_one_runs() {
    let folder = tempfile::tempdir().unwrap();
    let left = folder.path().join("cellblock-upload-left.csv");
    std::fs::write(&left, "a").unwrap();
    let room = room(folder.path());
    assert!(!left.exists());
    let (_, path) = room.named(".csv").unwrap().into_parts();
    let _other = super::room::UploadRoom::new(UploadLimits::default(), Some(folder.path().to_owned()));
    assert!(path.exists());
}

#[test]
fn the_size_that_a_request_announces_is_that_of_its_file_unless_it_is_wrapped() {
    let size = |headers: &[(&'static str, &str)]| {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        DeclaredSize::of(&headers.collect::<HeaderMap>())
    };
    assert_eq!(size(&[]).at_least(), 0);
    let length = ("content-length", "1000000");
    assert_eq!(size(&[length]), DeclaredSize::File(1_000_000));
    let form = ("content-type", "multipart/form-data; boundary=x");
    for wrapped in [form, ("content-encoding", "gzip")] {
        assert_eq!(size(&[length, wrapped]), DeclaredSize::Wrapped(1_000_000));
    }
    assert_eq!(size(&[length, form]).at_least(), 1_000_000 - (64 << 10));
}
