//! The last order of each stored table, for as many tables as there is room: the next page of a
//! sorted table is not sorted again.

use std::collections::VecDeque;
use std::sync::Arc;

use cellblock_artifact::ArtifactId;
use parking_lot::{Mutex, MutexGuard};

use super::order::RowOrder;

/// Maximum size of all orders in memory.
const BYTES: usize = 128 << 20;

static ORDERS: Mutex<OrderCache> = Mutex::new(OrderCache {
    orders: VecDeque::new(),
    max_bytes: BYTES,
});

/// An order of a table.
#[derive(Debug)]
struct CachedOrder {
    table: ArtifactId,
    order: RowOrder,
    rows: Arc<Vec<u32>>,
}

/// Orders, the least recently used first.
#[derive(Debug)]
struct OrderCache {
    orders: VecDeque<CachedOrder>,
    max_bytes: usize,
}

/// Returns an order that was kept.
pub(super) fn find(table: ArtifactId, order: RowOrder) -> Option<Arc<Vec<u32>>> {
    lock().find(table, order)
}

/// Whether the order of so many rows can be kept.
pub(super) fn has_room(rows: usize) -> bool {
    bytes_of(rows) <= BYTES
}

/// Keeps an order in place of another one of the same table, and of those that were not used for
/// the longest time.
pub(super) fn keep(table: ArtifactId, order: RowOrder, rows: Arc<Vec<u32>>) {
    lock().keep(table, order, rows);
}

/// Returns the size of all orders in bytes.
pub(crate) fn bytes() -> usize {
    lock().bytes()
}

fn lock() -> MutexGuard<'static, OrderCache> {
    ORDERS.lock()
}

const fn bytes_of(rows: usize) -> usize {
    rows.saturating_mul(size_of::<u32>())
}

impl OrderCache {
    fn find(&mut self, table: ArtifactId, order: RowOrder) -> Option<Arc<Vec<u32>>> {
        let known = |it: &CachedOrder| it.table == table && it.order == order;
        let found = self.orders.remove(self.orders.iter().position(known)?)?;
        let rows = Arc::clone(&found.rows);
        self.orders.push_back(found);
        Some(rows)
    }

    fn keep(&mut self, table: ArtifactId, order: RowOrder, rows: Arc<Vec<u32>>) {
        self.orders.retain(|it| it.table != table);
        self.orders.push_back(CachedOrder { table, order, rows });
        while self.bytes() > self.max_bytes {
            self.orders.pop_front();
        }
    }

    fn bytes(&self) -> usize {
        self.orders.iter().map(|it| bytes_of(it.rows.capacity())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_order_of_each_table_is_kept_within_the_limit_and_the_least_recently_used_goes_first() {
        let [one, two, three] = [b"one".as_slice(), b"two", b"three"].map(ArtifactId::of);
        let by = |column| RowOrder {
            column,
            descending: false,
        };
        let order = || Arc::new(vec![0_u32; 100]);
        let mut cache = OrderCache {
            orders: VecDeque::new(),
            max_bytes: 800,
        };
        cache.keep(one, by(0), order());
        cache.keep(one, by(1), order());
        assert!(cache.find(one, by(0)).is_none());
        cache.keep(two, by(0), order());
        assert_eq!(cache.bytes(), 800);
        assert!(cache.find(one, by(1)).is_some());
        cache.keep(three, by(0), order());
        assert_eq!(cache.bytes(), 800);
        assert!(cache.find(two, by(0)).is_none());
        assert!(cache.find(one, by(1)).is_some());
        cache.keep(two, by(0), Arc::new(vec![0; 201]));
        assert_eq!(cache.bytes(), 0);
    }
}
