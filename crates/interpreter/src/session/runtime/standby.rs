//! State of a kernel's standby: whether one holds the state that a rescue must bring back, and if not, why.
//!
//! All of it is an allegation. What a false one gains is a process of the same sandbox as the
//! kernel, which is what a cell has anyway.

use cellblock_protocol::{Obstacle, ToKernel};

/// Follows one kernel.
#[derive(Clone, Debug, Default)]
pub(in crate::session) struct Standby {
    /// Messages to the kernel that changed its state, with the one that is being answered.
    changes: u64,
    /// The same without it.
    before: u64,
    /// The last cell that was given to this kernel, with the one that is being run; 0 when there was none.
    cell: u64,
    /// The same without it.
    cell_before: u64,
    /// Author of the last change of the state, with the message that is being answered.
    author: Author,
    /// The same without it.
    author_before: Author,
    told: Option<StandbyState>,
    /// Reason that there is none, and the author that caused it first.
    obstacle: Option<(Author, String)>,
}

/// Whose doing a state is.
#[derive(Clone, Copy, Debug, Default)]
enum Author {
    /// An input that was read into it.
    #[default]
    Input,
    /// Setup code.
    Setup,
    /// A cell, by its number.
    Cell(u64),
}

#[derive(Clone, Debug)]
struct StandbyState {
    changes: u64,
    pid: Option<u32>,
}

/// Place of the state from before the last message.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::session) enum Refuge {
    /// In any new kernel: no cell was run before.
    New,
    /// In this process of the sandbox.
    Process(u32),
    /// Nowhere.
    None(String),
}

impl Standby {
    /// Notes what is sent to the kernel; `cell` is the number of a cell that it runs.
    pub(in crate::session) fn sent(&mut self, message: &ToKernel, cell: u64) {
        self.before = self.changes;
        self.cell_before = self.cell;
        self.author_before = self.author;
        match message {
            ToKernel::Execute { .. } => {
                self.changes += 1;
                self.cell = cell;
                self.author = Author::Cell(cell);
            }
            ToKernel::Bind { .. } => {
                self.changes += 1;
                self.author = Author::Input;
            }
            ToKernel::Setup { .. } => {
                self.changes += 1;
                self.author = Author::Setup;
            }
            ToKernel::Configure { .. } | ToKernel::Reset { .. } => self.changes += 1,
            ToKernel::Restored {}
            | ToKernel::Get { .. }
            | ToKernel::Check { .. }
            | ToKernel::Variables { .. }
            | ToKernel::Answer { .. }
            | ToKernel::Checkpoint { .. }
            | ToKernel::TakeOver { .. }
            | ToKernel::Diverge { .. } => {}
        }
    }

    /// Notes what the kernel says.
    pub(in crate::session) fn heard(&mut self, changes: u64, pid: Option<u32>, refused: Option<Obstacle>) {
        self.told = Some(StandbyState { changes, pid });
        self.obstacle = refused.map(|obstacle| {
            let author = if changes == self.changes {
                self.author
            } else {
                self.author_before
            };
            let reason = obstacle.to_string();
            match self.obstacle.take() {
                Some((since, known)) if known == reason => (since, known),
                _ => (author, reason),
            }
        });
    }

    /// Notes that a process is a kept copy from now on: the kernel has given its standby away for that.
    pub(in crate::session) fn gave(&mut self, pid: Option<u32>) {
        self.told.take_if(|told| told.pid == pid);
    }

    /// Whether a kept copy, with the state that it has, is of the state from before the last message.
    pub(in crate::session) fn is_before(&self, of_a_copy: &Self) -> bool {
        self.before == of_a_copy.changes
    }

    /// Notes that the standby is the kernel now, in the state from before the last message.
    pub(in crate::session) fn took_over(&mut self) {
        *self = Self {
            changes: self.before,
            before: self.before,
            cell: self.cell_before,
            cell_before: self.cell_before,
            author: self.author_before,
            author_before: self.author_before,
            ..Self::default()
        };
    }

    /// Returns what a copy of the idle kernel starts with: the same state, without a standby.
    pub(in crate::session) fn of_a_copy(&self) -> Self {
        Self {
            changes: self.changes,
            before: self.changes,
            cell: self.cell,
            cell_before: self.cell,
            author: self.author,
            author_before: self.author,
            ..Self::default()
        }
    }

    /// Notes that nothing is being answered: what comes now is lost with the kernel.
    pub(in crate::session) fn settled(&mut self) {
        self.before = self.changes;
        self.cell_before = self.cell;
        self.author_before = self.author;
    }

