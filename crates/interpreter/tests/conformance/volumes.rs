//! A volume whose session loses its sandbox.

use std::sync::Arc;
use std::time::Duration;

use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::volume::{SessionVolume, VolumeKeeper, VolumeManifest};
use cellblock_testkit::wait::until;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use crate::support::{block_on, interpreter, run, value};

/// Keeps revisions in memory.
#[derive(Debug, Default)]
pub(crate) struct Revisions {
    pub(crate) saved: Mutex<Vec<VolumeManifest>>,
    /// Whether everything was saved when the session ended.
    ended: Mutex<Option<bool>>,
}

impl VolumeKeeper for Revisions {
    fn save<'a>(
        &'a self,
        before: &'a VolumeManifest,
        after: &'a VolumeManifest,
    ) -> BoxFuture<'a, Result<u64, String>> {
        Box::pin(async move {
            let mut saved = self.saved.lock();
            assert_eq!(saved.last().unwrap_or(&VolumeManifest::default()), before);
            saved.push(after.clone());
            Ok(saved.len() as u64)
        })
    }

    fn release(&self, complete: bool) -> BoxFuture<'_, ()> {
        Box::pin(async move { *self.ended.lock() = Some(complete) })
    }
}

#[test]
fn a_new_sandbox_has_the_files_of_the_last_revision() {
    block_on(async {
        let keeper = Arc::new(Revisions::default());
        let interpreter = interpreter().await;
        let session = interpreter.session(SessionOptions {
            // The thread writes after the first revision is saved and before this ends, on a busy
            // machine, too.
            idle: Duration::from_secs(5),
            volume: Some(SessionVolume {
                name: "data".to_owned(),
                revision: 0,
                manifest: VolumeManifest::default(),
                keeper: Some(Arc::<Revisions>::clone(&keeper)),
                max_bytes: 1 << 20,
                max_files: 10,
                notice: Some("a note".to_owned()),
            }),
            ..SessionOptions::default()
        });
        // What a thread writes after the cell is saved before the sandbox ends.
        let write = "import threading\n_ = open('/workspace/volume/x', 'w').write('one')\n\
                     threading.Timer(2.5, lambda: open('/workspace/volume/late', 'w').write('two')).start()";
        assert_eq!(run(&session, write).await.note.unwrap(), "a note");
        assert_eq!(keeper.saved.lock().len(), 1);
        let first = session.prepare().await.unwrap().sandbox;
        until("it is given back", || {
            !interpreter.sandboxes_in_use().contains(&first)
        })
        .await;
        assert_eq!(keeper.saved.lock().len(), 2);
        let read = "[open('/workspace/volume/' + name).read() for name in ('x', 'late')]";
        let found = run(&session, &format!("files = {read}")).await;
        let note = found.note.unwrap_or_default();
        assert!(
            note.ends_with(
                "the new sandbox has the files of the volume `data` in /workspace/volume, as of revision 2"
            ),
            "{note}"
        );
        assert_eq!(value(&session, "' '.join(files)").await, "one two");
        session.close().await.unwrap();
        // Nothing was changed since.
        assert_eq!(keeper.saved.lock().len(), 2);
        assert_eq!(*keeper.ended.lock(), Some(true));
    });
}
