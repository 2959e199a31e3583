//! Returning freed memory: a host that has read large requests, answers or outputs keeps none of theirs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use cellblock_sandbox::jail::memory::{give_back, resident};

/// Bytes by which the process must have grown.
const GROWN: u64 = 32 << 20;
/// Pause before memory is returned, so that what ends together is returned together.
const PAUSE: Duration = Duration::from_millis(500);

static PENDING: AtomicBool = AtomicBool::new(false);
/// Bytes in memory after the last return.
static SETTLED: AtomicU64 = AtomicU64::new(0);

/// Returns memory soon, in a separate thread, if the process has grown.
pub fn settle() {
    if PENDING.swap(true, Ordering::AcqRel) {
        return;
    }
    let started = thread::Builder::new()
        .name("cellblock-memory".to_owned())
        .spawn(|| {
            thread::sleep(PAUSE);
            PENDING.store(false, Ordering::Release);
            let Some(bytes) = resident() else { return };
            if bytes > SETTLED.load(Ordering::Relaxed).saturating_add(GROWN) {
                give_back();
                SETTLED.store(resident().unwrap_or(bytes), Ordering::Relaxed);
            } else {
                // Memory that was in use when some was returned last has been freed since.
                SETTLED.fetch_min(bytes, Ordering::Relaxed);
            }
        });
    if started.is_err() {
        PENDING.store(false, Ordering::Release);
    }
}
