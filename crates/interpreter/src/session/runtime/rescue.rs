//! Going on after a kernel has ended: its standby takes over where one holds the state from before.

use std::time::Duration;

use crate::error::Result;
use crate::execution::{Execution, VariablesState};
use crate::session::journal::Journal;
use crate::session::journal::timeline::TimelineEvent;
use crate::session::runtime::RunTerms;
use crate::session::runtime::Runtime;
use crate::session::runtime::run::{Aftermath, End};
use crate::session::runtime::standby::Refuge;

use cellblock_protocol::{FromKernel, Rescue, ToKernel};
use cellblock_sandbox::backend::LAST_WORDS;

/// Maximum number of frames of an ended kernel that are looked at; others may still send in its name.
const LAST_FRAMES: usize = 64;
/// Maximum time for an interrupted kernel to show that it is ready.
const HEARING: Duration = Duration::from_secs(10);

/// Successor of an ended kernel.
enum Successor {
    /// Its standby, by its pid.
    Standby(u32),
    /// The copy of a checkpoint, by its place.
    Kept(usize),
}

impl Aftermath {
    pub(in crate::session) const fn state(&self) -> VariablesState {
        match self {
            Self::Kept => VariablesState::Kept,
            Self::Rescued => VariablesState::Rescued,
            Self::Lost(_) => VariablesState::Lost,
        }
    }
}

impl Execution {
    /// Whether the session's variables are gone.
    pub fn kernel_lost(&self) -> bool {
        self.state == VariablesState::Lost
    }
}

impl Runtime {
    /// Replaces the kernel, which has ended, by its standby if there is one, or by the copy of a
    /// checkpoint that has the same state.
    pub(in crate::session) async fn rescue(&mut self, journal: &mut Journal) -> Aftermath {
        let aftermath = self.replace_kernel().await;
        journal.note_event(match aftermath {
            Aftermath::Lost(_) => TimelineEvent::KernelLost,
            Aftermath::Kept | Aftermath::Rescued => TimelineEvent::Rescued,
        });
        aftermath
    }

    async fn replace_kernel(&mut self) -> Aftermath {
        let refuge = match self.options.rescue {
            Rescue::Off => Err(Aftermath::Lost(None)),
            Rescue::Idle | Rescue::On => match self.standby.refuge() {
                // The next request makes one, and binds the inputs.
                Refuge::New => Err(Aftermath::Rescued),
                Refuge::Process(pid) => Ok(Successor::Standby(pid)),
                Refuge::None(why) => match self.kept.of_before(&self.standby) {
                    Some(place) => Ok(Successor::Kept(place)),
                    None => Err(Aftermath::Lost(Some(why))),
                },
            },
        };
        let ended = self.kernel.take();
        let successor = match refuge {
            Ok(successor) => successor,
            Err(aftermath) => {
                self.kept.set_aside(ended);
                return aftermath;
            }
        };
        let (Some(sandbox), Some(ended)) = (&self.sandbox, ended) else {
            return Aftermath::Lost(None);
        };
        let spared = self.kept.pids().await;
        let went_on = match successor {
            Successor::Standby(pid) => sandbox.rescue(ended, pid, &spared).await,
            Successor::Kept(place) => match sandbox.guest().kill_all_but(&spared).await {
                Ok(()) => sandbox.roll_back(ended, self.kept.kernel(place)).await,
                Err(error) => Err(error),
            },
        };
        match went_on {
            Ok(kernel) => {
                self.kernel = Some(kernel);
                self.interrupts.unseen = false;
                self.standby.took_over();
                Aftermath::Rescued
            }
            Err(error) => {
                tracing::info!(
                    error = &error as &dyn std::error::Error,
                    "a standby did not take over"
                );
                self.kept.lose_output();
                Aftermath::Lost(Some("the standby was killed, too".to_owned()))
            }
        }
    }

    /// Makes sure that the kernel has seen the signal that stopped a cell. If the signal came after
    /// the cell's end, the kernel would take it for the next message. So a message without effect
    /// is sent.
    pub(in crate::session) async fn hear_out(&mut self, journal: &mut Journal) -> Result<()> {
        if !std::mem::take(&mut self.interrupts.unseen) || self.kernel.is_none() {
            return Ok(());
        }
        if let (Some(kernel), Some(sandbox)) = (&self.kernel, &self.sandbox)
            && kernel.may_overtake().await
        {
            // What is wrong with the connection shows in what follows.
            let _ = sandbox.usage().await;
        }
        let message = ToKernel::Variables { cell: self.number() };
        let had_state = self.standby.has_state();
        let ran = self.run(journal, &message, RunTerms::alone(HEARING)).await?;
        if matches!(ran.end, End::Lost(_)) {
            Self::tell_of_the_end(journal, had_state, &ran.aftermath);
        }
        Ok(())
    }

    /// The kernel has ended while no cell ran: by a thread or process that one had left behind. The
    /// next cell tells.
    pub(in crate::session) async fn lost_between_cells(&mut self, journal: &mut Journal) {
        self.standby.settled();
        if let Some(kernel) = &mut self.kernel {
            for _ in 0..LAST_FRAMES {
                let Ok(Ok(Some(frame))) = tokio::time::timeout(LAST_WORDS, kernel.frames.next()).await else {
                    break;
                };
                if let FromKernel::Standby {
                    changes,
                    pid,
                    refused,
                } = frame.message
                {
                    self.standby.heard(changes, pid, refused);
                }
            }
        }
        let had_state = self.standby.has_state();
        let aftermath = self.rescue(journal).await;
        Self::tell_of_the_end(journal, had_state, &aftermath);
    }

    fn tell_of_the_end(journal: &mut Journal, had_state: bool, aftermath: &Aftermath) {
        let state = match aftermath {
            Aftermath::Lost(_) => crate::session::runtime::judge::tell(aftermath),
            Aftermath::Kept | Aftermath::Rescued => "variables are as they were".to_owned(),
        };
        if had_state {
            journal
                .unreported
                .push(format!("the kernel ended after the previous cell; {state}"));
        }
    }
}
