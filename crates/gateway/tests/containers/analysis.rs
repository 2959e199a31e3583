//! Analyses: files go in, code runs in containers, files and charts come back.

use std::time::Duration;

use cellblock_agent::provider::scripted::ScriptedAnswer;
use serde_json::{Value, json};

use crate::support::{bench, block_on, logs, paths, runs, start};
use cellblock_gateway::records::Records;

const SALES: &[u8] = b"city,sold\nBonn,3\nKiel,4\n";

#[test]
fn an_uploaded_table_is_analysed_in_two_responses_over_one_container() {
    block_on(async {
        let bench = bench().await;
        let table = bench.file("sales.csv", SALES).await;
        let read = "import csv\nrows = list(csv.DictReader(open('/mnt/data/sales.csv')))\n\
                    total = sum(int(row['sold']) for row in rows)\ntotal";
        let first = bench.script("two", [runs("c1", read), ScriptedAnswer::new().text("It is 7.")]);
        let auto = json!({"type": "auto", "file_ids": [table]});
        let one = bench
            .respond("two", &json!("What is the total?"), &auto)
            .await
            .ok();
        let call = &one["output"][0];
        assert!(logs(call).contains('7'), "{call}");
        let description = first.asked()[0].tools[0].description.clone().unwrap();
        assert!(description.contains("`/mnt/data/sales.csv`"), "{description}");
        let container = call["container_id"].as_str().unwrap();

        // The variable is there, and so is the file.
        let draw = "import matplotlib.pyplot as plt\nplt.plot([1, total])\n\
                    plt.savefig('/mnt/data/chart.png')\n\
                    open('note.txt', 'w').write(open('sales.csv').read());";
        let answer = "Größe: [the chart](sandbox:/mnt/data/chart.png)";
        bench.script("two", [runs("c2", draw), ScriptedAnswer::new().text(answer)]);
        let input = json!([
            {"role": "user", "content": "What is the total?"}, call, {"role": "user", "content": "Draw it."},
        ]);
        let two = bench.respond("two", &input, &json!({"type": "auto"})).await.ok();
        let call = &two["output"][0];
        assert_eq!(call["status"], "completed", "{call}");
        assert_eq!(call["container_id"], container);
        assert!(logs(call).contains("/mnt/data/chart.png ("), "{call}");

        let annotations = two["output"][1]["content"][0]["annotations"].as_array().unwrap();
        let told: Vec<_> = annotations
            .iter()
            .map(|cited| {
                let numbers = [&cited["start_index"], &cited["end_index"]].map(|at| at.as_u64().unwrap());
                assert_eq!(cited["container_id"], container);
                (cited["filename"].as_str().unwrap(), numbers)
            })
            .collect();
        // The link by its characters; the other file at the end.
        assert_eq!(told, [("chart.png", [19, 46]), ("note.txt", [47, 47])]);
        let chart = annotations[0]["file_id"].as_str().unwrap();
        let bytes = bench
            .content(&format!("containers/{container}/files/{chart}/content"))
            .await;
        assert_eq!(bytes[..8], *b"\x89PNG\r\n\x1a\n");
        let listed = bench
            .get(&format!("containers/{container}/files?order=asc"))
            .await
            .ok();
        let expected = [
            ("/mnt/data/sales.csv", "user"),
            ("/mnt/data/chart.png", "assistant"),
            ("/mnt/data/note.txt", "assistant"),
        ];
        let mut found = paths(&listed);
        found[1..].sort_unstable();
        assert_eq!(found, expected);
    });
}

#[test]
fn calls_of_one_step_have_containers_of_their_own_and_the_first_is_gone_on_with() {
    block_on(async {
        let bench = bench().await;
        let table = bench.file("sales.csv", SALES).await;
        let both = ScriptedAnswer::new()
            .call(
                "c1",
                "code_interpreter",
                &json!({"code": "x = 1; open('sales.csv').read()"}).to_string(),
            )
            .call(
                "c2",
                "code_interpreter",
                &json!({"code": "x = 2; open('sales.csv').read()"}).to_string(),
            );
        bench.script(
            "side",
            [both, runs("c3", "print(x)"), ScriptedAnswer::new().text("Done.")],
        );
        let auto = json!({"type": "auto", "file_ids": [table]});
        let response = bench.respond("side", &json!("go"), &auto).await.ok();
        let output = response["output"].as_array().unwrap();
        let containers: Vec<_> = output[..3].iter().map(|call| &call["container_id"]).collect();
        assert_ne!(containers[0], containers[1]);
        assert_eq!(containers[0], containers[2]);
        assert!(
            logs(&output[0]).contains("Bonn") && logs(&output[1]).contains("Bonn"),
            "{output:?}"
        );
        assert_eq!(logs(&output[2]).trim(), "1");

        // A client that sends the calls back goes on in the first one's container, though the
        // second one's came last.
        bench.script(
            "side",
            [runs("c4", "print(x)"), ScriptedAnswer::new().text("Done.")],
        );
        let input = json!([{"role": "user", "content": "go"}, output[0], output[1],
            {"role": "user", "content": "again"}]);
        let again = bench.respond("side", &input, &json!({"type": "auto"})).await.ok();
        assert_eq!(again["output"][0]["container_id"], *containers[0]);
        assert_eq!(logs(&again["output"][0]).trim(), "1");
    });
}

