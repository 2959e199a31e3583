//! What runs the code of a response.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::containers;
use crate::server::{Caller, Gateway};
use crate::turn::{Code, Place, Ran, Runner};
use crate::wire::{ApiError, Container, Request, Tool};

/// What runs the request's code: for `auto` in the container that the conversation has used, as long as that is there.
pub(super) async fn runner(
    gateway: &Gateway,
    caller: &Caller,
    request: &Request,
    used: Option<&str>,
) -> Result<Arc<dyn Runner>, ApiError> {
    let container = request.tools.iter().find_map(|tool| match tool {
        Tool::CodeInterpreter { container } => Some(container),
        Tool::Function(_) => None,
    });
    let Some(container) = container else {
        return Ok(Arc::new(Nowhere));
    };
    if let (Container::Auto(auto), Some(used)) = (container, used)
        && auto.file_ids.is_empty()
        && let Ok(runner) = containers::runner(gateway, caller, &Container::Id(used.to_owned())).await
    {
        return Ok(runner);
    }
    containers::runner(gateway, caller, container).await
}

/// Runs nothing: for requests without the interpreter, of which models are not told.
struct Nowhere;

impl Runner for Nowhere {
    fn place(&self, _before: usize) -> BoxFuture<'_, Arc<dyn Place>> {
        Box::pin(async { Arc::new(Self) as Arc<dyn Place> })
    }
}

impl Place for Nowhere {
    fn container(&self) -> &'static str {
        ""
    }

    fn run(&self, _code: Code) -> BoxFuture<'_, Ran> {
        Box::pin(async { Ran::refused("The code was not run: there is no interpreter.") })
    }
}
