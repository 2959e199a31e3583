//! The list of metrics, and its page.

use metrics::with_local_recorder;

use super::*;
use names::{METRICS, MetricKind};

#[test]
fn the_page_of_the_reference_is_up_to_date() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/metrics.md");
    let made = names::page();
    if std::env::var_os("CELLBLOCK_UPDATE").is_some() {
        std::fs::write(&page, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&page).unwrap_or_default();
    assert!(
        kept == made,
        "docs/reference/metrics.md is stale; run `cargo xtask generate`"
    );
}

#[test]
fn names_are_sorted_and_described() {
    let list: Vec<_> = METRICS.iter().map(|metric| metric.name).collect();
    assert!(list.is_sorted_by(|one, next| one < next), "{list:?}");
    for metric in METRICS {
        let counts = matches!(metric.kind, MetricKind::Counter);
        assert_eq!(metric.name.ends_with("_total"), counts, "{}", metric.name);
        let measures = matches!(metric.kind, MetricKind::Histogram(_));
        assert_eq!(metric.name.ends_with("_seconds"), measures, "{}", metric.name);
    }
}

#[test]
fn of_models_that_clients_make_up_only_so_many_get_a_label() {
    let labels: HashSet<_> = (0..1000)
        .map(|number| bounded(&format!("made-up-{number}")))
        .collect();
    assert!(labels.len() <= MOST_MODELS + 1, "{}", labels.len());
    assert!(labels.contains("other"));
    assert_eq!(bounded(&"x".repeat(500)), "other");
}

#[test]
fn what_was_counted_is_rendered_as_prometheus_reads_it() {
    let recorder = PrometheusRecorder::default();
    with_local_recorder(&recorder, || {
        counter!(names::STEPS, "model" => "a \"b\"\n\\c", "provider" => "p").increment(2);
        counter!(names::STEPS, "provider" => "p", "model" => "a \"b\"\n\\c").increment(1);
        gauge!(names::SANDBOXES).set(2.5);
        gauge!(names::SANDBOXES).decrement(1.0);
        for seconds in [0.001, 0.002, 1000.0] {
            histogram!(names::HTTP_SECONDS, "method" => "GET", "route" => "/").record(seconds);
        }
        counter!("cellblock_unknown_total").increment(1);
    });
    let text = recorder.render();
    for line in [
        "# TYPE cellblock_steps_total counter",
        r#"cellblock_steps_total{provider="p",model="a \"b\"\n\\c"} 3"#,
        "cellblock_sandboxes 1.5",
        "# TYPE cellblock_http_request_seconds histogram",
        r#"cellblock_http_request_seconds_bucket{method="GET",route="/",le="0.001"} 1"#,
        r#"cellblock_http_request_seconds_bucket{method="GET",route="/",le="0.005"} 2"#,
        r#"cellblock_http_request_seconds_bucket{method="GET",route="/",le="900"} 2"#,
        r#"cellblock_http_request_seconds_bucket{method="GET",route="/",le="+Inf"} 3"#,
        r#"cellblock_http_request_seconds_sum{method="GET",route="/"} 1000.003"#,
        r#"cellblock_http_request_seconds_count{method="GET",route="/"} 3"#,
    ] {
        assert!(text.lines().any(|it| it == line), "{line}\n\n{text}");
    }
    assert!(!text.contains("unknown"), "{text}");
    assert_eq!(text.matches("# HELP ").count(), 3, "{text}");
}

#[test]
fn all_that_is_counted_is_on_the_list() {
    let mut folders = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..")];
    let mut found = HashSet::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("tests") {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") && !path.ends_with("tests.rs") {
                let text = std::fs::read_to_string(path).unwrap();
                let names = text.split("!(\"cellblock_").skip(1);
                found.extend(names.map(|rest| format!("cellblock_{}", rest.split('"').next().unwrap())));
            }
        }
    }
    assert!(found.len() > 10, "{found:?}");
    for name in found {
        assert!(
            METRICS.iter().any(|metric| metric.name == name),
            "{name} is not on the list"
        );
    }
}
