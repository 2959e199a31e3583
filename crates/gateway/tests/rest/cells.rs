//! Cells: their answers, their events, and what stops them.

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::{Api, block_on, ending, events, until};

#[test]
fn variables_live_from_cell_to_cell_and_a_cell_answers_as_the_command_line_does() {
    block_on(async {
        let api = Api::of("cells").await;
        let session = api.session(&json!({})).await;
        let first = api
            .run(
                &session,
                "import sys\nx = 20\nprint('out')\nprint('err', file=sys.stderr)\nx + 1",
            )
            .await;
        assert_eq!(first["object"], "session.cell");
        assert_eq!(
            (&first["cell"], &first["outcome"]),
            (&json!(1), &json!("completed"))
        );
        assert_eq!(
            (&first["stdout"], &first["stderr"]),
            (&json!("out\n"), &json!("err\n"))
        );
        assert_eq!(first["outputs"][0]["type"], "primitive");
        assert_eq!(first["outputs"][0]["value"], 21);
        assert_eq!(first["state"], "kept");
        assert_eq!(first["sandbox"]["backend"], "process");

        let raised = api.run(&session, "x / 0").await;
        assert_eq!(raised["outcome"], "raised");
        assert_eq!(raised["error"]["type"], "ZeroDivisionError");
        let third = api.run(&session, "x").await;
        assert_eq!(third["outputs"][0]["value"], 20);

        let (_, kept) = api.get(&format!("{session}/cells")).await;
        let numbers: Vec<_> = kept["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|cell| &cell["cell"])
            .collect();
        assert_eq!(numbers, [1, 2, 3]);
        let (status, second) = api.get(&format!("{session}/cells/2")).await;
        assert_eq!((status, &second), (StatusCode::OK, &raised));

        let (_, variables) = api.get(&format!("{session}/variables")).await;
        let names: Vec<_> = variables["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["name"].as_str().unwrap())
            .collect();
        assert!(names.contains(&"x"), "{names:?}");

        let (status, _) = api.post(&format!("{session}/reset"), &json!({})).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(
            api.run(&session, "'x' in globals()").await["outputs"][0]["value"],
            false
        );
        api.end(&session).await;
        assert_eq!(api.get(&session).await.0, StatusCode::NOT_FOUND);
    });
}

#[test]
fn a_variable_is_returned_with_its_value_and_origin() {
    block_on(async {
        let api = Api::of("variables").await;
        let session = api.session(&json!({})).await;
        let cell = json!({"code": "import pandas as pd\ndf = pd.DataFrame({'a': [1, 2]})\nn = 7\n\
                                   word = 'añ' * 700", "producer": "notebooks/a.py"});
        let (_, ran) = api.post(&format!("{session}/cells"), &cell).await;
        assert_eq!(ran["origins"]["df"]["producer"], "notebooks/a.py");
        let (status, n) = api.get(&format!("{session}/variables/n")).await;
        assert_eq!((status, &n["output"]["value"]), (StatusCode::OK, &json!(7)));
        assert_eq!(n["origin"], ran["origins"]["n"]);
        let (status, origin) = api.get(&format!("{session}/variables/n/origin")).await;
        assert_eq!((status, &origin), (StatusCode::OK, &ran["origins"]["n"]));
        let (_, df) = api.get(&format!("{session}/variables/df")).await;
        assert_eq!(df["output"]["type"], "dataframe");
        let sha256 = df["output"]["table"]["sha256"].as_str().unwrap();
        assert_eq!(
            api.get(&format!("/v1/artifacts/{sha256}")).await.0,
            StatusCode::OK
        );
        let (_, last) = api.get(&format!("{session}/variables/df?rows=1&page=-1")).await;
        assert_eq!(last["page"]["pages"], 2, "{last}");
        assert_eq!(last["page"]["rows"], json!([[2]]), "{last}");
        let (_, word) = api
            .get(&format!("{session}/variables/word?chars=3&page=-1&view=full"))
            .await;
        assert_eq!(word["page"]["text"], "añ", "{word}");
        assert_eq!(
            word["text"], "word: Characters 1399-1400 of 1400 (page 467 of 467):\nañ",
            "{word}"
        );
        let (_, brief) = api.get(&format!("{session}/variables/word?view=minimal")).await;
        let brief = brief["text"].as_str().unwrap();
        assert!((200..=300).contains(&brief.chars().count()), "{brief}");
        for (query, reason) in [
            ("df?page=9", "there are 1 pages"),
            ("df?rows=0", "give 1 to 1000"),
            ("n?page=0", "something else"),
            ("word?rows=3", "something else"),
            ("word?chars=0", "give 1 to 100000"),
            ("word?page=2", "there are 2 pages of 1000 characters"),
            ("n?view=whole", "unknown variant `whole`"),
        ] {
            let (status, rejected) = api.get(&format!("{session}/variables/{query}")).await;
            assert_eq!(status, 400, "{rejected}");
            let message = rejected["error"]["message"].as_str().unwrap();
            assert!(message.contains(reason), "{rejected}");
        }
        for path in ["nothing", "nothing/origin"] {
            let (status, missing) = api.get(&format!("{session}/variables/{path}")).await;
            assert_eq!(status, StatusCode::NOT_FOUND);
            assert_eq!(missing["error"]["code"], "variable_not_found");
        }
        let long = json!({"code": "1", "producer": "x".repeat(1001)});
        let (status, refused) = api.post(&format!("{session}/cells"), &long).await;
        assert_eq!(
            (status, &refused["error"]["param"]),
            (StatusCode::BAD_REQUEST, &json!("producer"))
        );
        api.end(&session).await;
    });
}

#[test]
fn a_variable_without_an_origin_is_reported_with_the_reason() {
    block_on(async {
        let api = Api::of("variables").await;
        let session = api.session(&json!({})).await;
        let (status, unused) = api.get(&format!("{session}/variables/n/origin")).await;
        assert_eq!(
            (status, &unused["error"]["code"]),
            (StatusCode::NOT_FOUND, &json!("variable_not_found"))
        );
        api.run(&session, "n = 7").await;
        let (status, scratch) = api.get(&format!("{session}/variables/n/origin")).await;
        assert_eq!(
            (status, &scratch["error"]["code"]),
            (StatusCode::NOT_FOUND, &json!("origin_not_found"))
        );
        let message = scratch["error"]["message"].as_str().unwrap();
        assert!(
            message.starts_with("the variable `n` has no origin: it is scratch work, ")
                && message.contains("`producer`"),
            "{message}"
        );
        let stranger = Api::of("a stranger").await;
        let (status, hidden) = stranger.get(&format!("{session}/variables/n/origin")).await;
        assert_eq!(
            (status, &hidden["error"]["code"]),
            (StatusCode::NOT_FOUND, &json!("session_not_found"))
        );
        api.end(&session).await;
    });
}

#[test]
fn code_that_runs_too_long_or_is_too_large_is_an_answer() {
    block_on(async {
        let api = Api::of("limits").await;
        let options = json!({"limits": {"memory_bytes": 512 << 20}, "rescue": "off", "guard": "standard"});
        let session = api.session(&options).await;
        let (status, late) = api
            .post(
                &format!("{session}/cells"),
                &json!({"code": "x = 1\nwhile True: pass", "timeout": 0.5}),
            )
            .await;
        assert_eq!(
            (status, &late["outcome"]),
            (StatusCode::OK, &json!("interrupted"))
        );
        let (_, described) = api.get(&session).await;
        assert_eq!(described["limits"]["memory_bytes"], 512 << 20);
        assert_eq!(described["cells"], 1);
        let large = api
            .run(
                &session,
                "b = bytearray(1 << 30)\nfor i in range(0, 1 << 30, 4096): b[i] = 1",
            )
            .await;
        assert!(
            ["limit_exceeded", "raised"].contains(&large["outcome"].as_str().unwrap()),
            "{large}"
        );
        api.end(&session).await;
    });
}

#[test]
fn a_stream_reports_events_in_order() {
    block_on(async {
        let api = Api::of("stream").await;
        let session = api.session(&json!({})).await;
        let code =
            "print('before €')\n'shown'\ndisplay('shown')\nopen('made.txt', 'w').write('x')\nprint('after');";
        let request = api
            .request(Method::POST, &format!("{session}/cells"))
            .header("accept", "text/event-stream")
            .header("content-type", "application/json")
            .body(json!({"code": code}).to_string());
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let events = events(&response.text().await.unwrap());
        let numbers: Vec<_> = events
            .iter()
            .map(|(_, data)| data["sequence_number"].as_u64().unwrap())
            .collect();
        assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "{numbers:?}");
        let names: Vec<_> = events.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "cell.started",
                "cell.stdout",
                "cell.output",
                "cell.stdout",
                "cell.file",
                "cell.done"
            ]
        );
        assert_eq!(events[1].1["text"], "before €\n");
        assert_eq!(events[2].1["output"]["value"], "shown");
        assert_eq!(events[4].1["file"]["path"], "/workspace/made.txt");
        let done = &events[5].1["cell"];
        assert_eq!(
            (&done["outcome"], &done["stdout"]),
            (&json!("completed"), &json!("before €\nafter\n"))
        );
        let (_, kept) = api.get(&format!("{session}/cells/1")).await;
        assert_eq!(&kept, done);
        api.end(&session).await;
    });
}