#[test]
fn a_picture_that_was_only_shown_is_a_file_of_the_container_too() {
    block_on(async {
        let bench = start(Records::in_memory().unwrap(), |options| {
            options.containers.max_inline_image = 100;
        })
        .await;
        let draw = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()";
        let answers = [
            runs("c1", draw),
            runs("c2", draw),
            ScriptedAnswer::new().text("Here they are."),
        ];
        bench.script("draw", answers);
        let response = bench
            .respond("draw", &json!("go"), &json!({"type": "auto"}))
            .await
            .ok();
        let outputs = response["output"][0]["outputs"].as_array().unwrap();
        // It is too large to be sent as it is, so its address is.
        let url = outputs.iter().find_map(|output| output["url"].as_str()).unwrap();
        let annotations = &response["output"][2]["content"][0]["annotations"];
        let names = [&annotations[0]["filename"], &annotations[1]["filename"]];
        assert_eq!(names, ["figure_1.png", "figure_1-2.png"]);
        let cited = &annotations[0];
        let (container, file) = (
            cited["container_id"].as_str().unwrap(),
            cited["file_id"].as_str().unwrap(),
        );
        assert_eq!(url, format!("/v1/containers/{container}/files/{file}/content"));
        let bytes = bench.content(url.strip_prefix("/v1/").unwrap()).await;
        assert_eq!(bytes[..8], *b"\x89PNG\r\n\x1a\n");
    });
}

#[test]
fn the_model_reads_exit_codes_and_is_told_the_directory_that_code_is_in() {
    block_on(async {
        let bench = bench().await;
        let place = "import os\nprint(os.getcwd(), os.path.samefile('.', '/mnt/data'))";
        let asked = bench.script(
            "ends",
            [
                runs("c1", place),
                runs("c2", "1 / 0"),
                runs("c3", " \n"),
                ScriptedAnswer::new().text("Done."),
            ],
        );
        let response = bench
            .respond("ends", &json!("go"), &json!({"type": "auto"}))
            .await
            .ok();
        let output = response["output"].as_array().unwrap();
        assert_eq!(logs(&output[0]).trim(), "/workspace True");
        let description = asked.asked()[0].tools[0].description.clone().unwrap();
        assert!(
            description.contains("`/mnt/data`, which is another name of the current directory, `/workspace`"),
            "{description}"
        );
        let items = serde_json::to_value(&asked.asked()[3].items).unwrap();
        let items = items.as_array().unwrap().iter();
        let results: Vec<_> = items
            .filter(|item| item["type"] == "function_call_output")
            .map(|item| item["output"].to_string())
            .collect();
        assert!(results[0].contains("[exit code] 0"), "{results:?}");
        assert!(results[1].contains("[exit code] 1"), "{results:?}");
        assert!(results[2].contains("`code` is empty"), "{results:?}");
        let statuses: Vec<_> = output.iter().map(|item| &item["status"]).collect();
        assert_eq!(statuses, ["completed", "completed", "failed", "completed"]);
    });
}

#[test]
fn a_client_that_leaves_stops_its_code_and_the_container_goes_on() {
    block_on(async {
        let bench = bench().await;
        let container = bench.container().await;
        bench.run(&container, "kept = 41").await;
        let wait = "import time\nopen('began', 'w').write('x')\nwhile True: time.sleep(0.05)";
        bench.script("leaves", [runs("c1", wait)]);
        let body = json!({
            "model": "leaves", "input": "go", "stream": true,
            "tools": [{"type": "code_interpreter", "container": container}],
        });
        let request = bench.request("POST", "responses").body(body.to_string());
        let mut answer = request.send().await.unwrap();
        let mut seen = String::new();
        while !seen.contains("response.code_interpreter_call.interpreting") {
            seen.push_str(&String::from_utf8_lossy(&answer.chunk().await.unwrap().unwrap()));
        }
        drop(answer);
        // Code that were not stopped would run to its limit of a minute first.
        let next = tokio::time::timeout(Duration::from_secs(40), bench.run(&container, "print(kept + 1)"));
        let next = next.await.unwrap();
        assert_eq!(logs(&next).trim(), "42", "{next}");
    });
}

#[test]
fn a_container_that_is_shared_runs_one_call_after_the_other() {
    block_on(async {
        let bench = bench().await;
        let container = bench.container().await;
        bench.run(&container, "order = []").await;
        let code = |n: u32| {
            json!({"code": format!("import time; time.sleep({}); order.append({n})",
            0.2 / f64::from(n))})
        };
        let three = (1..=3).fold(ScriptedAnswer::new(), |answer, n| {
            answer.call(&format!("c{n}"), "code_interpreter", &code(n).to_string())
        });
        bench.script(
            "shared",
            [
                three,
                runs("c4", "print(order)"),
                ScriptedAnswer::new().text("Done."),
            ],
        );
        let response = bench
            .respond("shared", &json!("go"), &json!(container))
            .await
            .ok();
        let output = response["output"].as_array().unwrap();
        assert!(output[..4].iter().all(|call| call["container_id"] == container));
        assert_eq!(logs(&output[3]).trim(), "[1, 2, 3]");
    });
}

#[test]
fn a_file_that_code_changes_is_a_new_one_and_what_was_cited_stays() {
    block_on(async {
        let bench = bench().await;
        let container = bench.container().await;
        let ids = async |code: &str| -> Value {
            bench.run(&container, code).await;
            let path = format!("containers/{container}/files");
            bench.get(&path).await.ok()["data"][0]["id"].clone()
        };
        let one = ids("open('a.txt', 'w').write('one');").await;
        let same = ids("open('a.txt', 'w').write('one');").await;
        assert_eq!(one, same);
        let two = ids("open('a.txt', 'w').write('two');").await;
        for (id, text) in [(one, b"one"), (two, b"two")] {
            let id = id.as_str().unwrap();
            let path = format!("containers/{container}/files/{id}/content");
            assert_eq!(bench.content(&path).await, text);
        }
        let listed = bench.get(&format!("containers/{container}/files")).await.ok();
        assert_eq!(paths(&listed), [("/mnt/data/a.txt", "assistant")]);
    });
}
