//! The probes as commands of a program that has got out of its context: it reaches what a cell of
//! JavaScript does, and no more.

use std::time::Duration;

use cellblock_interpreter::Session;
use cellblock_interpreter::toolset::program::{KIND, PROGRAM, ProgramArguments};
use cellblock_interpreter::toolset::{ToolResult, ToolsetTerms};
use cellblock_testkit::require;
use serde_json::json;

use crate::scripts::{SCRIPT, ScriptOutput, Scripts, complaints};
use crate::support::{block_on, interpreter};

/// Gets the process of Node.js from an error that was made outside of the program's context.
const ESCAPE: &str = "\
let outside;
try { await import('fs'); } catch (error) { outside = error.constructor.constructor('return process')(); }
const require = (name) => outside.mainModule.require(name);
const { openSync, readFileSync } = require('fs');
const [out, errors] = ['/tmp/attempt.out', '/tmp/attempt.err'];
const env = { ...outside.env, PYTHONPATH: '/tmp/shared' };
// Pipes of Node.js are sockets, which a probe would find.
const stdio = ['ignore', openSync(out, 'w'), openSync(errors, 'w')];
const ended = require('child_process').spawnSync('python', [SCRIPT], { env, stdio });
text(readFileSync(out, 'utf8'));
if (ended.status !== 0) throw new Error(`${ended.status} ${ended.signal} ${readFileSync(errors, 'utf8')}`);
";

/// Programs of a session.
struct Programs(Session);

#[test]
fn no_probe_reaches_anything_as_a_program_out_of_its_context() {
    require!(UserNamespaces);
    require!(CgroupV1);
    let complaints = block_on(complaints::<Programs>());
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

impl Scripts for Programs {
    const DIFFERENT: &[(&str, &str)] = &[(
        "processes/see_others",
        "a program sees Node.js, whose child it is, in the same sandbox",
    )];

    fn of(session: Session) -> Self {
        Self(session)
    }

    async fn run(&self, code: &str) -> ScriptOutput {
        self.0.write_file(SCRIPT, code.as_bytes()).await.unwrap();
        let terms = ToolsetTerms {
            max_timeout: Duration::from_mins(1),
            ..ToolsetTerms::default()
        };
        let arguments = ProgramArguments {
            code: format!("const SCRIPT = '{SCRIPT}';\n{ESCAPE}"),
            functions: Vec::new(),
            calls: Vec::new(),
            started_ms: 0,
        };
        let programs = (KIND.open)(interpreter().await, self.0.clone(), &terms)
            .await
            .unwrap();
        let result = programs
            .call(PROGRAM, json!(arguments), &mut |_| {})
            .await
            .unwrap();
        let ToolResult::Json(report) = result else {
            panic!("{result:?}");
        };
        ScriptOutput {
            stdout: report["text"].as_str().unwrap().to_owned(),
            all: report.to_string(),
        }
    }

    async fn end(self) {
        self.0.close().await.unwrap();
    }
}
