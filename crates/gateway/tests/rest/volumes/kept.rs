//! Files over sessions, restarts and failures.

use cellblock_gateway::Options;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{FOLDER, alone, id, note, printed, serve, with_store, written};
use crate::support::{block_on, until};

#[test]
fn a_later_session_finds_the_files_of_a_volume_as_the_last_one_left_them() {
    block_on(async {
        let (_folder, server) = alone(|_| {}).await;
        let api = &server.api;
        let one = api.session(&written("data")).await;
        let (_, session) = api.get(&one).await;
        assert_eq!(
            session["volume"],
            json!({"name": "data", "access": "write", "revision": 0})
        );
        let make = format!(
            "import os\nos.makedirs('{FOLDER}/a/b')\nopen('{FOLDER}/a/b/x', 'w').write('one')\n\
             open('{FOLDER}/run.sh', 'w').write('#!/bin/sh\\necho hi')\nos.chmod('{FOLDER}/run.sh', 0o755)\n\
             open('{FOLDER}/gone', 'w').write('y')\nopen('{FOLDER}/empty', 'w').close()"
        );
        assert_eq!(note(api, &one, &make).await, "");
        let volume = server.volume("data").await;
        assert_eq!(
            (&volume["revision"], &volume["files"], &volume["bytes"]),
            (&json!(1), &json!(4), &json!(21)),
            "{volume}"
        );
        assert_eq!(
            volume["last_writer"],
            json!({"session": id(&one), "state": "writing"})
        );
        // Looking changes nothing; changing without another size or time does.
        printed(api, &one, &format!("open('{FOLDER}/gone').read()")).await;
        assert_eq!(server.volume("data").await["revision"], 1);
        let same = format!(
            "s = os.stat('{FOLDER}/a/b/x')\nopen('{FOLDER}/a/b/x', 'w').write('two')\n\
             os.utime('{FOLDER}/a/b/x', ns=(s.st_atime_ns, s.st_mtime_ns))\nos.remove('{FOLDER}/gone')"
        );
        note(api, &one, &same).await;
        assert_eq!(server.volume("data").await["revision"], 2);
        // Exit handlers are the last to write.
        let last = format!("import atexit\natexit.register(lambda: open('{FOLDER}/last', 'w').write('bye'))");
        note(api, &one, &last).await;
        api.end(&one).await;
        let volume = server.volume("data").await;
        assert_eq!(
            (&volume["revision"], &volume["files"]),
            (&json!(3), &json!(4)),
            "{volume}"
        );
        assert_eq!(volume["last_writer"]["state"], "saved");

        let two = api.session(&written("data")).await;
        let files = api.run(&two, "import os").await;
        assert_eq!(
            (&files["files"], &files["note"]),
            (&json!([]), &Value::Null),
            "{files}"
        );
        let walk = format!(
            "sorted(os.path.join(d, f)[{}:] for d, _, fs in os.walk('{FOLDER}') for f in fs)",
            FOLDER.len()
        );
        assert_eq!(
            printed(api, &two, &walk).await,
            "['/a/b/x', '/empty', '/last', '/run.sh']"
        );
        assert_eq!(
            printed(api, &two, &format!("open('{FOLDER}/a/b/x').read()")).await,
            "two"
        );
        let mode = format!("oct(os.stat('{FOLDER}/run.sh').st_mode & 0o777)");
        assert_eq!(printed(api, &two, &mode).await, "0o755");
        assert_eq!(server.volume("data").await["revision"], 3);
        // Without the folder, the volume is empty.
        note(api, &two, &format!("import shutil\nshutil.rmtree('{FOLDER}')")).await;
        assert_eq!(server.volume("data").await["files"], 0);
        server.stop().await;
    });
}

