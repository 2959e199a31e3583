//! Cells that derive from tool results under a contract.

use std::time::Duration;

use cellblock_artifact::ArtifactEnvelope;
use cellblock_interpreter::Output;
use cellblock_interpreter::alias::{AliasStore, Bounds};
use cellblock_interpreter::contract::ContractPolicy;
use cellblock_interpreter::derivation::{ChartCall, DerivationPolicy, LowCoverage};
use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::input::InputFormat;
use cellblock_interpreter::session::SessionOptions;
use cellblock_testkit::wait::until;
use serde_json::json;

use crate::support::{block_on, interpreter};

mod fixture;

use fixture::{call, codes, derivation, derive, prices, result};

#[test]
fn every_alias_is_bound_as_it_was_recorded_and_written_into_the_sandbox() {
    block_on(async {
        let derivation = derivation(DerivationPolicy::default()).await;
        let code = "import json\n\
                    written = json.load(open('/cellblock/inputs.json'))\n\
                    set_result({'same': written == dict(inputs), 'names': list(inputs), \
                    'rows': get_prices_1, 'name': get_name_1})";
        let found = result(&derivation, code).await;
        assert_eq!(
            found,
            json!({
                "same": true,
                "names": ["get_prices_1", "get_name_1"],
                "rows": prices(),
                "name": {"name": "é", "big": 12_345_678_901_234_567_890_u64},
            })
        );
        let refused = derive(&derivation, "open('/cellblock/inputs.json', 'w')", &[]).await;
        assert!(refused.error().unwrap().message.starts_with("OSError"));
    });
}

#[test]
fn local_names_are_bound_besides_and_each_call_finds_data_as_recorded() {
    block_on(async {
        let derivation = derivation(DerivationPolicy::default()).await;
        let mut named = call("prices.clear(); set_result(prices is get_prices_1)", &[]);
        named
            .inputs
            .insert("prices".to_owned(), "get_prices_1".to_owned());
        let derived = derivation.derive(&named).await.unwrap();
        assert_eq!(derived.result, Some(json!(true)));
        let bound: Vec<_> = derived
            .inputs
            .iter()
            .map(|it| (it.name.as_str(), it.rows))
            .collect();
        assert_eq!(bound, [("get_prices_1", Some(28)), ("prices", Some(28))]);
        let after = "set_result([len(get_prices_1), 'prices' in inputs])";
        assert_eq!(result(&derivation, after).await, json!([28, false]));
    });
}

#[test]
fn a_result_gets_an_alias_and_can_be_derived_from() {
    block_on(async {
        let derivation = derivation(DerivationPolicy::default()).await;
        let first = derive(
            &derivation,
            "kept = 2\nset_result({'a': [1]})\nset_result({'a': [1, kept]})",
            &[],
        )
        .await;
        assert_eq!(first.output_alias.as_deref(), Some("code_interpreter_1"));
        let code = "set_result([code_interpreter_1['a'], kept])";
        assert_eq!(result(&derivation, code).await, json!([[1, 2], 2]));
    });
}

#[test]
fn a_result_that_cannot_be_recorded_is_answered_all_the_same() {
    block_on(async {
        let store = interpreter().await.store().clone();
        let bounds = Bounds {
            count: 1,
            ..Bounds::default()
        };
        let aliases = AliasStore::new(store, format!("it-full-{}", std::process::id()), bounds);
        aliases.record("get_prices", &prices()).await.unwrap();
        let derivation = interpreter()
            .await
            .derivation(aliases, DerivationPolicy::default())
            .await
            .unwrap();
        let derived = derive(&derivation, "set_result(5)", &[]).await;
        assert_eq!((derived.result, derived.output_alias), (Some(json!(5)), None));
        assert_eq!(derived.findings[0].code, "result_not_recorded");
    });
}

#[test]
fn a_tool_result_that_comes_later_is_bound_in_the_next_call() {
    block_on(async {
        let derivation = derivation(DerivationPolicy::default()).await;
        result(&derivation, "set_result(1)").await;
        derivation
            .aliases()
            .record("get_late", &json!([7]))
            .await
            .unwrap();
        assert_eq!(result(&derivation, "set_result(get_late_1)").await, json!([7]));
    });
}

