//! `cellblock run --toolset derivation`: a call under its contract.

use anyhow::{Context as _, Result};
use cellblock_testkit::{Cli, require, workspace_root};
use serde_json::{Value, json};

use crate::support::{BUILD_LIMIT, answer, folder, run};

const CONTRACT: &[u8] = br#"{"operation": "sum", "reason": "it takes code", "inputAliases": ["get_rows_1"], "expectedArtifacts": []}"#;

/// A call with `get_rows_1` and a contract, both files of the folder that it runs in.
const CALL: [&str; 7] = [
    "--json",
    "--toolset",
    "derivation",
    "--alias",
    "get_rows_1=rows.json",
    "--contract",
    "contract.json",
];

/// Runs a call on the small image with `get_rows_1`, and gives the exit code with the object.
fn call(code: &str, contract: &[u8], more: &[&str]) -> Result<(i32, Value)> {
    let (_folder, path) = folder(&[("rows.json", b"[1, 2.5, null]"), ("contract.json", contract)])?;
    let usual = CALL.into_iter().chain(["-c", code]);
    answer(&run(usual.chain(more.iter().copied()))?.folder(&path).run()?)
}

#[test]
fn a_call_that_keeps_its_contract_answers_with_its_result() -> Result<()> {
    let (code, report) = call(
        "print('adding')\nset_result(sum(v for v in get_rows_1 if v))",
        CONTRACT,
        &[],
    )?;
    assert_eq!(
        (code, &report["ok"], &report["outcome"]),
        (0, &json!(true), &json!("completed"))
    );
    assert_eq!(report["result"], 3.5);
    assert_eq!(report["stdout"], json!(["adding"]));
    assert_eq!(report["output_alias"], "code_interpreter_1");
    assert_eq!(report["attempts_left"], 5);
    assert_eq!(report["execution"]["outcome"], "completed");
    let bound = &report["inputs"][0];
    assert_eq!(
        (&bound["alias"], &bound["bytes"]),
        (&json!("get_rows_1"), &json!(14))
    );
    Ok(())
}

#[test]
fn integer_keys_of_a_series_are_its_keys_in_the_result() -> Result<()> {
    let (_folder, path) = folder(&[
        ("one.json", b"[1]"),
        ("c.json", br#"{"operation": "count", "reason": "it takes code", "inputAliases": ["x_1"], "expectedArtifacts": []}"#),
    ])?;
    let code = "set_result(pd.DataFrame({\"k\":[0,1,1,2]}).groupby(\"k\").size())";
    let call = [
        "--toolset",
        "derivation",
        "--alias",
        "x_1=one.json",
        "--contract",
        "c.json",
        "-c",
        code,
    ];
    let finished = run(["--json"].into_iter().chain(call))?.folder(&path).run()?;
    let (code, report) = answer(&finished)?;
    assert_eq!(
        (code, report["result"].to_string().as_str()),
        (0, r#"{"0":1,"1":2,"2":1}"#)
    );
    Ok(())
}

#[test]
fn a_result_can_come_through_a_pipe() -> Result<()> {
    let (_folder, path) = folder(&[("c.json", CONTRACT)])?;
    let pipe = path.join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600))?;
    let writer = std::thread::spawn(move || std::fs::write(pipe, "[1, 2.5, null]"));
    let call = [
        "--json",
        "--toolset",
        "derivation",
        "--alias",
        "get_rows_1=pipe",
        "--contract",
        "c.json",
        "-c",
    ];
    let finished = run(call.into_iter().chain(["set_result(get_rows_1)"]))?
        .folder(&path)
        .run()?;
    let (code, report) = answer(&finished)?;
    assert_eq!((code, &report["result"]), (0, &json!([1, 2.5, null])));
    writer.join().ok().context("the writer panicked")??;
    Ok(())
}

#[test]
fn packages_that_are_required_can_be_imported_by_a_call() -> Result<()> {
    let (code, report) = call(
        "import iniconfig\nset_result(iniconfig.__name__)",
        CONTRACT,
        &["--require", "iniconfig"],
    )?;
    assert_eq!((code, &report["result"]), (0, &json!("iniconfig")), "{report}");
    let (code, report) = call("set_result(1)", CONTRACT, &["--require", "httpx"])?;
    let message = report["error"]["message"].as_str().unwrap_or_default();
    assert!(code == 2 && message.contains("httpx"), "{code} {message}");
    Ok(())
}

