//! Processor time of a program of tests, which is the same beside others as alone, unlike the time
//! on the clock.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Runs the program of its first argument, and says last what that and what it waited for have used.
const SCRIPT: &str = r#""$0" "$@"; ended=$?; times; exit "$ended""#;

/// A command that runs a program, and prints after it what `read` reads.
pub(super) fn measured(program: &Path) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", SCRIPT]).arg(program);
    shell
}

/// Splits what a measured program has printed from the processor time that it took, which is zero
/// if nothing says it.
pub(super) fn read(printed: &str) -> (String, Duration) {
    let mut lines: Vec<_> = printed.split_inclusive('\n').collect();
    // The shell's own time is in the line before: 0m0.010s 0m0.020s
    let is_pair = |pair: &[&str]| pair.iter().all(|line| times(line).is_some());
    let Some(at) = lines.windows(2).rposition(is_pair) else {
        return (printed.to_owned(), Duration::ZERO);
    };
    let used = times(lines[at + 1]).unwrap_or_default();
    lines.drain(at..at + 2);
    (lines.concat(), used)
}

/// Reads the time in programs and in the system, and returns their sum.
fn times(line: &str) -> Option<Duration> {
    let time = |text: &str| {
        let (minutes, seconds) = text.strip_suffix('s')?.split_once('m')?;
        let seconds: f64 = seconds.parse().ok()?;
        Duration::try_from_secs_f64(minutes.parse::<f64>().ok()? * 60.0 + seconds).ok()
    };
    let (user, system) = line.trim_end().split_once(' ')?;
    Some(time(user)? + time(system)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_used_is_split_from_what_it_printed() {
        let printed = "test a ... ok\n0m0.001s 0m0.002s\n1m2.500s 0m0.25s\nit ended with 1\n";
        let expected = "test a ... ok\nit ended with 1\n".to_owned();
        assert_eq!(read(printed), (expected, Duration::from_millis(62_750)));
        for nothing in ["", "killed\n", "a\nb\nc\n"] {
            assert_eq!(read(nothing), (nothing.to_owned(), Duration::ZERO));
        }
    }

    #[test]
    fn a_measured_program_has_its_arguments_and_its_status() {
        let script = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo \"$0 $1\"; exit 3";
        let output = measured(Path::new("sh"))
            .args(["-c", script, "one", "two three"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(3));
        let printed = String::from_utf8(output.stdout).unwrap();
        let (printed, used) = read(&printed);
        assert_eq!(printed, "one two three\n");
        assert!(used > Duration::ZERO);
    }
}
