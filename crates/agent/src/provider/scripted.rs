//! A provider without a model that returns prepared answers, for tests and demonstrations.

use std::collections::VecDeque;

use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use parking_lot::Mutex;

use super::{Finish, ModelEvent, ModelRequest, ModelStream, Provider, ProviderError};
use crate::wire::TokenUsage;

/// Maximum number of characters in one delta: text comes in pieces, as from a model.
const PIECE: usize = 12;

/// A provider with prepared answers. Each request takes the next one.
#[derive(Debug, Default)]
pub struct ScriptedProvider {
    answers: Mutex<VecDeque<ScriptedAnswer>>,
    asked: Mutex<Vec<ModelRequest>>,
}

/// A prepared answer.
#[derive(Debug, Default)]
pub struct ScriptedAnswer {
    events: Vec<ModelEvent>,
    calls: usize,
    failure: Option<ProviderError>,
}

impl ScriptedAnswer {
    /// Creates an empty answer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds text.
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        self.events.extend(pieces(text).map(ModelEvent::Text));
        self
    }

    /// Adds reasoning.
    #[must_use]
    pub fn reasoning(mut self, text: &str) -> Self {
        self.events.extend(pieces(text).map(ModelEvent::Reasoning));
        self
    }

    /// Adds the sealed form of the reasoning, which only the provider reads.
    #[must_use]
    pub fn sealed(mut self, content: &str) -> Self {
        self.events.push(ModelEvent::Sealed(content.to_owned()));
        self
    }

    /// Adds a call with unchanged arguments, valid or not.
    #[must_use]
    pub fn call(mut self, id: &str, name: &str, arguments: &str) -> Self {
        let call = self.calls;
        self.calls += 1;
        self.events.push(ModelEvent::CallBegin {
            call,
            id: id.to_owned(),
            name: name.to_owned(),
        });
        self.events
            .extend(pieces(arguments).map(|delta| ModelEvent::Arguments { call, delta }));
        self
    }

    /// Adds a failure in place of the end.
    #[must_use]
    pub fn fails(mut self, error: ProviderError) -> Self {
        self.failure = Some(error);
        self
    }

    pub(super) fn steps(self) -> Vec<Result<ModelEvent, ProviderError>> {
        let mut steps: Vec<_> = self.events.into_iter().map(Ok).collect();
        if let Some(error) = self.failure {
            steps.push(Err(error));
            return steps;
        }
        steps.extend((0..self.calls).map(|call| Ok(ModelEvent::CallEnd { call })));
        // As many tokens as there were pieces: counted, not invented.
        let output_tokens = u64::try_from(steps.len() - self.calls).unwrap_or(u64::MAX);
        steps.push(Ok(ModelEvent::Usage(TokenUsage {
            output_tokens,
            total_tokens: output_tokens,
            ..TokenUsage::default()
        })));
        let finish = if self.calls > 0 {
            Finish::Calls
        } else {
            Finish::Stop
        };
        steps.push(Ok(ModelEvent::Finish(finish)));
        steps
    }
}

impl ScriptedProvider {
    /// Creates a provider with these answers, the first for the first request.
    pub fn new(answers: impl IntoIterator<Item = ScriptedAnswer>) -> Self {
        Self {
            answers: Mutex::new(answers.into_iter().collect()),
            asked: Mutex::default(),
        }
    }

    /// Returns the requests so far.
    pub fn asked(&self) -> Vec<ModelRequest> {
        self.asked.lock().clone()
    }
}

impl Provider for ScriptedProvider {
    fn stream(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ProviderError>> {
        self.asked.lock().push(request);
        let answer = self.answers.lock().pop_front();
        Box::pin(async move {
            let over = || ProviderError::malformed("the script has no answer left");
            Ok(stream::iter(answer.ok_or_else(over)?.steps()).boxed())
        })
    }
}

fn pieces(text: &str) -> impl Iterator<Item = String> {
    let characters: Vec<_> = text.chars().collect();
    let pieces: Vec<String> = characters
        .chunks(PIECE)
        .map(|piece| piece.iter().collect())
        .collect();
    pieces.into_iter()
}