    /// Whether a cell was run before the last message.
    pub(in crate::session) fn has_state(&self) -> bool {
        self.cell_before > 0
    }

    /// Returns the location of the state from before the last message.
    pub(in crate::session) fn refuge(&self) -> Refuge {
        if !self.has_state() {
            return Refuge::New;
        }
        let current = self.told.as_ref().filter(|told| told.changes == self.before);
        match (current.map(|told| told.pid), &self.obstacle) {
            (Some(Some(pid)), _) => Refuge::Process(pid),
            (Some(None), Some((Author::Cell(cell), reason))) => {
                Refuge::None(format!("cell {cell} left behind {reason}"))
            }
            (Some(None), Some((Author::Input, reason))) => {
                Refuge::None(format!("reading the inputs left behind {reason}"))
            }
            (Some(None), Some((Author::Setup, reason))) => {
                Refuge::None(format!("the setup code left behind {reason}"))
            }
            _ => Refuge::None("it came before a standby had been made".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(standby: &mut Standby, cell: u64) {
        let message = ToKernel::Execute {
            cell,
            code: String::new(),
            name: String::new(),
            line: 1,
            language: cellblock_protocol::Language::Python,
            argv: Vec::new(),
            mode: cellblock_protocol::CellMode::Exec,
            echo: true,
            store: true,
            last: false,
            references: Vec::new(),
            report_names: false,
            grace_ms: None,
        };
        standby.sent(&message, cell);
    }

    fn threads(owner: &str) -> Obstacle {
        Obstacle::Threads {
            owners: owner.to_owned(),
        }
    }

    #[test]
    fn before_the_first_cell_any_new_kernel_has_the_state() {
        let mut standby = Standby::default();
        standby.sent(&ToKernel::Reset { cell: 1 }, 0);
        run(&mut standby, 1);
        assert_eq!(standby.refuge(), Refuge::New);
    }

    #[test]
    fn only_a_standby_of_the_state_before_the_cell_is_a_refuge() {
        let mut standby = Standby::default();
        run(&mut standby, 1);
        run(&mut standby, 2);
        assert_eq!(
            standby.refuge(),
            Refuge::None("it came before a standby had been made".into())
        );
        standby.heard(1, Some(7), None);
        assert_eq!(standby.refuge(), Refuge::Process(7));
        run(&mut standby, 3);
        assert_eq!(
            standby.refuge(),
            Refuge::None("it came before a standby had been made".into())
        );
        standby.settled();
        standby.heard(3, Some(8), None);
        assert_eq!(standby.refuge(), Refuge::Process(8));
    }

    #[test]
    fn an_obstacle_is_reported_with_its_cell() {
        let mut standby = Standby::default();
        run(&mut standby, 1);
        run(&mut standby, 2);
        standby.heard(1, None, Some(threads("polars")));
        run(&mut standby, 3);
        standby.heard(2, None, Some(threads("polars")));
        assert_eq!(
            standby.refuge(),
            Refuge::None("cell 1 left behind threads (polars)".into())
        );
        standby.heard(2, Some(3), None);
        run(&mut standby, 4);
        standby.heard(3, None, Some(Obstacle::OpenPipe));
        assert_eq!(
            standby.refuge(),
            Refuge::None("cell 3 left behind an open pipe".into())
        );
    }

    #[test]
    fn an_obstacle_that_an_input_left_is_not_put_down_to_a_cell() {
        let bind = ToKernel::Bind {
            cell: 1,
            name: "x".into(),
            format: cellblock_protocol::InputFormat::Parquet,
            path: None,
        };
        let blamed = Refuge::None("reading the inputs left behind threads (pyarrow)".into());
        let mut before = Standby::default();
        before.sent(&bind, 0);
        before.heard(1, None, Some(threads("pyarrow")));
        run(&mut before, 1);
        before.heard(2, None, Some(threads("pyarrow")));
        run(&mut before, 2);
        assert_eq!(before.refuge(), blamed);
        let mut after = Standby::default();
        run(&mut after, 1);
        after.heard(1, Some(7), None);
        after.sent(&bind, 1);
        after.heard(2, None, Some(threads("pyarrow")));
        run(&mut after, 2);
        assert_eq!(after.refuge(), blamed);
    }

    #[test]
    fn a_standby_that_took_over_counts_on_from_its_own_state() {
        let mut standby = Standby::default();
        run(&mut standby, 1);
        run(&mut standby, 2);
        standby.heard(1, Some(7), None);
        standby.took_over();
        run(&mut standby, 3);
        standby.heard(1, Some(9), None);
        assert_eq!(standby.refuge(), Refuge::Process(9));
    }
}
