//! Output of programs to stderr, for the log.

use std::time::Duration;

use tokio::io::{AsyncRead, BufReader};
use tokio::time::Instant;

use super::lines::{Line, Lines};
use crate::words::short_line;

/// Maximum length of a line in bytes. The rest of a longer one is another line.
const LINE: usize = 64 << 10;
/// Maximum length of a log entry in characters.
const LOGGED: usize = 1000;
/// Maximum number of entries of a program in a [`SPAN`].
const ENTRIES: u32 = 600;
const SPAN: Duration = Duration::from_mins(1);

/// Reads a program's stderr to its end, and logs it line by line, limited in length and number.
pub async fn log_lines(stderr: impl AsyncRead + Unpin, log: impl Fn(&str)) {
    let mut lines = Lines::new(BufReader::new(stderr), LINE);
    let (mut since, mut logged) = (Instant::now(), 0);
    loop {
        let line = match lines.next().await {
            Ok(Line::Whole(line)) => line,
            Ok(Line::TooLong) => continue,
            Ok(Line::End) | Err(_) => return,
        };
        if since.elapsed() > SPAN {
            (since, logged) = (Instant::now(), 0);
        }
        logged += 1;
        match logged {
            ..=ENTRIES => log(&short_line(&String::from_utf8_lossy(&line), LOGGED)),
            _ if logged == ENTRIES + 1 => log("further lines of this minute are not logged"),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    #[tokio::test]
    async fn a_flood_of_lines_is_cut() {
        let text = "x\u{1b}y\n".repeat(5000);
        let logged = Mutex::new(Vec::new());
        log_lines(text.as_bytes(), |line| {
            logged.lock().push(line.to_owned());
        })
        .await;
        let logged = logged.into_inner();
        assert_eq!(logged.len(), 601);
        assert_eq!(logged[0], "x y");
        assert_eq!(logged[600], "further lines of this minute are not logged");
    }
}
