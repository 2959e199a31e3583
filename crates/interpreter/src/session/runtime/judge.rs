//! The result of an ended cell: its outcome, and the note for a model.

use std::time::Duration;

use cellblock_protocol::text::counted;
use cellblock_protocol::{CellError, Disk, KernelOutcome};
use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::{ProcessEnd, Usage};

use crate::execution::{LimitExcess, Outcome, Resource};
use crate::session::runtime::run::{Aftermath, End, RequestResult, Stop};

/// Error numbers of Linux that mean a limit.
mod errno {
    pub(in crate::session) const AGAIN: i32 = 11;
    pub(in crate::session) const NFILE: i32 = 23;
    pub(in crate::session) const MFILE: i32 = 24;
    pub(in crate::session) const FBIG: i32 = 27;
    pub(in crate::session) const NOSPC: i32 = 28;
    pub(in crate::session) const DQUOT: i32 = 122;
}

/// SIGKILL and SIGXCPU as numbers.
const KILL: i32 = 9;

/// All that is known.
#[derive(Debug)]
pub(in crate::session) struct Evidence<'a> {
    pub(in crate::session) ran: &'a RequestResult,
    pub(in crate::session) timeout: Duration,
    pub(in crate::session) limits: &'a Limits,
    /// Whether cgroups bound memory and processes. Without them the kernel counts no refusals:
    /// limits on processes show as errors.
    pub(in crate::session) counted: CgroupCounters,
    pub(in crate::session) before: Usage,
    pub(in crate::session) usage: Usage,
    pub(in crate::session) disks: Vec<Disk>,
    /// Whether the sandbox is still there when its kernel is not.
    pub(in crate::session) files_kept: bool,
}

/// Counters of the machine's cgroups.
#[derive(Clone, Copy, Debug)]
pub(in crate::session) struct CgroupCounters {
    pub(in crate::session) memory: bool,
    pub(in crate::session) processes: bool,
}

/// The outcome, and a note beside the outputs.
#[derive(Debug)]
pub(in crate::session) struct Verdict {
    pub(in crate::session) outcome: Outcome,
    pub(in crate::session) note: Option<String>,
}

const ALL_LOST: &str =
    "all variables and files are gone. Run what defines your variables and writes your files again";
const KEPT: &str = "variables are kept";
const ALONE: &str = "variables are kept, all other processes of the sandbox were ended";

/// Returns the model's note about its variables.
pub(in crate::session) fn tell(aftermath: &Aftermath) -> String {
    match aftermath {
        Aftermath::Kept => KEPT.to_owned(),
        Aftermath::Rescued => {
            "variables are as they were before it, files in /workspace as it left them".to_owned()
        }
        Aftermath::Lost(why) => {
            let why = why
                .as_ref()
                .map(|why| format!(" and could not be rescued, because {why}"));
            format!(
                "all variables are gone{}; files in /workspace are kept. Run what defines \
                 your variables again",
                why.unwrap_or_default()
            )
        }
    }
}

/// Whether the use of resources must be measured before judging. It costs two round trips, which a
/// cell that went well does not need.
pub(in crate::session) fn needs_evidence(ran: &RequestResult) -> bool {
    match &ran.end {
        End::Lost(_) => true,
        End::Done { outcome, .. } => {
            *outcome == KernelOutcome::Raised
                || (*outcome == KernelOutcome::Interrupted && ran.stopped == Some(Stop::Deadline))
        }
    }
}

pub(in crate::session) fn judge(evidence: &Evidence<'_>) -> Verdict {
    match &evidence.ran.end {
        End::Lost(ending) => evidence.lost(*ending),
        End::Done {
            outcome: KernelOutcome::Rejected,
            rejections,
            ..
        } => {
            let rejections = rejections.iter().cloned().map(Into::into).collect();
            Verdict {
                outcome: Outcome::Rejected { rejections },
                note: None,
            }
        }
        End::Done { .. } if evidence.ran.stopped == Some(Stop::Output) => evidence.flooded(),
        End::Done {
            outcome: KernelOutcome::Interrupted,
            ..
        } => evidence.interrupted(),
        End::Done {
            outcome: KernelOutcome::Raised,
            error,
            ..
        } => evidence.raised(error.as_ref()),
        End::Done {
            outcome: KernelOutcome::Completed,
            ..
        } => Verdict {
            outcome: Outcome::Completed,
            note: None,
        },
    }
}

