//! Functions over HTTP: a fixed host, declared parameters, typed rows.

mod body;
mod options;
mod pages;
mod plan;
mod retry_after;
mod send;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use cellblock_interpreter::connector::{
    Card, Connector, ConnectorError, ConnectorErrorKind, FetchAnswer, MemoPolicy, Redaction,
};
use cellblock_settings::Time;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use indexmap::IndexMap;
use reqwest::Client;
use serde_json::{Map, Value};
use url::{Host, Url};

use crate::address::is_public;
use crate::card::name_mistakes;
use crate::options::{CallOptions, TypeOptions};
use crate::rate::Turns;
use crate::recipe::{ConnectorRecipe, ConnectorResult, OptionMistake, checked};
use crate::template::Template;
pub use body::{BodyError, whole as whole_body};
pub(crate) use options::HttpFunction;
pub use options::{HttpFunctions, RequestOptions};
use options::{RetryOptions, written_secrets};
pub(crate) use plan::HttpOperation;
pub use retry_after::retry_after;

/// A connector of the type `http`.
pub struct HttpConnector {
    name: String,
    calls: CallOptions,
    base: Url,
    allow_private: bool,
    /// Made for the first call.
    client: OnceLock<Client>,
    turns: Option<Turns>,
    retries: RetryOptions,
    operations: IndexMap<String, Arc<HttpOperation>>,
    redaction: Redaction,
}

impl fmt::Debug for HttpConnector {
    /// Without the operations, which have secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpConnector")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl ConnectorRecipe for TypeOptions<HttpFunctions, RequestOptions> {
    fn connector(&self, name: &str, folder: Option<&Path>) -> ConnectorResult {
        let mut mistakes = self.calls.mistakes();
        let secrets = self.shared.secrets(folder, &mut mistakes);
        if self.own.functions.is_empty() {
            let text = "missing key `functions`: the functions by name, such as `{series: {get: /series}}`";
            mistakes.push(OptionMistake::new(&[], text));
        }
        mistakes.extend(name_mistakes("functions", self.own.functions.keys()));
        for (function, options) in &self.own.functions {
            let written = written_secrets(&options.query, &options.headers);
            mistakes.extend(written.map(|mistake| mistake.within(&["functions", function])));
        }
        checked(mistakes, HttpConnector::new(name, self, &secrets))
    }
}

impl HttpConnector {
    /// Compiles a connector with the values of its secrets. Connects to nothing.
    pub fn new(
        name: &str,
        options: &TypeOptions<HttpFunctions, RequestOptions>,
        secrets: &BTreeMap<String, String>,
    ) -> Result<Self, Vec<OptionMistake>> {
        let functions = options.own.functions.iter().map(|(function, written)| {
            let operation = HttpOperation::new(function, written, None, &options.shared, secrets);
            let at = |mistake: OptionMistake| mistake.within(&["functions", function]);
            let operation = operation.map_err(|wrong| wrong.into_iter().map(at).collect());
            (function.clone(), operation)
        });
        Self::compiled(name, &options.calls, &options.shared, secrets, functions)
    }

    /// Puts a connector together from the functions of a configuration, or of a document.
    pub(crate) fn compiled(
        name: &str,
        calls: &CallOptions,
        options: &RequestOptions,
        secrets: &BTreeMap<String, String>,
        functions: impl Iterator<Item = (String, Result<HttpOperation, Vec<OptionMistake>>)>,
    ) -> Result<Self, Vec<OptionMistake>> {
        let mut mistakes = Vec::new();
        let base = base(options).map_err(|text| mistakes.push(OptionMistake::new(&["base_url"], text)));
        let mut whole = true;
        for (key, templates) in [("query", &options.query), ("headers", &options.headers)] {
            for (name, text) in templates {
                if let Err(problem) = shared(text, secrets) {
                    mistakes.push(OptionMistake::new(&[key, name], problem));
                    whole = false;
                }
            }
        }
        let mut operations = IndexMap::new();
        // A function would repeat the mistakes of its connector.
        for (function, operation) in functions.filter(|_| whole) {
            match operation {
                Ok(operation) => drop(operations.insert(function, Arc::new(operation))),
                Err(wrong) => mistakes.extend(wrong),
            }
        }
        match base {
            Ok(base) if mistakes.is_empty() => Ok(Self {
                name: name.to_owned(),
                calls: calls.clone(),
                base,
                allow_private: options.allow_private,
                client: OnceLock::new(),
                turns: options.rate.map(Turns::new),
                retries: options.retries.clone(),
                operations,
                redaction: Redaction::new(secrets.values()),
            }),
            _ => Err(mistakes),
        }
    }

