//! `cellblock session host`: the process that `session start` leaves behind.

use std::time::Duration;

use cellblock_image::Home;
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::egress::EgressPolicy;
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::session::hibernate::OnIdle;
use cellblock_interpreter::toolset::ToolsetTerms;
use cellblock_interpreter::workbench::Profile as Asked;
use tokio::sync::broadcast;

use crate::artifact_store;
use crate::commands::run::without_namespaces;
use crate::error::Result;
use crate::exit_code::ExitCode;
use crate::sanitize;
use crate::session::host::answers::SessionService;
use crate::session::host::process;
use crate::session::place::SessionPlace;
use crate::session::plan::{SessionPlan, SessionProfile};
use crate::session::toolbox::{EVENTS, OwnToolset, Toolbox as _};
use crate::session_error::HostKind;
use crate::session_id::SessionId;

/// The session ends when its host says so; the sandbox is not to end before.
const WITH_THE_HOST: Duration = Duration::from_hours(24 * 365);

/// Serves the session to its end.
pub(crate) fn run(id: &SessionId) -> ExitCode {
    process::run(HostKind::Session, id, open)
}

/// Opens the toolset that was planned; also returns notes for the user.
async fn open(home: Home, place: SessionPlace) -> Result<(SessionService<OwnToolset>, Vec<String>)> {
    let plan: SessionPlan = place.plan()?;
    let store = artifact_store::open(&home).await?;
    let mut limits = Limits::default();
    if let Some(bytes) = plan.memory_bytes {
        limits.memory_bytes = bytes;
    }
    limits.network = plan.network;
    let interpreter = Interpreter::builder()
        .image(cellblock_image::ImageStore::new(home.clone()).resolve(&plan.image)?)
        .limits(limits)
        .single_session()
        .demands(plan.demands())
        .backend(plan.backend)
        .walls(plan.walls())
        .store(store)
        .build()
        .await?;
    interpreter.warmed().await?;
    let mut notes: Vec<_> = without_namespaces(&interpreter).into_iter().collect();
    interpreter.check_requirements(&plan.requirements)?;
    let session = interpreter.session(SessionOptions {
        pooled: false,
        requirements: plan.requirements.clone(),
        egress: Some(EgressPolicy {
            allow: plan.egress.clone(),
            ..EgressPolicy::default()
        }),
        idle: match plan.on_idle {
            OnIdle::End => WITH_THE_HOST,
            OnIdle::Hibernate => plan.idle,
        },
        on_idle: plan.on_idle,
        hibernation: WITH_THE_HOST,
        ..SessionOptions::default()
    });
    let terms = ToolsetTerms {
        output_dir: Some(plan.out.clone()),
        profile: match plan.profile {
            SessionProfile::Default => Asked::Default,
            SessionProfile::Polars => Asked::Polars,
        },
        ..ToolsetTerms::default()
    };
    let toolbox = OwnToolset {
        toolset: (plan.toolset.open)(&interpreter, session.clone(), &terms).await?,
        session,
        events: broadcast::channel(EVENTS).0,
        kind: plan.toolset,
        terms,
        interpreter,
    };
    for dataset in &plan.datasets {
        let added = toolbox.add_dataset(dataset).await?;
        notes.extend(added.notes.iter().map(|note| sanitize::line(note)));
    }
    Ok((SessionService::new(toolbox, plan), notes))
}
