//! Programs that call functions of a client, run again with each answer.

use std::time::Duration;

use cellblock_interpreter::Session;
use cellblock_interpreter::toolset::program::{
    AnsweredCall, KIND, PROGRAM, ProgramArguments, ProgramReport, ProgramState,
};
use cellblock_interpreter::toolset::{ToolResult, ToolsetTerms};
use serde_json::json;

use crate::support::{block_on, interpreter, run, session, value};

/// Runs a program that has had these answers of `price`, for at most so many seconds.
async fn play_for(session: &Session, seconds: u64, code: &str, answers: &[(&str, &str)]) -> ProgramReport {
    let terms = ToolsetTerms {
        max_timeout: Duration::from_secs(seconds),
        ..ToolsetTerms::default()
    };
    let answers = answers.iter().map(|(arguments, output)| AnsweredCall {
        name: "price".to_owned(),
        arguments: (*arguments).to_owned(),
        output: (*output).to_owned(),
    });
    let arguments = ProgramArguments {
        code: code.to_owned(),
        functions: vec!["price".to_owned(), "shop__stock-of".to_owned()],
        calls: answers.collect(),
        started_ms: 1_700_000_000_123,
    };
    let toolset = (KIND.open)(interpreter().await, session.clone(), &terms)
        .await
        .unwrap();
    let result = toolset
        .call(PROGRAM, json!(arguments), &mut |_| {})
        .await
        .unwrap();
    let ToolResult::Json(report) = result else {
        panic!("{result:?}");
    };
    serde_json::from_value(report).unwrap()
}

async fn play(session: &Session, code: &str, answers: &[(&str, &str)]) -> ProgramReport {
    play_for(session, 60, code, answers).await
}

/// The arguments of the calls that a program waits for.
fn waiting(report: &ProgramReport) -> Vec<&str> {
    assert_eq!(report.state, ProgramState::Waits, "{report:?}");
    report.calls.iter().map(|call| &*call.arguments).collect()
}

fn error(report: &ProgramReport) -> &str {
    assert_eq!(report.state, ProgramState::Failed, "{report:?}");
    report.error.as_deref().unwrap()
}

