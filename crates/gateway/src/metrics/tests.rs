//! The list of metrics, and its page.

use super::*;

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
        "docs/reference/metrics.md is stale; run `CELLBLOCK_UPDATE=1 cargo test -p cellblock-gateway metrics`"
    );
}

#[test]
fn names_are_sorted_and_described() {
    let list: Vec<_> = METRICS.iter().map(|metric| metric.name).collect();
    assert!(list.is_sorted_by(|one, next| one < next), "{list:?}");
    for metric in METRICS {
        let counts = matches!(metric.kind, Kind::Counter);
        assert_eq!(metric.name.ends_with("_total"), counts, "{}", metric.name);
        let measures = matches!(metric.kind, Kind::Histogram(_));
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