#[test]
fn a_restart_keeps_volumes_and_reports_a_session_that_was_lost() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let first = serve(folder.path(), Options::default()).await;
        let session = first.api.session(&written("data")).await;
        note(
            &first.api,
            &session,
            &format!("_ = open('{FOLDER}/x', 'w').write('one')"),
        )
        .await;
        first.stop().await;

        let second = serve(folder.path(), Options::default()).await;
        assert_eq!(
            second.volume("data").await["last_writer"],
            json!({"session": id(&session), "state": "saved"})
        );
        let lost = second.api.session(&written("data")).await;
        assert_eq!(
            printed(&second.api, &lost, &format!("open('{FOLDER}/x').read()")).await,
            "one"
        );

        // The second one has no time to stop: for the third, it is gone.
        let third = serve(folder.path(), Options::default()).await;
        let volume = third.volume("data").await;
        assert_eq!(
            volume["last_writer"],
            json!({"session": id(&lost), "state": "lost"})
        );
        assert!(volume["saved_at"].as_u64().unwrap() > 1_600_000_000, "{volume}");
        let next = third.api.session(&written("data")).await;
        assert_eq!(
            note(
                &third.api,
                &next,
                &format!("assert open('{FOLDER}/x').read() == 'one'")
            )
            .await,
            format!(
                "the volume `data` has revision 1: the server ended while the session {} wrote it, so \
                 later changes are lost",
                id(&lost)
            )
        );
        // Whatever the lost session does now changes nothing.
        let late = note(
            &second.api,
            &lost,
            &format!("_ = open('{FOLDER}/x', 'w').write('late')"),
        )
        .await;
        assert!(
            late.starts_with("the volume `data` was not saved: this session does not hold it any more"),
            "{late}"
        );
        assert!(late.ends_with("Its revision 1 is kept"), "{late}");
        second.api.end(&lost).await;
        let volume = third.volume("data").await;
        assert_eq!(volume["revision"], 1);
        assert_eq!(
            volume["last_writer"],
            json!({"session": id(&next), "state": "writing"})
        );
        second.stop().await;
        third.stop().await;
    });
}

#[test]
fn a_save_that_fails_in_the_middle_leaves_the_last_whole_revision() {
    block_on(async {
        let (folder, server) = with_store().await;
        let api = &server.api;
        let session = api.session(&written("data")).await;
        note(
            api,
            &session,
            &format!("_ = open('{FOLDER}/x', 'w').write('one')"),
        )
        .await;
        let (objects, aside) = (
            folder.path().join("artifacts/objects"),
            folder.path().join("aside"),
        );
        // The contents cannot be stored, …
        std::fs::rename(&objects, &aside).unwrap();
        std::fs::write(&objects, "").unwrap();
        let failed = "the volume `data` was not saved: the server could not store";
        let two = format!("for name in 'xy': open(f'{FOLDER}/{{name}}', 'w').write('two')");
        let told = api
            .post(&format!("{session}/cells"), &json!({"code": two}))
            .await
            .1;
        assert_eq!(server.volume("data").await["revision"], 1, "{told}");
        std::fs::remove_file(&objects).unwrap();
        std::fs::rename(&aside, &objects).unwrap();
        // … then they are, and the manifest cannot be.
        let records = &server.gateway.records;
        records
            .with(|it| it.batch("ALTER TABLE volumes RENAME TO away"))
            .await
            .unwrap();
        let told = note(api, &session, "1").await;
        assert!(told.contains(failed), "{told}");
        records
            .with(|it| it.batch("ALTER TABLE away RENAME TO volumes"))
            .await
            .unwrap();
        let volume = server.volume("data").await;
        assert_eq!((&volume["revision"], &volume["files"]), (&json!(1), &json!(1)));

        let reader = api
            .session(&json!({"volume": "data", "volume_access": "read"}))
            .await;
        assert_eq!(
            printed(api, &reader, &format!("open('{FOLDER}/x').read()")).await,
            "one"
        );
        assert_eq!(note(api, &session, "1").await, "");
        let volume = server.volume("data").await;
        assert_eq!((&volume["revision"], &volume["files"]), (&json!(2), &json!(2)));
        server.stop().await;
    });
}

#[test]
fn commands_uploads_and_processes_save_what_they_write() {
    block_on(async {
        let (_folder, server) = alone(|_| {}).await;
        let api = &server.api;
        let bench = json!({"toolset": "workbench", "volume": "data"});
        let session = api.session(&bench).await;
        let upload = format!("{session}/files/workspace/volume/uploaded");
        assert_eq!(
            api.put(&upload, "text/plain", b"up".to_vec()).await.0,
            StatusCode::OK
        );
        assert_eq!(server.volume("data").await["revision"], 1);
        let command = json!({"command": ["sh", "-c", format!("echo x > {FOLDER}/by-command")]});
        let (status, ran) = api.post(&format!("{session}/tools/sandbox_exec"), &command).await;
        assert_eq!((status, &ran["exit_code"]), (StatusCode::OK, &json!(0)), "{ran}");
        assert_eq!(server.volume("data").await["revision"], 2);
        assert_eq!(api.delete(&upload).await.0, StatusCode::OK);
        assert_eq!(server.volume("data").await["files"], 1);

        let process = json!({"command": ["sh", "-c",
            format!("read line; echo $line > {FOLDER}/by-process")], "stdin": true});
        let (status, _) = api.post(&format!("{session}/processes"), &process).await;
        assert_eq!(status, StatusCode::CREATED);
        let input = json!({"data": "hello\n", "close": true});
        api.post(&format!("{session}/processes/p1/input"), &input).await;
        until("its end saves the volume", || async {
            server.volume("data").await["files"] == 2
        })
        .await;
        server.stop().await;
    });
}
