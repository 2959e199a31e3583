//! Outputs as `cellblock run` draws them, by the command's own files.
//!
//! Styles are left out, so that an escape sequence in what is drawn can only have come from the sandbox.

use cellblock_interpreter::output::Output;
use cellblock_protocol::text::acts;

use crate::sanitize;

#[path = "../../../crates/cli/src/render/exception.rs"]
mod exception;
#[path = "../../../crates/cli/src/render/figure.rs"]
mod figure;
#[path = "../../../crates/cli/src/render/table.rs"]
mod table;

/// Where the command has styles.
#[derive(Clone, Copy)]
struct Plain;

const STRONG: Plain = Plain;
const FAINT: Plain = Plain;
const BAD: Plain = Plain;

fn styled(_: Plain, text: &str) -> String {
    text.to_owned()
}

/// Asserts that nothing of an output makes a terminal do something, however wide it is, and as JSON neither.
pub(crate) fn check(output: &Output) {
    for width in [20, 80] {
        let drawn = match output {
            Output::Dataframe(table) => table::draw(table, width),
            Output::Exception(exception) => exception::draw(exception),
            Output::Figure(figure) => figure::figure_caption(figure),
            Output::Image(image) => figure::image_caption(image),
            Output::Chart(chart) => figure::chart_caption(chart),
            Output::Primitive(_) | Output::Rich(_) | Output::Result(_) => String::new(),
        };
        let wrong = |c: char| !matches!(c, '\n' | '\t') && acts(c);
        assert!(!drawn.chars().any(wrong), "a terminal is shown {drawn:?}");
    }
    for picture in figure::Counter::default().pictures(output) {
        assert!(
            !picture.name.contains('/') && !picture.name.starts_with('.'),
            "{}",
            picture.name
        );
    }
    let json = serde_json::to_string(output).expect("an output can be written as JSON");
    let safe = sanitize::json(&json);
    assert!(!safe.chars().any(acts), "a terminal is shown {safe:?}");
    let read: Output = serde_json::from_str(&safe).expect("what is printed as JSON can be read");
    assert_eq!(&read, output, "what is printed as JSON means the same");
}