#[test]
fn a_call_that_breaks_its_form_takes_no_sandbox_and_costs_an_attempt() {
    block_on(async {
        let derivation = derivation(DerivationPolicy::default()).await;
        let mut wrong = call("set_result(1)", &["picture"]);
        wrong.contract["inputAliases"] = json!(["get_price_1"]);
        wrong.contract["operation"] = json!(" ");
        let derived = derivation.derive(&wrong).await.unwrap();
        assert_eq!(
            codes(&derived),
            ["empty_field", "unknown_alias", "unknown_artifact_kind"]
        );
        assert_eq!(derived.attempts_left, 4);
        let alias = &derived.rejections()[1];
        assert_eq!(alias.field.as_deref(), Some("inputAliases[0]"));
        assert_eq!(alias.valid, ["get_prices_1", "get_name_1"]);
        assert!(derived.execution.is_none());
        let before = derivation.session().prepare().await.unwrap();
        assert!(before.made, "the refused call has made a sandbox");
    });
}

#[test]
fn an_empty_map_of_inputs_is_refused_where_the_policy_asks_for_one() {
    block_on(async {
        let policy = DerivationPolicy {
            contract: ContractPolicy {
                require_inputs: true,
                ..ContractPolicy::default()
            },
            ..DerivationPolicy::default()
        };
        let derivation = derivation(policy).await;
        let derived = derive(&derivation, "set_result(1)", &[]).await;
        assert_eq!(derived.rejections()[0].field.as_deref(), Some("inputs"));
    });
}

#[test]
fn what_was_declared_has_to_be_emitted_and_nothing_else() {
    block_on(async {
        let derivation = derivation(DerivationPolicy::default()).await;
        let chart = "render_chart({'type': 'line', 'xKey': 'day', 'series': [{'key': 'price'}]}, \
                     get_prices_1, title='Prices')\n";
        let figure = "plt.plot([1, 2]); save_figure('two points', 'Points')\n";
        for (code, expected, code_of) in [
            ("set_result(1)", &["image"][..], "artifact_not_emitted"),
            ("plt.plot([1, 2])", &["image"], "artifact_not_emitted"),
            (figure, &[], "artifact_not_declared"),
            (chart, &["image"], "wrong_artifact_kind"),
        ] {
            let derived = derive(&derivation, code, expected).await;
            assert_eq!(codes(&derived), [code_of], "{code}");
            assert!(
                derived.artifacts.is_empty() && derived.execution.is_some(),
                "{code}"
            );
        }
        let both = derive(
            &derivation,
            &format!("{figure}{chart}set_result(1)"),
            &["image", "chart"],
        )
        .await;
        assert!(both.ok(), "{:?}", both.error());
        assert_eq!(both.attempts_left, 5, "a success clears the count");
        let [ArtifactEnvelope::Image(image), ArtifactEnvelope::Chart(chart)] = &both.artifacts[..] else {
            panic!("{:?}", both.artifacts);
        };
        assert_eq!(
            (image.alt.as_deref(), image.title.as_deref()),
            (Some("two points"), Some("Points"))
        );
        assert!(image.width.is_some() && image.bytes > 1000);
        assert_eq!(chart.title.as_deref(), Some("Prices"));
        assert_eq!(chart.data.as_array().unwrap().len(), 28);
        assert_eq!(chart.note, None);
        let store = interpreter().await.store();
        let picture = chart.picture.as_ref().unwrap();
        let png = store.get(picture.sha256).await.unwrap();
        assert_eq!(
            (&png[1..4], &png[16..20], picture.bytes),
            (
                &b"PNG"[..],
                &picture.width.unwrap().to_be_bytes()[..],
                png.len() as u64
            )
        );
        for artifact in &both.artifacts {
            let bytes = store.get(artifact.id()).await.unwrap();
            assert_eq!(cellblock_artifact::ArtifactId::of(&bytes), artifact.id());
        }
    });
}

#[test]
fn more_artifacts_than_a_response_may_have_are_refused() {
    block_on(async {
        let derivation = derivation(DerivationPolicy::default()).await;
        let code = "for n in range(5):\n    plt.figure(); plt.plot([n]); save_figure(f'number {n}')";
        let derived = derive(&derivation, code, &["image"]).await;
        assert_eq!(codes(&derived), ["too_many_artifacts"]);
    });
}

#[test]
fn a_mistake_in_a_chart_is_raised_where_it_is_made() {
    block_on(async {
        let derivation = derivation(DerivationPolicy::default()).await;
        let code =
            "\nrender_chart({'type': 'line', 'xKey': 'day', 'series': [{'key': 'prise'}]}, get_prices_1)";
        let derived = derive(&derivation, code, &["chart"]).await;
        assert_eq!(derived.outcome, Outcome::Raised);
        let error = derived.error().unwrap();
        assert_eq!(error.line, Some(2));
        assert!(
            error.message.contains("series[0].key") && error.message.contains("price"),
            "{}",
            error.message
        );
        assert!(
            error.message.ends_with("4 attempts are left"),
            "{}",
            error.message
        );
    });
}

