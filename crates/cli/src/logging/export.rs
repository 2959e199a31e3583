//! Spans on their way to a collector, by OTLP over HTTP.

use std::error::Error;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::registry::LookupSpan;

use crate::env_vars;

/// Variable with the endpoint for spans alone; it overrides the endpoint for everything.
const TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
/// Default name of the service, if the environment has none.
const SERVICE: &str = "cellblock";
/// Maximum time that a collector may take.
const LIMIT: Duration = Duration::from_secs(10);

/// Sends spans in the background, in batches.
#[derive(Debug)]
pub(crate) struct Export(SdkTracerProvider);

impl Export {
    /// Begins, if the environment names a collector.
    pub(super) fn start() -> Result<Option<Self>, Box<dyn Error>> {
        let named = std::env::var_os(TRACES).is_some_and(|it| !it.is_empty());
        if !named && env_vars::OTLP.get().is_none() {
            return Ok(None);
        }
        // An error means that a provider of cryptography is installed already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // The exporter's own thread sends, and may block.
        let client = reqwest::blocking::Client::builder().timeout(LIMIT).build()?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_protocol(Protocol::HttpBinary)
            .build()?;
        let mut resource =
            Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
        if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
            resource = resource.with_service_name(SERVICE);
        }
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource.build())
            .build();
        Ok(Some(Self(provider)))
    }

    /// Returns the layer that exports spans. Only ours: those of the library that sends them would never end.
    pub(super) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>(&self) -> impl Layer<S> + use<S> {
        tracing_opentelemetry::layer()
            .with_tracer(self.0.tracer(SERVICE))
            .with_filter(Targets::new().with_target("cellblock", Level::INFO))
    }

    /// Sends what is left.
    pub(crate) fn finish(self, limit: Duration) {
        if let Err(error) = self.0.shutdown_with_timeout(limit) {
            tracing::warn!(error = &error as &dyn Error, "the last spans are lost");
        }
    }
}
