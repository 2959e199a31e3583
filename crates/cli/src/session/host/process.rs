//! The life of a host's process, from the command that starts it to the last client that hears of its end.

use std::fs::File;
use std::time::Duration;

use cellblock_image::Home;
use tokio::net::UnixStream;
use tokio_util::task::TaskTracker;

use super::detach::{InheritedFiles, detach};
use super::{Service, listen, serve};
use crate::error::{self, Error, Result};
use crate::exit_code::ExitCode;
use crate::logging;
use crate::session::place::{HeldLock, Places, SessionPlace};
use crate::session::spawn::{HostReport, report};
use crate::session::wire::{self, HostAnswer};
use crate::session_error::{HostKind, SessionError, WireError};
use crate::session_id::SessionId;
use crate::threads;

/// Maximum time for the clients that requested the end to read the answer.
const FAREWELL: Duration = Duration::from_secs(1);
/// Maximum time that background tasks may delay the end of the process.
const SHUTDOWN: Duration = Duration::from_secs(2);

/// Serves what `open` opens, to its end. It also returns notes for the user.
pub(crate) fn run<S, F>(
    kind: HostKind,
    id: &SessionId,
    open: impl FnOnce(Home, SessionPlace) -> F,
) -> ExitCode
where
    S: Service,
    F: Future<Output = Result<(S, Vec<String>)>>,
{
    let inherited = match detach() {
        Ok(inherited) => inherited,
        Err(error) => return fail(&error),
    };
    logging::start();
    let hosted = threads::runtime(false).and_then(|runtime| {
        let hosted = runtime.block_on(host(kind, id, inherited, open));
        runtime.shutdown_timeout(SHUTDOWN);
        hosted
    });
    match hosted {
        Ok(()) => ExitCode::Success,
        Err(error) => fail(&error),
    }
}

fn fail(error: &Error) -> ExitCode {
    error::tell(error);
    error.exit_code()
}

async fn host<S, F>(
    kind: HostKind,
    id: &SessionId,
    inherited: InheritedFiles,
    open: impl FnOnce(Home, SessionPlace) -> F,
) -> Result<()>
where
    S: Service,
    F: Future<Output = Result<(S, Vec<String>)>>,
{
    let home = Home::find()?;
    let place = Places::at(kind, home.root())?.place(id);
    if !place.is_lock(&inherited.lock) {
        return Err(SessionError::NotStarted { kind }.into());
    }
    let held = HeldLock::inherited(inherited.lock);
    held.sign(rustix::process::getpid())
        .map_err(Error::process("sign the host's lock"))?;
    let opened = open(home, place.clone()).await;
    let ended = serve_until_the_end(&place, opened, inherited.report).await;
    // Also after a failure: who starts the next host finds nothing to sweep.
    place.remove()?;
    let (clients, branches) = ended?;
    for mut stream in clients {
        // Whoever has left does not wait for it.
        let _ = tokio::time::timeout(FAREWELL, wire::tell(&mut stream, &HostAnswer::Stopped)).await;
    }
    drop(held);
    branches.close();
    branches.wait().await;
    Ok(())
}

async fn serve_until_the_end<S: Service>(
    place: &SessionPlace,
    opened: Result<(S, Vec<String>)>,
    line: File,
) -> Result<(Vec<UnixStream>, TaskTracker)> {
    let ready = opened.and_then(|(service, notes)| {
        let listener = listen(place).map_err(Error::process("open the host's socket"))?;
        Ok((service, notes, listener))
    });
    match ready {
        Ok((service, notes, listener)) => {
            report(line, &HostReport::Ready { notes })?;
            let branches = service.branches();
            Ok((serve(listener, service).await?, branches))
        }
        Err(error) => {
            let failure = WireError::new(&error);
            report(line, &HostReport::Failed { failure })?;
            Err(error)
        }
    }
}
