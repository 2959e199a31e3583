//! Tests of the records of volumes.

use super::*;
use crate::records::conformance::over_each_database;
use crate::records::database::DatabaseClock;
use crate::records::holders;
use crate::records::holders::HoldingGateway;

fn writer(session: &str, gateway: &str) -> VolumeWriter {
    VolumeWriter {
        session: session.to_owned(),
        gateway: gateway.to_owned(),
    }
}

fn revision(manifest: &str, bytes: i64) -> VolumeRevision {
    VolumeRevision {
        manifest: manifest.to_owned(),
        bytes,
        files: 1,
        saved_ms: 7,
    }
}

/// Opens a volume of ann for writing; there may be two.
async fn write(records: &Records, name: &str, by: &VolumeWriter) -> VolumeOpening {
    let id = format!("id of {name}");
    let opened = records.write_volume("ann", name, &id, by.clone(), 2, 5);
    opened.await.unwrap()
}

async fn row(records: &Records, name: &str) -> (VolumeRow, String) {
    match records.read_volume("ann", name).await.unwrap() {
        VolumeOpening::Opened(row, manifest) => (*row, manifest),
        other => panic!("{other:?}"),
    }
}

over_each_database! {
    async fn one_session_writes_a_volume_and_the_next_one_finds_its_last_revision(records: Records) {
        let (one, two) = (writer("s1", "g"), writer("s2", "g"));
        let VolumeOpening::Opened(new, manifest) = write(&records, "data", &one).await else { panic!() };
        assert_eq!((new.revision, new.saved_ms, new.writer, manifest.as_str()), (0, None, None, "{}"));
        let VolumeOpening::Held(held) = write(&records, "data", &two).await else { panic!() };
        assert_eq!((held.writer.as_deref(), held.state.as_deref()), (Some("s1"), Some("writing")));

        assert_eq!(records.save_volume("id of data", two.clone(), revision("x", 9)).await.unwrap(), None);
        let saved = records.save_volume("id of data", one.clone(), revision("{1}", 3)).await;
        assert_eq!(saved.unwrap(), Some(1));
        let saved = records.save_volume("id of data", one.clone(), revision("{2}", 4)).await;
        assert_eq!(saved.unwrap(), Some(2));
        assert_eq!(records.stored_bytes("ann").await.unwrap(), 4);
        // Only the holder lets go of it.
        records.release_volume("id of data", two.clone(), "saved").await.unwrap();
        assert!(matches!(write(&records, "data", &two).await, VolumeOpening::Held(_)));
        records.release_volume("id of data", one.clone(), "saved").await.unwrap();
        let (found, manifest) = row(&records, "data").await;
        assert_eq!((found.revision, found.bytes, found.saved_ms), (2, 4, Some(7)));
        assert_eq!((found.writer.as_deref(), found.state.as_deref()), (Some("s1"), Some("saved")));
        assert_eq!(manifest, "{2}");
        assert!(matches!(write(&records, "data", &two).await, VolumeOpening::Opened(..)));
    }

    async fn volumes_are_counted_listed_and_removed_for_each_owner(records: Records) {
        let one = writer("s1", "g");
        for name in ["a", "b"] {
            assert!(matches!(write(&records, name, &one).await, VolumeOpening::Opened(..)));
        }
        assert_eq!(write(&records, "c", &one).await, VolumeOpening::Full);
        assert_eq!(records.read_volume("ann", "c").await.unwrap(), VolumeOpening::Unknown);
        assert_eq!(records.read_volume("eve", "a").await.unwrap(), VolumeOpening::Unknown);

        let page = |after: Option<&str>| Page { after: after.map(str::to_owned), limit: 1, ascending: true };
        let first = records.volumes("ann", page(None)).await.unwrap().unwrap();
        assert_eq!((first.rows[0].name.as_str(), first.more), ("a", true));
        let second = records.volumes("ann", page(Some("id of a"))).await.unwrap().unwrap();
        assert_eq!((second.rows[0].name.as_str(), second.more), ("b", false));
        assert_eq!(records.volumes("eve", page(None)).await.unwrap().unwrap().rows, []);
        let all = records.all_volumes().await.unwrap();
        let all: Vec<_> = all.into_iter().map(|row| (row.owner, row.name)).collect();
        assert_eq!(all, ["a", "b"].map(|name| ("ann".to_owned(), name.to_owned())));

        assert!(matches!(records.remove_volume("ann", "a").await.unwrap(), VolumeRemoval::Writing(_)));
        records.release_volume("id of a", one, "incomplete").await.unwrap();
        assert_eq!(records.remove_volume("eve", "a").await.unwrap(), VolumeRemoval::Missing);
        assert!(matches!(records.remove_volume("ann", "a").await.unwrap(), VolumeRemoval::Removed(_)));
        assert_eq!(records.remove_volume("ann", "a").await.unwrap(), VolumeRemoval::Missing);
    }

    async fn a_session_whose_gateway_is_gone_can_neither_save_nor_keep_its_volume(records: Records) {
        let (old, new) = (writer("s1", "gone"), writer("s2", "here"));
        write(&records, "data", &old).await;
        records.save_volume("id of data", old.clone(), revision("{1}", 1)).await.unwrap();
        // No lease was ever made for the gateway `gone`.
        let start = records.with(|database| match database.clock()? {
            // As of a server that has been up for long.
            Some(clock) => {
                let late = DatabaseClock { up_ms: i64::MAX, ..clock };
                holders::renew_at(database, &here(), crate::options::LEASE, late)
            }
            None => holders::start(database, &here(), crate::options::LEASE),
        });
        start.await.unwrap();
        let (lost, _) = row(&records, "data").await;
        assert_eq!(
            (lost.writer.as_deref(), lost.state.as_deref(), lost.revision),
            (Some("s1"), Some("lost"), 1)
        );
        assert_eq!(records.save_volume("id of data", old.clone(), revision("{2}", 2)).await.unwrap(), None);

        assert!(matches!(write(&records, "data", &new).await, VolumeOpening::Opened(..)));
        records.release_volume("id of data", old.clone(), "saved").await.unwrap();
        assert_eq!(records.save_volume("id of data", old, revision("{2}", 2)).await.unwrap(), None);
        let (held, manifest) = row(&records, "data").await;
        assert_eq!(
            (held.writer.as_deref(), held.state.as_deref(), manifest.as_str()),
            (Some("s2"), Some("writing"), "{1}")
        );
    }
}

/// The gateway of these tests.
fn here() -> HoldingGateway {
    HoldingGateway {
        id: "here".to_owned(),
        address: None,
    }
}
