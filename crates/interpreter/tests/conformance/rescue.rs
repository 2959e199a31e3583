//! Sessions whose variables survive a cell that kills the kernel, and those whose variables cannot.

use std::time::{Duration, Instant};

use cellblock_interpreter::cell::Rescue;
use cellblock_interpreter::execution::{Outcome, VariablesState};
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::output::Output;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::{Execution, Input};
use cellblock_testkit::require;
use cellblock_testkit::wait::until_ok;
use serde_json::json;

use crate::isolation::COMMANDS;
use crate::limited::{MIB, rescuing, unrescued};
use crate::stored::content;
use crate::support::{block_on, interpreter, run, run_for, session, value};

const DEFINE: &str = "\
import os, ctypes, pandas as pd
frame = pd.DataFrame({'x': [1, 2, 3], 's': list('abc')})
def double(value):
    return value * factor
factor = 2
class Point:
    def __init__(self, x):
        self.x = x
point = Point(5)
with open('/workspace/lines', 'w') as file:
    file.write('one\\ntwo\\nthree\\n')
lines = open('/workspace/lines')
first = next(lines)";

/// Changes of a cell before it kills its kernel.
const SPOIL: &str = "\
frame['x'] = 0
factor = 100
Point.x = 1
point.x = 9
del double
next(lines)
half = 'done'
open('/workspace/left', 'w').write('by the dead cell')
";

/// Whether everything is as `DEFINE` left it.
const CHECK: &str = "(int(frame.x.sum()), list(frame.s), double(4), point.x, type(point) is Point, first \
                     + next(lines), 'half' in globals()) == (6, ['a', 'b', 'c'], 8, 5, True, \
                     'one\\ntwo\\n', False)";

fn rescued_note(reason: &str) -> String {
    format!(
        "the cell was killed ({reason}); variables are as they were before it, files in /workspace as it \
         left them"
    )
}

#[track_caller]
fn is_rescued(ended: &Execution, reason: &str) {
    let outcome = Outcome::KernelLost {
        reason: reason.to_owned(),
    };
    assert_eq!(ended.outcome, outcome);
    assert_eq!(ended.note, Some(rescued_note(reason)));
    assert_eq!(
        (ended.state, ended.kernel_lost()),
        (VariablesState::Rescued, false)
    );
}

#[test]
fn a_large_parquet_input_does_not_cost_a_session_its_rescue() {
    needs!(Rescue);
    block_on(async {
        let author = session().await;
        let write = "import numpy as np\n\
                     pd.DataFrame({'x': np.random.default_rng(1).random(13_000_000)})\
                     .to_parquet('/tmp/output/x.parquet')";
        let made = run(&author, write).await;
        author.close().await.unwrap();
        let [file] = &made.files[..] else {
            panic!("not one file: {made:#?}")
        };
        assert!(file.bytes > 100_000_000, "{}", file.bytes);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.parquet");
        std::fs::write(&path, content(&file.sha256).await).unwrap();
        let session = rescuing(|_| {}).await;
        session.bind(Input::file("t", path)).await.unwrap();
        run(&session, "rows = len(t)").await;
        let ended = run(&session, "import os\nos._exit(3)").await;
        is_rescued(&ended, "the cell ended its own kernel with exit code 3");
        assert_eq!(value(&session, "rows, len(t)").await, "(13000000, 13000000)");
    });
}

#[test]
fn variables_survive_each_way_in_which_a_cell_can_kill_its_kernel() {
    needs!(Rescue);
    block_on(async {
        for (death, reason) in [
            (
                "ctypes.string_at(0)",
                "the kernel was killed by SIGSEGV (a segmentation fault)",
            ),
            ("os._exit(7)", "the cell ended its own kernel with exit code 7"),
            (
                "os.abort()",
                "the kernel was killed by SIGABRT (it aborted itself)",
            ),
        ] {
            let session = rescuing(|_| {}).await;
            run(&session, DEFINE).await;
            let ended = run(&session, &format!("{SPOIL}print('last words')\n{death}")).await;
            is_rescued(&ended, reason);
            assert_eq!(ended.stdout.text, "last words\n");
            assert_eq!(value(&session, CHECK).await, true, "{death}");
            assert_eq!(
                value(&session, "open('/workspace/left').read()").await,
                "by the dead cell"
            );
        }
    });
}

