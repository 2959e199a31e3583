//! Owners and writers of volumes, and their end.

use std::time::Duration;

use cellblock_artifact::{ArtifactDescription, Kind, Retention};
use cellblock_gateway::volumes::OwnerVolumes;
use cellblock_interpreter::hosting::{Owner, ShelfError, VolumeShelf as _};
use cellblock_interpreter::volume::{VolumeFile, VolumeManifest};
use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{FOLDER, alone, id, note, printed, with_store, written};
use crate::support::{Api, block_on};

#[test]
fn one_session_writes_a_volume_and_others_read_its_last_revision() {
    block_on(async {
        let (_folder, server) = alone(|_| {}).await;
        let api = &server.api;
        let readers = json!({"volume": "data", "volume_access": "read"});
        let (status, missing) = api.post("/v1/sessions", &readers).await;
        assert_eq!(
            (status, &missing["error"]["code"]),
            (StatusCode::NOT_FOUND, &json!("volume_not_found"))
        );

        let writer = api.session(&written("data")).await;
        note(api, &writer, &format!("_ = open('{FOLDER}/x', 'w').write('one')")).await;
        let (status, held) = api.post("/v1/sessions", &written("data")).await;
        assert_eq!(
            (status, &held["error"]["code"]),
            (StatusCode::CONFLICT, &json!("volume_held"))
        );
        let message = held["error"]["message"].as_str().unwrap();
        assert!(
            message.contains(id(&writer)) && message.contains("\"volume_access\": \"read\""),
            "{message}"
        );

        let reader = api.session(&readers).await;
        let (_, session) = api.get(&reader).await;
        assert_eq!(
            session["volume"],
            json!({"name": "data", "access": "read", "revision": 1})
        );
        note(api, &writer, &format!("_ = open('{FOLDER}/x', 'w').write('two')")).await;
        let change = format!("old = open('{FOLDER}/x').read()\n_ = open('{FOLDER}/x', 'w').write('mine')");
        assert_eq!(note(api, &reader, &change).await, "");
        assert_eq!(printed(api, &reader, "old").await, "one");
        api.end(&reader).await;
        let volume = server.volume("data").await;
        assert_eq!(
            (&volume["revision"], &volume["last_writer"]["session"]),
            (&json!(2), &json!(id(&writer)))
        );

        let (status, held) = api.delete("/v1/volumes/data").await;
        assert_eq!(
            (status, &held["error"]["code"]),
            (StatusCode::CONFLICT, &json!("volume_held"))
        );
        api.end(&writer).await;
        let next = api.session(&written("data")).await;
        assert_eq!(
            printed(api, &next, &format!("open('{FOLDER}/x').read()")).await,
            "two"
        );
        server.stop().await;
    });
}

#[test]
fn a_volume_keeps_its_contents_until_it_is_deleted() {
    block_on(async {
        let (_folder, server) = with_store().await;
        let api = &server.api;
        let session = api.session(&written("data")).await;
        let code = format!("for name in 'ab': open(f'{FOLDER}/{{name}}', 'w').write('kept ' + name)");
        note(api, &session, &code).await;
        note(
            api,
            &session,
            &format!("_ = open('{FOLDER}/a', 'w').write('new a')"),
        )
        .await;
        api.end(&session).await;
        let store = &server.gateway.store;
        let at_once = Retention {
            keep: Duration::ZERO,
            pins: None,
        };
        store.collect(&at_once, |_| false).await.unwrap();
        // What the first revision alone had is not kept.
        assert_eq!(store.list().await.unwrap().len(), 2);
        let session = api.session(&written("data")).await;
        assert_eq!(
            printed(
                api,
                &session,
                &format!("open('{FOLDER}/a').read(), open('{FOLDER}/b').read()")
            )
            .await,
            "new a kept b"
        );
        api.end(&session).await;

        let volume = server.volume("data").await;
        let (status, deleted) = api.delete("/v1/volumes/data").await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(
            deleted,
            json!({"object": "volume.deleted", "id": volume["id"], "deleted": true})
        );
        for (status, gone) in [
            api.get("/v1/volumes/data").await,
            api.delete("/v1/volumes/data").await,
        ] {
            assert_eq!(
                (status, &gone["error"]["code"]),
                (StatusCode::NOT_FOUND, &json!("volume_not_found"))
            );
        }
        store.collect(&at_once, |_| false).await.unwrap();
        assert_eq!(store.list().await.unwrap(), []);
        server.stop().await;
    });
}

