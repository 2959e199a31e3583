//! Every metric: its name, kind, labels and meaning.

use cellblock_agent::metrics::{TOOL_CALL_SECONDS, TOOL_CALLS, TURNS};

/// A metric.
#[derive(Clone, Copy, Debug)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) kind: MetricKind,
    pub(super) labels: &'static [&'static str],
    pub(super) help: &'static str,
}

/// Type of a metric.
#[derive(Clone, Copy, Debug)]
pub(super) enum MetricKind {
    Counter,
    Gauge,
    /// With the upper bounds of its buckets.
    Histogram(&'static [f64]),
}

/// Of a cell, from a moment to the longest that it may run.
const CELL: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];
/// Of a sandbox, from one that is ready to one that is not.
const SANDBOX: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0,
];
/// Of a request, from a look-up to a turn of many steps.
const REQUEST: &[f64] = &[
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0,
];

pub(super) const AUTH_FAILURES: &str = "cellblock_auth_failures_total";
pub(super) const BUILD: &str = "cellblock_build";
pub(super) const CONVERSIONS: &str = "cellblock_conversions_running";
pub(super) const FORWARDED: &str = "cellblock_forwarded_requests_total";
pub(super) const HTTP_IN_FLIGHT: &str = "cellblock_http_requests_in_flight";
pub(super) const HTTP_REQUESTS: &str = "cellblock_http_requests_total";
pub(super) const HTTP_SECONDS: &str = "cellblock_http_request_seconds";
pub(super) const POOL_READY: &str = "cellblock_pool_ready";
pub(super) const PROVIDER_ERRORS: &str = "cellblock_provider_errors_total";
pub(super) const QUOTA_REJECTIONS: &str = "cellblock_quota_rejections_total";
pub(super) const RUN_RECORDS: &str = "cellblock_run_records_total";
pub(super) const SANDBOXES: &str = "cellblock_sandboxes";
pub(super) const STEPS: &str = "cellblock_steps_total";
pub(super) const TABLE_ORDERS: &str = "cellblock_table_order_bytes";
pub(super) const TOKENS: &str = "cellblock_tokens_total";

/// Of a claim, from a warm pod to one that has to be started.
const CLAIM: &[f64] = &[
    0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0,
];

