//! `cellblock run --toolset notebook`: code calls the tools of MCP servers.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use cellblock_testkit::{Cli, binary, home, workspace_root};
use serde_json::{Value, json};

use crate::support::{answer, folder, run};

/// A run with the example's server.
fn weather<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Result<Cli> {
    let notebook = ["--toolset", "notebook", "--config", "cellblock.yaml"];
    let cli = run(notebook.into_iter().chain(arguments))?;
    Ok(cli.folder(workspace_root().join("examples/notebook")))
}

#[test]
fn equal_calls_of_a_tool_are_one_request() -> Result<()> {
    let code =
        "a = weather.get_forecast(city=\"Kyiv\"); b = weather.get_forecast(city=\"Kyiv\"); a == b and len(a)";
    let (code, report) = answer(&weather(["--json", "-c", code])?.run()?)?;
    assert_eq!(
        (code, &report["outputs"][0]["value"]),
        (0, &json!(3)),
        "{report:#}"
    );
    let fetches = report["fetches"].as_array().map_or(&[][..], Vec::as_slice);
    let cached: Vec<_> = fetches.iter().map(|fetch| &fetch["cached"]).collect();
    assert_eq!(cached, [false, true]);
    assert_eq!(fetches[0]["arguments"], json!({"city": "Kyiv", "days": 3}));
    assert_eq!(fetches[0]["columns"], json!(["city", "day", "high", "rain_mm"]));
    Ok(())
}

#[test]
fn variables_of_files_have_origins_across_cells() -> Result<()> {
    let fetches = b"days = weather.get_forecast('Kyiv')\n# %%\nrain = sum(day['rain_mm'] for day in days)\n";
    let (_folder, path) = folder(&[("fetch.py", fetches), ("use.py", b"wet = rain > 1\n")])?;
    let [fetch, using] = ["fetch.py", "use.py"].map(|name| path.join(name).display().to_string());
    let (code, report) = answer(&weather(["--json", "-f", &fetch, "-f", &using])?.run()?)?;
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(report["cells"].as_array().map(Vec::len), Some(3));
    for (name, producer) in [("days", &fetch), ("rain", &fetch), ("wet", &using)] {
        let origin = &report["origins"][name];
        assert_eq!(origin["producer"], **producer, "{origin}");
        let call = origin["fetches"][0].as_str().unwrap_or_default();
        assert!(
            call.starts_with("weather.get_forecast({\"city\":\"Kyiv\",\"days\":3}) at "),
            "{origin}"
        );
    }
    Ok(())
}

#[test]
fn tools_of_a_server_are_selected_under_another_name() -> Result<()> {
    let server = workspace_root().join("examples/notebook/weather.py");
    let config = |tool: &str| {
        format!(
            "mcp_servers: {{weather: {{command: [python3, {}], offer: on_request}}}}\n\
             connectors:\n  forecasts: {{type: mcp, server: weather, tools: [{tool}]}}\n",
            server.display()
        )
    };
    let (_folder, path) = folder(&[("cellblock.yaml", config("get_forecast").as_bytes())])?;
    let code = "['weather' in globals(), len(forecasts.get_forecast(city='Kyiv'))]";
    let finished = run(["--toolset", "notebook", "--json", "-c", code])?
        .folder(&path)
        .run()?;
    let (code, report) = answer(&finished)?;
    assert_eq!(
        (code, &report["outputs"][0]["value"]),
        (0, &json!("[False, 3]")),
        "{report:#}"
    );
    let check = |name: &'static str, path| Cli::new(["connector", "check", name]).folder(path).run();
    let finished = check("forecasts", &path)?;
    assert_eq!(finished.code(), 0, "{}{}", finished.stdout, finished.stderr);
    let (_folder, path) = folder(&[("cellblock.yaml", config("get_rain").as_bytes())])?;
    let finished = check("forecasts", &path)?;
    let text = finished.stdout + &finished.stderr;
    assert!(
        text.contains("the server `weather` offers no tool `get_rain`"),
        "{text}"
    );
    for (config, words) in [
        ("{type: mcp}", "missing key `server`"),
        ("{type: mcp, server: wether}", "`wether` is not in `mcp_servers`"),
        (
            "{type: mcp, server: weather, timeout: 1s}",
            "write it in `mcp_servers.weather`",
        ),
        (
            "{type: mcp, server: weather, tools: []}",
            "must have at least one tool",
        ),
    ] {
        let text =
            format!("mcp_servers: {{weather: {{command: [a]}}}}\nconnectors:\n  forecasts: {config}\n");
        let (_folder, path) = folder(&[("cellblock.yaml", text.as_bytes())])?;
        let finished = Cli::new(["config", "check"]).folder(path).run()?;
        assert!(finished.stderr.contains(words), "{words}: {}", finished.stderr);
    }
    Ok(())
}

