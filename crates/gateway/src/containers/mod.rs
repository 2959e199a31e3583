//! OpenAI's containers: sessions under the names that its SDKs know.
//!
//! A container is a session with its files: variables and files live across responses, until nobody has used it for its time. Its sandbox is
//! made when code first runs. [`runner`] gives what runs the code of a response.

mod derive;
mod elsewhere;
mod file_routes;
mod live;
mod make;
mod object;
mod options;
pub(crate) mod path;
mod place;
mod routes;
mod run;
mod sweep;

use std::sync::{Arc, Mutex};

pub use live::Containers;
pub(crate) use object::deleted;
pub use options::ContainerOptions;
pub(crate) use routes::routes;
pub(crate) use sweep::sweep;

use live::Held;
use make::New;
use place::Places;

use crate::engine::Engine;
use crate::files::attach::Attachments;
use crate::records::Page;
use crate::server::{Caller, Gateway};
use crate::turn::Runner;
use crate::wire::{ApiError, Container, ErrorKind, Request, Tool};

/// What runs the code of a response, in the container that its request names, and reads the files of its messages. With `auto` that is the
/// container that the conversation has `used`, as long as it is there. What is wrong is told here, before anything is asked of a model.
pub(crate) async fn runner(
    gateway: &Gateway,
    caller: &Caller,
    request: &Request,
    used: Option<&str>,
) -> Result<Arc<dyn Runner>, ApiError> {
    let owner = &caller.owner;
    let container = request
        .tools
        .iter()
        .enumerate()
        .find_map(|(at, tool)| match tool {
            Tool::CodeInterpreter { container } => Some((at, container)),
            Tool::Function(_) | Tool::Mcp(_) | Tool::Namespace(_) => None,
        });
    if let Engine::Execute(engine) = &gateway.engine {
        return elsewhere::runner(gateway, engine, owner, request, container).await;
    }
    let mut attachments = Attachments::new(gateway, owner, container.is_some());
    let mut auto = None;
    let mut main = None;
    if let Some((at, container)) = container {
        let param = format!("tools[{at}].container");
        match container {
            Container::Id(id) => main = Some(named(gateway, owner, id, &param).await?),
            Container::Auto(options) => {
                if let Some(limit) = &options.memory_limit {
                    make::memory(limit, gateway)?;
                }
                attachments
                    .take(&options.file_ids, &format!("{param}.file_ids"))
                    .await?;
                // One that has expired, or was made with another limit, is not what is asked for.
                let fits =
                    |held: &Held| options.memory_limit.is_none() || held.memory_limit == options.memory_limit;
                main = used
                    .and_then(|id| gateway.containers.hold_first(owner, id))
                    .filter(fits);
                auto = Some(New {
                    memory_limit: options.memory_limit.clone(),
                    ..New::of_a_response()
                });
            }
        }
    }
    let mut files: Vec<_> = attachments.files().iter().map(|file| file.path.clone()).collect();
    if let Some(held) = &main {
        let all = Page {
            after: None,
            limit: 1000,
            ascending: true,
        };
        let there = gateway.records.container_files(owner, &held.id, all).await?;
        let there = there.into_iter().flat_map(|page| page.rows).map(|file| file.path);
        let fresh: Vec<_> = there.filter(|path| !files.contains(path)).collect();
        files.extend(fresh);
    }
    let attached = attachments.files().to_vec();
    // Read once to tell what is wrong; the turn reads all, also what came before.
    attachments.check(&request.input).await?;
    Ok(Arc::new(Places {
        gateway: gateway.clone(),
        owner: owner.clone(),
        auto,
        main: tokio::sync::Mutex::new(main.map(Arc::new)),
        others: Mutex::default(),
        attached: Mutex::new(attached),
        interpreter: container.is_some(),
        files,
    }))
}

/// A container that a client names.
async fn named(gateway: &Gateway, owner: &str, id: &str, param: &str) -> Result<Held, ApiError> {
    if gateway.records.container(owner, id).await?.is_none() {
        return Err(ApiError {
            param: Some(param.to_owned()),
            ..unknown(id)
        });
    }
    gateway
        .containers
        .hold(owner, id)
        .ok_or_else(|| expired(id, param))
}

fn unknown(id: &str) -> ApiError {
    ApiError {
        kind: ErrorKind::NotFound,
        code: Some("container_not_found".to_owned()),
        message: format!("there is no container `{id}`"),
        param: None,
    }
}

fn expired(id: &str, param: &str) -> ApiError {
    let message = format!(
        "container `{id}` has expired, and its variables are gone; make a new one, its files can still be downloaded"
    );
    ApiError::invalid(param, "container_expired", message)
}
