//! The programs that Cellblock and its peers run. Where a peer has no `display`, its program prints or draws the same.

/// What the shortest cell is.
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

/// Rows of the table of 100 MB: in memory 10 columns of 8 bytes, random, so that Parquet has about as many bytes.
pub(crate) const FRAME_ROWS: u64 = 1_250_000;
/// Makes that table.
pub(crate) const MAKE_FRAME: &str = "\
import numpy as np, pandas as pd
frame = pd.DataFrame(np.random.default_rng(0).random((1_250_000, 10)), columns=[f'c{n}' for n in range(10)])
";
