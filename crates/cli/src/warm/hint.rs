//! Whether a warm host would have made a run noticeably faster.

use std::ops::Range;
use std::time::Duration;

/// Code has the image's large libraries under these names without importing them.
const ALIASES: [&str; 5] = ["alt", "np", "pd", "pl", "plt"];
/// A shorter run is not worth a hint, and importing the libraries that code uses does not take longer.
const NOTICEABLE: Range<Duration> = Duration::from_secs(1)..Duration::from_secs(5);

/// Returns whether imports are likely to be the larger part of what the cells took: they name a
/// module that a warm host has imported.
pub(crate) fn helps<'a>(
    took: Duration,
    cells: impl IntoIterator<Item = &'a str>,
    preloaded: &[String],
) -> bool {
    let is_library = |word: &str| {
        ALIASES.contains(&word)
            || preloaded
                .iter()
                .any(|module| module.split('.').next() == Some(word))
    };
    NOTICEABLE.contains(&took)
        && cells
            .into_iter()
            .flat_map(|code| code.split(|c: char| !c.is_alphanumeric() && c != '_'))
            .any(is_library)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_slow_run_that_uses_a_library_is_helped() {
        let preloaded = ["pandas".to_owned(), "matplotlib.pyplot".to_owned()];
        let helps = |milliseconds, code: &str| helps(Duration::from_millis(milliseconds), [code], &preloaded);
        assert!(helps(1000, "import pandas"));
        assert!(helps(1000, "from matplotlib import cm"));
        assert!(helps(4999, "pd.DataFrame()"));
        assert!(!helps(999, "import pandas"), "too fast");
        assert!(!helps(5000, "import pandas"), "the code itself is slow");
        assert!(
            !helps(2000, "import time\ntime.sleep(2)\nupdate = 1"),
            "no library"
        );
    }
}