#[test]
fn outputs_end_as_in_a_notebook_and_a_stream_says_how() {
    block_on(async {
        let api = Api::of("screen").await;
        let session = api.session(&json!({})).await;
        let code = "from IPython.display import clear_output\nprint('gone')\ndisplay('gone')\n\
                    clear_output()\n\
                    handle = display(0, display_id='count')\nfor i in range(1, 100): handle.update(i)\n\
                    print('kept');";
        let body = json!({"code": code, "stream": true});
        let mut response = api.start(&format!("{session}/cells"), &body).await;
        let mut read = String::new();
        while let Some(part) = response.chunk().await.unwrap() {
            read += &String::from_utf8_lossy(&part);
        }
        let events = events(&read);
        let named = |name: &str| {
            let found = events.iter().filter(|(it, _)| it == name);
            found.map(|(_, data)| data).collect::<Vec<_>>()
        };
        assert_eq!(named("cell.cleared")[0]["wait"], false);
        let shown = named("cell.output");
        assert_eq!((shown.len(), &shown[1]["display_id"]), (2, &json!("count")));
        let updates = named("cell.output_updated");
        assert_eq!((updates.len(), &updates[98]["output"]["value"]), (99, &json!(99)));
        let done = &named("cell.done")[0]["cell"];
        assert_eq!(done["stdout"], "kept\n");
        let outputs = done["outputs"].as_array().unwrap();
        assert_eq!((outputs.len(), &outputs[0]["value"]), (1, &json!(99)));
        assert_eq!(done.get("outputs_dropped"), None);

        // A loop that waits with clearing, and an update of what an earlier cell has shown.
        let code = "for i in range(100):\n    clear_output(wait=True)\n    print(i)\n    display(i)";
        let ran = api.run(&session, code).await;
        assert_eq!(
            (&ran["stdout"], &ran["outputs"][0]["value"]),
            (&json!("99\n"), &json!(99))
        );
        assert_eq!(ran["outputs"].as_array().unwrap().len(), 1);
        let ran = api.run(&session, "handle.update('again')").await;
        assert_eq!(ran["outputs"][0]["value"], "again");
        api.end(&session).await;
    });
}

