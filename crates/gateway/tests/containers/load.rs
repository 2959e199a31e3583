//! Many requests at once wait their turn, and leave few sandboxes behind.

use std::time::Duration;

use cellblock_agent::provider::scripted::ScriptedAnswer;
use cellblock_gateway::records::Records;
use cellblock_testkit::wait::until;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::{Bench, block_on, logs, runs, start};

/// Requests of one burst.
const BURST: usize = 60;

fn body(model: &str, store: bool) -> Value {
    json!({
        "model": model, "input": "go", "store": store, "include": ["code_interpreter_call.outputs"],
        "tools": [{"type": "code_interpreter", "container": {"type": "auto"}}],
    })
}

/// Runs code once, in a container of its own.
async fn shot(bench: &Bench, number: usize, store: bool) -> Value {
    let model = format!("shot-{number}");
    bench.script(
        &model,
        [
            runs("c", &format!("{number} * 2")),
            ScriptedAnswer::new().text("Done."),
        ],
    );
    let response = bench.post("responses", &body(&model, store)).await.ok();
    assert_eq!(response["status"], "completed", "{response}");
    response["output"][0].clone()
}

/// Waits until so few sandboxes are in use.
async fn until_few(bench: &Bench, most: usize) {
    let interpreter = bench.gateway.interpreter().unwrap();
    until("few sandboxes are left", || {
        interpreter.sandboxes_in_use().len() <= most
    })
    .await;
}

#[test]
fn a_burst_waits_for_the_few_places_that_there_are_and_no_call_fails() {
    block_on(async {
        let bench = start(Records::in_memory().unwrap(), |options| {
            options.containers.max_per_key = 4;
            options.containers.max_concurrent = Some(2);
        })
        .await;
        let most = std::sync::atomic::AtomicUsize::new(0);
        let shots = (0..BURST).map(|number| {
            let (bench, most) = (&bench, &most);
            async move {
                let call = shot(bench, number, true).await;
                let in_use = bench.gateway.interpreter().unwrap().sandboxes_in_use().len();
                most.fetch_max(in_use, std::sync::atomic::Ordering::Relaxed);
                assert_eq!(call["status"], "completed", "{call}");
                assert_eq!(logs(&call).trim(), (number * 2).to_string());
            }
        });
        join_all(shots).await;
        let most = most.into_inner();
        assert!((1..=4).contains(&most), "{most} sandboxes at once");
    });
}

#[test]
fn a_burst_of_one_key_waits_for_its_quotas() {
    block_on(async {
        let bench = start(Records::in_memory().unwrap(), |options| {
            options.quotas.sandboxes = Some(2);
            options.quotas.concurrent_cells = Some(1);
        })
        .await;
        let shots = (0..10).map(|number| shot(&bench, number, false));
        for call in join_all(shots).await {
            assert_eq!(call["status"], "completed", "{call}");
        }
    });
}

#[test]
fn code_of_a_key_whose_sessions_use_up_its_quota_is_refused_soon_and_names_the_quota() {
    block_on(async {
        let bench = start(Records::in_memory().unwrap(), |options| {
            options.quotas.sandboxes = Some(1);
            options.containers.quota_wait_timeout = Duration::from_secs(1);
        })
        .await;
        // Nothing but its client ends a session.
        let session = bench.post("sessions", &json!({})).await;
        assert_eq!(session.status, 201, "{}", session.body);
        let refused = "The code was not run: the quota `sandboxes` of this key is used up: its limit is 1";
        let limit = Duration::from_mins(1);
        // Those that wait in one line are refused together, and not one after the other.
        let shots = join_all((0..20).map(|number| shot(&bench, number, true)));
        for call in tokio::time::timeout(limit, shots).await.unwrap() {
            assert_eq!(call["status"], "failed", "{call}");
            assert!(logs(&call).starts_with(refused), "{call}");
        }

        let script = bench.script("claude", [runs("c", "1"), ScriptedAnswer::new().text("Done.")]);
        let message = json!({
            "model": "claude", "max_tokens": 1000, "messages": [{"role": "user", "content": "go"}],
            "tools": [{"type": "code_execution_20250522", "name": "code_execution"}],
        });
        let answer = tokio::time::timeout(limit, bench.post("messages", &message)).await;
        let answer = answer.unwrap().ok();
        assert_eq!(
            answer["content"][1]["content"]["error_code"], "unavailable",
            "{answer}"
        );
        let told = json!(script.asked()[1].items).to_string();
        assert!(told.contains(refused), "{told}");

        // A place that is given back meanwhile is taken.
        let path = format!("sessions/{}", session.body["id"].as_str().unwrap());
        let (call, _) = tokio::join!(shot(&bench, 7, true), bench.delete(&path));
        assert_eq!(logs(&call).trim(), "14");
    });
}

#[test]
fn one_shots_leave_few_sandboxes_whether_or_not_they_are_stored() {
    block_on(async {
        for store in [false, true] {
            let bench = start(Records::in_memory().unwrap(), |_| {}).await;
            for number in 0..5 {
                let ten = (0..10).map(|place| shot(&bench, number * 10 + place, store));
                join_all(ten).await;
            }
            let kept = bench.gateway.options.containers.max_one_shots;
            until_few(&bench, kept).await;
            assert_eq!((bench.gateway.containers.count(), kept), (6, 6));
        }
    });
}

