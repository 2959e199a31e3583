//! Counters and measurements for Prometheus. `docs/reference/metrics.md` lists all of them, and is generated
//! from [`names`].

mod names;
mod provider;
mod recorder;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::OnceLock;
use std::time::Duration;

use cellblock_interpreter::conversion::ConversionPlace;
use cellblock_interpreter::{Interpreter, page};
use metrics::{counter, gauge, histogram};
use parking_lot::Mutex;

use crate::records::Quota;
use cellblock_agent::wire::TokenUsage;

pub(crate) use provider::ObservedProvider;

use recorder::PrometheusRecorder;

/// Names of models that get a label; clients may make up others where a provider has any model.
const MOST_MODELS: usize = 100;

/// One for the process, as counting is; `None` where the program around us has another.
static RECORDER: OnceLock<Option<PrometheusRecorder>> = OnceLock::new();

/// Begins to count. Only the first call does something; a [`Gateway`](crate::Gateway) makes it,
/// too, but what an engine counts while it starts comes before.
pub fn start() {
    RECORDER.get_or_init(|| {
        let recorder = PrometheusRecorder::default();
        metrics::set_global_recorder(recorder.clone()).ok()?;
        gauge!(names::BUILD, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
        Some(recorder)
    });
}

/// All of it, in the text form of Prometheus.
pub(crate) fn render(interpreter: Option<&Interpreter>) -> Option<String> {
    let recorder = RECORDER.get()?.as_ref()?;
    #[expect(clippy::cast_precision_loss, reason = "counts and sizes are small")]
    let number = |count: usize| count as f64;
    if let Some(interpreter) = interpreter {
        gauge!(names::POOL_READY).set(number(interpreter.ready_sandboxes()));
        gauge!(names::SANDBOXES).set(number(interpreter.sandboxes_in_use().len()));
    }
    gauge!(names::CONVERSIONS).set(number(ConversionPlace::running()));
    gauge!(names::TABLE_ORDERS).set(number(page::order_bytes()));
    Some(recorder.render())
}

/// A request has come.
pub(crate) fn request_began() {
    gauge!(names::HTTP_IN_FLIGHT).increment(1.0);
}

/// A request is over, its body included; without a status its client has gone before there was an answer.
pub(crate) fn request_ended(method: &'static str, route: &str, status: Option<u16>, took: Duration) {
    gauge!(names::HTTP_IN_FLIGHT).decrement(1.0);
    let status = status.map_or_else(|| "gone".to_owned(), |status| status.to_string());
    let route = route.to_owned();
    counter!(names::HTTP_REQUESTS, "method" => method, "route" => route.clone(), "status" => status)
        .increment(1);
    histogram!(names::HTTP_SECONDS, "method" => method, "route" => route).record(took);
}

/// A request without a key that counts was refused.
pub(crate) fn auth_failed(why: &'static str) {
    counter!(names::AUTH_FAILURES, "reason" => why).increment(1);
}

/// Something was refused because a quota is used up.
pub(crate) fn quota_refused(quota: Quota) {
    counter!(names::QUOTA_REJECTIONS, "quota" => quota.name()).increment(1);
}

/// A request was sent to another gateway.
pub(crate) fn forwarded(result: &'static str) {
    counter!(names::FORWARDED, "result" => result).increment(1);
}

/// Records of runs were written or lost.
pub(crate) fn runs_recorded(result: &'static str, count: u64) {
    counter!(names::RUN_RECORDS, "result" => result).increment(count);
}

/// A model was asked.
fn asked(provider: &str, model: &str) {
    counter!(names::STEPS, "provider" => provider.to_owned(), "model" => bounded(model)).increment(1);
}

/// A model has counted what it read and wrote.
fn spent(provider: &str, model: &str, usage: &TokenUsage) {
    let tokens = [("input", usage.input_tokens), ("output", usage.output_tokens)];
    for (direction, count) in tokens {
        let labels = [
            ("provider", provider.to_owned()),
            ("model", bounded(model)),
            ("direction", direction.to_owned()),
        ];
        counter!(names::TOKENS, &labels).increment(count);
    }
}

/// A model's server has failed.
fn failed(provider: &str) {
    counter!(names::PROVIDER_ERRORS, "provider" => provider.to_owned()).increment(1);
}

/// A model's name as a label: one of the first hundred, or `other`.
fn bounded(model: &str) -> String {
    static MODELS: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let mut models = MODELS.lock();
    let models = models.get_or_insert_with(HashSet::new);
    if models.contains(model) {
        return model.to_owned();
    }
    if models.len() < MOST_MODELS && model.len() <= MOST_MODELS {
        models.insert(model.to_owned());
        return model.to_owned();
    }
    "other".to_owned()
}