#[test]
fn a_cell_with_a_stream_id_goes_on_without_its_client_which_reads_the_rest_later() {
    block_on(async {
        let api = Api::of("resume").await;
        let session = api.session(&json!({})).await;
        let code = "import time\nfor n in range(20):\n    print(n, flush=True)\n    time.sleep(0.05)";
        let body = json!({"code": code, "stream_id": "first"});
        let mut response = api.start(&format!("{session}/cells"), &body).await;
        let mut read = String::new();
        while !read.contains("cell.stdout") {
            read += &String::from_utf8_lossy(&response.chunk().await.unwrap().unwrap());
        }
        drop(response);
        // An event that has not come whole is asked for again.
        let whole = read.rfind("\n\n").unwrap();
        let mut all = events(&read[..whole]);
        let last = all.last().unwrap().1["sequence_number"].as_u64().unwrap();
        let streams = format!("{session}/streams");
        let rest = api.raw(&format!("{streams}/first?starting_after={last}")).await;
        assert_eq!(rest.headers()["content-type"], "text/event-stream");
        all.extend(events(&rest.text().await.unwrap()));
        let numbers = all
            .iter()
            .map(|(_, data)| data["sequence_number"].as_u64().unwrap());
        assert!(numbers.eq(0..all.len() as u64), "{all:?}");
        let printed: String = all.iter().filter_map(|(_, data)| data["text"].as_str()).collect();
        let expected: String = (0..20).map(|n| n.to_string() + "\n").collect();
        assert_eq!(printed, expected);
        let (name, done) = all.pop().unwrap();
        assert_eq!(
            (name.as_str(), &done["cell"]["outcome"]),
            ("cell.done", &json!("completed"))
        );

        // It can be read again after its end, by its owner.
        let again = api.raw(&format!("{streams}/first")).await.text().await.unwrap();
        assert_eq!(events(&again).len(), all.len() + 1);
        let stranger = Api::of("resume, a stranger").await;
        let (status, error) = stranger.get(&format!("{streams}/first")).await;
        assert_eq!(
            (status, &error["error"]["code"]),
            (StatusCode::NOT_FOUND, &json!("session_not_found"))
        );
        for (path, status, code) in [
            ("second", StatusCode::NOT_FOUND, "stream_not_found"),
            ("first?starting_after=x", StatusCode::BAD_REQUEST, "invalid_value"),
        ] {
            let (found, error) = api.get(&format!("{streams}/{path}")).await;
            assert_eq!((found, &error["error"]["code"]), (status, &json!(code)), "{path}");
        }
        // A cell that is sent again does not run again.
        let (status, error) = api.post(&format!("{session}/cells"), &body).await;
        assert_eq!(
            (status, &error["error"]["code"]),
            (StatusCode::CONFLICT, &json!("stream_exists"))
        );
        let (status, error) = api
            .post(
                &format!("{session}/cells"),
                &json!({"code": "1", "stream_id": "a/b"}),
            )
            .await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{error}");
        assert!(
            error["error"]["message"]
                .as_str()
                .unwrap()
                .contains("`stream_id` must have")
        );
        api.end(&session).await;
    });
}