#[test]
fn a_container_that_nothing_leads_back_to_ends_soon() {
    block_on(async {
        let bench = start(Records::in_memory().unwrap(), |options| {
            options.containers.one_shot_idle_timeout = Duration::ZERO;
        })
        .await;
        shot(&bench, 1, false).await;
        until_few(&bench, 0).await;
        // One of a stored response stays, and so does one that is found by a key.
        shot(&bench, 2, true).await;
        let mut keyed = body("shot-2", false);
        keyed["metadata"] = json!({"session": "s"});
        bench.script("shot-2", [runs("c", "1"), ScriptedAnswer::new().text("Done.")]);
        bench.post("responses", &keyed).await.ok();
        // What ends soon is taken out in the order in which it fell idle, so that these would be
        // gone with the next one.
        shot(&bench, 3, false).await;
        until_few(&bench, 2).await;
        assert_eq!(bench.gateway.containers.count(), 2);
        assert_eq!(bench.gateway.interpreter().unwrap().sandboxes_in_use().len(), 2);
    });
}

#[test]
fn a_call_that_waits_too_long_is_told_to_the_model_and_a_client_that_left_does_not_wait() {
    block_on(async {
        let bench = start(Records::in_memory().unwrap(), |options| {
            options.containers.max_per_key = 1;
            options.containers.wait_timeout = Duration::from_millis(300);
        })
        .await;
        // The only place is a container that a client has made.
        let mine = bench.container().await;
        let call = shot(&bench, 1, true).await;
        assert_eq!(call["status"], "failed");
        assert!(logs(&call).contains("all sandboxes are in use"), "{call}");

        let patient = start(Records::in_memory().unwrap(), |options| {
            options.containers.max_per_key = 1;
        })
        .await;
        let place = patient.container().await;
        patient.script(
            "gone",
            [runs("c", "open('gone.txt', 'w')"), ScriptedAnswer::new()],
        );
        let gone = patient
            .request("POST", "responses")
            .header("content-type", "application/json");
        let gone = gone
            .body(body("gone", true).to_string())
            .timeout(Duration::from_millis(500));
        assert!(gone.send().await.unwrap_err().is_timeout());
        // The next one is first in the queue when the place is free.
        let next = shot(&patient, 7, true);
        let free = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            patient.delete(&format!("containers/{place}")).await.ok();
        };
        let (call, ()) = tokio::join!(next, free);
        assert_eq!(logs(&call).trim(), "14");
        bench.delete(&format!("containers/{mine}")).await.ok();
    });
}

#[test]
fn a_container_that_gave_way_has_its_files_again_and_the_model_is_told_what_is_gone() {
    block_on(async {
        let bench = start(Records::in_memory().unwrap(), |options| {
            options.containers.max_per_key = 1;
        })
        .await;
        bench.script(
            "m",
            [
                runs("c", "x = 41\nopen('kept.txt', 'w').write('kept');"),
                ScriptedAnswer::new().text("Done."),
            ],
        );
        let first = bench.post("responses", &body("m", true)).await.ok();
        let container = first["output"][0]["container_id"].clone();
        // Another conversation takes the only place.
        shot(&bench, 1, true).await;
        let path = format!("containers/{}", container.as_str().unwrap());
        assert_eq!(bench.get(&path).await.ok()["status"], "expired");

        let look = "print(globals().get('x'), open('kept.txt').read())";
        let script = bench.script(
            "m",
            [
                runs("c", look),
                runs("d", "x = 1"),
                ScriptedAnswer::new().text("Done."),
            ],
        );
        let mut again = body("m", true);
        again["previous_response_id"] = first["id"].clone();
        let second = bench.post("responses", &again).await.ok();
        let call = &second["output"][0];
        assert_eq!(call["container_id"], container);
        assert!(logs(call).trim_end().ends_with("None kept"), "{call}");
        assert!(
            logs(call).starts_with("The sandbox in which code of earlier turns ran has ended."),
            "{call}"
        );
        assert_eq!(bench.get(&path).await.ok()["status"], "running");
        // The model knows before it writes code, and is told once what it reads again in later turns.
        let asked = script.asked();
        let offered = asked[0].tools[0].description.clone().unwrap();
        assert!(
            offered.contains("The variables, imports and functions of that code are gone"),
            "{offered}"
        );
        assert!(json!(asked[1].items).to_string().contains("are gone"));
        assert!(!logs(&second["output"][1]).contains("are gone"), "{second}");
        let third = json!({"previous_response_id": second["id"]});
        let script = bench.script("m", [runs("c", "x + 1"), ScriptedAnswer::new().text("Done.")]);
        let mut more = body("m", true);
        more["previous_response_id"] = third["previous_response_id"].clone();
        let third = bench.post("responses", &more).await.ok();
        assert!(logs(&third["output"][0]).contains('2'), "{third}");
        let offered = script.asked()[0].tools[0].description.clone().unwrap();
        assert!(!offered.contains("are gone"), "{offered}");
    });
}

#[test]
fn after_a_restart_a_conversation_goes_on_with_its_files_and_is_told_so() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let records = folder.path().join("records.sqlite");
        let before = start(Records::open(&records).unwrap(), |_| {}).await;
        before.script(
            "m",
            [
                runs("c", "x = 41\nopen('kept.txt', 'w').write('kept');"),
                ScriptedAnswer::new().text("Done."),
            ],
        );
        let first = before.post("responses", &body("m", true)).await.ok();
        let after = start(Records::open(&records).unwrap(), |_| {}).await;
        let look = "print(globals().get('x'), open('kept.txt').read())";
        after.script("m", [runs("c", look), ScriptedAnswer::new().text("Done.")]);
        let mut again = body("m", true);
        again["previous_response_id"] = first["id"].clone();
        let second = after.post("responses", &again).await.ok();
        let told = logs(&second["output"][0]);
        assert!(
            told.contains("ran has ended") && told.trim_end().ends_with("None kept"),
            "{told}"
        );
    });
}
