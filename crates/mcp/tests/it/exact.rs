//! Values of Python arrive as they are, or are refused by name: random values through `set_result`, aliases,
//! charts and the protocol.

use rmcp::model::CallToolResult;
use serde_json::{Value, json};

use crate::support::{
    Client, McpConnection, all, answer, block_on, connect, done, newest, refused, server, text,
};

/// Makes the values, and says what has to become of each; every value belongs to its seed.
const VALUES: &str = include_str!("random_values.py");
const SEEDS: u64 = 600;
/// Integers beyond 2^53 are text in the data, because clients in JavaScript round them.
const PORTABLE: &str = "def portable(value):\n    if isinstance(value, dict): return \
                        {key: portable(it) for key, it in value.items()}\n    if isinstance(value, list): \
                        return [portable(it) for it in value]\n    large = isinstance(value, int) and not \
                        isinstance(value, bool) and abs(value) > 2 ** 53 - 1\n    return str(value) if \
                        large else value\n";

/// A client whose answers hold whatever was computed, and a session with a recorded result.
async fn start() -> (McpConnection, String) {
    let server = server(|options| {
        all(options);
        options.max_tokens = 4_000_000;
    })
    .await;
    let client = connect(&server, Client::default(), newest()).await;
    let recorded = done(&client, "record_result", json!({"tool": "seed", "result": 0})).await;
    let session = recorded["session_id"].as_str().unwrap().to_owned();
    (client, session)
}

async fn derive(client: &McpConnection, session: &str, code: &str, artifacts: &[&str]) -> Value {
    let contract =
        json!({"operation": "o", "reason": "r", "inputAliases": ["seed_1"], "expectedArtifacts": artifacts});
    let arguments = json!({"session_id": session, "code": code, "postProcessingContract": contract});
    let answered: CallToolResult = answer(client, "code_interpreter", arguments).await;
    assert_eq!(answered.is_error, Some(false), "{:.3000}", text(&answered));
    let data = answered.structured_content.unwrap();
    assert_eq!(data["ok"], true, "{}", data["error"]);
    data
}

/// Sends data back as another tool's result.
async fn echo(client: &McpConnection, session: &str, tool: &str, data: Value) {
    let arguments = json!({"session_id": session, "tool": tool, "result": data});
    done(client, "record_result", arguments).await;
}

fn count(findings: &Value, code: &str) -> u64 {
    let found = findings
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["code"] == code);
    found.map(|it| it["details"]["count"].as_u64().unwrap()).sum()
}

#[test]
fn random_values_arrive_unchanged_or_are_rejected_by_name() {
    block_on(async {
        let (client, session) = start().await;
        let make = format!(
            "{VALUES}\nvalues, wanted, absent, refused = check(0, {SEEDS}, set_result)\n\
             set_result(values)\nprint(len(values), refused, absent)"
        );
        let answer = derive(&client, &session, &make, &[]).await;
        let told = answer["stdout"][0].as_str().unwrap();
        let counts: Vec<u64> = told.split(' ').map(|it| it.parse().unwrap()).collect();
        assert_eq!(counts[0] + counts[1], SEEDS);
        assert!(
            counts[1] > SEEDS / 20 && counts[0] > SEEDS / 2 && counts[2] > 0,
            "{told}"
        );
        assert_eq!(count(&answer["findings"], "missing_values_to_null"), counts[2]);

        echo(&client, &session, "echo", answer["result"].clone()).await;
        let compare = "import json\n\
                       def compare(got, name):\n    \
                       for number, (one, want) in enumerate(zip(got, wanted, strict=True)):\n        \
                       one, want = json.dumps(one), json.dumps(want)\n        \
                       assert one == want, f'{name}, value {number}: {one:.500} instead of {want:.500}'\n\
                       compare(code_interpreter_1, 'alias')\n\
                       wanted = portable(json.loads(json.dumps(wanted)))\n\
                       compare(echo_1, 'protocol')\n\
                       set_result(len(wanted))";
        let compared = derive(&client, &session, &format!("{PORTABLE}{compare}"), &[]).await;
        assert_eq!(compared["result"], counts[0]);
    });
}