#[test]
fn a_client_that_goes_away_interrupts_its_cell() {
    block_on(async {
        let api = Api::of("gone").await;
        let session = api.session(&json!({})).await;
        api.run(&session, "x = 1").await;
        let free = || async { api.get(&session).await.1["status"] == "idle" };
        drop(api.endless(&session).await);
        until("the session is free", free).await;
        let (_, cell) = api.get(&format!("{session}/cells/2")).await;
        assert_eq!(cell["outcome"], "interrupted", "{cell}");

        // The same where the answer is no stream. An interrupt that comes before its first line may
        // cost the kernel.
        let body = json!({"code": "while True: pass", "timeout": 120});
        let (asked, path) = (api.clone(), format!("{session}/cells"));
        let asking = tokio::spawn(async move { asked.post(&path, &body).await });
        until("the cell runs", || async {
            api.get(&session).await.1["status"] == "busy"
        })
        .await;
        asking.abort();
        until("the session is free", free).await;
        let (_, cell) = api.get(&format!("{session}/cells/3")).await;
        let stopped = ["interrupted", "kernel_lost"].contains(&cell["outcome"].as_str().unwrap());
        assert!(stopped, "{cell}");
        api.end(&session).await;
    });
}

#[test]
fn an_interrupt_ends_the_cell_that_runs_and_the_next_one_has_its_turn() {
    block_on(async {
        let api = Api::of("interrupt").await;
        let session = api.session(&json!({})).await;
        api.run(&session, "x = 1").await;
        let endless = api.endless(&session).await;
        let (waiting, at) = (api.clone(), session.clone());
        let next = tokio::spawn(async move { waiting.run(&at, "x").await });
        let (status, told) = api.post(&format!("{session}/interrupt"), &json!({})).await;
        assert_eq!((status, &told["interrupted"]), (StatusCode::OK, &json!(true)));
        assert_eq!(ending(endless).await, "interrupted");
        assert_eq!(next.await.unwrap()["outputs"][0]["value"], 1);
        api.end(&session).await;
    });
}

