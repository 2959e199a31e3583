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
                      broker.call('fetch', \
                      {'connector': 'weather', 'function': 'get_forecast', 'arguments': {'city': 'Kyiv'}})";
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

#[test]
fn functions_can_be_called_without_a_session() {
    block_on(async {
        let api = Api::of("direct calls").await;
        let (status, list) = api.get("/v1/connectors").await;
        assert_eq!(status, StatusCode::OK, "{list}");
        assert_eq!(list["data"][0]["name"], "weather");
        assert_eq!(list["data"][1]["functions"][0]["function"], "get_forecast");

        let address = "/v1/connectors/weather/get_forecast";
        let (status, value) = api.post(address, &json!({"city": "Kyiv"})).await;
        assert_eq!(status, StatusCode::OK, "{value}");
        assert_eq!(value["value"], json!([{"city": "Kyiv", "high": 21}]));
        assert_eq!(
            (&value["row_count"], &value["truncated"]),
            (&json!(1), &json!(false))
        );

        let (status, table) = api.post(address, &json!({"city": "everywhere"})).await;
        assert_eq!(status, StatusCode::OK, "{table}");
        assert_eq!(
            (&table["row_count"], &table["truncated"]),
            (&json!(12), &json!(true))
        );
        assert!(table.get("value").is_none(), "{table}");
        let sha256 = table["artifact"]["sha256"].as_str().unwrap();
        let parquet = format!("/v1/artifacts/{sha256}");
        let bytes = api.raw(&parquet).await.bytes().await.unwrap();
        assert!(bytes.starts_with(b"PAR1"), "{} bytes", bytes.len());
        let (status, _) = Api::of("somebody else").await.get(&parquet).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
    });
}

#[test]
fn a_direct_call_shares_answers_with_the_sessions_of_its_key() {
    block_on(async {
        let api = Api::of("shared answers").await;
        let address = "/v1/connectors/climate/get_forecast";
        for cached in [false, true] {
            let (_, answer) = api.post(address, &json!({"city": "Odesa"})).await;
            assert_eq!(answer["cached"], cached, "{answer}");
        }
        let session = api.session(&json!({"toolset": "notebook"})).await;
        let cell = api.run(&session, "climate.get_forecast('Odesa')").await;
        assert_eq!(cell["fetches"][0]["cached"], true, "{cell}");
        api.end(&session).await;
        let other = Api::of("other answers").await;
        let (_, answer) = other.post(address, &json!({"city": "Odesa"})).await;
        assert_eq!(answer["cached"], false, "{answer}");
    });
}

#[test]
fn the_error_of_a_direct_call_names_its_cause() {
    block_on(async {
        let api = Api::of("wrong calls").await;
        let forecast = "weather/get_forecast";
        for (function, body, expected, told) in [
            ("fred/series", json!({}), 404, "this key has weather, climate"),
            ("weather/rain", json!({}), 400, "has no function `rain`"),
            (forecast, json!({}), 400, "city"),
            (forecast, json!({"town": "Kyiv"}), 400, "town"),
            (forecast, json!({"city": 7}), 400, "city"),
            (forecast, json!(["Kyiv"]), 400, "send an object"),
            (forecast, json!({"city": "Atlantis"}), 502, "has sunk"),
        ] {
            let (status, error) = api.post(&format!("/v1/connectors/{function}"), &body).await;
            assert_eq!(status.as_u16(), expected, "{body}: {error}");
            let message = error["error"]["message"].as_str().unwrap();
            assert!(message.contains(told), "{told}: {message}");
            assert!(!message.contains("key-of-the-operator"), "{message}");
        }
        let (status, _) = Api::of("only climate")
            .await
            .post(&format!("/v1/connectors/{forecast}"), &json!({"city": "Kyiv"}))
            .await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        let (_, granted) = Api::of("ungranted").await.get("/v1/connectors").await;
        assert_eq!(granted["data"], json!([]), "{granted}");
    });
}

#[test]
fn a_direct_call_counts_toward_the_quotas_of_its_key() {
    block_on(async {
        let api = Api::of("one fetch").await;
        let address = "/v1/connectors/weather/get_forecast";
        let (status, first) = api.post(address, &json!({"city": "Kyiv"})).await;
        assert_eq!(status, StatusCode::OK, "{first}");
        let refused = api.start(address, &json!({"city": "Lviv"})).await;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        let seconds = refused.headers()["retry-after"].to_str().unwrap().parse::<u64>();
        assert!((1..=60).contains(&seconds.unwrap()));
        let text = refused.text().await.unwrap();
        assert!(
            text.contains("`fetches_per_minute` of this key is used up"),
            "{text}"
        );
    });
}
