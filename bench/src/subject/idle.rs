//! Memory of sessions that have run one cell and wait.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;

use super::{Subject, WHO, completed};
use crate::memory::{ProcessTree, available};
use crate::probe::{Probe, SampleFuture};
use crate::programs::SUM;
use crate::samples::Samples;

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * 1024.0;
/// After a minute, sessions give up what only makes the next cell safe or fast.
const REST: Duration = Duration::from_secs(70);

/// Opens sessions, as many as each of these numbers says in all, and measures at each.
pub(crate) struct IdleSessions {
    pub(crate) subject: Arc<Subject>,
    pub(crate) counts: &'static [usize],
}

impl IdleSessions {
    async fn run(&self, samples: &mut Samples) -> Result<()> {
        let mut live = Vec::new();
        let measured = self.measure(&mut live, samples).await;
        for session in &live {
            session.close().await?;
        }
        measured?;
        self.subject.settle().await
    }

    async fn measure(
        &self,
        live: &mut Vec<cellblock_interpreter::Session>,
        samples: &mut Samples,
    ) -> Result<()> {
        let (before, free) = (ProcessTree::measure()?, available()?);
        for &count in self.counts {
            while live.len() < count {
                let session = self.subject.session(false);
                live.push(session.clone());
                completed(&session.execute(SUM).await?)?;
            }
            let now = ProcessTree::measure()?;
            let used = free.saturating_sub(available()?);
            let mut keep = |what: &str, bytes: u64, sessions: usize, unit: f64| {
                #[expect(clippy::cast_precision_loss, reason = "bytes of memory fit a double")]
                let value = bytes as f64 / sessions as f64 / unit;
                samples.add(WHO, &format!("{what}_{count}"), value);
            };
            let private = now.sessions.private.saturating_sub(before.sessions.private);
            let proportional = now
                .sessions
                .proportional
                .saturating_sub(before.sessions.proportional);
            keep("idle_uss", private, count, KIB);
            keep("idle_pss", proportional, count, KIB);
            keep("total_uss", private, 1, MIB);
            // Sharing spreads the template's pages over everyone, so only the sum of all tells what there is.
            let whole = now.sessions.proportional + now.template.proportional + now.launcher.proportional;
            keep("total_pss", whole, 1, MIB);
            keep("total_used", used, 1, MIB);
            keep("template_pss", now.template.proportional, 1, MIB);
            keep("template_uss", now.template.private, 1, MIB);
            keep("launcher_pss", now.launcher.proportional, 1, MIB);
        }
        tokio::time::sleep(REST).await;
        let used = free.saturating_sub(available()?);
        #[expect(clippy::cast_precision_loss, reason = "bytes of memory fit a double")]
        samples.add(WHO, "rested_used", used as f64 / MIB);
        Ok(())
    }
}

impl Probe for IdleSessions {
    fn who(&self) -> &'static str {
        WHO
    }

    fn what(&self) -> &'static str {
        "idle"
    }

    fn sample<'a>(&'a mut self, samples: &'a mut Samples) -> SampleFuture<'a> {
        Box::pin(self.run(samples))
    }
}