#[test]
fn variables_survive_in_a_session_that_has_drawn_charts() {
    needs!(Rescue);
    block_on(async {
        let session = rescuing(|_| {}).await;
        run(&session, DEFINE).await;
        let drawn = run(
            &session,
            "{'$schema': 'https://vega.github.io/schema/vega-lite/v5.json', 'mark': 'bar', \
             'data': {'values': [{'a': 1}]},\n\
             'encoding': {'x': {'field': 'a', 'type': 'quantitative'}}}",
        )
        .await;
        let [Output::Figure(figure)] = &drawn.outputs[..] else {
            panic!("{drawn:#?}");
        };
        assert!(figure.image.is_some(), "{figure:?}");
        let ended = run(&session, &format!("{SPOIL}os._exit(7)")).await;
        is_rescued(&ended, "the cell ended its own kernel with exit code 7");
        assert_eq!(value(&session, CHECK).await, true);
    });
}

#[test]
fn variables_survive_a_deadline_in_code_that_does_not_listen() {
    needs!(Rescue);
    block_on(async {
        let session = rescuing(|_| {}).await;
        run(&session, DEFINE).await;
        let stuck =
            format!("{SPOIL}import collections, itertools\ncollections.deque(itertools.repeat(0), maxlen=0)");
        let ended = run_for(&session, Duration::from_millis(500), &stuck).await;
        is_rescued(
            &ended,
            "timeout: the cell ran longer than its limit of 0.5 s and did not stop when interrupted, so \
             its kernel was killed",
        );
        assert_eq!(value(&session, CHECK).await, true);
    });
}

#[test]
fn variables_survive_running_out_of_memory() {
    needs!(Rescue);
    require!(CgroupV1);
    block_on(async {
        let session = rescuing(|limits| limits.memory_bytes = 512 * MIB).await;
        run(&session, DEFINE).await;
        let ended = run(
            &session,
            &format!("{SPOIL}held = []\nwhile True:\n    held.append(bytearray(10_000_000))"),
        )
        .await;
        assert_eq!(ended.outcome.name(), "limit_exceeded", "{ended:#?}");
        assert_eq!(ended.state, VariablesState::Rescued);
        let note = ended.note.unwrap();
        assert!(
            note.starts_with("the cell was killed, as it exceeded the limit on memory: limit 512.0 MiB, "),
            "{note}"
        );
        assert!(
            note.contains("; variables are as they were before it, files in /workspace as it left them. "),
            "{note}"
        );
        assert_eq!(value(&session, CHECK).await, true);
    });
}

#[test]
fn three_kernels_in_a_row_may_die() {
    needs!(Rescue);
    block_on(async {
        let session = rescuing(|_| {}).await;
        run(&session, DEFINE).await;
        for round in 0..3 {
            let ended = run(&session, &format!("{SPOIL}os._exit({round})")).await;
            assert_eq!(ended.state, VariablesState::Rescued, "{round}: {:?}", ended.note);
        }
        assert_eq!(value(&session, CHECK).await, true);
        assert_eq!(
            run(&session, "factor = 3\nos._exit(1)").await.state,
            VariablesState::Rescued
        );
        assert_eq!(run(&session, "factor = 4").await.state, VariablesState::Kept);
        assert_eq!(run(&session, "os._exit(1)").await.state, VariablesState::Rescued);
        assert_eq!(value(&session, "factor").await, 4);
    });
}

#[test]
fn a_session_without_variables_is_unchanged() {
    block_on(async {
        let session = rescuing(|_| {}).await;
        let reason = "the cell ended its own kernel with exit code 1";
        is_rescued(&run(&session, "x = 1\nimport os\nos._exit(1)").await, reason);
        assert_eq!(value(&session, "'x' in globals()").await, false);
    });
}

#[test]
fn without_rescue_a_killed_kernel_takes_its_variables_with_it() {
    needs!(HiddenProcesses);
    block_on(async {
        let session = unrescued(|_| {}).await;
        run(&session, "import os\nkept = 1").await;
        assert_eq!(
            value(&session, "sum(name.isdigit() for name in os.listdir('/proc'))").await,
            1
        );
        let ended = run(&session, "os._exit(7)").await;
        assert_eq!(ended.state, VariablesState::Lost);
        assert_eq!(
            ended.note.as_deref(),
            Some(
                "the cell ended its own kernel with exit code 7; all variables are gone; files in \
                 /workspace are kept. Run what defines your variables again"
            )
        );
        assert_eq!(value(&session, "'kept' in globals()").await, false);
    });
}

#[test]
fn the_note_names_state_that_a_standby_cannot_keep() {
    needs!(Rescue);
    block_on(async {
        for (code, left) in [
            (
                "import polars as pl\nshown = pl.DataFrame({'a': [1, 2, 1]}).group_by('a').len().height",
                "threads (",
            ),
            (
                "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()",
                "threads that Python started",
            ),
            ("ends = os.pipe()", "an open pipe"),
            (
                "import subprocess\nchild = subprocess.Popen(['sleep', '600'])",
                "child processes",
            ),
        ] {
            let session = rescuing(|_| {}).await;
            run(&session, "import os\nkept = 1").await;
            run(&session, code).await;
            run(&session, "more = 1").await;
            let ended = run(&session, "os._exit(1)").await;
            assert_eq!(ended.state, VariablesState::Lost);
            let note = ended.note.unwrap();
            let told = format!(
                "exit code 1; all variables are gone and could not be rescued, because cell 2 \
                 left behind {left}"
            );
            assert!(note.contains(&told), "{note}");
            assert_eq!(value(&session, "'kept' in globals()").await, false);
        }
    });
}

