//! Requests to a scripted kernel: how they end, and what of their output is kept.

use std::sync::Arc;

use cellblock_artifact::Store;
use cellblock_protocol::Scalar;
use object_store::memory::InMemory;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::scripted::{KernelEnd, NUMBER, SentSignals, Step, start};
use super::*;
use crate::execution::UnsentOutputs;
use crate::session::interrupts::interrupts;
use crate::session::runtime::calls::BuiltIn;

/// Longer than any script takes.
pub(in crate::session) const LONG: Duration = Duration::from_mins(1);

/// Runs a scripted cell; the interrupt is sent after its last step.
async fn play(
    steps: &[Step],
    last: KernelEnd,
    limits: &Limits,
    timeout: Duration,
) -> (RequestResult, Vec<Event>, SentSignals) {
    play_with(&BuiltIn, CallLimits::default(), steps, last, limits, timeout).await
}

/// The same with a host of the test.
pub(in crate::session) async fn play_with(
    host: &dyn HostMethods,
    calls: CallLimits,
    steps: &[Step],
    last: KernelEnd,
    limits: &Limits,
    timeout: Duration,
) -> (RequestResult, Vec<Event>, SentSignals) {
    let (handle, mut interrupted) = interrupts();
    handle.asking();
    let asks = matches!(last, KernelEnd::Obeys | KernelEnd::Ignores) && timeout == LONG;
    let handle = Arc::new(handle);
    let kept = Arc::clone(&handle);
    let finished = move || {
        if asks {
            handle.interrupt();
        }
    };
    let (mut kernel, sent) = start(steps.to_vec(), last, finished);
    let decoding = OutputDecoder::new(Store::new(Arc::new(InMemory::new())));
    let (events, mut seen) = mpsc::channel(1024);
    let terms = CellTerms {
        limits,
        timeout,
        interrupts: Some(&mut interrupted),
        events: Some(events),
        asker: None,
        decoding: &decoding,
        standby: &mut Standby::default(),
        host,
        calls,
    };
    let message = ToKernel::Variables { cell: NUMBER };
    let ran = tokio::time::timeout(LONG, run(&mut kernel, &message, terms)).await;
    let mut happened = Vec::new();
    while let Ok(event) = seen.try_recv() {
        happened.push(event);
    }
    drop(kept);
    (ran.unwrap().unwrap(), happened, *sent.borrow())
}

pub(in crate::session) fn limits() -> Limits {
    Limits {
        grace: Duration::from_millis(20),
        ..Limits::default()
    }
}

pub(in crate::session) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

