//! Recorder of what the process counts through `metrics`, kept for the [text format of Prometheus][format].
//! Its exporter for that format brings 23 packages, most of them for summaries, which nothing here uses.
//!
//! [format]: https://prometheus.io/docs/instrumenting/exposition_formats/

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use metrics::atomics::AtomicU64;
use metrics::{
    Counter, Gauge, GaugeFn as _, Histogram, HistogramFn, Key, KeyName, Metadata, SharedString, Unit,
};
use parking_lot::RwLock;

use super::names::{METRICS, Metric, MetricKind};

/// A recorder of [`METRICS`]. What is not one of them is not kept. A clone records into the same.
#[derive(Clone, Debug)]
pub(super) struct PrometheusRecorder(Arc<[Family]>);

/// A metric with its samples by the values of its labels.
#[derive(Debug)]
struct Family {
    metric: &'static Metric,
    samples: RwLock<BTreeMap<Vec<String>, Sample>>,
}

#[derive(Clone, Debug)]
enum Sample {
    /// A whole number, or the bits of a fraction.
    Number(Arc<AtomicU64>),
    Histogram(Arc<Buckets>),
}

/// A histogram.
#[derive(Debug)]
struct Buckets {
    /// Upper bounds, in order.
    bounds: &'static [f64],
    /// Number of values of each bucket alone; the last one is for those above all bounds.
    counts: Vec<AtomicU64>,
    /// The bits of the sum of all values.
    sum: AtomicU64,
}

impl Default for PrometheusRecorder {
    fn default() -> Self {
        let family = |metric| Family {
            metric,
            samples: RwLock::default(),
        };
        Self(METRICS.iter().map(family).collect())
    }
}

impl PrometheusRecorder {
    /// The sample with a key's labels; those that it lacks are empty.
    fn sample(&self, key: &Key) -> Option<Sample> {
        let at = self
            .0
            .binary_search_by(|family| family.metric.name.cmp(key.name()))
            .ok()?;
        let Family { metric, samples } = &self.0[at];
        let value = |name: &&str| {
            let label = key.labels().find(|label| label.key() == *name);
            label.map_or_else(String::new, |label| label.value().to_owned())
        };
        let labels: Vec<_> = metric.labels.iter().map(value).collect();
        if let Some(sample) = samples.read().get(&labels) {
            return Some(sample.clone());
        }
        let mut samples = samples.write();
        let sample = samples.entry(labels).or_insert_with(|| Sample::new(metric.kind));
        Some(sample.clone())
    }

    /// Everything that was recorded.
    pub(super) fn render(&self) -> String {
        let mut text = String::new();
        for family in &*self.0 {
            family.render(&mut text);
        }
        text
    }
}

impl Family {
    fn render(&self, text: &mut String) {
        let Metric {
            name,
            kind,
            labels,
            help,
        } = self.metric;
        let samples = self.samples.read();
        if samples.is_empty() {
            return;
        }
        // Writing to a string does not fail.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {}", kind.name());
        for (values, sample) in &*samples {
            let pairs = labels
                .iter()
                .zip(values)
                .map(|(label, value)| format!("{label}=\"{}\"", escaped(value)));
            let pairs = pairs.collect::<Vec<_>>().join(",");
            sample.render(text, name, matches!(kind, MetricKind::Counter), &pairs);
        }
        text.push('\n');
    }
}

impl Sample {
    fn new(kind: MetricKind) -> Self {
        let MetricKind::Histogram(bounds) = kind else {
            return Self::Number(Arc::default());
        };
        Self::Histogram(Arc::new(Buckets {
            bounds,
            counts: (0..=bounds.len()).map(|_| AtomicU64::default()).collect(),
            sum: AtomicU64::default(),
        }))
    }

    fn render(&self, text: &mut String, name: &str, whole: bool, labels: &str) {
        let set = if labels.is_empty() {
            String::new()
        } else {
            format!("{{{labels}}}")
        };
        let _ = match self {
            Self::Number(count) if whole => writeln!(text, "{name}{set} {}", count.load(Relaxed)),
            Self::Number(bits) => writeln!(text, "{name}{set} {}", f64::from_bits(bits.load(Relaxed))),
            Self::Histogram(buckets) => {
                let comma = if labels.is_empty() { "" } else { "," };
                let bounds = buckets
                    .bounds
                    .iter()
                    .map(ToString::to_string)
                    .chain(["+Inf".to_owned()]);
                let mut total = 0;
                for (bound, count) in bounds.zip(&buckets.counts) {
                    total += count.load(Relaxed);
                    let _ = writeln!(text, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {total}");
                }
                let sum = f64::from_bits(buckets.sum.load(Relaxed));
                writeln!(text, "{name}_sum{set} {sum}\n{name}_count{set} {total}")
            }
        };
    }
}

/// A label's value between quotation marks.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

impl HistogramFn for Buckets {
    fn record(&self, value: f64) {
        self.counts[self.bounds.partition_point(|bound| *bound < value)].fetch_add(1, Relaxed);
        self.sum.increment(value);
    }
}

impl metrics::Recorder for PrometheusRecorder {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        match self.sample(key) {
            Some(Sample::Number(count)) => Counter::from_arc(count),
            _ => Counter::noop(),
        }
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        match self.sample(key) {
            Some(Sample::Number(bits)) => Gauge::from_arc(bits),
            _ => Gauge::noop(),
        }
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        match self.sample(key) {
            Some(Sample::Histogram(buckets)) => Histogram::from_arc(buckets),
            _ => Histogram::noop(),
        }
    }
}
