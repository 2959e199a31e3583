//! The end of a session's sandbox: when nobody has used it for long, or with the session.

use tokio::sync::mpsc;

use crate::error::Result;
use crate::session::actor::Actor;
use crate::session::options::OnIdle;
use crate::session::request::Request;

impl Actor {
    /// Waits for a request. A sandbox that nobody has needed for long is given back meanwhile.
    pub(in crate::session) async fn next(&mut self, queue: &mut mpsc::Receiver<Request>) -> Option<Request> {
        let rests = self.runtime.resting.is_so() && self.runtime.options.on_idle == OnIdle::Hibernate;
        let mut left = if rests {
            self.runtime.options.hibernation
        } else {
            self.runtime.options.idle
        };
        while self.runtime.sandbox.is_some() || self.runtime.asleep.is_some() {
            let waiting = async {
                tokio::select! {
                    biased;
                    request = queue.recv() => Some(request),
                    () = self.runtime.processes.ended(), if self.contents.volume.is_some() => None,
                }
            };
            let waited = tokio::time::timeout(left, waiting).await;
            match waited {
                Ok(Some(request)) => return request,
                Ok(None) => {
                    self.runtime
                        .save_volume_between_cells(&mut self.contents, &mut self.journal)
                        .await;
                    continue;
                }
                Err(_) => {}
            }
            left = self
                .runtime
                .options
                .idle
                .saturating_sub(self.runtime.processes.idle());
            if left.is_zero() || self.runtime.resting.is_so() {
                left = self.end_or_hibernate().await;
            }
        }
        queue.recv().await
    }

    /// Ends a sandbox that was not used for long, and lets the next cell tell what went with it.
    pub(in crate::session) async fn end_idle(&mut self) {
        let told = self.runtime.has_state();
        let hibernated = self.runtime.resting.set(false) && self.runtime.options.on_idle == OnIdle::Hibernate;
        let why = if hibernated {
            format!(
                "the session was hibernated for {} s, so it was ended",
                self.runtime.options.hibernation.as_secs_f64()
            )
        } else {
            format!(
                "the session was idle for {} s, so its sandbox was ended",
                self.runtime.options.idle.as_secs_f64()
            )
        };
        if let Err(error) = self.close().await {
            tracing::info!(
                error = &error as &dyn std::error::Error,
                "could not end an idle sandbox"
            );
        }
        self.runtime.discard(&mut self.contents, &mut self.journal);
        if told {
            self.journal.unreported.clear();
            self.runtime.lost_files = Some(format!("{why}; all files are gone. Write them again"));
            self.journal.unreported.push(format!(
                "{why}; all variables and files are gone. Run what defines your variables and writes your \
                 files again"
            ));
        }
    }

    pub(in crate::session) async fn close(&mut self) -> Result<()> {
        self.end_try().await;
        self.runtime.run_exit_handlers(&mut self.journal).await;
        self.runtime.save_volume_at_end(&mut self.contents).await;
        self.runtime.kernel = None;
        self.journal.unreported.extend(self.runtime.kept.lose());
        self.runtime.processes.lose();
        self.runtime.way_out.close();
        self.runtime.asleep = None;
        self.runtime.resting.set(false);
        match self.runtime.sandbox.take() {
            Some(sandbox) => {
                let id = sandbox.id().to_owned();
                let destroyed = sandbox.destroy().await;
                self.runtime.shared.returned(&id);
                Ok(destroyed?)
            }
            None => Ok(()),
        }
    }
}