#[test]
fn deleting_a_session_stops_its_code() {
    block_on(async {
        let api = Api::of("deleted").await;
        let session = api.session(&json!({})).await;
        let endless = api.endless(&session).await;
        api.end(&session).await;
        assert_eq!(ending(endless).await, "interrupted");
        let (_, all) = api.get("/v1/sessions").await;
        assert_eq!(all["data"], json!([]));
    });
}

#[test]
fn an_unused_session_expires() {
    block_on(async {
        let api = Api::of("idle").await;
        let session = api.session(&json!({"idle_timeout": 1})).await;
        api.run(&session, "1").await;
        // Whoever looks at it does not use it.
        until("it expires", || async {
            api.get(&session).await.0 == StatusCode::NOT_FOUND
        })
        .await;
    });
}

#[test]
fn packages_are_there_for_the_cell_that_asks_for_them() {
    block_on(async {
        let api = Api::of("packages").await;
        let session = api.session(&json!({})).await;
        let body = json!({"code": "import emoji\nemoji.__name__", "requirements": ["emoji==2.14.0"]});
        let (status, cell) = api.post(&format!("{session}/cells"), &body).await;
        assert_eq!(
            (status, &cell["outputs"][0]["value"]),
            (StatusCode::OK, &json!("emoji")),
            "{cell}"
        );
        let body = json!({"code": "1", "requirements": ["https://example.com/x.whl"]});
        let (status, refused) = api.post(&format!("{session}/cells"), &body).await;
        assert_eq!(
            (status, &refused["error"]["code"]),
            (StatusCode::BAD_REQUEST, &json!("bad_request")),
            "{refused}"
        );
        api.end(&session).await;
    });
}

#[test]
fn a_workbench_has_the_packages_that_its_session_requires() {
    block_on(async {
        let api = Api::of("workbench with packages").await;
        let request = json!({"toolset": "workbench", "requirements": ["emoji==2.14.0"]});
        let session = api.session(&request).await;
        let command = json!({"command": ["python", "-c", "import emoji; print(emoji.__name__)"]});
        let (status, answer) = api.post(&format!("{session}/tools/sandbox_exec"), &command).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        assert!(answer.to_string().contains("emoji\\n"), "{answer}");
        api.end(&session).await;
        for (toolset, requirements, expected) in [
            (
                "derivation",
                json!(["emoji"]),
                "a derivation has only the packages of the image",
            ),
            (
                "workbench",
                json!(["https://example.com/x.whl"]),
                "is not a usable requirement",
            ),
        ] {
            let request = json!({"toolset": toolset, "requirements": requirements});
            let (status, refused) = api.post("/v1/sessions", &request).await;
            assert_eq!(
                (status, &refused["error"]["param"]),
                (StatusCode::BAD_REQUEST, &json!("requirements")),
                "{refused}"
            );
            assert!(
                refused["error"]["message"].as_str().unwrap().contains(expected),
                "{refused}"
            );
        }
    });
}

#[test]
fn a_key_has_no_more_layers_installed_than_its_quota_allows() {
    block_on(async {
        let api = Api::of("no layers").await;
        let session = api.session(&json!({})).await;
        let body = json!({"code": "1", "requirements": ["emoji==2.13.2"]});
        let (status, refused) = api.post(&format!("{session}/cells"), &body).await;
        assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{refused}");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(
            message.starts_with(
                "no more packages can be installed for now: the quota `layers_per_day` of this key is used up"
            ),
            "{message}"
        );
        api.end(&session).await;
        let (_, executed) = api.post("/execute", &body).await;
        assert!(executed.to_string().contains("layers_per_day"), "{executed}");
    });
}

#[test]
fn a_session_says_what_its_sandbox_uses() {
    block_on(async {
        let api = Api::of("usage").await;
        let session = api.session(&json!({})).await;
        let usage = format!("{session}/usage");
        let (_, before) = api.get(&usage).await;
        assert_eq!(before, json!({"object": "session.usage", "sandbox": false}));
        api.run(&session, "kept = bytearray(32 << 20)").await;
        let (status, after) = api.get(&usage).await;
        assert_eq!(
            (status, &after["sandbox"]),
            (StatusCode::OK, &json!(true)),
            "{after}"
        );
        // A machine without control groups counts nothing of it.
        if let Some(memory) = after["memory_bytes"].as_u64() {
            assert!(memory > 32 << 20, "{after}");
        }
        api.end(&session).await;
    });
}
