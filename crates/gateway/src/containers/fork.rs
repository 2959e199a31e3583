//! `POST /v1/containers/{container}/fork`, which OpenAI's containers do not have.
//!
//! Each fork begins with the variables and files of the container, and with its list of files under
//! IDs of its own.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use cellblock_agent::wire::Ids;
use cellblock_interpreter::Session;
use serde_json::{Value, json};

use super::checkpoint_routes::{find, to_its_end};
use super::make::{ContainerPlan, mint};
use super::{object, run, sweep, unknown};
use crate::json::Json;
use crate::problem::Problem;
use crate::records::{ContainerFileRow, ContainerRow, Page};
use crate::sessions::fork::ForkRequest;
use crate::state::containers::room::{self, RoomPermit};
use crate::state::containers::{ContainerState, HeldContainer};
use crate::state::{Caller, Gateway};

pub(super) async fn fork(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(container): Path<String>,
    Json(request): Json<ForkRequest>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let held = find(&gateway, &caller, &container).await?;
    let options = request.options(mint)?;
    let ids = options.ids.clone();
    held.enter(&gateway, &caller.owner).await?;
    // Every place is taken before anything is made.
    let mut places = Vec::new();
    for _ in &ids {
        places.push(room::try_enter(&gateway, &caller.owner).await?);
    }
    let within = gateway.clone();
    let made = to_its_end(&gateway, async move {
        let mut state = held.state.lock().await;
        // With the files of its user.
        run::furnish(&within, &held, &mut state).await?;
        let forks = held.session.fork(options).await?;
        let forks = ids.iter().cloned().zip(forks);
        let made = open(&within, &held, &state, forks.zip(places)).await;
        if made.is_err() {
            for id in &ids {
                if let Err(error) = sweep::remove(&within, &held.owner, id).await {
                    tracing::error!(error = &error as &dyn std::error::Error, "remove a fork");
                }
            }
        }
        run::touch(&within, &held).await;
        made
    });
    let rows = made.await?;
    let ids: Vec<_> = rows.iter().map(|row| &row.id).collect();
    let containers: Vec<_> = rows.iter().map(|row| object::container(row, true)).collect();
    let forked =
        json!({"object": "container.fork", "parent": container, "ids": ids, "containers": containers});
    Ok((StatusCode::CREATED, Json(forked)))
}

/// Makes containers of the sessions of a fork.
async fn open(
    gateway: &Gateway,
    parent: &HeldContainer,
    state: &ContainerState,
    forks: impl Iterator<Item = ((String, Session), RoomPermit)>,
) -> Result<Vec<ContainerRow>, Problem> {
    let row = gateway.records.container(&parent.owner, &parent.id).await?;
    let name = row.ok_or_else(|| unknown(&parent.id))?.name;
    let files = gateway
        .records
        .container_files(&parent.owner, &parent.id, Page::all())
        .await?;
    let files = files.map_or_else(Vec::new, |page| page.rows);
    let mut rows = Vec::new();
    for (fork, place) in forks {
        let new = ContainerPlan {
            idle: Some(parent.idle),
            memory_limit: parent.memory_limit.clone(),
            network: parent.network.clone(),
            ..ContainerPlan::named(name.clone())
        };
        let fork = new.host(gateway, &parent.owner, fork, Some(place)).await?;
        let mut own = fork.state.lock().await;
        own.sandbox = Some(fork.session.prepare().await?.sandbox);
        for file in &files {
            let copy = ContainerFileRow {
                id: Ids::random().mint("cfile"),
                container: fork.id.clone(),
                ..file.clone()
            };
            if state.placed.contains(&file.id) {
                own.placed.insert(copy.id.clone());
            }
            run::insert(gateway, copy).await?;
        }
        let row = gateway.records.container(&parent.owner, &fork.id).await?;
        rows.push(row.ok_or_else(|| unknown(&fork.id))?);
    }
    Ok(rows)
}