#[test]
fn a_line_with_gaps_is_a_finding_and_a_mistake_if_the_policy_says_so() {
    const CODE: &str = "days = pd.date_range('2025', periods=100)\n\
                        sparse = np.full(100, np.nan); sparse[::5] = 1\n\
                        plt.plot(days, np.arange(100), label='whole'); plt.plot(days, sparse, \
                        label='sparse')\n\
                        save_figure('two lines')\n\
                        rows = [{'day': str(d.date()), 'whole': 1, 'thin': 2 if n % 4 == 0 else None} for \
                        n, d in enumerate(days)]\n\
                        render_chart({'type': 'line', 'xKey': 'day', 'xAxis': {'type': 'time'}, \
                        'series': [{'key': 'whole'}, {'key': 'thin', 'label': 'Thin'}]}, rows)";
    block_on(async {
        let reporting = derivation(DerivationPolicy::default()).await;
        let derived = derive(&reporting, CODE, &["image", "chart"]).await;
        assert!(derived.ok(), "{:?}", derived.error());
        let low: Vec<_> = derived
            .findings
            .iter()
            .filter(|it| it.code == "low_coverage")
            .map(|it| {
                (
                    it.series.as_deref().unwrap(),
                    it.details["coverage"].as_f64().unwrap(),
                )
            })
            .collect();
        assert_eq!(low, [("sparse", 0.2), ("Thin", 0.25)]);
        let strict = derivation(DerivationPolicy {
            low_coverage: LowCoverage::Reject,
            ..DerivationPolicy::default()
        })
        .await;
        let derived = derive(&strict, CODE, &["image", "chart"]).await;
        assert_eq!(codes(&derived), ["low_coverage", "low_coverage"]);
        assert!(derived.rejections()[0].message.contains("`sparse`"));
        let lenient = derivation(DerivationPolicy {
            low_coverage: LowCoverage::Reject,
            coverage_threshold: 0.1,
            ..DerivationPolicy::default()
        })
        .await;
        assert!(derive(&lenient, CODE, &["image", "chart"]).await.ok());
    });
}

#[test]
fn text_dates_and_charts_of_altair_tell_their_gaps() {
    block_on(async {
        let derivation = derivation(DerivationPolicy::default()).await;
        let rows = "days = [row['day'] for row in get_prices_1]\n\
                    values = [row['price'] if at % 9 == 0 else None for at, row in \
                    enumerate(get_prices_1)]\n";
        for draw in [
            "plt.plot(days, values, label='gaps'); save_figure('lines')",
            "frame = pd.DataFrame({'day': days, 'gaps': values})\n\
             save_figure('lines', fig=alt.Chart(frame).mark_line().encode(x='day:T', y='gaps:Q'))",
        ] {
            let derived = derive(&derivation, &format!("{rows}{draw}"), &["image"]).await;
            assert!(derived.ok(), "{:?}", derived.error());
            let found: Vec<_> = derived
                .findings
                .iter()
                .map(|it| (it.code.as_str(), it.series.as_deref()))
                .collect();
            assert_eq!(found, [("low_coverage", Some("gaps"))], "{draw}");
        }
    });
}

#[test]
fn attempts_run_out_and_then_nothing_starts() {
    block_on(async {
        let policy = DerivationPolicy {
            max_attempts: 2,
            ..DerivationPolicy::default()
        };
        let derivation = derivation(policy).await;
        assert_eq!(derive(&derivation, "1/0", &[]).await.attempts_left, 1);
        assert_eq!(derive(&derivation, "1/0", &[]).await.attempts_left, 0);
        let derived = derive(&derivation, "set_result(1)", &[]).await;
        assert_eq!(codes(&derived), ["attempts_exhausted"]);
        assert!(derived.execution.is_none());
    });
}