#[test]
fn a_program_gets_to_the_same_place_with_its_answers_and_continues() {
    block_on(async {
        let session = session().await;
        let code = "const started = [Date.now(), Math.random()];\n\
                    const [a, b] = await Promise.all(['A', 'B'].map((sku) => tools.price({ sku })));\n\
                    const c = await price({ sku: 'C', started });\n\
                    text(a.eur + b.eur); text(c); text({ kept: started[0] });";
        let (a, b) = (r#"{"sku":"A"}"#, r#"{"sku":"B"}"#);
        assert_eq!(waiting(&play(&session, code, &[]).await), [a, b]);
        let two = [(a, r#"{"eur":2}"#), (b, r#"{"eur":3}"#)];
        let second = play(&session, code, &two).await;
        let [third] = waiting(&second)[..] else {
            panic!("{second:?}");
        };
        let ended = play(&session, code, &[two[0], two[1], (third, "no price")]).await;
        assert_eq!(ended.state, ProgramState::Ended, "{ended:?}");
        assert_eq!(ended.text, "5\nno price\n{\"kept\":1700000000123}");
        let other = play(&session, code, &[(a, "1"), (r#"{"sku":"X"}"#, "2")]).await;
        assert!(error(&other).contains("does not make the calls"), "{other:?}");
    });
}

#[test]
fn a_program_has_no_names_of_node_and_leaves_nothing_in_the_session() {
    block_on(async {
        let session = session().await;
        let code = "text([typeof console, typeof require, typeof process, typeof fetch, typeof setTimeout,\n\
                    typeof WebAssembly, typeof tools['shop__stock-of'], typeof shop__stock_of].join());\n\
                    globalThis.kept = 1;";
        let shown = play(&session, code, &[]).await;
        let none = "undefined,".repeat(6);
        assert_eq!(shown.text, format!("{none}function,function"));
        let again = play(
            &session,
            "text(typeof kept); image('data:image/png;base64,AAAA');",
            &[],
        )
        .await;
        assert_eq!(again.text, "undefined");
        assert_eq!(again.images, ["data:image/png;base64,AAAA"]);
        let left = "import os\nany(name.startswith('program_') for name in os.listdir('/tmp'))";
        assert_eq!(value(&session, left).await, false);
    });
}

#[test]
fn a_program_that_does_not_end_well_keeps_its_text_and_has_a_reason() {
    block_on(async {
        let session = session().await;
        // Node.js starts with the first one, which may take long.
        play(&session, "text(1)", &[]).await;
        for (code, reason) in [
            ("text('kept');\n\nnull.x", "(line 3)"),
            ("text('kept'); throw 'enough'", "the program threw enough"),
            ("text('kept'); while (true) {}", "ran longer than 3.2 seconds"),
            ("text('kept'); for (;;) await null", "ran longer than 3.2 seconds"),
            ("text('kept'); await new Promise(() => {})", "never happens"),
            (
                "text('kept'); await tools.nothing({})",
                "there is no function nothing; there are: price",
            ),
            ("text('kept'); await price('A')", "takes one object"),
            (
                "text('kept'); image('https://example.com/a.png')",
                "image takes the URL",
            ),
            (
                "text('kept'); await Promise.all(Array.from({ length: 129 }, () => price()))",
                "at most 128 calls may wait",
            ),
            (
                "text('kept'); throw 'e'.repeat(30 << 20)",
                "the program threw eee",
            ),
            ("text('kept'); await import('node:fs')", "TypeError: "),
        ] {
            let failed = play_for(&session, 4, code, &[]).await;
            assert!(error(&failed).contains(reason), "{code}: {failed:?}");
            assert_eq!(failed.text, "kept", "{code}");
        }
        let failed = play(&session, "text('a';", &[]).await;
        assert!(error(&failed).contains("SyntaxError"), "{failed:?}");
        let large = "x".repeat(3 << 20);
        let failed = play(&session, "await price()", &[("{}", &large)]).await;
        assert!(
            error(&failed).contains("return less from the functions"),
            "{failed:?}"
        );
    });
}

#[test]
fn a_call_that_was_too_large_leaves_room_for_smaller_ones() {
    block_on(async {
        let session = session().await;
        let code = "const large = 'x'.repeat(1000000);\n\
                    for (let i = 0; i < 6; i++) price({ large }).catch((error) => text(error.message));\n\
                    await price({ small: 1 });";
        let report = play(&session, code, &[]).await;
        let calls = waiting(&report);
        assert_eq!((calls.len(), calls[4]), (5, r#"{"small":1}"#));
        assert!(
            report.text.contains("more than 4194304 characters"),
            "{}",
            report.text
        );
    });
}

#[test]
fn every_clock_of_a_program_shows_the_time_of_its_start() {
    block_on(async {
        let session = session().await;
        let code = "const day = new Intl.DateTimeFormat('en', { dateStyle: 'long', timeZone: 'UTC' });\n\
                    text(day.format()); text([0].map(day.format)[0]);\n\
                    text(day.formatToParts().map((part) => part.value).join(''));\n\
                    text([new Date().getTime(), Date.now()]);";
        let shown = play(&session, code, &[]).await;
        let day = "November 14, 2023";
        let time = 1_700_000_000_123_u64;
        assert_eq!(
            shown.text,
            format!("{day}\nJanuary 1, 1970\n{day}\n[{time},{time}]")
        );
    });
}

#[test]
fn an_image_without_node_rejects_programs_by_name() {
    block_on(async {
        let session = session().await;
        run(&session, "import os; os.environ['PATH'] = '/nowhere'").await;
        let failed = play(&session, "text(1)", &[]).await;
        let error = error(&failed);
        assert!(error.contains("`node` is not in this image"), "{error}");
        assert!(error.contains("Node.js 20 or newer"), "{error}");
    });
}
