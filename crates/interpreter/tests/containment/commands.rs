//! The probes as scripts that the workbench runs: a command is confined as a kernel is.

use cellblock_interpreter::Session;
use cellblock_interpreter::workbench::{ExecArgs, Workbench, WorkbenchOptions, WriteArgs};
use cellblock_testkit::require;

use crate::scripts::{SCRIPT, ScriptOutput, Scripts, complaints};
use crate::support::block_on;

#[test]
fn no_probe_reaches_anything_as_a_command() {
    require!(UserNamespaces);
    require!(CgroupV1);
    let complaints = block_on(complaints::<Workbench>());
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

impl Scripts for Workbench {
    fn of(session: Session) -> Self {
        Self::new(session, WorkbenchOptions::default())
    }

    async fn run(&self, code: &str) -> ScriptOutput {
        let written = self.write_file(WriteArgs::new(SCRIPT, code)).await.unwrap();
        written.unwrap();
        let command = ["env", "PYTHONPATH=/tmp/shared", "python", SCRIPT];
        let ended = self.exec(ExecArgs::new(command)).await.unwrap().unwrap();
        ScriptOutput {
            all: format!("{ended:?}"),
            stdout: ended.stdout,
        }
    }

    async fn end(self) {
        self.close().await.unwrap();
    }
}