/// All of them, by name. Those of executions and sandboxes are counted by the interpreter,
/// for every interface.
pub(super) const METRICS: &[Metric] = &[
    Metric {
        name: "cellblock_artifacts_healed_total",
        kind: MetricKind::Counter,
        labels: &[],
        help: "Damaged artifacts that were restored from the remote store.",
    },
    Metric {
        name: AUTH_FAILURES,
        kind: MetricKind::Counter,
        labels: &["reason"],
        help: "Requests rejected because the API key was `missing`, `unknown`, `expired` or `revoked`.",
    },
    Metric {
        name: BUILD,
        kind: MetricKind::Gauge,
        labels: &["version"],
        help: "Always 1; the label is the running version.",
    },
    Metric {
        name: "cellblock_claim_seconds",
        kind: MetricKind::Histogram(CLAIM),
        labels: &[],
        help: "Time from a claim to a ready pod, with `backend: kubernetes`.",
    },
    Metric {
        name: "cellblock_claims",
        kind: MetricKind::Gauge,
        labels: &[],
        help: "Claims of this process that exist in the cluster.",
    },
    Metric {
        name: "cellblock_claims_swept_total",
        kind: MetricKind::Counter,
        labels: &[],
        help: "Claims of dead processes that this process deleted.",
    },
    Metric {
        name: "cellblock_claims_total",
        kind: MetricKind::Counter,
        labels: &["result"],
        help: "Claims by result: `ready`, `canceled`, or the error, such as `pool_exhausted`, \
               `condition`, `forbidden` or `unreachable`.",
    },
    Metric {
        name: CONVERSIONS,
        kind: MetricKind::Gauge,
        labels: &[],
        help: "Conversions that run outside cells: rows and exports of tables, pictures of charts. At \
               most as many as there are processors.",
    },
    Metric {
        name: "cellblock_egress_bytes_total",
        kind: MetricKind::Counter,
        labels: &["direction"],
        help: "Bytes that code sent to hosts (`up`) and received from them (`down`) with the network \
               policy `egress`.",
    },
    Metric {
        name: "cellblock_egress_requests_total",
        kind: MetricKind::Counter,
        labels: &["decision", "reason"],
        help: "Requests of code with the network policy `egress`: `allowed`, `denied` or `failed`, and \
               the reason, such as `ok`, `host` or `quota_bytes`.",
    },
    Metric {
        name: "cellblock_execution_seconds",
        kind: MetricKind::Histogram(CELL),
        labels: &["toolset"],
        help: "Duration of cells and commands, measured by the host.",
    },
    Metric {
        name: "cellblock_executions_running",
        kind: MetricKind::Gauge,
        labels: &[],
        help: "Cells and commands that are running or waiting for their sandbox.",
    },
    Metric {
        name: "cellblock_executions_total",
        kind: MetricKind::Counter,
        labels: &["toolset", "outcome"],
        help: "Finished cells and commands by outcome; `error` counts those that could not run.",
    },
    Metric {
        name: "cellblock_fetch_seconds",
        kind: MetricKind::Histogram(CELL),
        labels: &["connector"],
        help: "Duration of calls of connectors by code until their end; cached and canceled calls \
               do not count.",
    },
    Metric {
        name: "cellblock_fetched_bytes_total",
        kind: MetricKind::Counter,
        labels: &["connector"],
        help: "Bytes of answers that code got from connectors, without those of cached calls.",
    },
    Metric {
        name: "cellblock_fetches_total",
        kind: MetricKind::Counter,
        labels: &["connector", "function", "outcome", "cached"],
        help: "Calls of connectors by code. The outcome is `ok`, `canceled` or the kind of the error; \
               `cached` is `true` if the answer was that of an equal call. Functions that requests name \
               have the label `(requested)`, and calls of anything that the session does not have \
               `(unknown)`; the first thousand functions have their own label, the others are `(other)`.",
    },
    Metric {
        name: FORWARDED,
        kind: MetricKind::Counter,
        labels: &["result"],
        help: "Requests forwarded to the server that has their session, container, response or sandbox: \
               `answered`, `unreachable` if it accepts no connection, or `failed`.",
    },
    Metric {
        name: HTTP_SECONDS,
        kind: MetricKind::Histogram(REQUEST),
        labels: &["method", "route"],
        help: "Duration of requests until the last byte of the response. Routes are templates such as \
               `/v1/responses/{id}`.",
    },
    Metric {
        name: HTTP_IN_FLIGHT,
        kind: MetricKind::Gauge,
        labels: &[],
        help: "Requests in progress.",
    },
    Metric {
        name: HTTP_REQUESTS,
        kind: MetricKind::Counter,
        labels: &["method", "route", "status"],
        help: "Finished requests; the status is `gone` if the client disconnected before there was one.",
    },
    Metric {
        name: POOL_READY,
        kind: MetricKind::Gauge,
        labels: &[],
        help: "Sandboxes ready for use.",
    },
    Metric {
        name: PROVIDER_ERRORS,
        kind: MetricKind::Counter,
        labels: &["provider"],
        help: "Requests that a model's server rejected, that could not reach it, or that it aborted.",
    },
    Metric {
        name: QUOTA_REJECTIONS,
        kind: MetricKind::Counter,
        labels: &["quota"],
        help: "Requests rejected because a quota was used up.",
    },
    Metric {
        name: RUN_RECORDS,
        kind: MetricKind::Counter,
        labels: &["result"],
        help: "Records of runs: `written`, `dropped` because too many waited to be written, or `failed` \
               because they could not be written.",
    },
    Metric {
        name: "cellblock_sandbox_seconds",
        kind: MetricKind::Histogram(SANDBOX),
        labels: &[],
        help: "Time that sessions waited for a sandbox.",
    },
    Metric {
        name: SANDBOXES,
        kind: MetricKind::Gauge,
        labels: &[],
        help: "Sandboxes in use by sessions.",
    },
    Metric {
        name: "cellblock_sandboxes_awaited",
        kind: MetricKind::Gauge,
        labels: &[],
        help: "Sessions waiting for a sandbox.",
    },
    Metric {
        name: "cellblock_sessions_hibernated",
        kind: MetricKind::Gauge,
        labels: &[],
        help: "Sessions that are hibernated.",
    },
    Metric {
        name: STEPS,
        kind: MetricKind::Counter,
        labels: &["provider", "model"],
        help: "Calls of models. The first hundred models have their own label; the others are `other`.",
    },
    Metric {
        name: TABLE_ORDERS,
        kind: MetricKind::Gauge,
        labels: &[],
        help: "Memory that holds the last orders of sorted tables, for their next pages: at most 128 MiB.",
    },
    Metric {
        name: TOKENS,
        kind: MetricKind::Counter,
        labels: &["provider", "model", "direction"],
        help: "Tokens that models read (`input`) and wrote (`output`), as reported by their servers.",
    },
    Metric {
        name: TOOL_CALL_SECONDS,
        kind: MetricKind::Histogram(REQUEST),
        labels: &["server"],
        help: "Duration of calls to tools of MCP servers until the end of the result; canceled calls do \
               not count.",
    },
    Metric {
        name: TOOL_CALLS,
        kind: MetricKind::Counter,
        labels: &["server", "outcome"],
        help: "Calls to tools of MCP servers by outcome: `completed`, `failed` if the tool reported a \
               failure, `error` if its server returned no result, `cancelled`. Servers that requests name \
               by address all have the label `(requested)`.",
    },
    Metric {
        name: TURNS,
        kind: MetricKind::Counter,
        labels: &["status"],
        help: "Turns by the status of their response.",
    },
];

impl MetricKind {
    /// The name that Prometheus gives it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }
}

/// The page of the reference.
#[cfg(test)]
pub(super) fn page() -> String {
    use std::fmt::Write as _;

    let mut page = String::from(
        "# Metrics\n\n\
         `GET /metrics` exports these metrics in the Prometheus text format; \
         [operations](../guides/operations.md) describes who has access.\n\
         Generated from the gateway's list; `cargo xtask generate` writes this page.\n\n\
         | name | kind | labels | meaning |\n|---|---|---|---|\n",
    );
    for metric in METRICS {
        let kind = metric.kind.name();
        let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let labels = labels.join(", ");
        // Writing to a string does not fail.
        let _ = writeln!(
            page,
            "| `{}` | {kind} | {labels} | {} |",
            metric.name, metric.help
        );
    }
    page
}
