//! Keys: who may ask, what is whose, and how much.

use rmcp::model::ReadResourceRequestParams;
use serde_json::json;

use super::client::{Client, begin, block_on, connect, done, newest, post, refused, revisions, run};
use crate::http;
use crate::server::{Server, ServerHome};

const WRONG: &str = "cbk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

fn create(place: &ServerHome, name: &str, more: &[&str]) -> String {
    let args: Vec<_> = ["key", "create", name]
        .into_iter()
        .chain(more.iter().copied())
        .collect();
    let made = place.cellblock(&args);
    assert_eq!(made.code(), 0, "{}", made.stderr);
    made.stdout.trim_end().to_owned()
}

/// Returns the words of a client about a server that does not let it in.
async fn said(server: &Server, key: Option<&str>) -> Vec<String> {
    let mut said = Vec::new();
    for revision in revisions() {
        let error = begin(server.address, key, Client::default(), revision)
            .await
            .unwrap_err();
        said.push(format!("{error:?}"));
    }
    said
}

#[test]
fn without_a_key_that_counts_nothing_is_answered() {
    let place = ServerHome::new();
    let key = create(&place, "ci", &[]);
    let server = place.serve(&[]);
    let ask = |headers: &[(&str, &str)]| post(server.address, headers, "tools/list", "", json!({})).answer();
    let answer = ask(&[]);
    assert_eq!(answer.status, 401);
    let told = "an API key is needed; send it as `Authorization: Bearer <key>`";
    assert_eq!(
        answer.json(),
        json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": told}})
    );
    assert_eq!(
        answer.header("www-authenticate"),
        Some("Bearer realm=\"cellblock\"")
    );
    let wrong = format!("Bearer {WRONG}");
    let answer = ask(&[("Authorization", &wrong)]);
    assert_eq!(answer.status, 401);
    assert_eq!(
        answer.json()["error"]["message"],
        "Incorrect API key provided: it is not known here"
    );
    let challenge = answer.header("www-authenticate").unwrap();
    assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
    let bearer = format!("Bearer {key}");
    assert_eq!(ask(&[("Authorization", &bearer)]).status, 200);
    block_on(async {
        for said in said(&server, Some(WRONG)).await {
            assert!(
                said.contains("Incorrect API key provided: it is not known here"),
                "{said}"
            );
        }
        for said in said(&server, None).await {
            assert!(said.contains("Bearer realm"), "{said}");
        }
        let client = connect(&server, Some(&key)).await;
        assert_eq!(run(&client, None, "6 * 7").await["outputs"][0]["value"], 42);
    });
    assert_eq!(place.cellblock(&["key", "revoke", "ci"]).code(), 0);
    block_on(async {
        for said in said(&server, Some(&key)).await {
            assert!(said.contains("the API key was revoked"), "{said}");
        }
    });
    assert!(!server.log().contains(&key["cbk_".len()..]));
}

#[test]
fn objects_of_one_key_are_invisible_to_another() {
    let place = ServerHome::new();
    let (anna, ben) = (create(&place, "anna", &[]), create(&place, "ben", &[]));
    let server = place.serve(&[]);
    block_on(async {
        let (anna, ben) = (
            connect(&server, Some(&anna)).await,
            connect(&server, Some(&ben)).await,
        );
        let made = run(&anna, None, "secret = 1\nopen('a.csv', 'w').write('x')").await;
        let session = made["session_id"].as_str().unwrap();
        let unknown = "sess_0000000000000000000000000000000000000000";
        // Guessing a handle is told the same as making one up.
        for tool in [
            "run_python",
            "interrupt_session",
            "reset_session",
            "close_session",
            "list_files",
        ] {
            let mut told = Vec::new();
            for handle in [session, unknown] {
                let mut arguments = json!({"session_id": handle});
                if tool == "run_python" {
                    arguments["code"] = "secret".into();
                }
                told.push(refused(&ben, tool, arguments).await.replace(handle, ""));
            }
            assert_eq!(told[0], told[1], "{tool}");
            assert!(told[0].starts_with("there is no session"), "{tool}: {told:?}");
        }
        let sessions = done(&ben, "list_sessions", json!({})).await;
        assert_eq!(sessions["sessions"], json!([]));
        let uri = made["files"][0]["uri"].as_str().unwrap();
        assert!(
            ben.read_resource(ReadResourceRequestParams::new(uri))
                .await
                .is_err()
        );
        assert_eq!(ben.list_resources(None).await.unwrap().resources, []);
        assert_eq!(
            run(&anna, Some(session), "secret").await["outputs"][0]["value"],
            1
        );
    });
}

#[test]
fn quotas_hold_for_sessions_and_cells_whichever_face_asks() {
    let place = ServerHome::new();
    let few = ["--quota", "cells_per_minute=2", "--quota", "sandboxes=1"];
    let key = create(&place, "ci", &few);
    let bearer = format!("Bearer {key}");
    let headers = [("Authorization", bearer.as_str())];
    let server = place.serve(&[]);
    block_on(async {
        let client = begin(server.address, Some(&key), Client::default(), newest())
            .await
            .unwrap();
        let made = server.post("/v1/sessions", &headers, "{}");
        assert_eq!(made.status, 201, "{}", made.body);
        let told = refused(&client, "create_session", json!({})).await;
        assert_eq!(
            told,
            "nothing was done: the quota `sandboxes` of this key is used up: its limit is 1; a place is free \
             when one of its sessions or containers ends; try again in 60 s"
        );
        let line = format!("DELETE /v1/sessions/{}", made.json()["id"].as_str().unwrap());
        assert_eq!(
            http::send(server.address, &line, &headers, "").answer().status,
            200
        );
        let session = run(&client, None, "1").await["session_id"].clone();
        let rest = server.post("/v1/sessions", &headers, "{}");
        assert_eq!((rest.status, rest.code().as_str()), (429, "rate_limit_exceeded"));
        run(&client, session.as_str(), "2").await;
        let told = refused(&client, "run_python", json!({"code": "3", "session_id": session})).await;
        assert!(
            told.starts_with(
                "nothing was done: the quota `cells_per_minute` of this key is used up: its \
                 limit is 2; try again in "
            ),
            "{told}"
        );
        done(&client, "close_session", json!({"session_id": session})).await;
        let made = server.post("/v1/sessions", &headers, "{}");
        assert_eq!(made.status, 201, "{}", made.body);
        let told = refused(&client, "create_session", json!({})).await;
        assert!(told.contains("`sandboxes`"), "{told}");
        let line = format!("DELETE /v1/sessions/{}", made.json()["id"].as_str().unwrap());
        assert_eq!(
            http::send(server.address, &line, &headers, "").answer().status,
            200
        );
    });
    let refusals = server.security("quota_exceeded");
    assert!(
        refusals.iter().any(|it| it["quota"] == "cells_per_minute"),
        "{refusals:?}"
    );
    let rejections = "cellblock_quota_rejections_total{quota=\"sandboxes\"}";
    assert_eq!(server.metric(rejections, &headers), 3);
}
