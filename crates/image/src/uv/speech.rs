//! uv's messages on its stderr if that is not a terminal.

use crate::progress::Sink;

/// Parses uv's lines and turns them into progress reports.
#[derive(Debug, Default)]
pub(crate) struct Speech {
    downloading: Vec<(String, u64)>,
    total: u64,
    done: u64,
}

impl Speech {
    /// Parses one line.
    pub(crate) fn hear(&mut self, line: &str, sink: &Sink) {
        let line = line.trim();
        if let Some((name, size)) = line.strip_prefix("Downloading ").and_then(package_and_size) {
            self.total += size;
            self.downloading.push((name.to_owned(), size));
            sink.bytes(self.done, self.total);
        } else if let Some(name) = line.strip_prefix("Downloaded ") {
            if let Some(at) = self.downloading.iter().position(|it| it.0 == name) {
                self.done += self.downloading.swap_remove(at).1;
                sink.bytes(self.done, self.total);
            }
        } else if ["Resolved ", "Prepared ", "Installed ", "warning:"]
            .iter()
            .any(|it| line.starts_with(it))
        {
            sink.line(line);
        }
    }
}

/// Reads `pandas (12.3MiB)`.
fn package_and_size(text: &str) -> Option<(&str, u64)> {
    let (name, size) = text.rsplit_once(" (")?;
    Some((name, bytes(size.strip_suffix(')')?)?))
}

fn bytes(text: &str) -> Option<u64> {
    let unit = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(unit);
    let scale = match unit.trim() {
        "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        _ => return None,
    };
    // Integer and fractional parts separately, to avoid rounding errors of floats.
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let tenths = part.get(..1).unwrap_or("0").parse::<u64>().ok()?;
    let whole = whole.parse::<u64>().ok().filter(|it| *it < 1 << 20)?;
    Some((whole << scale) + (tenths << scale) / 10)
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use std::sync::Arc;

    use super::*;
    use crate::progress::Progress;

    #[test]
    fn downloads_add_up() {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let to = Arc::clone(&heard);
        let sink = Sink::new(move |it| to.lock().push(it));
        let mut speech = Speech::default();
        for line in [
            "Resolved 2 packages in 5ms",
            "Downloading numpy (1.5MiB)",
            "Downloading a (2KiB)",
            " Downloaded numpy",
            " + numpy==2.5.5",
            "Downloading strange",
        ] {
            speech.hear(line, &sink);
        }
        let bytes = |done, total| Progress::Bytes { done, total };
        let expected = [
            Progress::Line("Resolved 2 packages in 5ms".to_owned()),
            bytes(0, 1_572_864),
            bytes(0, 1_574_912),
            bytes(1_572_864, 1_574_912),
        ];
        assert_eq!(*heard.lock(), expected);
    }
}
