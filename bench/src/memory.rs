//! Memory of processes, from the kernel's own accounting. Needs root: guests hide their memory maps from others.

use std::collections::HashMap;
use std::fs;

use anyhow::{Context, Result, ensure};

/// Memory of some processes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Bytes that nothing else shares (USS).
    pub(crate) private: u64,
    /// Bytes with shared pages counted in proportion (PSS).
    pub(crate) proportional: u64,
    /// How many processes.
    pub(crate) processes: u64,
}

impl Memory {
    /// Of these processes; those that have ended meanwhile are left out.
    pub(crate) fn of(pids: impl IntoIterator<Item = u32>) -> Self {
        let mut memory = Self::default();
        for pid in pids {
            let Ok(rollup) = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) else {
                continue;
            };
            memory.private += field(&rollup, "Private_Clean:") + field(&rollup, "Private_Dirty:");
            memory.proportional += field(&rollup, "Pss:");
            memory.processes += 1;
        }
        memory
    }
}

/// This program's sandboxes, by what their processes are.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// Guests and kernels: what a session costs.
    pub(crate) sessions: Memory,
    /// The process that has everything imported.
    pub(crate) template: Memory,
    /// The launcher and the keep.
    pub(crate) launcher: Memory,
}

impl Tree {
    /// Adds up the descendants of this process.
    pub(crate) fn measure() -> Result<Self> {
        let (mut sessions, mut template, mut launcher) = (Vec::new(), Vec::new(), Vec::new());
        for (pid, name) in descendants(std::process::id())? {
            match name.as_str() {
                "cellblock-guest" | "cellblock-py" => sessions.push(pid),
                name if name.starts_with("cellblock") => launcher.push(pid),
                name if name.starts_with("python") => template.push(pid),
                _ => {}
            }
        }
        let tree = Self {
            sessions: Memory::of(sessions),
            template: Memory::of(template),
            launcher: Memory::of(launcher),
        };
        ensure!(
            tree.sessions.processes > 0,
            "no sandbox process could be measured; run as root"
        );
        Ok(tree)
    }
}

/// All processes below this one, with their names. Other programs' sandboxes on the machine are none of them.
fn descendants(root: u32) -> Result<Vec<(u32, String)>> {
    let mut children: HashMap<u32, Vec<(u32, String)>> = HashMap::new();
    for entry in fs::read_dir("/proc").context("list processes")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        if let Some((name, parent)) = parse(&stat) {
            children.entry(parent).or_default().push((pid, name.to_owned()));
        }
    }
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(parent) = open.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            open.push(child.0);
            found.push(child);
        }
    }
    Ok(found)
}

/// A process's name and its parent's id. The name may hold spaces and parentheses.
fn parse(stat: &str) -> Option<(&str, u32)> {
    let (head, rest) = stat.rsplit_once(") ")?;
    let name = head.split_once('(')?.1;
    let parent = rest.split(' ').nth(1)?.parse().ok()?;
    Some((name, parent))
}

/// Bytes that the machine could still give to programs.
pub(crate) fn available() -> Result<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").context("read the machine's memory")?;
    Ok(field(&meminfo, "MemAvailable:"))
}

/// How much more memory this process had at most than at the start, in bytes.
#[derive(Debug)]
pub(crate) struct Peak {
    before: u64,
}

impl Peak {
    /// Starts over.
    pub(crate) fn start() -> Result<Self> {
        // `proc(5)`: 5 resets the peak to what is resident now.
        fs::write("/proc/self/clear_refs", "5").context("reset the peak of memory")?;
        Ok(Self {
            before: status("VmRSS:")?,
        })
    }

    /// The growth so far.
    pub(crate) fn growth(&self) -> Result<u64> {
        Ok(status("VmHWM:")?.saturating_sub(self.before))
    }
}

fn status(name: &str) -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status").context("read this process's memory")?;
    Ok(field(&status, name))
}

/// A line such as `Pss:   12 kB`, in bytes; 0 without it.
fn field(text: &str, name: &str) -> u64 {
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_hide_the_parent() {
        assert_eq!(parse("12 (a) b (c)) S 7 12 12 0"), Some(("a) b (c)", 7)));
        assert_eq!(parse("nonsense"), None);
    }

    #[test]
    fn fields_are_read_in_bytes() {
        assert_eq!(
            field("Rss:  9 kB\nPss:                  12 kB\n", "Pss:"),
            12 * 1024
        );
        assert_eq!(field("Rss:  9 kB\n", "Pss:"), 0);
    }

    #[test]
    fn a_process_has_private_memory_of_its_own() {
        let memory = Memory::of([std::process::id()]);
        assert_eq!(memory.processes, 1);
        assert!(memory.private > 0 && memory.proportional >= memory.private);
    }

    #[test]
    fn memory_that_was_used_and_given_back_is_in_the_peak() {
        let peak = Peak::start().unwrap();
        let large = vec![1_u8; 64 << 20];
        assert_eq!(
            large.iter().map(|byte| usize::from(*byte)).sum::<usize>(),
            64 << 20
        );
        drop(large);
        assert!(peak.growth().unwrap() >= 60 << 20);
    }
}
