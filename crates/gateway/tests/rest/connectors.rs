//! Sessions whose code calls connectors.

use reqwest::StatusCode;
use serde_json::json;

use crate::support::{Api, block_on};

#[test]
fn a_notebook_has_the_connectors_that_it_asks_for() {
    block_on(async {
        let api = Api::of("connectors").await;
        let (status, made) = api.post("/v1/sessions", &json!({"toolset": "notebook"})).await;
        assert_eq!(status, StatusCode::CREATED, "{made}");
        assert_eq!(made["connectors"], json!(["weather", "climate"]));
        let session = format!("/v1/sessions/{}", made["id"].as_str().unwrap());
        let cell = api
            .run(
                &session,
                "weather.get_forecast('Kyiv') == weather.get_forecast(city='Kyiv')",
            )
            .await;
        assert_eq!(cell["outputs"][0]["value"], true, "{cell}");
        assert_eq!(
            (&cell["fetches"][0]["cached"], &cell["fetches"][1]["cached"]),
            (&json!(false), &json!(true))
        );
        let (status, ran) = api
            .post(
                &format!("{session}/tools/run_cell"),
                &json!({"code": "climate.get_forecast('Lviv')[0]['city']"}),
            )
            .await;
        assert_eq!(status, StatusCode::OK, "{ran}");
        assert!(ran.to_string().contains("Lviv"), "{ran}");
        api.end(&session).await;

        let one = json!({"toolset": "notebook", "connectors": ["climate"]});
        let session = api.session(&one).await;
        let forged = "from cellblock_kernel.library import broker\n\
                      broker.call('fetch', {'connector': 'weather', 'function': 'get_forecast', 'arguments': {'city': 'Kyiv'}})";
        let cell = api.run(&session, forged).await;
        assert_eq!(cell["fetches"][0]["outcome"], "not_granted", "{cell}");
        assert_eq!(api.run(&session, "weather").await["error"]["type"], "NameError");
        api.end(&session).await;
    });
}

#[test]
fn other_sessions_have_no_connectors() {
    block_on(async {
        let api = Api::of("no connectors").await;
        let session = api.session(&json!({})).await;
        let cell = api.run(&session, "connectors").await;
        assert_eq!(cell["error"]["type"], "NameError", "{cell}");
        api.end(&session).await;
        for (body, told) in [
            (
                json!({"connectors": ["weather"]}),
                "create it with \\\"notebook\\\"",
            ),
            (
                json!({"toolset": "derivation", "connectors": ["weather"]}),
                "create it with",
            ),
            (
                json!({"toolset": "notebook", "connectors": ["fred"]}),
                "this key has weather, climate",
            ),
            (
                json!({"toolset": "notebook", "connectors": "weather"}),
                "expected a sequence",
            ),
        ] {
            let (status, refused) = api.post("/v1/sessions", &body).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
            assert!(refused.to_string().contains(told), "{told}: {refused}");
        }
    });
}

#[test]
fn a_key_has_the_connectors_that_it_is_granted() {
    block_on(async {
        let notebook = json!({"toolset": "notebook"});
        for (owner, granted) in [("ungranted", json!([])), ("only climate", json!(["climate"]))] {
            let api = Api::of(owner).await;
            let (_, made) = api.post("/v1/sessions", &notebook).await;
            assert_eq!(made["connectors"], granted, "{made}");
            let session = format!("/v1/sessions/{}", made["id"].as_str().unwrap());
            let bound = api.run(&session, "'weather' in globals()").await;
            assert_eq!(bound["outputs"][0]["value"], false, "{bound}");
            let forged = "from cellblock_kernel.library import broker\n\
                          broker.call('fetch', {'connector': 'weather', 'function': 'get_forecast'})";
            let cell = api.run(&session, forged).await;
            assert_eq!(cell["fetches"][0]["outcome"], "not_granted", "{cell}");
            let asked = json!({"toolset": "notebook", "connectors": ["weather"]});
            let (status, rejected) = api.post("/v1/sessions", &asked).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{rejected}");
            let message = rejected["error"]["message"].as_str().unwrap();
            assert!(message.contains("this key has"), "{message}");
            api.end(&session).await;
        }
    });
}

#[test]
fn a_call_beyond_a_quota_of_the_key_fails_and_its_cell_goes_on() {
    block_on(async {
        for (owner, quota) in [
            (
                "two fetches",
                "`fetches_per_minute` of this key is used up: its limit is 2",
            ),
            (
                "ten bytes",
                "`fetched_bytes_per_day` of this key is used up: its limit is 10",
            ),
        ] {
            let api = Api::of(owner).await;
            let notebook = json!({"toolset": "notebook"});
            let first = api.session(&notebook).await;
            // Equal calls are one request.
            let cell = api
                .run(&first, "for _ in range(5): weather.get_forecast('Kyiv')")
                .await;
            assert_eq!(cell["outcome"], "completed", "{cell}");
            let second = api.session(&notebook).await;
            let code = "import cellblock\n\
                        for city in ['Lviv', 'Odesa']:\n    \
                        try:\n        weather.get_forecast(city)\n    \
                        except cellblock.RateLimitError as error:\n        last = error\n\
                        print(last)\nlast.retry_after >= 1";
            let cell = api.run(&second, code).await;
            assert_eq!(cell["outputs"][0]["value"], true, "{cell}");
            let printed = cell["stdout"].as_str().unwrap();
            assert!(
                printed.starts_with("weather.get_forecast: the request was not made: the quota ")
                    && printed.contains(quota)
                    && printed.contains("; try again in "),
                "{printed}"
            );
            assert_eq!(cell["fetches"][1]["outcome"], "rate_limit", "{cell}");
            let cached = api.run(&first, "len(weather.get_forecast('Kyiv'))").await;
            assert_eq!(cached["outputs"][0]["value"], 1, "{cached}");
            api.end(&first).await;
            api.end(&second).await;
        }
    });
}
