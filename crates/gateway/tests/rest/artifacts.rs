//! Artifacts: who sees them, and how they come.

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::{Api, block_on};

#[test]
fn an_artifact_is_served_to_its_owner_only() {
    block_on(async {
        let (api, other) = (Api::of("artist").await, Api::of("thief").await);
        let session = api.session(&json!({})).await;
        let cell = api
            .run(
                &session,
                "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\n\
                 open('page.html', 'w').write('<script>1</script>')\n\
                 open('a.csv', 'w').write('0123456789')",
            )
            .await;
        assert_eq!(cell["outcome"], "completed");
        let of = |kind: &str, bytes: Option<u64>| {
            let artifacts = cell["artifacts"].as_array().unwrap().iter();
            let found =
                artifacts.filter(|it| it["kind"] == kind && bytes.is_none_or(|bytes| it["bytes"] == bytes));
            let found: Vec<_> = found.collect();
            assert_eq!(found.len(), 1, "{cell}");
            assert_eq!(found[0]["path"], json!(null), "no path of the host is told");
            format!("/v1/artifacts/{}", found[0]["sha256"].as_str().unwrap())
        };
        let (picture, page, table) = (of("figure", None), of("file", Some(18)), of("file", Some(10)));

        let response = api.raw(&picture).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "image/png");
        assert!(response.headers().get("content-disposition").is_none());
        let tag = response.headers()["etag"].clone();
        assert!(response.bytes().await.unwrap().starts_with(b"\x89PNG"));
        let again = api.request(Method::GET, &picture).header("if-none-match", tag);
        assert_eq!(again.send().await.unwrap().status(), StatusCode::NOT_MODIFIED);

        let response = api.raw(&page).await;
        assert_eq!(response.headers()["content-disposition"], "attachment");
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
        assert_eq!(
            response.headers()["content-security-policy"],
            "default-src 'none'; sandbox"
        );

        let head = api.request(Method::HEAD, &table).send().await.unwrap();
        assert_eq!(
            (head.status(), &head.headers()["content-length"]),
            (StatusCode::OK, &"10".parse().unwrap())
        );
        let part = api
            .request(Method::GET, &table)
            .header("range", "bytes=2-4")
            .send()
            .await
            .unwrap();
        assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
        assert_eq!(part.headers()["content-range"], "bytes 2-4/10");
        assert_eq!(part.text().await.unwrap(), "234");
        let beyond = api
            .request(Method::GET, &table)
            .header("range", "bytes=10-")
            .send()
            .await
            .unwrap();
        assert_eq!(beyond.status(), StatusCode::RANGE_NOT_SATISFIABLE);

        for path in [&picture, &page, &table] {
            let (status, missing) = other.get(path).await;
            assert_eq!(
                (status, &missing["error"]["code"]),
                (StatusCode::NOT_FOUND, &json!("artifact_not_found"))
            );
        }
        assert_eq!(api.get("/v1/artifacts/..%2Fetc").await.0, StatusCode::NOT_FOUND);
        // They outlive the session.
        api.end(&session).await;
        assert_eq!(api.raw(&picture).await.status(), StatusCode::OK);
    });
}

#[test]
fn rows_of_a_displayed_table_are_served_in_three_formats() {
    block_on(async {
        let (api, other) = (Api::of("reader").await, Api::of("stranger").await);
        let session = api.session(&json!({})).await;
        let cell = api
            .run(
                &session,
                "import pandas as pd\ndf = pd.DataFrame({'n': range(2500), 'word': 'a,b'})\n\
                 df.to_parquet('own.parquet')\ndf",
            )
            .await;
        let artifacts = cell["artifacts"].as_array().unwrap();
        let of = |kind: &str| {
            let found = artifacts.iter().find(|it| it["kind"] == kind).unwrap();
            format!("/v1/artifacts/{}/rows", found["sha256"].as_str().unwrap())
        };
        let (table, file) = (of("dataframe"), of("file"));

        let (status, rows) = api.get(&format!("{table}?offset=2498")).await;
        assert_eq!(status, StatusCode::OK, "{rows}");
        assert_eq!(
            rows,
            json!({"columns": ["n", "word"], "total_rows": 2500, "first_row": 2498,
                "rows": [[2498, "a,b"], [2499, "a,b"]]})
        );
        let (_, whole) = api.get(&table).await;
        assert_eq!(whole["rows"].as_array().unwrap().len(), 1000);
        let (_, last) = api
            .get(&format!("{table}?sort=0&descending=true&offset=1&limit=2"))
            .await;
        assert_eq!(
            (&last["first_row"], &last["rows"]),
            (&json!(1), &json!([[2498, "a,b"], [2497, "a,b"]]))
        );
        let (_, equal) = api
            .get(&format!("{table}?sort=1&descending=true&offset=2499&limit=5"))
            .await;
        assert_eq!(equal["rows"], json!([[2499, "a,b"]]));
        let csv = api.raw(&format!("{table}?offset=1&limit=1&format=csv")).await;
        assert_eq!(csv.headers()["content-type"], "text/csv; charset=utf-8");
        assert_eq!(csv.text().await.unwrap(), "n,word\n1,\"a,b\"\n");
        let beyond = api.raw(&format!("{table}?offset=2500&format=csv")).await;
        assert_eq!(beyond.text().await.unwrap(), "n,word\n");
        let arrow = api.raw(&format!("{table}?limit=10000&format=arrow")).await;
        assert_eq!(
            arrow.headers()["content-type"],
            "application/vnd.apache.arrow.stream"
        );
        let arrow = arrow.bytes().await.unwrap();
        // The marker of a message, and that of the end.
        assert!(arrow.starts_with(&[0xff; 4]) && arrow.ends_with(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]));

        for (path, reason) in [
            (format!("{table}?limit=0"), "give 1 to 10000"),
            (format!("{table}?limit=10001"), "give 1 to 10000"),
            (format!("{table}?format=xlsx"), "unknown variant `xlsx`"),
            (format!("{table}?offset=-1"), "offset"),
            (format!("{table}?sort=2"), "the table has 2 columns"),
            (file, "not a table that was displayed"),
        ] {
            let (status, rejected) = api.get(&path).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{rejected}");
            let message = rejected["error"]["message"].as_str().unwrap();
            assert!(message.contains(reason), "{rejected}");
        }
        assert_eq!(other.get(&table).await.0, StatusCode::NOT_FOUND);
    });
}

