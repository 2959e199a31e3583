//! Sessions of one gateway, used through another.

use std::time::Duration;

use cellblock_testkit::require;
use reqwest::Method;
use serde_json::json;
use tokio::time::timeout;

use crate::support::{block_on, code, key, pair, read};

#[test]
fn a_session_is_used_through_another_gateway() {
    require!(Postgres);
    block_on(async {
        let pair = pair([]).await;
        let (one, two) = (&pair.one, &pair.two);
        let session = one.session().await;
        assert_eq!(one.run(&session, "x = 41\nx").await, 41);
        assert_eq!(two.run(&session, "x + 1").await, 42);
        assert_eq!(one.get(&session).await, two.get(&session).await);
        let second = two.session().await;
        for gateway in [one, two] {
            let listed = gateway.get("/v1/sessions").await.1;
            let ids: Vec<_> = listed["data"]
                .as_array()
                .unwrap()
                .iter()
                .map(|it| it["id"].as_str().unwrap())
                .collect();
            assert_eq!(ids.len(), 2, "{listed}");
            assert!(
                [&session, &second]
                    .iter()
                    .all(|it| ids.iter().any(|id| it.ends_with(id))),
                "{listed}"
            );
        }
        assert_eq!(one.delete(&second).await.0, 200);

        let bytes: Vec<u8> = (0..=255).cycle().take(3 << 20).collect();
        let path = format!("{session}/files/workspace/data.bin");
        let put = two.request(Method::PUT, &path).body(bytes.clone()).send().await;
        let (status, put) = read(put.unwrap()).await;
        assert_eq!(status, 200, "{put}");
        let got = two.request(Method::GET, &path).send().await.unwrap();
        assert!(got.status().is_success());
        assert_eq!(got.bytes().await.unwrap(), bytes);
        assert_eq!(
            one.run(&session, "len(open('data.bin', 'rb').read())").await,
            3 << 20
        );

        let all = format!("{session}/processes");
        let (status, process) = two.post(&all, &json!({"command": ["echo", "hello"]})).await;
        assert_eq!(status, 201, "{process}");
        let output = format!("{all}/{}/output?wait=60", process["id"].as_str().unwrap());
        assert_eq!(two.get(&output).await.1["text"], "hello\n");

        // A link leads to the session from any gateway.
        let (_, link) = one.post(&format!("{session}/ports/80/links"), &json!({})).await;
        let visited = two.get(link["path"].as_str().unwrap()).await;
        assert_eq!(code(&visited), (400, "session_without_network"));

        assert_eq!(two.delete(&session).await.0, 200);
        assert_eq!(code(&one.get(&session).await), (404, "session_not_found"));
        let gone = two.get(&session).await;
        assert_eq!(gone, one.get(&session).await);
    });
}

#[test]
fn a_list_names_the_gateways_that_do_not_answer_and_does_not_wait_for_them() {
    require!(Postgres);
    block_on(async {
        let pair = pair([]).await;
        let (one, two) = (&pair.one, &pair.two);
        let session = one.session().await;
        // One accepts connections and says nothing, another does not even accept them.
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = silent.local_addr().unwrap();
        let rows = [
            format!("('aaaaaaaaaaaa01', 9000000000000000, 'http://{address}')"),
            "('bbbbbbbbbbbb01', 9000000000000000, 'http://127.0.0.1:1')".to_owned(),
        ];
        pair.sql(format!(
            "INSERT INTO gateways (id, expires_ms, address) VALUES {}",
            rows.join(", ")
        ))
        .await;
        let began = std::time::Instant::now();
        let (status, listed) = two.get("/v1/sessions").await;
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        assert_eq!(status, 200, "{listed}");
        assert!(
            session.ends_with(listed["data"][0]["id"].as_str().unwrap()),
            "{listed}"
        );
        let missing = listed["missing_servers"].as_array().unwrap();
        let missing: Vec<_> = missing
            .iter()
            .map(|it| (it["id"].as_str().unwrap(), it["code"].as_str().unwrap()))
            .collect();
        assert_eq!(
            missing,
            [
                ("aaaaaaaaaaaa", "gateway_failed"),
                ("bbbbbbbbbbbb", "gateway_unreachable")
            ]
        );
        let message = listed["missing_servers"][0]["message"].as_str().unwrap();
        assert!(message.contains("did not answer within 3 s"), "{message}");

        pair.sql("DELETE FROM gateways WHERE expires_ms = 9000000000000000".to_owned())
            .await;
        let listed = two.get("/v1/sessions").await.1;
        assert!(listed.get("missing_servers").is_none(), "{listed}");
    });
}

