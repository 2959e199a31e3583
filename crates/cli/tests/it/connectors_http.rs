//! `connectors` of the type `http`: code calls an API through the host.

use anyhow::Result;
use cellblock_testkit::Cli;
use serde_json::json;

use crate::api::{Api, KEY};
use crate::support::{answer, check_rejected, folder, run};

/// A folder with a configuration for the server.
fn configured(api: &Api) -> Result<(tempfile::TempDir, std::path::PathBuf)> {
    folder(&[("cellblock.yaml", api.config().as_bytes())])
}

fn notebook(api: &Api, code: &str) -> Result<(i32, serde_json::Value)> {
    let (_folder, path) = configured(api)?;
    let finished = run(["--toolset", "notebook", "--json", "-c", code])?
        .env("CELLBLOCK_TEST_API_KEY", KEY)
        .folder(path)
        .run()?;
    for text in [&finished.stdout, &finished.stderr] {
        assert!(!text.contains("hunter2"), "{text}");
    }
    answer(&finished)
}

#[test]
fn rows_of_an_api_are_a_data_frame_and_equal_calls_one_request() -> Result<()> {
    let api = Api::start()?;
    let code = "gdp = fred.series('GDPC1')\nagain = fred.series(series_id='GDPC1', since=None)\n\
                [str(gdp.dtypes['value']), gdp['value'].isna().tolist(), str(gdp['date'][0])[:10], \
                gdp.equals(again)]";
    let (code, report) = notebook(&api, code)?;
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(
        report["outputs"][0]["value"], "['float64', [False, True], '2026-01-01', True]",
        "{report:#}"
    );
    assert_eq!(api.count(), 1);
    let fetch = &report["fetches"][1];
    assert_eq!((&fetch["cached"], &fetch["row_count"]), (&json!(true), &json!(2)));
    assert_eq!(fetch["columns"], json!(["date", "value"]));
    Ok(())
}

#[test]
fn the_calls_of_a_cell_are_shown_where_that_is_asked_for() -> Result<()> {
    let api = Api::start()?;
    let code = "for call in [lambda: fred.series('GDPC1'), lambda: fred.series('GDPC1'), lambda: \
                fred.denied()]:\n    try:\n        call()\n    except cellblock.ConnectorError:\n        \
                pass";
    let (_folder, path) = configured(&api)?;
    let shown = |options: &[&str]| {
        run([&["--toolset", "notebook", "-c", code], options].concat())?
            .env("CELLBLOCK_TEST_API_KEY", KEY)
            .folder(path.clone())
            .run()
    };
    let finished = shown(&["--fetches"])?;
    assert_eq!(finished.code(), 0, "{finished:?}");
    let calls: Vec<_> = finished
        .stderr
        .lines()
        .filter(|line| line.starts_with("fred."))
        .collect();
    let [first, second, third] = calls[..] else {
        panic!("{finished:?}");
    };
    assert!(
        first.starts_with("fred.series({") && first.contains("\"GDPC1\""),
        "{first}"
    );
    assert!(
        first.contains("2 rows, ") && first.contains(" ms") && !first.contains("cached"),
        "{first}"
    );
    assert!(second.ends_with(" ms, cached"), "{second}");
    assert!(
        third.contains("unauthorized: fred.denied: the server answered 401"),
        "{third}"
    );
    assert!(!shown(&[])?.stderr.contains("fred."));
    Ok(())
}

#[test]
fn a_key_that_an_api_repeats_is_removed_and_errors_are_typed() -> Result<()> {
    let api = Api::start()?;
    let code = "got = [fred.echo('x y')['head']]\n\
                for call in [lambda: fred.denied(), lambda: fred.series('much-too-long'), lambda: \
                fred.echo('../x'), lambda: inward.get()]:\n    try:\n        got.append(call())\n    \
                except cellblock.ConnectorError as error:\n        got.append(f'{type(error).__name__}: \
                {error}')\n\
                print(*got, sep='\\n')";
    let (code, report) = notebook(&api, code)?;
    assert_eq!(code, 0, "{report:#}");
    let printed = report["stdout"].as_str().unwrap_or_default();
    for words in [
        "GET /fred/echo/x%20y?api_key=[redacted]",
        "x-api-key: [redacted]",
        "UnauthorizedError: fred.denied: the server answered 401 Unauthorized: \
         {\"error\":\"api_key [redacted] is not registered\"}",
        "InvalidParameterError: fred.series: `series_id`",
        "InvalidParameterError: fred.echo: `id` is a part of the path",
        "ProviderError: inward.get: `localhost` has the private address",
    ] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
    assert_eq!(api.count(), 2);
    Ok(())
}