#[test]
fn a_slow_tool_is_waited_for() -> Result<()> {
    let started = Instant::now();
    let finished = weather(["-c", "weather.slow(seconds=1.5); 1"])?.run()?;
    assert_eq!(
        (finished.code(), &*finished.stdout, &*finished.stderr),
        (0, "1\n", "")
    );
    assert!(started.elapsed() >= Duration::from_millis(1500));
    Ok(())
}

#[test]
fn the_example_prints_only_its_small_table() -> Result<()> {
    let (code, report) = answer(&weather(["--json", "rain.py"])?.run()?)?;
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(report["outputs"][0]["rows"], 5);
    assert_eq!(report["fetches"].as_array().map(Vec::len), Some(5));
    assert_eq!(report["fetches"][0]["row_count"], 365);
    Ok(())
}

/// The result of a cell, as a model with `cellblock mcp` reads it.
fn run_cell(code: &str) -> Result<Value> {
    let line = |id: u32, method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
    };
    let client = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"}});
    let lines = [
        line(1, "initialize", client),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
        line(
            2,
            "tools/call",
            json!({"name": "run_cell", "arguments": {"code": code, "timeout_seconds": 300}}),
        ),
    ];
    let mut server = Command::new(binary()?)
        .args(["mcp", "--toolset", "notebook"])
        .current_dir(workspace_root().join("examples/notebook"))
        .env("CELLBLOCK_HOME", home()?)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = server.stdin.take().context("no stdin")?;
    input.write_all((lines.join("\n") + "\n").as_bytes())?;
    // The server ends with its stdin, so it is kept open until the answer has come.
    let mut answers = BufReader::new(server.stdout.take().context("no stdout")?).lines();
    let ran = answers.find_map(|line| {
        let mut answer: Value = serde_json::from_str(&line.ok()?).ok()?;
        (answer["id"] == 2).then(|| answer["result"].take())
    });
    drop(input);
    server.wait()?;
    ran.context("no answer")
}

/// The tokens that a guide states after these words.
fn tokens_in(guide: &str, words: &str) -> Result<usize> {
    let (_, rest) = guide.split_once(words).with_context(|| format!("no `{words}`"))?;
    let number: String = rest
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == ',')
        .collect();
    Ok(number.replace(',', "").parse()?)
}

#[test]
fn the_guides_agent_saves_the_tokens_that_the_guide_states() -> Result<()> {
    const CHARS_PER_TOKEN: usize = 4;
    let folder = workspace_root().join("examples/notebook");
    let code = std::fs::read_to_string(folder.join("umbrellas.py"))?;
    let ran = run_cell(&code)?;
    assert_eq!(ran["isError"], json!(false), "{ran:#}");
    let content = ran["content"].as_array().context("no content")?;
    let read: usize = content
        .iter()
        .filter_map(|block| block["text"].as_str())
        .map(str::len)
        .sum();
    assert_eq!(ran["structuredContent"]["outputs"][0]["rows"], 5, "{ran:#}");
    let by_code = (code.len() + read) / CHARS_PER_TOKEN;

    // What the model would have read, had it called the ten tools itself.
    let count = "import json\ncities = ['Kyiv', 'Lviv', 'Odesa', 'Berlin', 'Paris']\n\
                 sum(len(json.dumps(f(city, days=365))) for city in cities for f in \
                 [weather.get_forecast, shop.get_sales])";
    let ran = run_cell(count)?;
    let results = ran["structuredContent"]["outputs"][0]["value"]
        .as_u64()
        .with_context(|| format!("no number: {ran:#}"))?;
    let by_model = usize::try_from(results)? / CHARS_PER_TOKEN;

    let guide = std::fs::read_to_string(workspace_root().join("docs/guides/notebook.md"))?;
    for (words, measured) in [
        ("results itself reads about ", by_model),
        ("with its code about ", by_code),
    ] {
        let stated = tokens_in(&guide, words)?;
        assert!(
            stated.abs_diff(measured) * 20 <= measured,
            "{words}{stated}: {measured} were measured"
        );
    }
    Ok(())
}

