//! Requirements of a virtual machine and its host for the processor and for a kernel that is not shared.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `linux/random.h`: adds bytes to the pool and credits them.
const RNDADDENTROPY: libc::c_ulong = 0x4008_5203;
/// `linux/random.h`: makes the generator use the pool now.
const RNDRESEEDCRNG: libc::c_ulong = 0x5207;

/// The kernel's `struct rand_pool_info`.
#[repr(C)]
struct EntropyOrder {
    entropy_bits: libc::c_int,
    bytes: libc::c_int,
    seed: [u8; 32],
}

/// Gives this kernel's random generator a seed, so that it differs from that of every other copy of
/// the same memory.
pub fn stir(seed: &[u8; 32]) -> io::Result<()> {
    let device = File::options().write(true).open("/dev/urandom")?;
    let info = EntropyOrder {
        entropy_bits: 256,
        bytes: 32,
        seed: *seed,
    };
    // SAFETY: the request reads the two integers and `bytes` bytes after them, all within `info`.
    let added = unsafe { libc::ioctl(device.as_raw_fd(), RNDADDENTROPY as _, &raw const info) };
    if added != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the request has no argument.
    let used = unsafe { libc::ioctl(device.as_raw_fd(), RNDRESEEDCRNG as _) };
    if used == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Measures the frequency of this processor's time-stamp counter in kHz.
#[cfg(target_arch = "x86_64")]
pub fn counter_khz() -> Option<u64> {
    use std::arch::x86_64::_rdtsc;
    use std::time::{Duration, Instant};

    // SAFETY: every x86-64 processor has the instruction, which only reads a counter.
    let count = || unsafe { _rdtsc() };
    let (began, first) = (Instant::now(), count());
    std::thread::sleep(Duration::from_millis(20));
    let (passed, last) = (began.elapsed(), count());
    let khz = u128::from(last.checked_sub(first)?) * 1_000_000 / passed.as_nanos().max(1);
    u64::try_from(khz).ok().filter(|khz| *khz > 0)
}

/// Other processors need no calibration.
#[cfg(not(target_arch = "x86_64"))]
pub fn counter_khz() -> Option<u64> {
    None
}