#[test]
fn a_whole_call_names_its_inputs_and_its_intent() -> Result<()> {
    let whole = br#"{"intent": "a sum", "inputs": {"rows": "get_rows_1"}, "postProcessingContract":
        {"operation": "sum", "reason": "it takes code", "inputAliases": ["get_rows_1"],
         "expectedArtifacts": []}}"#;
    let (code, report) = call("set_result(len(rows))", whole, &["--require-inputs"])?;
    assert_eq!(
        (code, &report["result"], &report["intent"]),
        (0, &json!(3), &json!("a sum"))
    );
    let (code, report) = call("set_result(1)", CONTRACT, &["--require-inputs"])?;
    assert_eq!((code, &report["rejections"][0]["field"]), (2, &json!("inputs")));
    Ok(())
}

#[test]
fn a_broken_contract_is_rejected_with_codes_and_exits_with_2() -> Result<()> {
    let broken = br#"{"operation": "", "inputAliases": ["get_row_1"], "expectedArtifacts": ["picture"]}"#;
    let (code, report) = call("set_result(1)", broken, &[])?;
    assert_eq!((code, &report["outcome"]), (2, &json!("rejected")));
    let found: Vec<_> = report["rejections"]
        .as_array()
        .context("no rejections")?
        .iter()
        .map(|it| {
            (
                it["code"].as_str().unwrap_or_default(),
                it["field"].as_str().unwrap_or_default(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("empty_field", "operation"),
            ("missing_field", "reason"),
            ("unknown_alias", "inputAliases[0]"),
            ("unknown_artifact_kind", "expectedArtifacts[0]"),
        ]
    );
    assert_eq!(report["rejections"][2]["valid"], json!(["get_rows_1"]));
    assert_eq!(
        (&report["attempts_left"], &report["execution"]),
        (&json!(4), &Value::Null)
    );
    let undeclared = br#"{"operation": "x", "reason": "y", "inputAliases": ["get_rows_1"], "expectedArtifacts": ["chart"]}"#;
    let (code, report) = call("set_result(1)", undeclared, &[])?;
    assert_eq!(
        (code, &report["rejections"][0]["code"]),
        (2, &json!("artifact_not_emitted"))
    );
    assert_eq!(report["execution"]["outcome"], "rejected");
    Ok(())
}

#[test]
fn code_that_fails_says_how_often_it_may_be_tried_again() -> Result<()> {
    let (code, report) = call("get_rows_1[9]", CONTRACT, &[])?;
    assert_eq!((code, &report["error"]["code"]), (1, &json!("raised")));
    let message = report["error"]["message"].as_str().unwrap_or_default();
    assert_eq!(
        message,
        "IndexError: list index out of range. Repair the call and try again: 4 attempts are left"
    );
    Ok(())
}

#[test]
fn mistakes_of_the_caller_are_reported_before_anything_starts() -> Result<()> {
    let (_folder, path) = folder(&[
        ("rows.json", b"[1, 2"),
        ("fine.json", b"[1, 2]"),
        ("rows.csv", b"a\n1\n"),
        ("contract.json", b"{"),
    ])?;
    for (arguments, told) in [
        (
            ["--alias", "get_rows_1=rows.json", "-c", "1"],
            "not a JSON document",
        ),
        (["--alias", "print=contract.json", "-c", "1"], "print"),
        (["--alias", "get_rows_1=none.json", "-c", "1"], "none.json"),
        (["--contract", "contract.json", "-c", "1"], "contract.json"),
        (["--alias", "get_rows_1=fine.json", "-c", "1"], "--contract FILE"),
        (["--alias", "get_rows_1=rows.csv", "-c", "1"], "Parquet"),
    ] {
        let usual = ["--json", "--toolset", "derivation"];
        let finished = run(usual.into_iter().chain(arguments))?.folder(&path).run()?;
        let (code, report) = answer(&finished)?;
        let message = report["error"]["message"].as_str().unwrap_or_default();
        assert_eq!(code, 2, "{arguments:?}: {message}");
        assert!(message.contains(told), "{arguments:?}: {message}");
    }
    Ok(())
}

#[test]
fn a_network_client_is_rejected_under_this_toolset_and_an_image_bounds_its_network() -> Result<()> {
    let image = b"name = \"with-client\"\npackages = [\"requests\"]\npreload = [\"requests\"]\n[policy]\n\
                  forbid_network_clients = false\nmax_network = \"none\"\n";
    let (_folder, path) = folder(&[
        ("image.toml", image),
        ("rows.json", b"[1]"),
        ("contract.json", CONTRACT),
    ])?;
    let arguments = [
        "run",
        "--json",
        "--image",
        "image.toml",
        "-c",
        "import requests; 1",
    ];
    let plain = Cli::new(arguments).folder(&path).limit(BUILD_LIMIT).run()?;
    assert_eq!(plain.code(), 0, "{}", plain.stderr);
    let networked = Cli::new(arguments.into_iter().chain(["--network", "loopback"]))
        .folder(&path)
        .run()?;
    let (code, report) = answer(&networked)?;
    let message = report["error"]["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("`loopback`") && message.contains("`with-client` allows `none` at most"),
        "{code}: {message}"
    );
    let finished = Cli::new(arguments.into_iter().chain(CALL[1..].iter().copied()))
        .folder(&path)
        .run()?;
    let (code, report) = answer(&finished)?;
    assert_eq!(code, 78);
    let message = report["error"]["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("network clients")
            && message.contains("requests (")
            && message.contains("urllib3 ("),
        "{message}"
    );
    Ok(())
}

#[test]
fn tool_results_are_bound_where_the_machine_refuses_namespaces() -> Result<()> {
    require!(Root);
    require!(UserNamespaces);
    let (_folder, path) = folder(&[("rows.json", b"[1, 2]"), ("contract.json", CONTRACT)])?;
    let code = "set_result([get_rows_1, inputs['get_rows_1']])";
    let more = ["--without-namespaces", "-c", code];
    let finished = run(CALL.into_iter().chain(more))?
        .folder(&path)
        .without_user_namespaces(0)
        .run()?;
    let (code, report) = answer(&finished)?;
    assert_eq!(
        (code, &report["result"]),
        (0, &json!([[1, 2], [1, 2]])),
        "{report:#}"
    );
    Ok(())
}

#[test]
fn calls_emit_json_events_for_dashboards() -> Result<()> {
    let (_folder, path) = folder(&[("rows.json", b"[1]"), ("contract.json", CONTRACT)])?;
    let finished = run(CALL.into_iter().chain(["-c", "print('é')\nset_result(1)"]))?
        .folder(&path)
        .env("CELLBLOCK_LOG", "cellblock::python_call=info")
        .env("CELLBLOCK_LOG_FORMAT", "json")
        .run()?;
    let events: Vec<Value> = finished
        .stderr
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let [start, success] = &events[..] else {
        anyhow::bail!("{events:?}");
    };
    assert_eq!(
        (
            &start["event"],
            &start["start"],
            &start["alias_count"],
            &start["inputs_bytes"]
        ),
        (&json!("python_call_start"), &json!("cold"), &json!(1), &json!(3))
    );
    assert_eq!(
        (
            &success["event"],
            &success["stdout_chars"],
            &success["artifact_count"]
        ),
        (&json!("python_call_success"), &json!(2), &json!(0))
    );
    assert_eq!(start["sandbox"], success["sandbox"]);
    Ok(())
}

#[test]
fn the_example_distinguishes_the_flow_from_the_listing() -> Result<()> {
    let finished = Cli::new([
        "run",
        "--json",
        "--toolset",
        "derivation",
        "--alias",
        "get_reserves_alpha_1=alpha.json",
        "--alias",
        "get_reserves_beta_1=beta.json",
        "--alias",
        "get_reserves_gamma_1=gamma.json",
        "--contract",
        "contract.json",
        "flows.py",
    ])
    .folder(workspace_root().join("examples/reserves"))
    .limit(BUILD_LIMIT)
    .run()?;
    let (code, report) = answer(&finished)?;
    assert_eq!(code, 0, "{report:#}");
    let result = &report["result"];
    assert_eq!(
        result["listed"],
        json!({"exchange": "gamma", "day": "2025-01-31", "level": 34858.3})
    );
    let (flow, change) = (
        result["flow"].as_f64().context("no flow")?,
        result["change_of_total"].as_f64().context("no change")?,
    );
    assert!((change - flow - 34858.3).abs() < 0.2, "{result}");
    let kinds: Vec<_> = report["artifacts"]
        .as_array()
        .context("no artifacts")?
        .iter()
        .map(|it| (it["kind"].as_str(), it["sha256"].as_str().map(str::len)))
        .collect();
    assert_eq!(kinds, [(Some("image"), Some(64)), (Some("chart"), Some(64))]);
    let hints = report["dataQualityHints"].as_array().context("no hints")?;
    let events = hints
        .iter()
        .find(|it| it["code"] == "coverage_events")
        .context("no events")?;
    assert_eq!(events["details"]["events"][0]["entity"], "gamma");
    assert!(hints.iter().any(|it| it["code"] == "duplicate_buckets"));
    Ok(())
}

#[test]
fn a_line_with_gaps_is_reported_with_its_name_or_rejected() -> Result<()> {
    const CODE: &str = "rows = [{'day': f'2025-02-{n:02}', 'whole': n, 'thin': n if n % 7 == 0 else None} \
                        for n in range(1, 29)]\n\
                        render_chart({'type': 'line', 'xKey': 'day', 'xAxis': {'type': 'time'}, \
                        'series': [{'key': 'whole'}, {'key': 'thin'}]}, rows)";
    let contract = br#"{"operation": "x", "reason": "y", "inputAliases": ["get_rows_1"], "expectedArtifacts": ["chart"]}"#;
    let (code, report) = call(CODE, contract, &[])?;
    let finding = &report["findings"][0];
    assert_eq!(
        (code, &finding["code"], &finding["series"]),
        (0, &json!("low_coverage"), &json!("thin"))
    );
    assert_eq!(report["dataQualityHints"], json!([]));
    let (code, report) = call(CODE, contract, &["--reject-low-coverage"])?;
    assert_eq!(
        (code, &report["rejections"][0]["code"]),
        (2, &json!("low_coverage"))
    );
    let (code, _) = call(
        CODE,
        contract,
        &["--reject-low-coverage", "--coverage-threshold", "0.1"],
    )?;
    assert_eq!(code, 0);
    Ok(())
}

#[test]
fn a_chart_is_saved_as_a_picture_beside_its_data_and_can_be_exported() -> Result<()> {
    let contract =
        br#"{"operation": "x", "reason": "y", "inputAliases": ["x_1"], "expectedArtifacts": ["chart"]}"#;
    let rows =
        br#"[{"day": "2023-12-30", "v": 1}, {"day": "2023-12-31", "v": 3}, {"day": "2024-01-01", "v": 2}]"#;
    let (_folder, path) = folder(&[("one.json", rows), ("chart.json", contract)])?;
    let code = "render_chart({'type': 'line', 'xKey': 'day', 'series': [{'key': 'v'}]}, x_1, title='Values')";
    let call = [
        "run",
        "--toolset",
        "derivation",
        "--alias",
        "x_1=one.json",
        "--contract",
        "chart.json",
        "-c",
        code,
    ];
    let finished = Cli::new(call).folder(&path).limit(BUILD_LIMIT).run()?;
    assert_eq!(finished.code(), 0, "{}", finished.stderr);
    let png = std::fs::read(path.join("cellblock-out/chart_1.png"))?;
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
    let document = std::fs::read(path.join("cellblock-out/chart_1.json"))?;
    assert_eq!(serde_json::from_slice::<Value>(&document)?["kind"], "chart");

    let id = cellblock_artifact::ArtifactId::of(&document).to_string();
    let artifact = |arguments: &[&str]| {
        let arguments = ["artifact"].iter().chain(arguments).copied();
        Cli::new(arguments).folder(&path).limit(BUILD_LIMIT).run()
    };
    let listed: Value = serde_json::from_str(&artifact(&["list", "--json"])?.stdout)?;
    let mine = listed["artifacts"]
        .as_array()
        .context("no list")?
        .iter()
        .find(|it| it["sha256"] == id.as_str());
    let mine = mine.context("the chart is not listed")?;
    assert_eq!(
        (&mine["kind"], &mine["bytes"]),
        (&json!("chart"), &json!(document.len()))
    );
    let described: Value = serde_json::from_str(&artifact(&["show", &id[..12], "--json"])?.stdout)?;
    assert_eq!(&described["sha256"], id.as_str());
    assert_eq!(artifact(&["show", &id])?.stdout.as_bytes(), document);
    let missing = artifact(&["show", "not-there", "--json"])?;
    let error: Value = serde_json::from_str(&missing.stdout)?;
    assert_eq!(
        (missing.code(), &error["error"]["code"]),
        (2, &json!("bad_request"))
    );

    for (format, name, begin) in [
        ("png", "x.png", &b"\x89PNG"[..]),
        ("svg", "x.svg", b"<svg"),
        ("html", "x.html", b"<!DOCTYPE html>"),
        ("vega-lite", "x.vl.json", b"{"),
    ] {
        let exported = artifact(&["export", &id[..12], "--format", format, "--out", name])?;
        assert_eq!(
            (exported.code(), exported.stdout.trim()),
            (0, name),
            "{}",
            exported.stderr
        );
        let bytes = std::fs::read(path.join(name))?;
        assert!(
            bytes.starts_with(begin),
            "{format}: {}",
            String::from_utf8_lossy(&bytes[..40])
        );
    }
    // Nothing is loaded from elsewhere: the page holds its JavaScript.
    let page = std::fs::read_to_string(path.join("x.html"))?;
    assert!(
        !page.contains("<script src=") && !page.contains("cdn.jsdelivr"),
        "{} bytes",
        page.len()
    );
    Ok(())
}