/// A server whose tools do what a server must not.
const BROKEN: &[u8] = br#"
import base64, json, os, sys, time, urllib.parse
key = os.environ["API_KEY"]
names = ["echo", "huge", "die", "hang", "invalid", "mistyped", "fail", "text"]
tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
tools[names.index("mistyped")]["outputSchema"] = {"type": "object", "required": ["n"]}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"error": {"code": -32601, "message": "no"}}
    if message["method"] == "initialize":
        answer = {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                             "serverInfo": {"name": "t", "version": "1"}}}
    elif message["method"] == "tools/list":
        answer = {"result": {"tools": tools}}
    elif message["method"] == "tools/call":
        name = message["params"]["name"]
        if name == "die":
            os._exit(3)
        if name == "hang":
            time.sleep(3600)
        if name == "invalid":
            print("{]", flush=True)
            continue
        value = {
            "echo": [key, urllib.parse.quote(key, safe=""),
                     base64.b64encode(("u:" + key).encode()).decode(), {key: 1}],
            "huge": "x" * (2 << 20), "mistyped": {"m": 1},
        }.get(name, "plain")
        answer = {"result": {"content": [], "structuredContent": value}}
        if name == "fail":
            text = "api_key " + key + " is not registered"
            answer = {"result": {"content": [{"type": "text", "text": text}], "isError": True}}
        elif name == "text":
            answer = {"error": {"code": -32602, "message": "bad key " + key}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"#;
const BROKEN_CONFIG: &[u8] = b"
mcp_servers:
  broken:
    command: [python3, broken.py]
    env_from: {API_KEY: CELLBLOCK_TEST_API_KEY}
    offer: code
    timeout: 2s
    max_result: 1MiB
";

#[test]
fn a_broken_server_is_a_typed_error_and_the_kernel_lives() -> Result<()> {
    let key = "hunter2/and+more";
    let (_folder, path) = folder(&[("broken.py", BROKEN), ("cellblock.yaml", BROKEN_CONFIG)])?;
    let code = "got = {}\nfor name in ['huge', 'mistyped', 'fail', 'text', 'hang', 'die', \
                'invalid']:\n    try:\n        got[name] = broken[name]()\n    except \
                cellblock.ConnectorError as error:\n        got[name] = f'{type(error).__name__}: \
                {error}'\n\
                print(got)\nstr(broken.echo())";
    let finished = run(["--toolset", "notebook", "--json", "-c", code])?
        .env("CELLBLOCK_TEST_API_KEY", key)
        .folder(path)
        .run()?;
    assert!(!finished.stdout.contains("hunter2"), "{}", finished.stdout);
    assert!(!finished.stderr.contains("hunter2"), "{}", finished.stderr);
    let (code, report) = answer(&finished)?;
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(
        report["outputs"][0]["value"],
        "['[redacted]', '[redacted]', 'dTp[redacted]', {'[redacted]': 1}]"
    );
    let outcomes: Vec<&Value> = report["fetches"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|fetch| &fetch["outcome"])
        .collect();
    assert_eq!(
        outcomes,
        [
            "provider",
            "parse",
            "provider",
            "invalid_parameter",
            "timeout",
            "provider",
            "parse",
            "ok"
        ],
        "{report:#}"
    );
    let printed = report["stdout"].as_str().unwrap_or_default();
    for words in [
        "the limit of 1 MiB",
        "broken.fail: api_key [redacted] is not registered",
        "bad key [redacted]",
        "`hang` within 2 s, the limit `timeout`",
    ] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
    Ok(())
}

#[test]
fn options_of_another_toolset_are_rejected() -> Result<()> {
    for (arguments, told) in [
        (
            &["--toolset", "notebook", "--require-inputs", "-c", "1"][..],
            "are for `--toolset derivation`",
        ),
        (
            &["--toolset", "notebook", "--config", "nowhere.yaml", "-c", "1"],
            "nowhere.yaml",
        ),
        (
            &[
                "--toolset",
                "derivation",
                "--config",
                "x.yaml",
                "--contract",
                "x",
                "-c",
                "1",
            ],
            "`--config` is for `--toolset notebook`",
        ),
    ] {
        let finished = run(arguments.iter().copied())?.run()?;
        assert!(finished.stderr.contains(told), "{}", finished.stderr);
        assert_ne!(finished.code(), 0);
    }
    Ok(())
}