#[test]
fn libraries_that_were_used_before_a_rescue_work_after_it() {
    needs!(Rescue);
    block_on(async {
        let session = rescuing(|_| {}).await;
        let work = "\
product = matrix @ matrix
from sklearn.cluster import KMeans
labels = len(set(KMeans(2, n_init=1, random_state=0).fit(points).labels_))
figure, axes = plt.subplots()
axes.plot([1, 2, 3])
plt.close(figure)
decomposed = np.linalg.svd(matrix, compute_uv=False)";
        run(
            &session,
            "import os\nmatrix = np.arange(250_000.0).reshape(500, 500)\npoints = np.random.rand(4000, 3)",
        )
        .await;
        let worked = run(&session, work).await;
        assert_eq!(worked.outcome, Outcome::Completed, "{worked:#?}");
        run(
            &session,
            "before = (float(product.sum()), labels, float(decomposed[0]))",
        )
        .await;
        let ended = run(&session, "product[:] = 0\nos._exit(1)").await;
        assert_eq!(ended.state, VariablesState::Rescued, "{:?}", ended.note);
        let worked = run_for(&session, Duration::from_mins(1), work).await;
        assert_eq!(worked.outcome, Outcome::Completed, "{worked:#?}");
        let same = "before == (float(product.sum()), labels, float(decomposed[0]))";
        assert_eq!(value(&session, same).await, true);
    });
}

#[test]
fn processes_of_a_killed_cell_cannot_write_to_the_next() {
    needs!(Rescue);
    block_on(async {
        let session = rescuing(|_| {}).await;
        run(&session, "import os, subprocess\nkept = 1").await;
        let ended = run(
            &session,
            "subprocess.Popen(['sh', '-c', 'while true; do echo noise; done'], start_new_session=True)\n\
             os._exit(1)",
        )
        .await;
        assert_eq!(ended.state, VariablesState::Rescued);
        let next = run(&session, "print(kept)").await;
        assert_eq!(next.stdout.text, "1\n");
        assert_eq!(
            value(&session, &format!("{COMMANDS}'sh' in commands()")).await,
            false
        );
    });
}

#[test]
fn cells_do_not_notice_the_standby_as_a_child() {
    block_on(async {
        let session = rescuing(|_| {}).await;
        run(
            &session,
            "import os, signal, multiprocessing\nseen = []\n\
             signal.signal(signal.SIGCHLD, lambda *_: seen.append(1))",
        )
        .await;
        run(&session, "1").await;
        let waits = "try:\n    answer = os.wait()\nexcept ChildProcessError:\n    answer = None\n\
                     [answer, seen, multiprocessing.active_children()] == [None, [], []]";
        assert_eq!(value(&session, waits).await, true);
    });
}

#[test]
fn inputs_and_other_changes_between_cells_survive() {
    needs!(Rescue);
    block_on(async {
        let session = rescuing(|_| {}).await;
        run(&session, "import os\nx = 1").await;
        session
            .bind(cellblock_interpreter::Input::value("given", &json!({"a": 1})))
            .await
            .unwrap();
        assert_eq!(
            run(&session, "given['a'] = 2\nos._exit(1)").await.state,
            VariablesState::Rescued
        );
        assert_eq!(value(&session, "given == {'a': 1} and x == 1").await, true);
        session.reset().await.unwrap();
        assert_eq!(
            run(&session, "import os\ny = 2\nos._exit(1)").await.state,
            VariablesState::Rescued
        );
        assert_eq!(
            value(
                &session,
                "[name in globals() for name in ('x', 'y', 'given')] == [False, False, True]"
            )
            .await,
            true
        );
    });
}

#[test]
fn a_kernel_that_ends_between_cells_is_rescued_and_the_next_cell_says_so() {
    needs!(Rescue);
    block_on(async {
        let session = rescuing(|_| {}).await;
        run(&session, "kept = 1").await;
        let killer = "\
import os, subprocess
script = f'until [ -e /workspace/now ]; do sleep 0.02; done; kill -9 {os.getpid()}; touch /workspace/killed'
subprocess.run(['sh', '-c', f'({script}) > /dev/null 2>&1 &'])";
        assert_eq!(run(&session, killer).await.outcome, Outcome::Completed);
        // What runs now is answered after the standby was made.
        session.variables().await.unwrap();
        session.write_file("/workspace/now", "").await.unwrap();
        until_ok(async || session.read_file("/workspace/killed").await).await;
        // The host may hear of it before the next cell or while it waits for its answer.
        let note = run(&session, "kept").await.note.unwrap();
        assert!(note.contains("; variables are as they were"), "{note}");
        assert_eq!(value(&session, "kept").await, 1);
    });
}