#[test]
fn conversions_count_as_cells_of_their_key_and_reading_bytes_does_not() {
    block_on(async {
        let api = Api::of("one second").await;
        let session = api
            .session(&json!({"toolset": "notebook", "project": "macro"}))
            .await;
        // It uses up the seconds of the day, so that nothing of it comes back while the test runs.
        let code = "import time, matplotlib.pyplot as plt\ndf = pd.DataFrame({'n': [2, 1]})\n\
                    time.sleep(1.1)\n\
                    _ = publish_dataset(df, 'few', title='Few', tags='x')\ndf";
        let cell = api.run(&session, code).await;
        assert_eq!(cell["outcome"], "completed", "{cell}");
        let made = cell["artifacts"].as_array().unwrap();
        let table = made.iter().find(|it| it["kind"] == "dataframe").unwrap();
        let table = format!("/v1/artifacts/{}", table["sha256"].as_str().unwrap());
        let (_, runs) = api.get("/v1/runs").await;
        let run = runs["data"][0]["id"].as_str().unwrap();
        let content = "/v1/projects/macro/datasets/few/content";
        for path in [
            &format!("{table}/rows"),
            &format!("{table}/rows?sort=0"),
            &format!("{table}/rows?format=arrow"),
            &format!("{table}?format=png"),
            &format!("{table}?format=vega-lite"),
            &format!("{content}?format=csv"),
            &format!("{content}?format=arrow"),
            &format!("{session}/variables/df"),
            &format!("/v1/runs/{run}/export"),
        ] {
            let refused = api.raw(path).await;
            assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS, "{path}");
            let after: u64 = refused.headers()["retry-after"]
                .to_str()
                .unwrap()
                .parse()
                .unwrap();
            assert!((1..=24 * 3600).contains(&after), "{after}");
            let body = refused.text().await.unwrap();
            assert!(body.contains("cell_seconds_per_day"), "{path}: {body}");
        }
        for path in [&table, content] {
            let whole = api.raw(path).await;
            assert_eq!(whole.status(), StatusCode::OK, "{path}");
            let length: usize = whole.headers()["content-length"]
                .to_str()
                .unwrap()
                .parse()
                .unwrap();
            let whole = whole.bytes().await.unwrap();
            assert!(whole.starts_with(b"PAR1") && whole.len() == length);
        }
        api.end(&session).await;
    });
}

#[test]
fn a_long_range_of_an_artifact_is_sent_in_pieces() {
    block_on(async {
        let api = Api::of("ranger").await;
        let session = api.session(&json!({})).await;
        let code = "open('a.bin', 'wb').write(b''.join(n.to_bytes(4, 'big') for n in range(1_000_000)))";
        let cell = api.run(&session, code).await;
        let path = format!("/v1/artifacts/{}", cell["files"][0]["sha256"].as_str().unwrap());
        for (first, last) in [(3_u32, 3_999_998_u32), (1 << 20, (2 << 20) - 1), (0, 3)] {
            let part = api
                .request(Method::GET, &path)
                .header("range", format!("bytes={first}-{last}"))
                .send()
                .await
                .unwrap();
            assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
            let length = (last - first + 1).to_string();
            assert_eq!(part.headers()["content-length"], length);
            let bytes = part.bytes().await.unwrap();
            let expected = (first..=last).map(|at| (at / 4).to_be_bytes()[at as usize % 4]);
            assert!(bytes.iter().copied().eq(expected), "{first} to {last}");
        }
        api.end(&session).await;
    });
}
