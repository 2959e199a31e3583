//! OpenAI's containers: sessions under the names that its SDKs know.
//!
//! A container is a session with its files: variables and files live across responses, until nobody
//! has used it for its time. Its sandbox is made when code first runs. [`runner`] gives what runs
//! the code of a response.

mod checkpoint_routes;
mod derive;
mod elsewhere;
mod file_routes;
mod fork;
mod make;
mod object;
mod place;
mod routes;
mod run;
mod sweep;

use std::collections::BTreeSet;
use std::sync::Arc;

pub(crate) use routes::routes;
pub(crate) use run::address;
pub(crate) use sweep::sweep;

use cellblock_agent::turn::Runner;
use cellblock_agent::wire::{
    ApiError, Container, ErrorKind, ResponseRequest, Tool, container, network_param,
};
use cellblock_interpreter::skill::announced;
use make::ContainerPlan;
use parking_lot::Mutex;
use place::Places;

use crate::engine::Engine;
use crate::files::attach::Attachments;
use crate::records::Page;
use crate::skills;
use crate::state::containers::HeldContainer;
use crate::state::network::AllowedNetwork;
use crate::state::{Caller, Gateway};

/// Note for a model whose sandbox has ended, and whose files are there again.
const REVIVED: &str = "The sandbox in which code of earlier turns ran has ended. The variables, imports \
                       and functions of that code are gone; the files that it had saved in the current \
                       directory are there again. Define again what you need.";
/// Note for a model whose container is gone.
const NEW: &str = "The sandbox in which code of earlier turns ran is not available any more. The \
                   variables, imports, functions and files of that code are gone. Define again \
                   what you need.";

/// Returns the runner of a response's code, in the container that its request names, which reads the files of
/// its messages. With `auto` that is the container that the conversation has `used`; one that has ended
/// begins anew with its files. Errors are reported before the first request to a model. A `brief` container
/// ends soon after its response, unless another one comes back to it.
pub(crate) async fn runner(
    gateway: &Gateway,
    caller: &Caller,
    request: &ResponseRequest,
    used: Option<&str>,
    brief: bool,
) -> Result<Arc<dyn Runner>, ApiError> {
    let owner = &caller.owner;
    let container = container(&request.tools);
    if let Engine::Execute(engine) = &gateway.engine {
        return elsewhere::runner(gateway, engine, owner, request, container).await;
    }
    // Programs read no files.
    let hosts = request.tools.iter().any(|tool| tool.container().is_some());
    let mut attachments = Attachments::new(gateway, owner, hosts);
    let mut auto = None;
    let mut main = None;
    if let Some((param, container)) = &container {
        match container {
            Container::Id(id) => main = Some(named(gateway, owner, id, param).await?),
            Container::Auto(options) => {
                if let Some(limit) = &options.memory_limit {
                    make::memory(limit, gateway)?;
                }
                attachments
                    .take(&options.file_ids, &format!("{param}.file_ids"))
                    .await?;
                let place = format!("{param}.skills");
                let skills = skills::requested(gateway, owner, &options.skills, None, &place).await?;
                // One that was made with another limit is not what is wanted.
                let fits =
                    |limit: &Option<String>| options.memory_limit.is_none() || *limit == options.memory_limit;
                let asked = options.network_policy.as_ref();
                let path = network_param(&request.tools).unwrap_or_default();
                let network = AllowedNetwork::permitted(gateway, owner, asked, &path).await?;
                let mut new = ContainerPlan {
                    memory_limit: options.memory_limit.clone(),
                    network,
                    brief: brief && !options.shared,
                    shared: options.shared,
                    skills,
                    ..ContainerPlan::of_a_response()
                };
                if let Some(id) = used {
                    let followed = gateway.containers.follow_first(owner, id);
                    main = followed.filter(|held| {
                        fits(&held.memory_limit)
                            && held.network == new.network
                            && skills::has_all(&held.session, &options.skills, &new.skills)
                    });
                    if main.is_none() {
                        new = ended(gateway, owner, id, fits, new).await?;
                    }
                }
                auto = Some(new);
            }
        }
    }
    let mut files: Vec<_> = attachments.files().iter().map(|file| file.path.clone()).collect();
    let lost = match &main {
        Some(held) => held.still_lost(),
        None => auto.as_ref().and_then(|new| new.lost.clone()),
    };
    let skills = match (&main, &auto) {
        (Some(held), _) => announced(held.session.skills()),
        (None, Some(new)) => announced(&new.skills),
        (None, None) => None,
    };
    let network = main.as_ref().map_or_else(
        || auto.as_ref().and_then(|new| new.network.as_ref()),
        |held| held.network.as_ref(),
    );
    let network = network.map(AllowedNetwork::note);
    let revives = auto.as_ref().and_then(|new| new.revives.as_ref());
    let known = main.as_ref().map(|held| &held.id).or(revives.map(|row| &row.id));
    if let Some(id) = known {
        let all = Page {
            after: None,
            limit: 1000,
            ascending: true,
        };
        let there = gateway.records.container_files(owner, id, all).await?;
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
        hosts,
        interpreter: request.tools.iter().any(Tool::is_interpreter),
        files,
        network,
        lost,
        skills,
    }))
}

/// Returns the options of the container that replaces one that a conversation has used and that has ended.
async fn ended(
    gateway: &Gateway,
    owner: &str,
    id: &str,
    fits: impl Fn(&Option<String>) -> bool,
    new: ContainerPlan,
) -> Result<ContainerPlan, ApiError> {
    let row = gateway.records.container(owner, id).await?;
    let domains = new.network.as_ref().map(|network| &network.domains);
    let set = |domains: &Vec<String>| domains.iter().cloned().collect::<BTreeSet<_>>();
    let row = row.filter(|row| {
        let is_same = fits(&row.memory_limit) && row.allowed_domains.as_ref().map(set) == domains.map(set);
        row.automatic && is_same && !gateway.containers.has(owner, id)
    });
    let Some(row) = row else {
        let lost = Some(NEW.to_owned());
        return Ok(ContainerPlan { lost, ..new });
    };
    Ok(ContainerPlan {
        memory_limit: row.memory_limit.clone(),
        lost: Some(REVIVED.to_owned()),
        revives: Some(row),
        ..new
    })
}

/// A container that a client names.
async fn named(gateway: &Gateway, owner: &str, id: &str, param: &str) -> Result<HeldContainer, ApiError> {
    if gateway.records.container(owner, id).await?.is_none() {
        return Err(ApiError {
            param: Some(param.to_owned()),
            ..unknown(id)
        });
    }
    gateway
        .containers
        .follow(owner, id)
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
        "container `{id}` has expired, and its variables are gone; make a new one, its files can \
         still be downloaded"
    );
    ApiError::invalid(param, "container_expired", message)
}