#[test]
fn a_standby_ends_with_its_session() {
    needs!(Rescue);
    require!(CgroupV1);
    block_on(async {
        let session = rescuing(|_| {}).await;
        run(&session, "import os\nkept = 1").await;
        assert_eq!(run(&session, "os._exit(1)").await.state, VariablesState::Rescued);
        assert_eq!(value(&session, "kept").await, 1);
        // Which removes the sandbox's cgroups, and cannot while a process is in one.
        session.close().await.unwrap();
    });
}

#[test]
fn by_default_a_cell_that_follows_a_pause_is_rescued() {
    needs!(Rescue);
    block_on(async {
        let session = session().await;
        run(&session, "import os\nkept = 1").await;
        // Longer than the kernel waits for another message, however busy the machine is: until the
        // standby is seen.
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let processes = "sum(name.isdigit() for name in os.listdir('/proc'))";
            if value(&session, processes).await == 2 {
                break;
            }
            assert!(Instant::now() < deadline, "no standby is made");
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(
            run(&session, "kept = 2\nos._exit(1)").await.state,
            VariablesState::Rescued
        );
        assert_eq!(value(&session, "kept").await, 1);
    });
}

#[test]
fn a_forged_standby_gains_nothing_but_the_sandbox_that_it_is_in() {
    needs!(Rescue);
    block_on(async {
        let frame = |header: &str| {
            format!(
                "(lambda h: os.write(3, (4 + len(h)).to_bytes(4, 'big') + len(h).to_bytes(4, \
                 'big') + h))({header})"
            )
        };
        for claim in [
            "b'{\"type\":\"standby\",\"changes\":2,\"pid\":1}'",
            "b'{\"type\":\"standby\",\"changes\":2,\"pid\":4294967295}'",
            "b'{\"type\":\"standby\",\"changes\":2,\"pid\":99999}'",
            "b'{\"type\":\"standby\",\"changes\":2,\"pid\":%d}' % os.getpid()",
        ] {
            let session = rescuing(|_| {}).await;
            run(&session, "import os\nkept = 1").await;
            let ended = run(&session, &format!("{}\nos._exit(1)", frame(claim))).await;
            assert_eq!(ended.outcome.name(), "kernel_lost");
            assert_eq!(ended.state, VariablesState::Lost, "{claim}");
            assert_eq!(value(&session, "6 * 7").await, 42);
        }
        // Frames that are none, on the spare channel, are what its reader finds when the standby is asked.
        let session = rescuing(|_| {}).await;
        run(&session, "import os\nkept = 1").await;
        let result = session
            .execute("os.write(4, b'\\x7f' * 64)\nos._exit(1)")
            .await
            .unwrap();
        assert_eq!(result.state, VariablesState::Lost);
        assert_eq!(value(&session, "6 * 7").await, 42);
    });
}

#[test]
fn all_processes_that_users_may_have_are_theirs() {
    needs!(Rescue);
    require!(CgroupV1);
    block_on(async {
        let most = "\
import subprocess, os
held = []
try:
    while True:
        held.append(subprocess.Popen(['sleep', '600']))
except OSError:
    pass
count = len(held)
for child in held:
    child.kill()
    child.wait()
count";
        let mut counts = Vec::new();
        let few = |limits: &mut Limits| limits.processes = 20;
        for session in [rescuing(few).await, unrescued(few).await] {
            run(&session, "ready = 1").await;
            counts.push(value(&session, most).await);
        }
        // The guest and the kernel are counted, too.
        assert_eq!(counts, [json!(18), json!(19)]);
    });
}

#[test]
fn a_query_over_data_frames_does_not_cost_a_session_its_rescue() {
    needs!(Rescue);
    block_on(async {
        let session = interpreter().await.session(SessionOptions {
            prelude: ["analysis", "notebook"].map(str::to_owned).to_vec(),
            rescue: Rescue::On,
            ..SessionOptions::default()
        });
        let query = "int(sql('select sum(n) as total from df where n > $least', least=1).total[0])";
        run(&session, "df = pd.DataFrame({'n': [1, 2, 3]})").await;
        assert_eq!(value(&session, query).await, json!(5));
        let killed = run(&session, "import ctypes\nctypes.string_at(0)").await;
        assert_eq!(killed.state, VariablesState::Rescued);
        assert_eq!(value(&session, query).await, json!(5));
        session.close().await.unwrap();
    });
}