impl Evidence<'_> {
    fn interrupted(&self) -> Verdict {
        let note = match self.ran.stopped {
            Some(Stop::Asked) => format!("the cell was interrupted; {KEPT}"),
            _ => format!(
                "timeout: the cell ran longer than its limit of {} s{} and was interrupted; {KEPT}. Do \
                 less in one cell: work on a smaller part of the data",
                self.timeout.as_secs_f64(),
                self.full_memory()
            ),
        };
        Verdict {
            outcome: Outcome::Interrupted,
            note: Some(note),
        }
    }

    fn lost(&self, ending: ProcessEnd) -> Verdict {
        if self.usage.memory_kills > self.before.memory_kills {
            let peak = self.usage.memory_peak_bytes.max(self.limits.memory_bytes);
            let state = if self.files_kept {
                tell(&self.ran.aftermath)
            } else {
                ALL_LOST.to_owned()
            };
            return exceeded(
                Resource::Memory,
                self.limits.memory_bytes,
                peak,
                &self.ran.aftermath,
                &state,
            );
        }
        let reason = match (self.ran.stopped, ending) {
            (Some(Stop::Output), _) => return self.flooded(),
            (Some(Stop::Deadline), ProcessEnd::Signaled(KILL)) => format!(
                "timeout: the cell ran longer than its limit of {} s{} and did not stop when interrupted, \
                 so its kernel was killed",
                self.timeout.as_secs_f64(),
                self.full_memory()
            ),
            (Some(Stop::Asked), ProcessEnd::Signaled(KILL)) => {
                "the cell did not stop when interrupted, so its kernel was killed".to_owned()
            }
            (_, ProcessEnd::Exited(code)) => format!("the cell ended its own kernel with exit code {code}"),
            (_, ProcessEnd::Signaled(signal)) => format!("the kernel was killed by {}", signal_name(signal)),
            (_, ProcessEnd::Unknown) => "the kernel ended".to_owned(),
        };
        let state = tell(&self.ran.aftermath);
        let note = match self.ran.aftermath {
            Aftermath::Rescued => format!("the cell was killed ({reason}); {state}"),
            _ => format!("{reason}; {state}"),
        };
        Verdict {
            outcome: Outcome::KernelLost { reason },
            note: Some(note),
        }
    }

    /// Says that the sandbox's memory was full, which may be why a cell took so long.
    fn full_memory(&self) -> String {
        if self.usage.memory_refusals > self.before.memory_refusals {
            let limit = size(self.limits.memory_bytes);
            format!(", reached the sandbox's memory limit of {limit}")
        } else {
            String::new()
        }
    }

    fn flooded(&self) -> Verdict {
        let written = self.ran.stdout.total() + self.ran.stderr.total();
        exceeded(
            Resource::OutputBytes,
            self.limits.stream_bytes,
            written,
            &self.ran.aftermath,
            &tell(&self.ran.aftermath),
        )
    }

    /// Reports an exception that a limit caused as that limit; its traceback stays among the
    /// outputs.
    fn raised(&self, error: Option<&CellError>) -> Verdict {
        let found = match error.and_then(|error| error.errno) {
            Some(errno::NOSPC | errno::DQUOT) => self.full_disk(),
            Some(errno::FBIG) => Some((
                Resource::FileBytes,
                self.limits.file_bytes,
                self.limits.file_bytes,
            )),
            Some(errno::NFILE | errno::MFILE) => Some((
                Resource::OpenFiles,
                self.limits.open_files,
                self.limits.open_files,
            )),
            Some(errno::AGAIN) => self.refused_processes(),
            None if error.is_some_and(cannot_start_a_thread) => self.refused_processes(),
            // A shell that could not start a program.
            None if self.counted.processes && error.is_some_and(|error| error.kind == "ExitStatus") => {
                self.refused_processes()
            }
            None if !self.counted.memory && error.is_some_and(|error| error.kind == "MemoryError") => Some((
                Resource::Memory,
                self.limits.memory_bytes,
                self.limits.memory_bytes,
            )),
            _ => None,
        };
        match found {
            Some((which, limit, actual)) => {
                let state = if which == Resource::Processes { ALONE } else { KEPT };
                exceeded(which, limit, actual, &Aftermath::Kept, state)
            }
            None => Verdict {
                outcome: Outcome::Raised,
                note: None,
            },
        }
    }

    fn refused_processes(&self) -> Option<(Resource, u64, u64)> {
        let refused = !self.counted.processes || self.usage.process_refusals > self.before.process_refusals;
        refused.then_some((
            Resource::Processes,
            self.limits.processes,
            self.limits.processes + 1,
        ))
    }

    fn full_disk(&self) -> Option<(Resource, u64, u64)> {
        let fullest = |used: fn(&Disk) -> u64, limit: fn(&Disk) -> u64| {
            let share = move |disk: &&Disk| u128::from(used(disk)) * 1000 / u128::from(limit(disk).max(1));
            self.disks
                .iter()
                .filter(|disk| disk.path != "/tmp/data")
                .max_by_key(share)
        };
        let inodes = fullest(|disk| disk.inodes_used, |disk| disk.inodes_limit)?;
        // A file system that does not limit files reports 0.
        if inodes.inodes_limit > 0 && inodes.inodes_used >= inodes.inodes_limit {
            return Some((Resource::Inodes, inodes.inodes_limit, inodes.inodes_used));
        }
        // The write that failed may have been undone meanwhile; the limit is told all the same.
        let bytes = fullest(|disk| disk.bytes_used, |disk| disk.bytes_limit)?;
        Some((Resource::Disk, bytes.bytes_limit, bytes.bytes_used))
    }
}