#[test]
fn a_chart_of_one_alias_is_drawn_outside_the_sandbox_of_code() {
    block_on(async {
        let derivation = derivation(DerivationPolicy::default()).await;
        let mut call = ChartCall {
            alias: "get_prices_1".to_owned(),
            spec: json!({"type": "bar", "xKey": "day", "series": [{"key": "volume"}]}),
            path: None,
            title: Some("Volume".to_owned()),
            alt: None,
        };
        let drawn = derivation.render_chart(&call).await.unwrap();
        assert!(drawn.ok(), "{:?}", drawn.error());
        let [ArtifactEnvelope::Chart(chart)] = &drawn.artifacts[..] else {
            panic!("{:?}", drawn.artifacts);
        };
        let picture = chart.picture.as_ref().unwrap();
        assert_eq!((picture.media_type.as_str(), &chart.note), ("image/png", &None));
        assert!(picture.bytes > 1000 && picture.width > Some(720) && picture.height > Some(400));
        call.spec["series"][0]["key"] = json!("volum");
        let wrong = derivation.render_chart(&call).await.unwrap();
        assert_eq!(wrong.rejections()[0].field.as_deref(), Some("spec.series[0].key"));
        assert_eq!(wrong.attempts_left, 4);
        call.alias = "get_nothing_1".to_owned();
        assert_eq!(
            codes(&derivation.render_chart(&call).await.unwrap()),
            ["unknown_alias"]
        );
        assert!(derivation.session().prepare().await.unwrap().made);
    });
}

#[test]
fn a_result_that_json_cannot_hold_or_that_is_too_large_can_be_repaired() {
    block_on(async {
        let derivation = derivation(DerivationPolicy::default()).await;
        let derived = derive(&derivation, "set_result({'model': object()})", &[]).await;
        let message = derived.error().unwrap().message;
        assert!(message.contains("result['model'] is an object"), "{message}");
        let derived = derive(&derivation, "set_result('x' * 5_000_000)", &[]).await;
        let message = derived.error().unwrap().message;
        assert!(
            message.contains("5000002 bytes as JSON, the limit is 4194304"),
            "{message}"
        );
    });
}

#[test]
fn twenty_megabytes_of_rows_are_bound() {
    block_on(async {
        let rows: Vec<_> = (0..280_000)
            .map(|n| {
                json!({"timestamp": 1_700_000_000 + n, "venue": format!("venue-{}", n % 7),
                "price": f64::from(n) * 0.37, "note": null})
            })
            .collect();
        let bytes = serde_json::to_vec(&rows).unwrap();
        let size = bytes.len();
        assert!(size > 20_000_000, "{size}");
        let derivation = derivation(DerivationPolicy::default()).await;
        derivation.aliases().record_json("get_rows", bytes).await.unwrap();
        let code =
            "set_result([len(get_rows_1), get_rows_1[-1]['timestamp'], sum(r['price'] for r in get_rows_1)])";
        let found = result(&derivation, code).await;
        let sum: f64 = (0..280_000).map(|n| f64::from(n) * 0.37).sum();
        assert_eq!((&found[0], &found[1]), (&json!(280_000), &json!(1_700_279_999)));
        assert!((found[2].as_f64().unwrap() - sum).abs() < 1.0);
    });
}

#[test]
fn what_is_dropped_in_the_middle_of_a_call_ends_its_sandbox() {
    block_on(async {
        let derivation = derivation(DerivationPolicy::default()).await;
        let sandbox = derivation.session().prepare().await.unwrap().sandbox;
        let endless = call("while True: pass", &[]);
        let cancelled = tokio::time::timeout(Duration::from_millis(300), derivation.derive(&endless)).await;
        assert!(cancelled.is_err());
        drop(derivation);
        let interpreter = interpreter().await;
        until("its sandbox is ended", || {
            !interpreter.sandboxes_in_use().contains(&sandbox)
        })
        .await;
    });
}

#[test]
fn a_forged_chart_costs_the_sandbox_and_nothing_else() {
    block_on(async {
        let derivation = derivation(DerivationPolicy::default()).await;
        let code = "from cellblock_kernel.library.derivation import emission\n\
                    from cellblock_kernel.outputs.output import Output\n\
                    emission.emit(Output({'type': 'chart', 'spec': {'type': 'line'}, 'rows': 1}, [b'[{}]']))";
        let error = derivation.derive(&call(code, &["chart"])).await.unwrap_err();
        assert_eq!(error.to_string(), "decode an output of the kernel");
        assert_eq!(result(&derivation, "set_result(1)").await, json!(1));
    });
}

#[test]
fn a_chart_without_a_renderer_is_delivered_as_data_and_says_why_it_has_no_picture() {
    block_on(async {
        let derivation = derivation(DerivationPolicy::default()).await;
        let code = "import sys; sys.modules['vl_convert'] = None\n\
                    render_chart({'type': 'line', 'xKey': 'day', 'series': [{'key': 'price'}]}, \
                    get_prices_1)";
        let derived = derive(&derivation, code, &["chart"]).await;
        assert!(derived.ok(), "{:?}", derived.error());
        let [ArtifactEnvelope::Chart(chart)] = &derived.artifacts[..] else {
            panic!("{:?}", derived.artifacts);
        };
        let note =
            "no picture: this image has no renderer for charts: add vl-convert-python to its requirements";
        assert_eq!((&chart.picture, chart.note.as_deref()), (&None, Some(note)));
        assert!(
            derived.for_model(1000).contains(note),
            "{}",
            derived.for_model(1000)
        );
    });
}