    async fn call(
        &self,
        operation: &Arc<HttpOperation>,
        arguments: Map<String, Value>,
        until: Instant,
    ) -> Result<FetchAnswer, ConnectorError> {
        let until = until.min(Instant::now() + self.calls.timeout);
        let fetched = tokio::time::timeout_at(until.into(), self.fetched(operation, &arguments, until));
        fetched.await.unwrap_or_else(|_| {
            let text = format!(
                "the server did not answer within {}, the limit `timeout`",
                Time(self.calls.timeout)
            );
            Err(ConnectorError::new(ConnectorErrorKind::Timeout, text))
        })
    }

    /// Returns an error whose text has no secrets, and is named like the function.
    fn failed(&self, kind: ConnectorErrorKind, text: &str) -> ConnectorError {
        ConnectorError::new(kind, self.redaction.text(text))
    }
}

impl Connector for HttpConnector {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        &self.calls.description
    }

    fn cards(&self) -> BoxFuture<'_, Result<Vec<Card>, ConnectorError>> {
        let cards = self.operations.values().map(|operation| operation.card.clone());
        let cards = cards.collect();
        async move { Ok(cards) }.boxed()
    }

    fn fetch(
        &self,
        function: &str,
        arguments: Map<String, Value>,
        until: Instant,
    ) -> BoxFuture<'_, Result<FetchAnswer, ConnectorError>> {
        let name = function.to_owned();
        async move {
            let Some(operation) = self.operations.get(&name) else {
                let text = format!("{}: there is no function `{name}`", self.name);
                return Err(self.failed(ConnectorErrorKind::InvalidParameter, &text));
            };
            let answer = self.call(operation, arguments, until).await;
            answer.map_err(|error| error.of_call(&self.name, &name))
        }
        .boxed()
    }

    fn check(&self) -> BoxFuture<'_, Result<(), ConnectorError>> {
        self.reached().boxed()
    }

    fn memo(&self) -> MemoPolicy {
        self.calls.memo
    }

    fn redaction(&self) -> &Redaction {
        &self.redaction
    }
}

/// Checks a template of all functions.
fn shared(text: &str, secrets: &BTreeMap<String, String>) -> Result<(), String> {
    let template = Template::new(text)?;
    if template.parameters().next().is_some() {
        return Err("inserts a parameter; write it under the function that has it".to_owned());
    }
    let mut names = template.secrets();
    match names.find(|name| !secrets.contains_key(*name)) {
        Some(name) => Err(format!("inserts `{name}`, which is not in `secrets`")),
        None => Ok(()),
    }
}

/// Reads `base_url`; the error continues a sentence that starts with the key.
fn base(options: &RequestOptions) -> Result<Url, String> {
    let form = || {
        "must be a URL with `https://` or `http://`, a host and a path, such as `https://api.example.com/v1`"
            .to_owned()
    };
    let text = options
        .base_url
        .as_deref()
        .ok_or_else(|| "is missing: the URL below which all requests are made".to_owned())?;
    let url = Url::parse(text).map_err(|_| form())?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(form());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not have a user or a password; use `secrets` and `headers`".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("must not have `?` or `#`; use `query`".to_owned());
    }
    let address = match url.host() {
        Some(Host::Ipv4(address)) => Some(address.into()),
        Some(Host::Ipv6(address)) => Some(address.into()),
        _ => None,
    };
    if address.is_some_and(|address| !is_public(address)) && !options.allow_private {
        return Err("is a private address; if that is intended, set `allow_private: true`".to_owned());
    }
    let local =
        url.host_str() == Some("localhost") || address.is_some_and(|it: std::net::IpAddr| it.is_loopback());
    if url.scheme() == "http" && !local && !options.allow_http {
        return Err(
            "`http://` sends everything unencrypted to another machine; use `https://`, or permit it with \
             `allow_http: true`"
                .to_owned(),
        );
    }
    Ok(url)
}
