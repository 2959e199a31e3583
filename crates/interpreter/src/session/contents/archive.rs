//! Files that every sandbox of a session begins with.
//!
//! ```text
//! store ──archive──> guest ──> /tmp of the sandbox ── python3 ──> /workspace
//! ```
//!
//! The archive is packed by code of a sandbox, so the host only passes its bytes on. A program in the new
//! sandbox unpacks it, with the rights and limits of any code there.

use std::time::Duration;

use cellblock_sandbox::guest::{CommandEvent, SandboxCommand};

use crate::error::{Error, Result};
use crate::session::contents::Contents;
use crate::session::contents::collection::{ROOTS, state_of};
use crate::session::runtime::Runtime;

/// Path of the archive in the sandbox until it is unpacked.
const PACKED: &str = "/tmp/.cellblock-archive.tar.gz";
/// Program that unpacks it. Newer Pythons leave out links and modes unless the archive is trusted.
const UNPACK: &str = "import os, sys, tarfile\n\
                      with tarfile.open(sys.argv[1], 'r:gz') as archive:\n    \
                      archive.extraction_filter = getattr(tarfile, 'fully_trusted_filter', None)\n    \
                      archive.extractall(sys.argv[2])\n\
                      os.unlink(sys.argv[1])\n";
/// Maximum time for unpacking.
const LIMIT: Duration = Duration::from_mins(5);
/// Bytes of the program's output that an error repeats.
const SHOWN: usize = 500;
/// Files whose state is noted, so that cells do not hand them over as their own.
const NOTED: u32 = 10_000;

impl Runtime {
    /// Unpacks the session's archive in a sandbox that was just taken.
    pub(in crate::session) async fn fill_archive(&mut self, contents: &mut Contents) -> Result<()> {
        let (Some(id), Some(sandbox)) = (self.options.archive, &self.sandbox) else {
            return Ok(());
        };
        let failed = |reason: &str| {
            Error::Request(format!(
                "unpack the files that the session begins with: {reason}; make the archive again, or raise \
                 the limits of the sandbox"
            ))
        };
        let content = self.shared.store.verified_file(id).await.map_err(|error| {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "read the archive of a session"
            );
            failed("the archive cannot be read, and the server's log has the reason")
        })?;
        let guest = sandbox.guest();
        if let Err(error) = guest.write(PACKED, 0o600, content).await {
            return Err(match error.guest_refusal() {
                Some((_, reason)) => failed(reason),
                None => error.into(),
            });
        }
        let argv = ["python3", "-I", "-S", "-c", UNPACK, PACKED, ROOTS[0]];
        let command = SandboxCommand {
            argv: argv.map(str::to_owned).to_vec(),
            cwd: ROOTS[0].to_owned(),
            env: std::collections::BTreeMap::new(),
            inherit: true,
            timeout: LIMIT,
            input: false,
            keep: None,
            terminal: None,
        };
        let mut running = guest.run(command).await?;
        let mut written = Vec::new();
        let ended = loop {
            match running.events.recv().await {
                Some(CommandEvent::Started) => {}
                Some(CommandEvent::Output(_, bytes)) => {
                    written.extend(bytes);
                    let excess = written.len().saturating_sub(SHOWN);
                    written.drain(..excess);
                }
                Some(CommandEvent::Exited { code: Some(0), .. }) => break Ok(()),
                Some(CommandEvent::Exited { timed_out: true, .. }) => {
                    break Err(format!("it took longer than {} s", LIMIT.as_secs()));
                }
                Some(CommandEvent::Exited { .. }) => {
                    let text = String::from_utf8_lossy(&written);
                    let last = text.trim().lines().last().unwrap_or("its program failed");
                    break Err(super::files::escape(last));
                }
                Some(CommandEvent::Failed(reason)) => break Err(reason),
                None => return Err(Error::Closed),
            }
        };
        ended.map_err(|reason| failed(&reason))?;
        let listing = guest.list(ROOTS[0], None, NOTED).await?;
        contents.collected.stamps[0] = Some(listing.stamp);
        contents.collected.seen.extend(listing.files.iter().map(state_of));
        Ok(())
    }
}