#[test]
fn a_figure_that_is_only_drawn_is_shown_and_is_no_artifact() {
    block_on(async {
        let derivation = derivation(DerivationPolicy::default()).await;
        let derived = derive(&derivation, "plt.plot([1, 2])", &[]).await;
        assert!(derived.ok());
        assert!(derived.artifacts.is_empty());
        let codes: Vec<_> = derived.findings.iter().map(|it| it.code.as_str()).collect();
        assert_eq!(codes, ["figure_not_saved"]);
        assert!(
            derived
                .for_model(1000)
                .contains("1 figure was drawn and not saved")
        );
        assert!(matches!(
            derived.execution.unwrap().outputs[..],
            [Output::Figure(_)]
        ));
    });
}

#[test]
fn no_connection_of_any_kind_leaves_a_derivation() {
    use std::net::{TcpListener, UdpSocket};
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};

    let v4 = TcpListener::bind("127.0.0.1:0").unwrap();
    let v6 = TcpListener::bind("[::1]:0").ok();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let name = format!("cellblock-derivation-{}", std::process::id());
    let local = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let port6 = v6.as_ref().map_or(9, |it| it.local_addr().unwrap().port());
    let code = format!(
        "import socket, urllib.request\n\
         def tried(call):\n\
         \x20   try:\n\
         \x20       call()\n\
         \x20       return 'reached'\n\
         \x20   except Exception as error:\n\
         \x20       return type(error).__name__\n\
         def local():\n\
         \x20   with socket.socket(socket.AF_UNIX) as it:\n\
         \x20       it.connect('\\0{name}')\n\
         def udp():\n\
         \x20   with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as it:\n\
         \x20       it.sendto(b'x', ('127.0.0.1', {}))\n\
         set_result([tried(it) for it in (\n\
         \x20   lambda: socket.create_connection(('127.0.0.1', {}), 2),\n\
         \x20   lambda: socket.create_connection(('::1', {port6}), 2),\n\
         \x20   udp,\n\
         \x20   lambda: socket.getaddrinfo('example.org', 80),\n\
         \x20   lambda: urllib.request.urlopen('http://127.0.0.1:{}', timeout=2),\n\
         \x20   local,\n\
         )])",
        udp.local_addr().unwrap().port(),
        v4.local_addr().unwrap().port(),
        v4.local_addr().unwrap().port(),
    );
    block_on(async {
        let derivation = derivation(DerivationPolicy::default()).await;
        let found = result(&derivation, &code).await;
        let tries = found.as_array().unwrap();
        assert_eq!(tries.len(), 6);
        assert!(tries.iter().all(|it| it != "reached"), "{found}");
    });
    v4.set_nonblocking(true).unwrap();
    local.set_nonblocking(true).unwrap();
    udp.set_nonblocking(true).unwrap();
    assert!(v4.accept().is_err() && local.accept().is_err() && udp.recv(&mut [0; 8]).is_err());
    // The listeners can be reached from here, so that the tries could have succeeded.
    assert!(std::net::TcpStream::connect(v4.local_addr().unwrap()).is_ok());
}

#[test]
fn a_table_is_bound_as_a_data_frame_from_a_file_of_its_own() {
    block_on(async {
        let maker = interpreter().await.session(SessionOptions::default());
        let code = "pd.DataFrame({'day': pd.date_range('2025', periods=3), 'level': [1.5, None, 3.0]})\
                    .to_parquet('/workspace/t.parquet')";
        maker.execute(code).await.unwrap();
        let mut file = tempfile::tempfile().unwrap();
        let bytes = maker.read_file("/workspace/t.parquet").await.unwrap();
        std::io::Write::write_all(&mut file, &bytes).unwrap();
        let derivation = derivation(DerivationPolicy::default()).await;
        derivation
            .aliases()
            .record_table("get_levels", file, InputFormat::Parquet)
            .await
            .unwrap();
        let code = "import json\n\
                    said = json.load(open('/cellblock/inputs.json'))['get_levels_1']\n\
                    set_result([type(get_levels_1).__name__, get_levels_1['level'].sum(), said, \
                    pd.read_parquet(said['path']).shape])";
        assert_eq!(
            result(&derivation, code).await,
            json!(["DataFrame", 4.5, {"format": "parquet", "path": "/tmp/data/get_levels_1.parquet",
                "rows": 3}, [3, 2]])
        );
    });
}