fn exceeded(which: Resource, limit: u64, actual: u64, aftermath: &Aftermath, state: &str) -> Verdict {
    let show = |value| {
        if which.is_bytes() {
            size(value)
        } else {
            value.to_string()
        }
    };
    let advice = match which {
        Resource::Memory => {
            "Work on less data at a time: select columns, read in chunks, delete what is no longer needed"
        }
        Resource::Processes => "Start fewer processes and threads, and wait for those that you started",
        Resource::Disk | Resource::Inodes | Resource::FileBytes => {
            "Remove files that are no longer needed, or write less"
        }
        Resource::OpenFiles => "Close files and sockets, for example with `with`",
        Resource::OutputBytes => "Print a summary instead, or write the data to a file in /tmp/output",
    };
    let killed = if *aftermath == Aftermath::Rescued {
        "the cell was killed, as it"
    } else {
        "the cell"
    };
    let note = format!(
        "{killed} exceeded the limit on {}: limit {}, actual {}; {state}. {advice}",
        which.describe(),
        show(limit),
        show(actual)
    );
    Verdict {
        outcome: Outcome::LimitExceeded(LimitExcess {
            which,
            limit,
            actual,
            kernel_lost: *aftermath != Aftermath::Kept,
        }),
        note: Some(note),
    }
}

/// Python has no exception type and no error number for it.
fn cannot_start_a_thread(error: &CellError) -> bool {
    error.kind == "RuntimeError" && error.message.contains("can't start new thread")
}

/// Bytes as a person reads them.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return counted(bytes, "byte");
    }
    let mut tenths = bytes * 10 / 1024;
    let mut unit = 0;
    while tenths >= 10 * 1024 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        4 => "SIGILL (an illegal instruction)",
        6 => "SIGABRT (it aborted itself)",
        7 => "SIGBUS (a bad memory access)",
        8 => "SIGFPE (an arithmetic fault)",
        9 => "SIGKILL",
        11 => "SIGSEGV (a segmentation fault)",
        15 => "SIGTERM",
        31 => "SIGSYS (a forbidden system call)",
        _ => return format!("signal {signal}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Capture;

    #[test]
    fn sizes_read_well() {
        assert_eq!(size(12), "12 bytes");
        assert_eq!(size(1024), "1.0 KiB");
        assert_eq!(size(64 << 20), "64.0 MiB");
        assert_eq!(size(3 << 29), "1.5 GiB");
    }

    #[test]
    fn a_timeout_says_whether_memory_was_full() {
        let ran = RequestResult {
            end: End::Lost(ProcessEnd::Signaled(KILL)),
            stopped: Some(Stop::Deadline),
            outputs: Vec::new(),
            outputs_dropped: 0,
            files: false,
            stdout: Capture::new(10),
            stderr: Capture::new(10),
            variables: Vec::new(),
            findings: Vec::new(),
            names: None,
            unkept: Vec::new(),
            aftermath: Aftermath::Rescued,
        };
        let limits = Limits {
            memory_bytes: 512 << 20,
            ..Limits::default()
        };
        for (memory_refusals, told) in [
            (0, " s and did not"),
            (3, " s, reached the sandbox's memory limit of 512.0 MiB and"),
        ] {
            let verdict = judge(&Evidence {
                ran: &ran,
                timeout: Duration::from_secs(20),
                limits: &limits,
                counted: CgroupCounters {
                    memory: true,
                    processes: true,
                },
                before: Usage::default(),
                usage: Usage {
                    memory_refusals,
                    ..Usage::default()
                },
                disks: Vec::new(),
                files_kept: true,
            });
            let note = verdict.note.unwrap();
            assert!(note.contains(told), "{note}");
        }
    }

    #[test]
    fn a_limit_is_reported_with_its_value_the_actual_one_and_a_fix() {
        let verdict = exceeded(Resource::Processes, 256, 257, &Aftermath::Kept, ALONE);
        assert_eq!(
            verdict.note.unwrap(),
            "the cell exceeded the limit on number of processes: limit 256, actual 257; variables are \
             kept, all other processes of the sandbox were ended. Start fewer processes and threads, and \
             wait for those that you started"
        );
    }
}