#[test]
fn volumes_belong_to_their_owner_and_are_listed_in_pages() {
    block_on(async {
        let (one, two) = (Api::of("volumes one").await, Api::of("volumes two").await);
        let session = one.session(&written("shared-name")).await;
        note(
            &one,
            &session,
            &format!("_ = open('{FOLDER}/x', 'w').write('mine')"),
        )
        .await;
        for (method, path) in [(Method::GET, "shared-name"), (Method::DELETE, "shared-name")] {
            let response = two
                .request(method, &format!("/v1/volumes/{path}"))
                .send()
                .await
                .unwrap();
            assert_eq!(response.status(), StatusCode::NOT_FOUND);
        }
        let (_, none) = two.get("/v1/volumes").await;
        assert_eq!(none["data"], json!([]));
        // The same name is another volume.
        let theirs = two.session(&written("shared-name")).await;
        assert_eq!(
            printed(&two, &theirs, &format!("__import__('os').listdir('{FOLDER}')")).await,
            "[]"
        );
        two.end(&theirs).await;
        one.end(&session).await;

        let other = one.session(&written("b")).await;
        one.end(&other).await;
        let (_, page) = one.get("/v1/volumes?limit=1&order=asc").await;
        assert_eq!(
            (&page["data"][0]["name"], &page["has_more"]),
            (&json!("shared-name"), &json!(true))
        );
        let after = page["last_id"].as_str().unwrap();
        let (_, page) = one
            .get(&format!("/v1/volumes?limit=1&order=asc&after={after}"))
            .await;
        assert_eq!(
            (&page["data"][0]["name"], &page["has_more"]),
            (&json!("b"), &json!(false))
        );
        for (api, name) in [(&one, "shared-name"), (&one, "b"), (&two, "shared-name")] {
            assert_eq!(api.delete(&format!("/v1/volumes/{name}")).await.0, StatusCode::OK);
        }
    });
}

#[test]
fn dialects_keep_files_in_volumes_of_their_owner() {
    block_on(async {
        let (_folder, server) = alone(|options| options.quotas.stored_bytes = Some(100)).await;
        let shelf = OwnerVolumes::new(&server.gateway);
        let (ann, bob) = (Owner::new("ann"), Owner::new("bob"));
        let missing = shelf.read(&ann, "kept").await.unwrap_err();
        assert!(matches!(missing, ShelfError::Missing(_)), "{missing}");
        let invalid = shelf.write(&ann, "A/B", "build").await.unwrap_err();
        assert!(matches!(invalid, ShelfError::Invalid(_)), "{invalid}");
        let opened = shelf.write(&ann, "kept", "build").await.unwrap();
        let held = shelf.write(&ann, "kept", "other").await.unwrap_err();
        assert!(matches!(held, ShelfError::Held(_)), "{held}");
        let held = shelf.remove(&ann, "kept").await.unwrap_err();
        assert!(matches!(held, ShelfError::Held(_)), "{held}");
        let keeper = opened.keeper.unwrap();
        let stored = async |text: String| {
            let about = ArtifactDescription {
                kind: Kind::File,
                media_type: "text/plain".to_owned(),
                origin: None,
            };
            let bytes = text.len() as u64;
            let sha256 = server.gateway.store.put(text, &about).await.unwrap();
            let file = VolumeFile {
                mode: 0o600,
                bytes,
                sha256,
            };
            VolumeManifest([("a.txt".to_owned(), file)].into())
        };
        let small = stored("small".to_owned()).await;
        assert_eq!(keeper.save(&opened.manifest, &small).await, Ok(1));
        let refused = keeper
            .save(&small, &stored("x".repeat(101)).await)
            .await
            .unwrap_err();
        assert!(refused.contains("`stored_bytes`"), "{refused}");
        keeper.release(true).await;
        assert_eq!(shelf.read(&ann, "kept").await.unwrap().manifest, small);
        let listed = shelf.list(&ann).await.unwrap();
        assert_eq!((listed.len(), listed[0].bytes), (1, 5));
        assert!(shelf.list(&bob).await.unwrap().is_empty());
        let missing = shelf.remove(&bob, "kept").await.unwrap_err();
        assert!(matches!(missing, ShelfError::Missing(_)), "{missing}");
        shelf.remove(&ann, "kept").await.unwrap();
        assert!(shelf.list(&ann).await.unwrap().is_empty());
        server.stop().await;
    });
}