#[test]
fn mistakes_of_connectors_are_reported_with_their_lines() -> Result<()> {
    let cases = [
        (
            "print: {type: http, base_url: 'https://a.example', functions: {f: {get: /x}}}",
            "`connectors.print`: the name is",
        ),
        ("fred: {type: soap}", "`connectors.fred.type`"),
        (
            "fred: {typ: http, base_url: 'https://a.example', functions: {f: {get: /x}}}",
            "`connectors.fred.typ`: unknown key; did you mean `type`?",
        ),
        (
            "fred: {type: http, base_url: 'https://a.example'}",
            "missing key `functions`",
        ),
        (
            "fred: {type: http, base_url: 'http://10.0.0.1/', functions: {f: {get: /x}}}",
            "`connectors.fred.base_url`: is a private address",
        ),
        (
            "fred: {type: http, base_url: 'https://a.example', functions: {f: {post: /x}}}",
            "`connectors.fred.functions.f`: requests other than GET",
        ),
        (
            "fred: {type: http, base_url: 'https://a.example', headers: {Authorization: abc}, \
             functions: {f: {get: /x}}}",
            "must not contain secrets",
        ),
        (
            "fred: {type: http, base_url: 'https://a.example', retires: {count: 1}, \
             functions: {f: {get: /x}}}",
            "`connectors.fred.retires`: unknown key; did you mean `retries`?",
        ),
        (
            "fred: {type: http, base_url: 'https://a.example', functions: {f: {get: /x, headder: {}}}}",
            "`connectors.fred.functions.f.headder`: unknown key; did you mean `headers`?",
        ),
        (
            "fred: {type: http, base_url: 'https://a.example', retries: {count: many}, \
             functions: {f: {get: /x}}}",
            "`connectors.fred.retries.count`: expected a whole number of at least 0, found the string `many`",
        ),
        (
            "fred: {type: http, base_url: 'https://a.example', memo: maybe, functions: {f: {get: /x}}}",
            "`maybe` is none of `off`, `session` and a time such as `15m`",
        ),
        (
            "fred: {type: http, base_url: 'https://a.example', rate: often, functions: {f: {get: /x}}}",
            "`often` is not a rate",
        ),
        (
            "fred: {type: http, base_url: 'https://a.example', \
             secrets: {k: {env: CELLBLOCK_TEST_UNSET}}, functions: {f: {get: /x}}}",
            "`CELLBLOCK_TEST_UNSET` is not set",
        ),
        (
            "fred: {type: http, base_url: 'https://a.example', secrets: {k: {file: short}}, \
             functions: {f: {get: /x}}}",
            "shorter than 6 bytes",
        ),
        (
            "fred: {type: http, base_url: 'https://a.example', functions: {f: {get: /x, result: {rows: x}}}}",
            "`x` is not a JSONPath",
        ),
    ];
    check_rejected(
        &["run", "--toolset", "notebook", "-c", "1"],
        &[("short", b"abc")],
        &cases,
    )
}

/// `cellblock connector` with the configuration of the server.
fn connector(api: &Api, arguments: &[&str]) -> Result<cellblock_testkit::CommandOutput> {
    let (_folder, path) = configured(api)?;
    let cli = Cli::new(["connector"].iter().chain(arguments).copied());
    let finished = cli.env("CELLBLOCK_TEST_API_KEY", KEY).folder(path).run()?;
    for text in [&finished.stdout, &finished.stderr] {
        assert!(!text.contains("hunter2"), "{text}");
    }
    Ok(finished)
}

#[test]
fn functions_are_listed_and_shown_without_a_request() -> Result<()> {
    let api = Api::start()?;
    let listed = connector(&api, &["list"])?;
    assert!(
        listed
            .stdout
            .contains("fred.series  series_id [since]  Observations of one series."),
        "{}",
        listed.stdout
    );
    let shown = connector(&api, &["show", "fred.series", "--json"])?.json()?;
    let functions = &shown["connectors"][0]["functions"];
    assert_eq!(functions.as_array().map(Vec::len), Some(1), "{shown:#}");
    assert_eq!(functions[0]["parameters"]["required"], json!(["series_id"]));
    assert_eq!(api.count(), 0);
    for (name, told) in [
        ("nowhere", "the configuration has fred, inward"),
        ("fred.none", "has no function `none`"),
    ] {
        let refused = connector(&api, &["show", name])?;
        assert_eq!(refused.code(), 2);
        assert!(refused.stderr.contains(told), "{}", refused.stderr);
    }
    Ok(())
}

#[test]
fn a_call_from_a_shell_has_the_checks_and_the_exit_code_of_its_end() -> Result<()> {
    let api = Api::start()?;
    let called = connector(&api, &["call", "fred.series", "series_id=2026", "--json"])?;
    let report = called.json()?;
    assert_eq!(
        (&report["rows"], &report["cached"]),
        (&json!(2), &json!(false)),
        "{report:#}"
    );
    // The parameter is text, though the argument looks like a number.
    assert_eq!(report["arguments"], json!({"series_id": "2026", "since": null}));
    let called = connector(&api, &["call", "fred.series", "series_id=GDPC1"])?;
    assert_eq!(
        (called.code(), &*called.stdout),
        (
            0,
            "{\"date\":\"2026-01-01\",\"value\":1.5}\n{\"date\":\"2026-04-01\",\"value\":null}\n2 rows\n"
        )
    );
    for (arguments, code, told) in [
        (&["fred.echo", "id=x"][..], 0, "api_key=[redacted]"),
        (
            &["fred.denied"],
            1,
            "unauthorized: fred.denied: the server answered 401",
        ),
        (&["fred.series"], 2, "missing properties"),
        (
            &["fred.series", "series_id=much-too-long"],
            2,
            "invalid_parameter: fred.series",
        ),
        (&["fred.none"], 2, "has no function `none`"),
        (&["fred"], 2, "`fred` is not a function"),
        (&["inward.get"], 1, "has the private address"),
    ] {
        let called = connector(&api, &[&["call"], arguments].concat())?;
        let text = called.stdout.clone() + &called.stderr;
        assert!(text.contains(told), "{told}: {text}");
        assert_eq!(called.code(), code, "{text}");
    }
    Ok(())
}

#[test]
fn a_check_reaches_each_connector_once_and_without_secrets() -> Result<()> {
    let api = Api::start()?;
    let checked = connector(&api, &["check", "--json"])?;
    let report = checked.json()?;
    assert_eq!((checked.code(), api.count()), (1, 1), "{report:#}");
    assert_eq!(
        report["connectors"][0],
        json!({"name": "fred", "reached": true, "error": null})
    );
    let error = report["connectors"][1]["error"].as_str().unwrap_or_default();
    assert!(error.contains("has the private address"), "{error}");
    assert_eq!(connector(&api, &["check", "fred"])?.code(), 0);
    Ok(())
}
