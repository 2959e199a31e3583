//! `cellblock inside`: the program in a machine of gVisor or a microVM, which serves one sandbox to the host.

use cellblock_image::{Home, ImageStore};
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::limits::{Limits, NetworkPolicy};
use cellblock_interpreter::remote::{ServeTerms, framed};
use cellblock_interpreter::walls::inside;
use cellblock_interpreter::walls::microvm::boot;
use cellblock_sandbox::error::Blame;

use crate::args::inside::{BootMachineArgs, InsideArgs};
use crate::error::{self, Error, Result};
use crate::exit_code::ExitCode;
use crate::render::Screen;

/// Line that it prints once the snapshot can be taken.
const READY: &str = "ready";

pub(crate) async fn run(args: InsideArgs) -> ExitCode {
    match serve(args).await {
        Ok(()) => ExitCode::Success,
        Err(error) => {
            error::tell(&error);
            error.exit_code()
        }
    }
}

/// Prepares everything that needs no host, and then serves the host that restores this machine.
async fn serve(args: InsideArgs) -> Result<()> {
    let image = ImageStore::new(Home::find()?).resolve(&args.image)?;
    let interpreter = Interpreter::builder()
        .image(image)
        .limits(args.limits()?)
        .pool(args.ready)
        .demands(args.demands())
        .walled(args.walled)
        .snapshot()
        .build()
        .await?;
    // The host limits how long a template takes: an emulated machine on a busy computer needs
    // longer than others.
    while let Err(error) = interpreter.warmed().await {
        if error.blame() != Blame::Capacity {
            return Err(error.into());
        }
    }
    while interpreter.ready_sandboxes() < args.ready {
        tokio::time::sleep(inside::PAUSE).await;
    }
    // The sandbox is for the only client.
    interpreter.stop_refilling();
    args.host.has_room(&args.limits()?).map_err(Error::Refused)?;
    let failed = |action| Error::process(action);
    let door = args.host.door().map_err(failed("prepare for the host"))?;
    Screen::new().show(READY);
    // The machine has a loopback of its own, which nothing outside it shares.
    let most = Limits {
        network: NetworkPolicy::Egress,
        ..args.limits()?
    };
    let mut suspended = None;
    loop {
        let woken = door.wake(&args.host).await;
        let (channel, wake) = woken.map_err(failed("wake from the snapshot"))?;
        interpreter.name_host(&wake.identity).await?;
        let terms = ServeTerms {
            most: Some(most.clone()),
            takes_layers: true,
            ..ServeTerms::default()
        };
        let served = interpreter.serve_machine(framed(channel), terms, suspended);
        suspended = served.await?;
        if suspended.is_none() {
            return Ok(());
        }
        door.close()
            .await
            .map_err(failed("close the stream to the host"))?;
    }
}

/// Runs the first process of a virtual machine.
pub(crate) fn boot(args: &BootMachineArgs) -> ExitCode {
    let error = Error::process("start this machine")(boot::boot(&args.words));
    error::tell(&error);
    error.exit_code()
}
