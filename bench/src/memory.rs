//! Memory of processes, from the kernel's own accounting. Needs root: guests hide their memory maps
//! from others.

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
    /// Number of processes.
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
pub(crate) struct ProcessTree {
    /// Guests and kernels: what a session costs.
    pub(crate) sessions: Memory,
    /// The process that has everything imported.
    pub(crate) template: Memory,
    /// The launcher and the keep.
    pub(crate) launcher: Memory,
}

impl ProcessTree {
    /// Adds up the descendants of this process. Floors and peers, which descend from it too, are
    /// none of the three.
    pub(crate) fn measure() -> Result<Self> {
        let tree = Self::below(std::process::id())?;
        ensure!(
            tree.sessions.processes > 0 && tree.template.processes > 0,
            "no sandbox process could be measured; run as root"
        );
        Ok(tree)
    }

    /// The same of any process, which may have no sandbox.
    pub(crate) fn below(root: u32) -> Result<Self> {
        let all = processes()?;
        let ours = below(&all, root);
        let named = |names: &[&str]| -> Vec<u32> {
            let wanted = |pid: &&u32| names.contains(&all[*pid].name.as_str());
            ours.iter().filter(wanted).copied().collect()
        };
        let keeps = named(&[KEEP]);
        let template = ours.iter().filter(|pid| {
            let process = &all[*pid];
            process.name.starts_with("python") && keeps.contains(&process.parent)
        });
        let launcher = keeps.iter().flat_map(|keep| [*keep, all[keep].parent]);
        Ok(Self {
            sessions: Memory::of(named(&["cellblock-guest", "cellblock-py"])),
            template: Memory::of(template.copied()),
            launcher: Memory::of(launcher),
        })
    }
}

/// The first process of the outer wall, as tools on the host show it.
const KEEP: &str = "cellblock-keep";

struct ProcessRow {
    name: String,
    parent: u32,
}

/// Every process of the machine by its id.
fn processes() -> Result<HashMap<u32, ProcessRow>> {
    let mut found = HashMap::new();
    for entry in fs::read_dir("/proc").context("list processes")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        if let Some((name, parent)) = parse(&stat) {
            let name = name.to_owned();
            found.insert(pid, ProcessRow { name, parent });
        }
    }
    Ok(found)
}

/// The descendants of a process. Other programs' sandboxes on the machine are none of them.
fn below(all: &HashMap<u32, ProcessRow>, root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for (pid, process) in all {
        children.entry(process.parent).or_default().push(*pid);
    }
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(parent) = open.pop() {
        let next = children.remove(&parent).unwrap_or_default();
        open.extend(&next);
        found.extend(next);
    }
    found
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

/// Maximum growth of a process's memory since the start, in bytes.
#[derive(Debug)]
pub(crate) struct Peak {
    process: u32,
    before: u64,
}

impl Peak {
    /// Starts over for this process.
    pub(crate) fn start() -> Result<Self> {
        Self::of(std::process::id())
    }

    /// Starts over for any process.
    pub(crate) fn of(process: u32) -> Result<Self> {
        // `proc(5)`: 5 resets the peak to what is resident now.
        fs::write(format!("/proc/{process}/clear_refs"), "5").context("reset the peak of memory")?;
        Ok(Self {
            process,
            before: status(process, "VmRSS:")?,
        })
    }

    /// The growth so far.
    pub(crate) fn growth(&self) -> Result<u64> {
        Ok(status(self.process, "VmHWM:")?.saturating_sub(self.before))
    }
}

fn status(process: u32, name: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).context("read a process's memory")?;
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
    fn descendants_are_found_at_any_depth_and_others_are_not() {
        let process = |parent| ProcessRow {
            name: String::new(),
            parent,
        };
        let all = [(2, 1), (3, 2), (4, 3), (5, 1), (6, 5)].map(|(pid, parent)| (pid, process(parent)));
        let mut found = below(&all.into(), 2);
        found.sort_unstable();
        assert_eq!(found, [3, 4]);
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
