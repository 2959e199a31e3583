//! The programs that Cellblock and its peers run. Where a peer has no `display`, its program prints
//! or draws the same.

/// Code of the shortest cell.
pub(crate) const SUM: &str = "1+1";
/// The same for an interpreter that shows nothing by itself.
pub(crate) const PRINT_SUM: &str = "print(1+1)";

/// The first analysis of a session: a table's summary and a chart as PNG.
pub(crate) const CHART: &str = "\
import pandas as pd, matplotlib.pyplot as plt
frame = pd.DataFrame({'x': range(1000), 'y': [v ** 0.5 for v in range(1000)]})
display(frame.describe())
frame.plot(x='x', y='y')
plt.show()
";
/// The same without a notebook around it.
pub(crate) const PRINT_CHART: &str = "\
import io
import pandas as pd, matplotlib.pyplot as plt
frame = pd.DataFrame({'x': range(1000), 'y': [v ** 0.5 for v in range(1000)]})
print(frame.describe())
frame.plot(x='x', y='y')
png = io.BytesIO()
plt.savefig(png, format='png')
assert png.getvalue().startswith(b'\\x89PNG')
";

/// C code that is never interrupted: the signal is blocked.
pub(crate) const DEAF: &str = "\
import signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
time.sleep(100)
";
/// Runs until it is stopped.
pub(crate) const LOOP: &str = "while True: pass";
/// Says that it runs, then runs until it is stopped.
pub(crate) const ANNOUNCED_LOOP: &str = "print('go', flush=True)\nwhile True: pass";

/// Bytes that [`SHOUT`] writes: 100,000 lines of 100 bytes.
pub(crate) const SHOUT_BYTES: u64 = 10_000_000;
/// Ten megabytes of text on stdout.
pub(crate) const SHOUT: &str = "print(('x' * 99 + '\\n') * 100_000, end='')";

/// Writes a mebibyte at a time, as often as the number that is put for `TIMES`.
pub(crate) const FLOOD: &str = "\
import os
piece = b'x' * (1 << 20)
for _ in range(TIMES):
    rest = piece
    while rest:
        rest = rest[os.write(1, rest):]
";

/// Rows of the table of 100 MB: in memory 10 columns of 8 bytes, random, so that Parquet has about
/// as many bytes.
pub(crate) const FRAME_ROWS: u64 = 1_250_000;
/// Makes that table.
pub(crate) const MAKE_FRAME: &str = "\
import numpy as np, pandas as pd
frame = pd.DataFrame(np.random.default_rng(0).random((1_250_000, 10)), columns=[f'c{n}' for n in range(10)])
";

/// Bytes of each of the [`rows`], with what stands between them.
pub(crate) const ROWS_SIZE: usize = 100;

/// A tool's result: a JSON array of so many flat objects of [`ROWS_SIZE`] bytes.
pub(crate) fn rows(count: usize) -> Vec<u8> {
    let mut document = Vec::with_capacity(count * ROWS_SIZE + 1);
    for number in 0..count {
        let before = if number == 0 { '[' } else { ',' };
        let price = format!("{}.{:02}", 100 + number % 900, number % 100);
        let row = format!(
            "{before}{{\"number\": {number}, \"time\": {}, \"venue\": \"venue-{}\", \"price\": {price}, \
             \"note\": null}}",
            1_700_000_000 + number,
            number % 7
        );
        document.extend_from_slice(format!("{row:<ROWS_SIZE$}").as_bytes());
    }
    document.push(b']');
    document
}

/// 1,000 entities over 10,000 periods, of which some come and go: what the helper takes, and what a
/// first attempt with pandas takes, in milliseconds. Both find the same.
pub(crate) const CHANGE: &str = "\
import time
random = np.random.default_rng(0)
levels = random.normal(1000, 10, (10_000, 1_000))
for entity in range(0, 1_000, 5):
    levels[: random.integers(1, 9_000), entity] = np.nan
    gap = random.integers(9_000, 9_900)
    levels[gap : gap + 50, entity] = np.nan
hours = pd.date_range('2020', periods=10_000, freq='h', tz='UTC')
frame = pd.DataFrame(levels, index=hours, columns=[f'e{n}' for n in range(1_000)])

def naive(frame):
    there = frame.notna()
    before = there.shift(fill_value=False)
    total = frame.sum(axis=1, min_count=1)
    stable = frame.diff().where(there & before).sum(axis=1)
    change = total.diff()
    entering, exiting = (there & ~before).sum(axis=1), (before & ~there).sum(axis=1)
    return pd.DataFrame({
        'total': total, 'change': change, 'stable': stable, 'coverage': change - stable,
        'entering': entering, 'exiting': exiting,
    })

started = time.perf_counter()
found = derive_change_series(frame)
middle = time.perf_counter()
expected = naive(frame)
ended = time.perf_counter()
assert np.allclose(found['stable_entities_change'].iloc[1:], expected['stable'].iloc[1:])
assert (found['entering_entity_count'].iloc[1:] == expected['entering'].iloc[1:]).all()
set_result({'helper': (middle - started) * 1000, 'naive': (ended - middle) * 1000})
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_json_of_the_size_that_they_say() {
        let document = rows(1_000_000 / ROWS_SIZE);
        assert_eq!(document.len(), 1_000_001);
        let read: serde_json::Value = serde_json::from_slice(&document).unwrap();
        assert_eq!(read[9_999]["number"], 9_999);
    }
}
