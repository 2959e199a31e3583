//! Memory use of a process and everything below it.

use std::collections::HashMap;
use std::fs;

/// Returns the memory of a process and its descendants in bytes, with shared pages divided among
/// their users; `None` if one of them cannot be read.
pub(crate) fn proportional(root: u32) -> Option<u64> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let process = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some(process) = process
            && let Some(parent) = parent(process)
        {
            children.entry(parent).or_default().push(process);
        }
    }
    let mut total = 0;
    let mut waiting = vec![root];
    while let Some(process) = waiting.pop() {
        waiting.extend(children.remove(&process).into_iter().flatten());
        match fs::read_to_string(format!("/proc/{process}/smaps_rollup")) {
            Ok(rollup) => total += pss(&rollup)?,
            // It has ended since, and its parent may not have noticed.
            Err(_) if process != root && has_ended(process) => {}
            Err(_) => return None,
        }
    }
    Some(total)
}

fn parent(process: u32) -> Option<u32> {
    status(process).map(|(_, parent)| parent)
}

fn has_ended(process: u32) -> bool {
    status(process).is_none_or(|(state, _)| matches!(state, 'Z' | 'X'))
}

/// Returns the state of a process, as a letter, and its parent.
fn status(process: u32) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before it is in parentheses and may contain anything.
    let (_, after) = stat.rsplit_once(')')?;
    let mut fields = after.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

fn pss(rollup: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_count_and_missing_processes_do_not() {
        let own = proportional(std::process::id()).unwrap();
        assert!(own > 1 << 16, "{own}");
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert_eq!(parent(child.id()), Some(std::process::id()));
        let of_child = proportional(child.id());
        child.kill().unwrap();
        while !has_ended(child.id()) {
            std::thread::yield_now();
        }
        // It is a zombie now.
        assert!(proportional(std::process::id()).is_some());
        child.wait().unwrap();
        assert!(of_child.unwrap() > 0);
        assert_eq!(proportional(child.id()), None);
    }

    #[test]
    fn the_proportional_size_is_read_in_bytes() {
        assert_eq!(
            pss("Rss:  9 kB\nPss:        12 kB\nPss_Dirty: 3 kB\n"),
            Some(12 * 1024)
        );
        assert_eq!(pss("Rss:  9 kB\n"), None);
    }
}