/// The integers among the outputs.
fn values<'a>(outputs: impl IntoIterator<Item = &'a Output>) -> Vec<i64> {
    let value = |output: &Output| match output {
        Output::Primitive(primitive) => match primitive.value {
            Scalar::Integer(value) => value,
            ref other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    outputs.into_iter().map(value).collect()
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = || prop::collection::vec(b'a'..=b'z', 1..200);
    prop_oneof![
        bytes().prop_map(Step::Stdout),
        bytes().prop_map(Step::Stderr),
        any::<i32>().prop_map(|value| Step::Show(value.into())),
        any::<i32>().prop_map(|value| Step::Stray(value.into())),
    ]
}

#[test]
fn every_script_ends_as_it_says_and_nothing_of_it_is_lost() {
    let last = prop::sample::select(vec![
        KernelEnd::Done,
        KernelEnd::Obeys,
        KernelEnd::Ignores,
        KernelEnd::Closes,
        KernelEnd::Exits,
    ]);
    let scripts = (prop::collection::vec(step(), 0..24), last, 1_u32..8);
    let mut runner = TestRunner::new(Config::with_cases(64));
    runner
        .run(&scripts, |(steps, last, most)| {
            let mut limits = limits();
            limits.outputs = most;
            if last == KernelEnd::Obeys {
                // It obeys at once, which takes a while on a busy machine.
                limits.grace = LONG;
            }
            let (ran, events, sent) = block_on(play(&steps, last, &limits, LONG));
            check(&steps, last, most as usize, ran, &events, sent);
            Ok(())
        })
        .unwrap();
}

fn check(
    steps: &[Step],
    last: KernelEnd,
    most: usize,
    ran: RequestResult,
    events: &[Event],
    sent: SentSignals,
) {
    match (last, &ran.end) {
        (KernelEnd::Done, End::Done { outcome, .. }) => assert_eq!(*outcome, KernelOutcome::Completed),
        (KernelEnd::Obeys, End::Done { outcome, .. }) => assert_eq!(*outcome, KernelOutcome::Interrupted),
        (KernelEnd::Ignores | KernelEnd::Closes, End::Lost(ending)) => {
            assert_eq!(*ending, ProcessEnd::Signaled(9));
        }
        (KernelEnd::Exits, End::Lost(ending)) => assert_eq!(*ending, ProcessEnd::Exited(3)),
        (last, end) => panic!("{last:?} ended as {end:?}"),
    }
    let asked = matches!(last, KernelEnd::Obeys | KernelEnd::Ignores);
    assert_eq!(ran.stopped, asked.then_some(Stop::Asked));
    assert_eq!(sent.interrupts, u32::from(asked));
    assert_eq!(
        sent.kills > 0,
        matches!(last, KernelEnd::Ignores | KernelEnd::Closes | KernelEnd::Exits)
    );

    let shown = steps.iter().filter_map(|step| match step {
        Step::Show(value) => Some(*value),
        _ => None,
    });
    let shown: Vec<_> = shown.collect();
    assert_eq!(values(&ran.outputs), shown[..shown.len().min(most)]);
    assert_eq!(ran.outputs_dropped as usize, shown.len().saturating_sub(most));
    let mut told = (Vec::new(), Vec::new(), Vec::new());
    for event in events {
        match event {
            Event::Stdout(bytes) => told.0.extend_from_slice(bytes),
            Event::Stderr(bytes) => told.1.extend_from_slice(bytes),
            Event::Output(output) => told.2.push(output),
            Event::Display(_) | Event::Clear { .. } => panic!("{event:?}"),
        }
    }
    assert_eq!(values(told.2), values(&ran.outputs));
    let (mut out, mut err) = (Vec::new(), Vec::new());
    for step in steps {
        match step {
            Step::Stdout(bytes) => out.extend_from_slice(bytes),
            Step::Stderr(bytes) => err.extend_from_slice(bytes),
            _ => {}
        }
    }
    assert_eq!((told.0, told.1), (out.clone(), err.clone()));
    assert_eq!(ran.stdout.finish().text.into_bytes(), out);
    assert_eq!(ran.stderr.finish().text.into_bytes(), err);
}

#[test]
fn a_cell_beyond_its_deadline_is_interrupted_and_killed_only_if_it_does_not_listen() {
    let timeout = Duration::from_millis(30);
    let (ran, _, sent) = block_on(play(&[], KernelEnd::Obeys, &limits(), timeout));
    assert_eq!(ran.stopped, Some(Stop::Deadline));
    assert!(matches!(ran.end, End::Done { .. }), "{ran:?}");
    assert_eq!(
        sent,
        SentSignals {
            interrupts: 1,
            kills: 0
        }
    );

    let (ran, _, sent) = block_on(play(&[], KernelEnd::Ignores, &limits(), timeout));
    assert_eq!(ran.stopped, Some(Stop::Deadline));
    assert!(matches!(ran.end, End::Lost(ProcessEnd::Signaled(9))), "{ran:?}");
    assert_eq!(sent.interrupts, 1);
    assert!(sent.kills > 0);
}

#[test]
fn a_cell_that_writes_more_than_it_may_is_interrupted_and_its_output_is_kept_within_bounds() {
    let limits = Limits {
        stream_bytes: 1000,
        stream_kept_bytes: 100,
        grace: LONG,
        ..limits()
    };
    let steps = [Step::Stdout(vec![b'x'; 600]), Step::Stderr(vec![b'y'; 600])];
    let (ran, events, sent) = block_on(play(&steps, KernelEnd::Obeys, &limits, 2 * LONG));
    assert_eq!(ran.stopped, Some(Stop::Output));
    assert_eq!(
        sent,
        SentSignals {
            interrupts: 1,
            kills: 0
        }
    );
    assert_eq!(ran.stdout.total() + ran.stderr.total(), 1200);
    let told: usize = events
        .iter()
        .map(|event| match event {
            Event::Stdout(bytes) | Event::Stderr(bytes) => bytes.len(),
            Event::Output(_) | Event::Display(_) | Event::Clear { .. } => 0,
        })
        .sum();
    assert!(told <= 200, "{told} bytes were told");
    assert!(ran.stdout.finish().truncated);
}

/// Returns the outputs and the text at the end of a cell, and the outputs that a reader gets that
/// cannot take one back.
fn at_the_end(steps: &[Step]) -> (Vec<i64>, String, Vec<i64>) {
    let (ran, events, _) = block_on(play(steps, KernelEnd::Done, &limits(), LONG));
    assert_eq!(ran.outputs_dropped, 0);
    let mut unsent = UnsentOutputs::default();
    let sent = events.into_iter().filter_map(|event| match unsent.pass(event)? {
        Event::Output(output) => Some(output),
        _ => None,
    });
    let sent: Vec<_> = sent.collect();
    let rest = unsent.rest(&ran.outputs);
    let read = values(sent.iter().chain(rest));
    (values(&ran.outputs), ran.stdout.finish().text, read)
}

#[test]
fn a_display_is_shown_once_with_its_last_value() {
    let steps = [
        Step::Show(1),
        Step::Display("a", 2, false),
        Step::Show(3),
        Step::Display("a", 4, false),
        Step::Display("a", 5, true),
        Step::Display("of an earlier cell", 6, true),
        Step::Display("of an earlier cell", 7, true),
    ];
    let (shown, _, read) = at_the_end(&steps);
    assert_eq!(shown, [1, 5, 3, 5, 7]);
    assert_eq!(read, shown);
}

#[test]
fn what_is_cleared_is_gone_at_once_or_with_the_next_thing() {
    let print = |text: &str| Step::Stdout(text.as_bytes().to_vec());
    let steps = [
        print("a"),
        Step::Display("d", 1, false),
        Step::Clear(false),
        print("b"),
        // It was removed, so that there is nothing to replace.
        Step::Display("d", 2, true),
        Step::Show(3),
    ];
    let (shown, text, read) = at_the_end(&steps);
    assert_eq!((shown, text.as_str(), read), (vec![3], "b", vec![3]));
    let steps = [Step::Show(1), print("a"), Step::Clear(true)];
    let (shown, text, read) = at_the_end(&steps);
    assert_eq!((shown, text.as_str(), read), (vec![1], "a", vec![1]));
    for next in [Step::Show(2), print("b")] {
        let steps = [
            Step::Clear(true),
            Step::Show(1),
            print("a"),
            Step::Clear(true),
            next,
        ];
        let (shown, text, read) = at_the_end(&steps);
        assert!(!shown.contains(&1) && !text.contains('a'), "{shown:?} {text}");
        assert_eq!(read, shown);
    }
}

#[test]
fn more_than_the_limit_may_be_shown_in_place_of_others() {
    let limits = Limits {
        outputs: 2,
        ..limits()
    };
    let updates = (0..20).flat_map(|value| {
        [
            Step::Display("a", value, value > 0),
            Step::Clear(true),
            Step::Display("b", value, false),
        ]
    });
    let steps: Vec<_> = updates.collect();
    let (ran, ..) = block_on(play(&steps, KernelEnd::Done, &limits, LONG));
    assert_eq!((values(&ran.outputs), ran.outputs_dropped), (vec![19], 0));
}
