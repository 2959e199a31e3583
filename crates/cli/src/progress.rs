//! Shows on stderr what a build or a start does: a bar or a spinner on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

use cellblock_image::{Progress, Sink};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;

use crate::sanitize;

/// Interval between two frames of a spinner.
const TICK: Duration = Duration::from_millis(120);

/// Display of progress. Clones share the display.
#[derive(Clone, Debug)]
pub(crate) struct Display {
    shown: Arc<Mutex<ProgressDisplay>>,
}

#[derive(Debug)]
enum ProgressDisplay {
    Terminal {
        bar: ProgressBar,
        measured: bool,
    },
    /// The last line, which is not repeated.
    Plain {
        last: String,
    },
}

impl Display {
    /// A display on stderr.
    pub(crate) fn on_stderr() -> Self {
        let shown = if std::io::stderr().is_terminal() {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(spinner());
            ProgressDisplay::Terminal { bar, measured: false }
        } else {
            ProgressDisplay::Plain { last: String::new() }
        };
        Self {
            shown: Arc::new(Mutex::new(shown)),
        }
    }

    /// The sink for a build.
    pub(crate) fn sink(&self) -> Sink {
        let display = self.clone();
        Sink::new(move |progress| display.show(&progress))
    }

    /// Says that something takes a moment; on a terminal only, as it leaves no trace.
    pub(crate) fn wait_for(&self, what: &str) {
        if let ProgressDisplay::Terminal { bar, .. } = &*self.lock() {
            bar.set_message(what.to_owned());
            bar.enable_steady_tick(TICK);
        }
    }

    /// Says that something takes a while, with a line where there is no terminal.
    pub(crate) fn announce(&self, what: &str) {
        self.wait_for(what);
        if let ProgressDisplay::Plain { last } = &mut *self.lock() {
            plain(last, what);
        }
    }

    /// Takes the bar or spinner away.
    pub(crate) fn clear(&self) {
        if let ProgressDisplay::Terminal { bar, .. } = &*self.lock() {
            bar.finish_and_clear();
        }
    }

    fn show(&self, progress: &Progress) {
        match (&mut *self.lock(), progress) {
            (ProgressDisplay::Terminal { bar, measured }, progress) => on_terminal(bar, measured, progress),
            (ProgressDisplay::Plain { .. }, Progress::Bytes { .. }) => {}
            (ProgressDisplay::Plain { last }, Progress::Stage { name: line } | Progress::Line(line)) => {
                plain(last, line);
            }
            (ProgressDisplay::Plain { last }, Progress::Waiting { what }) => plain(last, &waiting(what)),
        }
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, ProgressDisplay> {
        self.shown.lock()
    }
}

fn on_terminal(bar: &ProgressBar, measured: &mut bool, progress: &Progress) {
    match progress {
        Progress::Stage { name } => {
            *measured = false;
            bar.set_style(spinner());
            bar.set_length(0);
            bar.set_position(0);
            bar.set_message(sanitize::line(name));
            bar.enable_steady_tick(TICK);
        }
        Progress::Bytes { done, total } => {
            if !std::mem::replace(measured, true) {
                bar.set_style(bytes());
            }
            bar.set_length(*total);
            bar.set_position(*done);
        }
        Progress::Line(line) => bar.println(sanitize::line(line)),
        Progress::Waiting { what } => bar.println(waiting(&sanitize::line(what))),
    }
}

fn waiting(what: &str) -> String {
    format!("waiting for {what}")
}

fn plain(last: &mut String, line: &str) {
    if last != line {
        line.clone_into(last);
        // Nobody is left to tell when stderr is gone.
        let _ = writeln!(std::io::stderr(), "{}", sanitize::line(line));
    }
}

fn spinner() -> ProgressStyle {
    style("{spinner} {wide_msg}")
}

fn bytes() -> ProgressStyle {
    style("{spinner} {msg} {wide_bar} {binary_bytes} of {binary_total_bytes}")
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_styles_are_valid() {
        for template in [
            "{spinner} {wide_msg}",
            "{spinner} {msg} {wide_bar} {binary_bytes} of {binary_total_bytes}",
        ] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
