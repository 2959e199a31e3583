//! Size of machines.

use cellblock_sandbox::Limits;

/// Memory of a machine's kernel and of the template, beside that of the sandbox.
const KERNEL_BYTES: u64 = 768 << 20;
/// Memory of the program that runs a machine, beside that of the machine.
const PROGRAM_BYTES: u64 = 384 << 20;
/// All of it.
pub(super) const OVERHEAD_BYTES: u64 = KERNEL_BYTES + PROGRAM_BYTES;
pub(super) const MIB: u64 = 1 << 20;
const PROCESSORS: u32 = 8;

/// Returns the memory of a machine for a sandbox with these limits.
pub(super) fn memory_bytes(limits: &Limits) -> u64 {
    limits
        .memory_bytes
        .saturating_add(KERNEL_BYTES)
        .next_multiple_of(2 * MIB)
}

/// Returns the memory of a machine with the program that runs it.
pub(super) fn total_bytes(limits: &Limits) -> u64 {
    memory_bytes(limits).saturating_add(PROGRAM_BYTES)
}

/// Returns the number of processors of a machine.
pub(super) fn processors(limits: &Limits) -> u32 {
    let here = std::thread::available_parallelism().map_or(1, |it| u32::try_from(it.get()).unwrap_or(1));
    let wanted = limits.cpu_millis.map_or(here, |millis| {
        u32::try_from(millis.div_ceil(1000)).unwrap_or(here)
    });
    wanted.clamp(1, here.min(PROCESSORS))
}
