//! Keys: made and revoked while a server runs.

use crate::http;
use crate::server::{ServerHome, holds, until};

const WRONG: &str = "Bearer cbk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

#[test]
fn a_key_is_asked_for_once_there_is_one_and_revoking_it_opens_nothing() {
    let place = ServerHome::new();
    let server = place.serve(&[]);
    let body = http::code("6 * 7", false);
    // Without keys, whatever a client sends is fine: SDKs do not start without one.
    let answer = server.post("/v1/responses", &[("Authorization", WRONG)], &body);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.json()["status"], "completed");

    let made = place.cellblock(&["key", "create", "ci"]);
    assert_eq!(made.code(), 0, "{}", made.stderr);
    let secret = made.stdout.trim_end().to_owned();
    assert_eq!(secret.lines().count(), 1);
    assert!(secret.starts_with("cbk_"), "{secret}");
    assert!(!made.stderr.contains(&secret));
    for told in [
        "note: this is the first key",
        "revoking the key does not open it again",
        "move `",
    ] {
        assert!(made.stderr.contains(told), "{}", made.stderr);
    }

    let bearer = format!("Bearer {secret}");
    for (name, value) in [
        ("Authorization", &bearer),
        ("X-API-Key", &secret),
        ("api-key", &secret),
    ] {
        let answer = server.post("/v1/responses", &[(name, value)], &body);
        assert_eq!(answer.status, 200, "{name}: {}", answer.body);
    }
    for headers in [
        &[][..],
        &[("Authorization", WRONG)],
        &[("Authorization", "Basic YTpi")],
    ] {
        for path in ["/v1/responses", "/metrics", "/nowhere"] {
            let answer = server.post(path, headers, &body);
            assert_eq!(answer.status, 401, "{path}");
            assert_eq!(answer.code(), "invalid_api_key");
            let unknown = "Bearer realm=\"cellblock\", error=\"invalid_token\", \
                           error_description=\"Incorrect API key provided: it is not known here\"";
            let challenge = if headers.contains(&("Authorization", WRONG)) {
                unknown
            } else {
                "Bearer realm=\"cellblock\""
            };
            assert_eq!(answer.header("www-authenticate"), Some(challenge));
        }
    }
    for path in ["/healthz", "/readyz"] {
        assert_eq!(server.get(path, &[]).status, 200, "{path}");
    }

    let list = place.cellblock(&["key", "list", "--json"]).json().unwrap();
    let key = list["keys"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(list["keys"][0]["usable"], true);
    until(|| {
        let list = place.cellblock(&["key", "list", "--json"]).json().unwrap();
        list["keys"][0]["last_used_at"].is_string().then_some(())
    });
    let revoked = place.cellblock(&["key", "revoke", &key]);
    assert_eq!(revoked.code(), 0, "{}", revoked.stderr);
    for headers in [&[("Authorization", bearer.as_str())][..], &[]] {
        let answer = server.post("/v1/responses", headers, &body);
        assert_eq!(answer.status, 401);
    }
    // There was one before, so nothing changes for clients.
    let second = place.cellblock(&["key", "create", "second"]);
    assert_eq!(second.code(), 0, "{}", second.stderr);
    assert!(!second.stderr.contains("first key"), "{}", second.stderr);
    let again = place.cellblock(&["key", "revoke", "ci"]);
    assert_eq!(again.code(), 2, "{}", again.stderr);

    let failures = server.security("auth_failed");
    assert!(failures.iter().all(|event| event["peer"].is_string()));
    // The owner of a request is in the log, its secret is nowhere.
    assert!(server.log().contains(&key));
    assert!(!server.log().contains(&secret["cbk_".len()..]));
    assert!(!holds(&place.home(), &secret["cbk_".len()..]));
}

#[test]
fn without_its_old_records_a_gateway_is_open_again() {
    let place = ServerHome::new();
    assert_eq!(place.cellblock(&["key", "create", "ci"]).code(), 0);
    assert_eq!(place.cellblock(&["key", "revoke", "ci"]).code(), 0);
    let status = |place: &ServerHome| place.serve(&[]).get("/v1/models", &[]).status;
    assert_eq!(status(&place), 401);
    let (records, away) = (place.home().join("gateway"), place.home().join("away"));
    std::fs::rename(&records, &away).unwrap();
    assert_eq!(status(&place), 200);
    std::fs::remove_dir_all(&records).unwrap();
    std::fs::rename(&away, &records).unwrap();
    assert_eq!(status(&place), 401);
}

#[test]
fn a_key_has_quotas_and_the_refusal_says_when_to_come_again() {
    let place = ServerHome::new();
    let made = place.cellblock(&["key", "create", "ci", "--quota", "cells_per_minute=1", "--json"]);
    let made = made.json().unwrap();
    assert_eq!(made["quotas"]["cells_per_minute"], 1);
    let bearer = format!("Bearer {}", made["secret"].as_str().unwrap());
    let headers = [("Authorization", bearer.as_str())];
    // Code waits for its quota, by default for longer than the minute of this one.
    let server = place.serve_with(&[], &[("CELLBLOCK_SERVE__CONTAINERS__WAIT_TIMEOUT", "1")]);
    let body = http::code("6 * 7", false);
    let first = server.post("/v1/responses", &headers, &body).json();
    assert_eq!(http::call(&first)["status"], "completed", "{first}");
    // A model is told; its turn goes on without the code.
    let second = server.post("/v1/responses", &headers, &body).json();
    assert_eq!(http::call(&second)["status"], "failed", "{second}");
    let logs = http::call(&second)["outputs"][0]["logs"].as_str().unwrap();
    assert!(logs.contains("`cells_per_minute`"), "{logs}");
    let refused = server.security("quota_exceeded");
    assert_eq!(refused[0]["quota"], "cells_per_minute");
    assert_eq!(refused[0]["owner"], made["id"]);
    let rejections = "cellblock_quota_rejections_total{quota=\"cells_per_minute\"}";
    assert_eq!(server.metric(rejections, &headers), 1);
}

#[test]
fn what_other_machines_can_reach_does_not_start_without_a_key() {
    let place = ServerHome::new();
    let serve = ["serve", "--demo", "--listen", "0.0.0.0:0"];
    let refused = place.cellblock(&serve);
    assert_eq!(refused.code(), 78, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("`cellblock key create NAME`"),
        "{}",
        refused.stderr
    );
    // A key that can no longer be used is none.
    assert_eq!(place.cellblock(&["key", "create", "ci"]).code(), 0);
    assert_eq!(place.cellblock(&["key", "revoke", "ci"]).code(), 0);
    assert_eq!(place.cellblock(&serve).code(), 78);
}

#[test]
fn a_key_that_cannot_be_made_is_refused_with_a_repair() {
    let place = ServerHome::new();
    assert_eq!(place.cellblock(&["key", "create", "ci"]).code(), 0);
    for (args, complaint) in [
        (["create", "ci", "--expires", "1d"], "there is a key `ci` already"),
        (["create", "x", "--expires", "soon"], "such as `30d`"),
        (["create", "x", "--quota", "rooms=1"], "there is no quota `rooms`"),
    ] {
        let args: Vec<_> = ["key"].into_iter().chain(args).collect();
        let refused = place.cellblock(&args);
        assert_eq!(refused.code(), 2, "{args:?}");
        assert!(refused.stderr.contains(complaint), "{}", refused.stderr);
        assert_eq!(refused.stdout, "");
    }
}
