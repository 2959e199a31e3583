//! A file in an object store, read in windows: what is known to be wanted is requested together,
//! other bytes ahead of their reader.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use object_store::ObjectMeta;
use parking_lot::Mutex;

use super::objects::Objects;

/// Bytes at the end of a Parquet file that are requested at first; most footers fit.
const END: u64 = 64 << 10;
/// Minimum and maximum size of a window.
const WINDOW: Range<u64> = 64 << 10..8 << 20;
/// Ranges that are used together are requested at once up to this size.
const AT_ONCE: u64 = 16 << 20;
/// Size of the windows of larger ones together.
const TOGETHER: u64 = 32 << 20;
/// Maximum size of the windows of a file that are kept; the oldest go first.
const KEPT: usize = 64 << 20;

/// A file in an object store.
#[derive(Debug)]
pub(super) struct Object {
    objects: Arc<Objects>,
    meta: ObjectMeta,
    wanted: OnceLock<Vec<Vec<Range<u64>>>>,
    windows: Mutex<Windows>,
}

#[derive(Debug)]
struct Windows {
    kept: VecDeque<(u64, Bytes)>,
    bytes: usize,
    /// Size of the next window for a reader of everything.
    ahead: u64,
}

impl Object {
    pub(super) fn new(objects: Arc<Objects>, meta: ObjectMeta) -> Self {
        let windows = Windows {
            kept: VecDeque::new(),
            bytes: 0,
            ahead: WINDOW.start,
        };
        Self {
            objects,
            meta,
            wanted: OnceLock::new(),
            windows: Mutex::new(windows),
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.meta.size
    }

    /// Reads the end of the file, in which a footer is.
    pub(super) fn read_end(&self) -> std::io::Result<()> {
        let end = self.len().saturating_sub(END)..self.len();
        self.windows().read(self, vec![end]).map(drop)
    }

    /// Announces ranges, in groups that are used together.
    pub(super) fn want(&self, groups: Vec<Vec<Range<u64>>>) {
        // Only the first reader of a file announces any.
        let _ = self.wanted.set(groups);
    }

    /// Returns bytes from a position, up to where its window ends; none at the end of the file.
    pub(super) fn bytes(&self, at: u64) -> std::io::Result<Bytes> {
        if at >= self.len() {
            return Ok(Bytes::new());
        }
        let mut windows = self.windows();
        if let Some(bytes) = windows.find(at) {
            return Ok(bytes);
        }
        let ranges = self.ranges(at, &mut windows.ahead);
        windows.read(self, ranges)?;
        windows
            .find(at)
            .ok_or_else(|| std::io::ErrorKind::UnexpectedEof.into())
    }

    /// Chooses what to request for a reader at a position.
    fn ranges(&self, at: u64, ahead: &mut u64) -> Vec<Range<u64>> {
        let groups = self.wanted.get().into_iter().flatten();
        for group in groups {
            let Some(range) = group.iter().find(|range| range.contains(&at)) else {
                continue;
            };
            let total: u64 = group.iter().map(|range| range.end - range.start).sum();
            if at == range.start && total <= AT_ONCE {
                return group.clone();
            }
            let window = (TOGETHER / group.len() as u64).clamp(WINDOW.start, WINDOW.end);
            let window = at..range.end.min(at + window);
            return vec![window];
        }
        let window = *ahead;
        *ahead = (window * 2).min(WINDOW.end);
        let window = at..self.len().min(at + window);
        vec![window]
    }

    fn windows(&self) -> parking_lot::MutexGuard<'_, Windows> {
        self.windows.lock()
    }
}

impl Windows {
    fn find(&self, at: u64) -> Option<Bytes> {
        // The newest are at the end.
        let mut kept = self.kept.iter().rev();
        kept.find_map(|(start, bytes)| {
            let skipped = usize::try_from(at.checked_sub(*start)?).ok()?;
            (skipped < bytes.len()).then(|| bytes.slice(skipped..))
        })
    }

    fn read(&mut self, object: &Object, mut ranges: Vec<Range<u64>>) -> std::io::Result<()> {
        ranges.retain(|range| !range.is_empty());
        let read = object.objects.read(&object.meta, &ranges);
        let read = read.map_err(std::io::Error::other)?;
        let mut new = 0;
        for (range, bytes) in ranges.iter().zip(read) {
            new += bytes.len();
            self.kept.push_back((range.start, bytes));
        }
        self.bytes += new;
        // What was just read stays, whatever its size.
        while self.bytes > KEPT.max(new) {
            let Some((_, oldest)) = self.kept.pop_front() else {
                break;
            };
            self.bytes -= oldest.len();
        }
        Ok(())
    }
}
