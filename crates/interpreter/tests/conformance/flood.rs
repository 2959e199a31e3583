//! Cells that produce far more than anybody can keep: the host's memory stays bounded.

use cellblock_interpreter::execution::{LimitExcess, Outcome, Resource};
use cellblock_interpreter::output::DataframeLibrary;

use crate::limited::{MIB, limited};
use crate::support::{block_on, goes_on, run, session, table, value};

/// The most memory that this process has held so far.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// A cell that prints a flood, and its bytes: half a gigabyte, or a tenth where the stream out of a
/// machine is slower.
fn flood() -> (String, u64) {
    let lines = if crate::backend::is_machine() { 100 } else { 500 };
    let code = format!("kept = 1\nfor _ in range({lines}): print('y' * 999_999)\nprint('the end')");
    (code, lines * 1_000_000 + 8)
}

#[test]
fn a_flood_on_stdout_stops_the_cell_at_the_limit() {
    block_on(async {
        let session = session().await;
        run(&session, "1").await;
        let before = peak();
        let ended = run(&session, &flood().0).await;
        let Outcome::LimitExceeded(LimitExcess {
            which: Resource::OutputBytes,
            limit,
            actual,
            kernel_lost: false,
        }) = ended.outcome
        else {
            panic!("{:?}", ended.outcome);
        };
        assert_eq!((limit, actual), (64 * MIB, ended.stdout.bytes));
        assert!(actual > limit, "{actual}");
        assert!(actual < limit + 4 * MIB, "it was stopped late: {actual}");
        assert!(ended.stdout.truncated);
        assert!(
            ended.stdout.text.len() < 2 * 1024 * 1024,
            "{}",
            ended.stdout.text.len()
        );
        let note = ended.note.unwrap();
        assert!(
            note.ends_with("Print a summary instead, or write the data to a file in /tmp/output"),
            "{note}"
        );
        assert!(peak() < before + 64 * MIB, "grew from {before} to {}", peak());
        assert!(goes_on(&session, "kept").await);
    });
}

#[test]
fn a_flood_on_stdout_within_the_limit_is_counted_and_not_kept() {
    block_on(async {
        let session = limited(|limits| limits.stream_bytes = 1024 * MIB).await;
        run(&session, "1").await;
        let before = peak();
        let (code, bytes) = flood();
        let ended = run(&session, &code).await;
        assert_eq!(ended.outcome, Outcome::Completed);
        assert_eq!(ended.stdout.bytes, bytes);
        assert!(ended.stdout.truncated);
        assert!(ended.stdout.text.ends_with("yyy\nthe end\n"));
        let left_out = bytes - MIB;
        let gap = format!("\n[… {left_out} of {bytes} bytes left out …]\n");
        assert!(ended.stdout.text.contains(&gap));
        assert_eq!(ended.stdout.text.len() as u64, MIB + gap.len() as u64);
        assert!(peak() < before + 64 * MIB, "grew from {before} to {}", peak());
        assert!(goes_on(&session, "kept").await);
    });
}

#[test]
fn a_reader_of_events_that_is_slow_holds_up_the_cell_and_not_the_memory() {
    block_on(async {
        let session = limited(|limits| limits.stream_bytes = 1024 * MIB).await;
        run(&session, "1").await;
        let before = peak();
        let (code, bytes) = flood();
        let mut running = session.start_cell(code.as_str()).await.unwrap();
        // What nobody takes waits in a bounded queue, and the cell with it.
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        let mut streamed = 0;
        while let Some(event) = running.events.recv().await {
            if let cellblock_interpreter::execution::Event::Stdout(bytes) = event {
                streamed += bytes.len() as u64;
            }
        }
        let ended = running.finish().await.unwrap();
        assert_eq!(ended.stdout.bytes, bytes);
        assert!(
            streamed <= MIB,
            "{streamed} bytes were streamed though {MIB} are kept"
        );
        assert!(peak() < before + 64 * MIB, "grew from {before} to {}", peak());
    });
}

#[test]
fn a_gigabyte_of_a_table_is_shown_as_its_ends_with_the_true_number_of_rows() {
    needs!(HigherLimits);
    block_on(async {
        let session = limited(|limits| limits.memory_bytes = 3 * 1024 * MIB).await;
        run(&session, "1").await;
        let before = peak();
        let shown = run(
            &session,
            "big = pd.DataFrame(np.arange(1 << 27, dtype='float64').reshape(-1, 8))\nbig",
        )
        .await;
        assert_eq!(shown.outcome, Outcome::Completed, "{shown:#?}");
        let table = table(&shown.outputs[0]);
        assert_eq!(
            (table.name.as_deref(), table.library),
            (Some("big"), DataframeLibrary::Pandas)
        );
        assert_eq!(
            (table.rows, table.rows_stored, table.complete),
            (1 << 24, 1000, false)
        );
        assert_eq!(table.columns.len(), 8);
        assert_eq!(
            table.head[0],
            (0..8)
                .map(|n| f64::from(n).into())
                .collect::<Vec<serde_json::Value>>()
        );
        let last = (1 << 27) - 1;
        assert_eq!(table.tail.last().unwrap()[7], f64::from(last));
        assert!(table.table.is_some());
        assert!(peak() < before + 64 * MIB, "grew from {before} to {}", peak());
        assert!(goes_on(&session, "big").await);
    });
}

#[test]
fn outputs_beyond_the_limit_are_counted_and_an_exception_is_still_shown() {
    block_on(async {
        let session = limited(|limits| limits.outputs = 5).await;
        let ended = run(&session, "for n in range(12): display(n)\n1 / 0").await;
        assert_eq!(ended.outcome, Outcome::Raised);
        assert_eq!(ended.outputs_dropped, 7);
        let kinds: Vec<_> = ended
            .outputs
            .iter()
            .map(|output| serde_json::to_value(output).unwrap()["type"].clone())
            .collect();
        assert_eq!(
            kinds,
            [
                "primitive",
                "primitive",
                "primitive",
                "primitive",
                "primitive",
                "exception"
            ]
        );
    });
}

#[test]
fn an_oversized_forged_output_is_rejected_and_the_session_continues() {
    block_on(async {
        let session = limited(|limits| limits.output_bytes = MIB).await;
        // The kernel of Cellblock shortens what is larger; code may write to its channel by itself.
        let code = "import json, os, struct\n\
                    blob = b'x' * 3_000_000\n\
                    output = {'type': 'rich', 'mimes': ['text/plain'], 'text': 't'}\n\
                    head = \
                    {'type': 'output', 'cell': 1, 'index': 0, 'output': output, 'blobs': [len(blob)]}\n\
                    head = json.dumps(head).encode()\n\
                    left = struct.pack('>II', 4 + len(head) + len(blob), len(head)) + head + blob\n\
                    while left: left = left[os.write(3, left):]";
        let error = session.execute(code).await.unwrap_err();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(
            cause,
            "output in bytes of 3000000 from a kernel is over the limit of 1048576"
        );
        assert_eq!(value(&session, "6 * 7").await, 42);
    });
}
