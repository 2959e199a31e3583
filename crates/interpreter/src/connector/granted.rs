//! A connector of a session, and its functions.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use tokio::sync::OnceCell;

use super::parameters::Parameters;
use super::schema::DeclaredSchema;
use super::{Bundle, Card, Connector, ConnectorError, name};
use crate::host_call::shown;

/// A connector of a session.
#[derive(Debug)]
pub(super) struct SessionConnector {
    pub(super) connector: Arc<dyn Connector>,
    /// Number of earlier lendings of connectors; another one with its name may be another server.
    pub(super) lending: u64,
    /// Empty until the connector has answered.
    pub(super) functions: OnceCell<Vec<GrantedFunction>>,
}

/// A function of it.
#[derive(Debug)]
pub(super) struct GrantedFunction {
    pub(super) card: Card,
    pub(super) parameters: OnceLock<Parameters>,
    pub(super) returns: OnceLock<Option<Arc<DeclaredSchema>>>,
}

impl SessionConnector {
    pub(super) fn new(connector: &Arc<dyn Connector>, lending: u64) -> Arc<Self> {
        Arc::new(Self {
            connector: Arc::clone(connector),
            lending,
            functions: OnceCell::new(),
        })
    }

    /// Returns what its answers are kept under.
    pub(super) fn identity(&self) -> String {
        format!("{} {}", self.connector.name(), self.lending)
    }

    pub(super) async fn functions(&self) -> Result<&Vec<GrantedFunction>, ConnectorError> {
        self.functions.get_or_try_init(|| self.list()).await
    }

    async fn list(&self) -> Result<Vec<GrantedFunction>, ConnectorError> {
        let redaction = self.connector.redaction();
        let cards = self.connector.cards().await;
        let cards = cards.map_err(|error| error.redacted(redaction))?;
        let mut taken = HashSet::new();
        let offered = cards.into_iter().map(|mut card| {
            card.function = name::function(&card.name, &mut taken);
            card.description = redaction.text(&card.description).into_owned();
            redaction.value(&mut card.parameters);
            card.returns.iter_mut().for_each(|it| redaction.value(it));
            GrantedFunction {
                card,
                parameters: OnceLock::new(),
                returns: OnceLock::new(),
            }
        });
        Ok(offered.collect())
    }

    pub(super) async fn bundle(&self) -> Bundle {
        let (functions, unavailable) = match self.functions().await {
            Ok(functions) => (
                functions.iter().map(|offered| offered.card.clone()).collect(),
                None,
            ),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        Bundle {
            name: self.connector.name().to_owned(),
            description: self.connector.description().to_owned(),
            functions,
            unavailable,
        }
    }

    pub(super) fn unknown(&self, name: &str, functions: &[GrantedFunction]) -> ConnectorError {
        let similar: HashMap<_, _> = functions
            .iter()
            .map(|offered| {
                let known = offered.card.function.as_str();
                (known, strsim::jaro_winkler(known, name))
            })
            .collect();
        let similar = similar.into_iter().filter(|(_, likeness)| *likeness > 0.8);
        let hint = similar
            .max_by(|one, other| one.1.total_cmp(&other.1))
            .map_or_else(String::new, |(known, _)| format!("; did you mean `{known}`?"));
        let connector = self.connector.name();
        ConnectorError::invalid(format!("`{connector}` has no function `{}`{hint}", shown(name)))
    }
}
