//! The derivation as a toolset, and how an interpreter opens one.

use std::sync::Arc;

use cellblock_sandbox::limits::{Limits, NetworkPolicy};
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::mpsc;

use super::policy::DerivationPolicy;
use super::prompt::{self, Prompt, PromptSettings};
use super::run::{Derivation, LentResults};
use super::tools::{self, RENDER_CHART};
use crate::alias::{AliasStore, Bounds};
use crate::contract::DerivationCall;
use crate::error::{Error, Result};
use crate::interpreter::Interpreter;
use crate::session::{Session, SessionOptions};
use crate::toolset::{ToolDefinition, ToolEvent, ToolResult, Toolset, ToolsetKind, ToolsetTerms, Watch};

/// Events of a cell that may wait.
const EVENTS: usize = 256;

/// The toolset `derivation`.
pub const KIND: ToolsetKind = ToolsetKind {
    name: "derivation",
    summary: "Code that derives from tool results",
    about: "How to derive from the results of other tools, under a contract",
    prelude: &["analysis", "documents", "derivation"],
    on_results: true,
    definitions: |terms| definitions(&policy(terms)),
    prompt: |terms| Prompt::new(&PromptSettings::of(&policy(terms), &terms.libraries)).section(&[]),
    open: |interpreter, session, terms| {
        Box::pin(async move {
            let results = terms.results.clone().unwrap_or_else(|| {
                let aliases = AliasStore::new(interpreter.store().clone(), &*terms.owner, Bounds::default());
                LentResults::new(aliases, policy(terms))
            });
            let derivation = interpreter.derive_in(session, results);
            Ok(Arc::new(derivation.await?) as Arc<dyn Toolset>)
        })
    },
};

fn policy(terms: &ToolsetTerms) -> DerivationPolicy {
    match &terms.results {
        Some(results) => results.policy.clone(),
        None => DerivationPolicy {
            cell_timeout: terms.timeout,
            ..DerivationPolicy::default()
        },
    }
}

fn definitions(policy: &DerivationPolicy) -> Vec<ToolDefinition> {
    vec![
        tools::code_interpreter(policy.contract.require_inputs),
        tools::render_chart(),
    ]
}

impl Toolset for Derivation {
    fn definitions(&self) -> Vec<ToolDefinition> {
        definitions(self.policy())
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        arguments: Value,
        watch: Watch<'a>,
    ) -> BoxFuture<'a, Result<ToolResult>> {
        Box::pin(async move {
            let derived = if tool == RENDER_CHART {
                self.chart(&arguments).await?
            } else {
                match DerivationCall::read(&arguments) {
                    Ok(call) => {
                        let (sender, mut events) = mpsc::channel(EVENTS);
                        let watching = async {
                            while let Some(event) = events.recv().await {
                                ToolEvent::of_cell(event).map(&mut *watch);
                            }
                        };
                        tokio::join!(self.derive_watched(&call, Some(sender)), watching).0?
                    }
                    Err(rejections) => self.refuse("", rejections),
                }
            };
            Ok(ToolResult::Derived(Box::new(derived)))
        })
    }

    fn prompt(&self) -> String {
        let libraries = prompt::libraries(self.shared().base.manifest());
        let settings = PromptSettings::of(self.policy(), &libraries);
        Prompt::new(&settings).section(&prompt::lines(self.aliases()))
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(self.aliases().close().await?) })
    }
}

impl Interpreter {
    /// Returns what code may import in addition to the standard library, for a prompt.
    pub fn libraries(&self) -> Vec<String> {
        prompt::libraries(self.shared().base.manifest())
    }

    /// A derivation from tool results. Its sandbox is made at its first call. Fails if the image
    /// holds a network client.
    pub async fn derivation(&self, aliases: AliasStore, policy: DerivationPolicy) -> Result<Derivation> {
        let image = self.shared().base.manifest();
        if !policy.requirements.is_empty() && !image.policy.is_closed() {
            // Layers are held to the image's policy.
            return Err(Error::Request(format!(
                "image `{}` lets network clients in, so no packages can be added to it in a derivation; \
                 use an image whose policy forbids them",
                image.name
            )));
        }
        let session = self.session(SessionOptions {
            prelude: KIND.prelude.iter().copied().map(str::to_owned).collect(),
            idle: policy.idle,
            limits: Some(Limits {
                network: NetworkPolicy::None,
                ..self.shared().limits.clone()
            }),
            ..SessionOptions::default()
        });
        self.derive_in(session, LentResults::new(aliases, policy)).await
    }

    /// A derivation in a session that is there already, and that was made with the prelude
    /// `derivation`. Dropping it leaves the session.
    async fn derive_in(&self, session: Session, results: LentResults) -> Result<Derivation> {
        if !session.network().is_none() {
            return Err(Error::Request(format!(
                "a derivation runs without a network, and this session has `network: {}`; derive in a \
                 session without it",
                session.network()
            )));
        }
        self.shared().audited().await?;
        Ok(Derivation::within(Arc::clone(self.shared()), session, results))
    }
}