#[test]
fn events_of_a_cell_come_through_another_gateway_as_they_are_made() {
    require!(Postgres);
    block_on(async {
        let pair = pair([]).await;
        let (one, two) = (&pair.one, &pair.two);
        let session = one.session().await;
        let cells = format!("{session}/cells");
        let endless =
            json!({"code": "print('on', flush=True)\nwhile True: pass", "timeout": 120, "stream": true});
        let mut stream = two.start(&cells, &endless).await;
        assert_eq!(stream.headers()["content-type"], "text/event-stream");
        let mut text = String::new();
        while !text.contains("cell.stdout") {
            let chunk = timeout(Duration::from_mins(1), stream.chunk()).await.unwrap();
            text += &String::from_utf8_lossy(&chunk.unwrap().unwrap());
        }
        assert!(!text.contains("cell.done"), "{text}");
        // It runs, and is stopped from the other side, too.
        let (status, stopped) = two.post(&format!("{session}/interrupt"), &json!({})).await;
        assert_eq!((status, &stopped["interrupted"]), (200, &json!(true)));
        text += &stream.text().await.unwrap();
        assert!(
            text.contains("cell.done") && text.contains("interrupted"),
            "{text}"
        );

        // A client that leaves stops its code, although another gateway stands between.
        let mut stream = two.start(&cells, &endless).await;
        stream.chunk().await.unwrap();
        drop(stream);
        assert_eq!(
            timeout(Duration::from_mins(1), one.run(&session, "6 * 7"))
                .await
                .unwrap(),
            42
        );
    });
}

#[test]
fn a_forwarded_request_needs_the_key_of_the_session_and_is_not_forwarded_again() {
    require!(Postgres);
    block_on(async {
        let pair = pair([]).await;
        let (one, two) = (&pair.one, &pair.two);
        let session = one.session().await;
        let other = two.with_key(&key(&pair.gateways[0], "eve").await);
        assert_eq!(code(&other.get(&session).await), (404, "session_not_found"));
        let unknown = two.with_key("cbk_unknown");
        assert_eq!(code(&unknown.get(&session).await), (401, "invalid_api_key"));
        // The header makes nobody trusted, and only keeps the request where it is.
        let forwarded = |api: &crate::support::Api| {
            let request = api.request(Method::GET, &session);
            request.header("cellblock-forwarded-by", "0123")
        };
        let found = read(forwarded(one).send().await.unwrap()).await;
        assert_eq!(found.0, 200);
        let asked = read(forwarded(two).send().await.unwrap()).await;
        assert_eq!(code(&asked), (404, "session_not_found"));
        let asked = read(forwarded(&one.with_key("cbk_unknown")).send().await.unwrap()).await;
        assert_eq!(code(&asked), (401, "invalid_api_key"));
    });
}

#[test]
fn gateways_that_each_believe_the_other_has_a_session_do_not_send_it_around() {
    require!(Postgres);
    block_on(async {
        let pair = pair([]).await;
        let (one, two) = (&pair.one, &pair.two);
        // Each finds a gateway at the other's address that neither is.
        for (start, address) in [("aaaaaaaaaaaa", two.address), ("bbbbbbbbbbbb", one.address)] {
            let row = format!("('{start}', 9000000000000000, 'http://{address}')");
            pair.sql(format!(
                "INSERT INTO gateways (id, expires_ms, address) VALUES {row}"
            ))
            .await;
        }
        for api in [one, two] {
            for start in ["aaaaaaaaaaaa", "bbbbbbbbbbbb"] {
                let session = format!("/v1/sessions/sess_{start}_{}", "0".repeat(40));
                let asked = timeout(Duration::from_secs(20), api.get(&session)).await.unwrap();
                assert_eq!(code(&asked), (404, "session_not_found"));
            }
        }
    });
}
