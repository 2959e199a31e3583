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
#[derive(Debug)]
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
        let keeps = ours.iter().filter(|pid| all[*pid].0 == KEEP);
        let template = ours.iter().filter(|pid| {
            let (name, parent) = &all[*pid];
            name.starts_with("python") && all.get(parent).is_some_and(|(name, _)| name == KEEP)
        });
        let sessions = ours.iter().filter(|pid| SESSION.contains(&all[*pid].0.as_str()));
        Ok(Self {
            launcher: Memory::of(keeps.flat_map(|keep| [*keep, all[keep].1])),
            template: Memory::of(template.copied()),
            sessions: Memory::of(sessions.copied()),
        })
    }
}

/// Returns the kernels below this process, which include standbys.
pub(crate) fn kernels() -> Result<Vec<u32>> {
    let all = processes()?;
    let ours = below(&all, std::process::id()).into_iter();
    Ok(ours.filter(|pid| all[pid].0 == SESSION[1]).collect())
}

/// Returns the milliseconds that a process has run, unless it has ended.
pub(crate) fn cpu_time(pid: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    let nanoseconds: f64 = stat.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds / 1e6)
}

/// The first process of the outer wall, as tools on the host show it.
const KEEP: &str = "cellblock-keep";
/// The processes of a session.
const SESSION: [&str; 2] = ["cellblock-guest", "cellblock-py"];

/// Names and parents by process.
type Processes = HashMap<u32, (String, u32)>;

/// Every process of the machine.
fn processes() -> Result<Processes> {
    let entries = fs::read_dir("/proc").context("list processes")?.flatten();
    let process = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        Some((pid, parse(&stat)?))
    };
    Ok(entries.filter_map(process).collect())
}

/// The descendants of a process. Other programs' sandboxes on the machine are none of them.
fn below(all: &Processes, root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for (pid, (_, parent)) in all {
        children.entry(*parent).or_default().push(*pid);
    }
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(children.remove(&parent).unwrap_or_default());
        next += 1;
    }
    found.split_off(1)
}

/// A process's name and its parent's id. The name may hold spaces and parentheses.
fn parse(stat: &str) -> Option<(String, u32)> {
    let (head, rest) = stat.rsplit_once(") ")?;
    let name = head.split_once('(')?.1;
    Some((name.to_owned(), rest.split(' ').nth(1)?.parse().ok()?))
}

/// Bytes that the machine could still give to programs.
pub(crate) fn available() -> Result<u64> {
    read("meminfo", "MemAvailable:")
}

/// Maximum growth of a process's memory since the start.
#[derive(Debug)]
pub(crate) struct Peak {
    process: u32,
    before: u64,
}

impl Peak {
    /// Starts over for a process.
    pub(crate) fn of(process: u32) -> Result<Self> {
        // `proc(5)`: 5 resets the peak to what is resident now.
        fs::write(format!("/proc/{process}/clear_refs"), "5").context("reset the peak of memory")?;
        let before = read(&format!("{process}/status"), "VmRSS:")?;
        Ok(Self { process, before })
    }

    /// The growth so far, in mebibytes.
    pub(crate) fn growth(&self) -> Result<f64> {
        let most = read(&format!("{}/status", self.process), "VmHWM:")?;
        Ok(mebibytes(most.saturating_sub(self.before)))
    }
}

fn read(file: &str, name: &str) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{file}")).with_context(|| format!("read `/proc/{file}`"))?;
    Ok(field(&text, name))
}

#[expect(clippy::cast_precision_loss, reason = "bytes of memory fit a double")]
pub(crate) fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// A line such as `Pss:   12 kB`, in bytes; 0 without it.
fn field(text: &str, name: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    let kib = value.and_then(|value| value.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_hide_the_parent() {
        let parsed = parse("12 (a) b (c)) S 7 12 12 0");
        assert_eq!(parsed, Some(("a) b (c)".to_owned(), 7)));
        assert_eq!(parse("nonsense"), None);
    }

    #[test]
    fn descendants_are_found_at_any_depth_and_others_are_not() {
        let all = [(2, 1), (3, 2), (4, 3), (5, 1), (6, 5)];
        let all = all.map(|(pid, parent)| (pid, (String::new(), parent)));
        assert_eq!(below(&all.into(), 2), [3, 4]);
    }

    #[test]
    fn fields_are_read_in_bytes() {
        let text = "Rss:  9 kB\nPss:                  12 kB\n";
        assert_eq!(field(text, "Pss:"), 12 * 1024);
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
        let peak = Peak::of(std::process::id()).unwrap();
        let large = vec![1_u8; 64 << 20];
        let sum: usize = large.iter().map(|byte| usize::from(*byte)).sum();
        assert_eq!(sum, 64 << 20);
        drop(large);
        assert!(peak.growth().unwrap() >= 60.0);
    }
}
