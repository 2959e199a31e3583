//! Redraws as terminals show them, and that nothing else is lost.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Redraws, redrawn};

fn pieces(redraws: fn() -> Redraws, text: &[u8], size: usize) -> String {
    let (mut redraws, mut drawn) = (redraws(), Vec::new());
    for piece in text.chunks(size) {
        redraws.push(piece, &mut drawn);
    }
    redraws.finish(&mut drawn);
    String::from_utf8(drawn).unwrap()
}

#[test]
fn a_row_shows_what_was_written_last() {
    assert_eq!(redrawn("10%\r20%\r100%\ndone\n"), "100%\ndone\n");
    assert_eq!(redrawn("a\r\nb\r\n"), "a\nb\n");
    assert_eq!(redrawn("abc\x08\x08X\n"), "aXc\n");
    assert_eq!(redrawn("long text\rshort    \n"), "short\n");
    assert_eq!(redrawn("50% 🦀\r\x1b[K\x1b[32mé ok\x1b[0m"), "é ok");
    assert_eq!(redrawn("plain"), "plain");
}

#[test]
fn nested_bars_are_drawn_over_rows_above() {
    // As tqdm draws two bars into a pipe.
    let text = "\router: 0%\n\rinner: 0%\x1b[A\n\rinner: 100%\x1b[A\router: 50%\n\
                \rinner: 100%\x1b[A\router: 100%\n\nwarning\n";
    assert_eq!(redrawn(text), "outer: 100%\ninner: 100%\nwarning\n");
    // As rich does.
    let text = "a 0%\nb 0%\r\x1b[2K\x1b[1A\x1b[2Ka 9%\nb 9%\n\x1b[?25hwarning";
    assert_eq!(redrawn(text), "a 9%\nb 9%\nwarning");
}

#[test]
fn what_no_progress_bar_writes_stays_for_the_caller_to_escape() {
    let text = "\x1b[2J\x1b]0;t\x07\x1b[31;1Hx\x1b[";
    assert_eq!(redrawn(text), text);
    let longest = format!("\x1b[{}m", "1".repeat(100));
    assert_eq!(redrawn(&longest), longest);
}

#[test]
fn the_line_for_what_is_left_out_cannot_be_written_over() {
    let text = "head\n[… 7 of 13 bytes left out …]\n\x1b[9A\rtail";
    assert_eq!(redrawn(text), "head\n[… 7 of 13 bytes left out …]\ntail");
}

#[test]
fn a_live_stream_passes_on_rows_that_end() {
    let (mut redraws, mut drawn) = (Redraws::live(), Vec::new());
    redraws.push(b"one\ntw", &mut drawn);
    assert_eq!(drawn, b"one\n");
    redraws.push(b"o\n\r10%\r20%\n\r1%\x1b[A\r99%\n\n", &mut drawn);
    assert_eq!(drawn, b"one\ntwo\n");
    redraws.push(b"next", &mut drawn);
    assert_eq!(drawn, b"one\ntwo\n99%\n1%\n");
    redraws.finish(&mut drawn);
    assert_eq!(drawn, b"one\ntwo\n99%\n1%\nnext");
}

#[test]
fn a_row_without_end_is_held_only_in_part() {
    let (mut redraws, mut drawn) = (Redraws::live(), Vec::new());
    redraws.push(&vec![b'x'; 200_000], &mut drawn);
    assert!(drawn.len() > 100_000, "{}", drawn.len());
    redraws.finish(&mut drawn);
    assert_eq!(drawn, vec![b'x'; 200_000]);
}

proptest! {
    #[test]
    fn every_split_gives_the_same_text(
        parts in vec(prop_oneof![
            Just("\r"), Just("\n"), Just("\x08"), Just("\x1b[A"), Just("\x1b[2K"), Just("\x1b[3B"),
            Just("\x1b[J"), Just("\x1b[5G"), Just("é€🦀"), Just("word "), Just("\x1b"),
        ], 0..40),
        size in 1usize..9,
    ) {
        let text = parts.concat();
        let whole = redrawn(&text).into_owned();
        prop_assert_eq!(pieces(Redraws::whole, text.as_bytes(), size), whole);
        let live = pieces(Redraws::live, text.as_bytes(), text.len().max(1));
        prop_assert_eq!(pieces(Redraws::live, text.as_bytes(), size), live);
    }

    #[test]
    fn plain_rows_around_progress_bars_are_kept(
        rows in vec(("[a-z]{1,12}", 0usize..5), 1..30),
    ) {
        let mut text = String::new();
        for (index, (word, redraws)) in rows.iter().enumerate() {
            for at in 0..*redraws {
                text.extend(["\r", &at.to_string(), "% of ", &index.to_string()]);
            }
            if *redraws > 0 {
                text.push('\n');
            }
            text.extend([word.as_str(), &index.to_string(), "\n"]);
        }
        for drawn in [redrawn(&text).into_owned(), pieces(Redraws::live, text.as_bytes(), 7)] {
            for (index, (word, redraws)) in rows.iter().enumerate() {
                let kept = format!("{word}{index}");
                prop_assert!(drawn.lines().any(|line| line == kept));
                let last = redraws.checked_sub(1).map(|at| format!("{at}% of {index}"));
                prop_assert!(last.is_none_or(|last| drawn.lines().any(|line| line == last)));
            }
        }
    }
}