#[test]
fn random_rows_of_charts_arrive_unchanged() {
    block_on(async {
        let (client, session) = start().await;
        let make = format!(
            "{VALUES}\nSPEC = {{'type': 'scatter', 'xKey': 'at', 'series': [{{'key': '7'}}]}}\n\
             wanted, infinite = [], 0\n\
             for seed, form in enumerate(['rows', 'columns', 'frame']):\n    data, want, lost = \
             chart(seed, form)\n    render_chart(SPEC, data, title=form)\n    wanted.append(want)\n    \
             infinite += lost\n\
             for data in ([{{1: 1, '1': 2}}], {{1: [1], '1': [2]}}, pd.DataFrame([[1, 2]], \
             columns=pd.Index([1, '1'], dtype=object))):\n    try:\n        render_chart(SPEC, data)\n    \
             except TypeError as error:\n        assert \"1 and '1', both of them '1' as text\" in \
             str(error), error\n    else:\n        raise AssertionError('not refused')\n\
             set_result(infinite)"
        );
        let answer = derive(&client, &session, &make, &["chart"]).await;
        let charts = answer["artifacts"].as_array().unwrap();
        assert_eq!(charts.len(), 3);
        assert_eq!(
            count(&answer["findings"], "infinite_values_to_null"),
            answer["result"].as_u64().unwrap()
        );
        let rows: Value = charts.iter().map(|it| it["data"].clone()).collect();
        echo(&client, &session, "charts", rows).await;
        let compare = "import json\n\
                       for got, want in zip(charts_1, wanted, strict=True):\n    for one, row in zip(got, \
                       want, strict=True):\n        one, row = json.dumps(one, sort_keys=True), \
                       json.dumps(portable(row), sort_keys=True)\n        assert one == row, f'{one} \
                       instead of {row}'\n\
                       set_result(len(wanted))";
        let compared = derive(&client, &session, &format!("{PORTABLE}{compare}"), &[]).await;
        assert_eq!(compared["result"], 3);
    });
}

#[test]
fn a_frame_keeps_the_order_of_its_columns_in_data_and_in_text() {
    block_on(async {
        let (client, session) = start().await;
        let rows = json!([{"zeta": 1, "alpha": 2, "mid": 3}]);
        echo(&client, &session, "rows", rows.clone()).await;
        let code = "set_result(pd.DataFrame(rows_1)[['mid', 'zeta', 'alpha']])\n\
                    assert list(rows_1[0]) == ['zeta', 'alpha', 'mid']";
        let derived = derive(&client, &session, code, &[]).await;
        assert_eq!(derived["result"].to_string(), r#"[{"mid":3,"zeta":1,"alpha":2}]"#);
    });
}

#[test]
fn a_number_that_lost_digits_is_rejected_with_its_path() {
    block_on(async {
        let (client, session) = start().await;
        let code = "set_result({'supply': [1.7976931348623157e308, 1e22]})";
        let derived = derive(&client, &session, code, &[]).await;
        assert_eq!(
            derived["result"].to_string(),
            r#"{"supply":[1.7976931348623157e+308,1e+22]}"#
        );
        let code = "assert code_interpreter_1 == {'supply': [1.7976931348623157e308, 1e22]}";
        derive(&client, &session, code, &[]).await;

        let result: Value =
            serde_json::from_str(r#"{"mean": 0.5, "supply": [1, 1180591620717411303424]}"#).unwrap();
        let arguments = json!({"session_id": session, "tool": "token", "result": result});
        let told = refused(&client, "record_result", arguments).await;
        assert!(
            told.contains("`result.supply[1]`") && told.contains("as text"),
            "{told}"
        );
    });
}
