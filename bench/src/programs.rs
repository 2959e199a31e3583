//! The programs that Cellblock and its peers run; longer ones are files in `programs`. Where a peer has
//! no `display`, its program prints or draws the same.

/// Code of the shortest cell.
pub(crate) const SUM: &str = "1+1";
/// The same for an interpreter that shows nothing by itself.
pub(crate) const PRINT_SUM: &str = "print(1+1)";

/// The first analysis of a session: a table's summary and a chart as PNG.
pub(crate) const CHART: &str = include_str!("../programs/chart.py");
/// The same without a notebook around it.
pub(crate) const PRINT_CHART: &str = include_str!("../programs/print_chart.py");

/// C code that is never interrupted: the signal is blocked.
pub(crate) const DEAF: &str =
    "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\ntime.sleep(100)";
/// Runs until it is stopped.
pub(crate) const LOOP: &str = "while True: pass";
/// Says that it runs, then runs until it is stopped.
pub(crate) const ANNOUNCED_LOOP: &str = "print('go', flush=True)\nwhile True: pass";

/// Bytes that [`SHOUT`] writes: 100,000 lines of 100 bytes.
pub(crate) const SHOUT_BYTES: usize = 10_000_000;
/// Ten megabytes of text on stdout.
pub(crate) const SHOUT: &str = "print(('x' * 99 + '\\n') * 100_000, end='')";
/// Writes a mebibyte at a time, as often as the number that is put for `TIMES`.
pub(crate) const FLOOD: &str = include_str!("../programs/flood.py");

/// Rows of the table of 100 MB: in memory 10 columns of 8 bytes, random, so that Parquet has about
/// as many bytes.
pub(crate) const FRAME_ROWS: u64 = 1_250_000;
/// Makes that table, and writes it as Parquet to a file.
pub(crate) const FRAME_OUT: &str = concat!(
    include_str!("../programs/make_frame.py"),
    include_str!("../programs/frame_out.py")
);
/// Reads that file.
pub(crate) const FRAME_IN: &str = include_str!("../programs/frame_in.py");
/// Reads a file of [`rows`].
pub(crate) const READ_ROWS: &str = include_str!("../programs/read_rows.py");

/// A table of which a preview of 1,000 rows is shown.
pub(crate) const TABLE: &str =
    "import pandas as pd\ntable = pd.DataFrame({str(n): range(2000) for n in range(10)})\n_ = table.head()";
/// A table of one column.
pub(crate) const SMALL_TABLE: &str =
    "import pandas as pd\nframe = pd.DataFrame({'x': range(1000)})\nframe.describe()";
/// 200 MB of numpy.
pub(crate) const ARRAY: &str = "import numpy as np\nheld = np.ones(200_000_000 // 8)";
pub(crate) const ARRAY_BYTES: usize = 200_000_000;
/// 500 MB of numpy.
pub(crate) const LARGE_ARRAY: &str = "import numpy as np\nheld = np.ones(500_000_000 // 8)";
/// 500 MB of Python objects.
pub(crate) const MANY_OBJECTS: &str = "held = [float(n) for n in range(16_000_000)]";
/// 1 GB of Python objects.
pub(crate) const OBJECTS: &str = "held = [float(n) for n in range(32_000_000)]";
/// A thousand files of 4 KiB.
pub(crate) const FILES: &str =
    "for n in range(1000):\n    with open(f'/workspace/{n}', 'w') as file: _ = file.write('x' * 4096)";

/// 1,000 entities over 10,000 periods, of which some come and go: what the helper takes, and what a
/// first attempt with pandas takes, in milliseconds. Both find the same.
pub(crate) const CHANGE: &str = include_str!("../programs/change_series.py");

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
