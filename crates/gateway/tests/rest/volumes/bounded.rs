//! Limits of volumes, and what does not get into them.

use reqwest::StatusCode;
use serde_json::json;

use super::{FOLDER, alone, note, printed, written};
use crate::support::block_on;

#[test]
fn what_exceeds_a_limit_is_not_saved_and_the_cell_says_which_limit() {
    block_on(async {
        let (_folder, server) = alone(|options| {
            options.volumes.max_bytes = 1000;
            options.volumes.max_files = 3;
            options.volumes.max_per_key = 2;
        })
        .await;
        let api = &server.api;
        let session = api.session(&written("data")).await;
        note(
            api,
            &session,
            &format!("_ = open('{FOLDER}/x', 'w').write('x' * 900)"),
        )
        .await;
        for (code, exceeded) in [
            (
                "_ = open('F/y', 'w').write('y' * 101)",
                "1001 bytes, the limit `volumes.max_bytes` is 1000",
            ),
            (
                "_ = open('F/y', 'w').truncate(1 << 20)",
                "1049476 bytes, the limit `volumes.max_bytes` is 1000",
            ),
            (
                "for n in 'yzu': open('F/' + n, 'w').close()",
                "4 files, the limit `volumes.max_files` is 3",
            ),
        ] {
            let told = note(api, &session, &code.replace('F', FOLDER)).await;
            assert_eq!(
                told,
                format!(
                    "the volume `data` was not saved: {FOLDER} has {exceeded}; remove files there, or ask \
                     the operator for a higher limit. Its revision 1 is kept"
                )
            );
            assert_eq!(server.volume("data").await["revision"], 1);
        }
        api.end(&session).await;
        let volume = server.volume("data").await;
        assert_eq!(
            (&volume["revision"], &volume["last_writer"]["state"]),
            (&json!(1), &json!("incomplete"))
        );

        let session = api.session(&written("data")).await;
        let told = note(
            api,
            &session,
            &format!("_ = open('{FOLDER}/y', 'w').write('y' * 100)"),
        )
        .await;
        assert!(
            told.starts_with("the volume `data` has revision 1: the last changes of the session"),
            "{told}"
        );
        assert_eq!(server.volume("data").await["bytes"], 1000);
        api.end(&session).await;

        let small = json!({"volume": "data", "limits": {"disk_bytes": 999}});
        let (status, refused) = api.post("/v1/sessions", &small).await;
        assert_eq!(
            (status, &refused["error"]["param"]),
            (StatusCode::BAD_REQUEST, &json!("volume"))
        );
        let second = api.session(&written("second")).await;
        let (status, full) = api.post("/v1/sessions", &written("third")).await;
        assert_eq!(
            (status, &full["error"]["code"]),
            (StatusCode::TOO_MANY_REQUESTS, &json!("too_many_volumes"))
        );
        // Neither of the refused requests holds a volume.
        let again = api.session(&written("data")).await;
        for session in [&second, &again] {
            api.end(session).await;
        }
        server.stop().await;
    });
}

#[test]
fn links_special_files_and_names_that_are_no_names_outside_stay_in_the_sandbox() {
    block_on(async {
        let (_folder, server) = alone(|_| {}).await;
        let api = &server.api;
        let session = api.session(&written("data")).await;
        let code = format!(
            "import os\nos.symlink('/etc/passwd', '{FOLDER}/link')\nos.mkfifo('{FOLDER}/pipe')\n\
             open('{FOLDER}/a\\nb', 'w').close()\nopen(b'{FOLDER}/\\xff', 'w').close()\n\
             _ = [open('{FOLDER}/' + n, 'w').write(n) for n in ('Case', 'case', '.hidden')]\n\
             os.mkdir('{FOLDER}/folder')\n_ = open('{FOLDER}/folder/x', 'w').write('x')"
        );
        let told = note(api, &session, &code).await;
        for part in [
            "`/workspace/volume/link` (is a symbolic link)",
            "`/workspace/volume/pipe` (is a ",
            "`/workspace/volume/a\\nb` (its name cannot be used outside the sandbox",
            "its name is not UTF-8",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert_eq!(server.volume("data").await["files"], 4);
        // The same is reported once.
        assert_eq!(note(api, &session, "1").await, "");

        // What is hidden behind a link is not removed from the volume.
        let hide = format!(
            "os.rename('{FOLDER}/folder', '/workspace/away')\n\
             os.symlink('/workspace/away', '{FOLDER}/folder')"
        );
        note(api, &session, &hide).await;
        assert_eq!(server.volume("data").await["files"], 4);
        let replaced =
            format!("os.rename('{FOLDER}', '/workspace/whole')\nos.symlink('/workspace/whole', '{FOLDER}')");
        let told = note(api, &session, &replaced).await;
        assert!(
            told.starts_with("the volume `data` was not saved: /workspace/volume cannot be listed"),
            "{told}"
        );
        api.end(&session).await;

        let next = api.session(&written("data")).await;
        let walk = format!("sorted(f for _, _, fs in __import__('os').walk('{FOLDER}') for f in fs)");
        assert_eq!(
            printed(api, &next, &walk).await,
            "['.hidden', 'Case', 'case', 'x']"
        );
        for (body, param) in [
            (json!({"volume": ".."}), "volume"),
            (json!({"volume": "A"}), "volume"),
            (json!({"volume": "a/b"}), "volume"),
            (json!({"volume": "x", "toolset": "derivation"}), "volume"),
            (json!({"volume_access": "read"}), "volume_access"),
        ] {
            let (status, refused) = api.post("/v1/sessions", &body).await;
            assert_eq!(
                (status, &refused["error"]["param"]),
                (StatusCode::BAD_REQUEST, &json!(param)),
                "{body}"
            );
        }
        let (_, all) = api.get("/v1/volumes").await;
        assert_eq!(all["data"].as_array().unwrap().len(), 1, "{all}");
        server.stop().await;
    });
}
