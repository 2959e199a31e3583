//! Open connections: a limited number for each listener and client address, and the owner whose
//! request each one serves.
//!
//! ```text
//! listener ── ConnectionRoom ── OpenConnection ── requests, or an upgraded protocol
//!                  └── LiveConnections: all rooms of a gateway, so that connections of a revoked key end
//! ```

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Time in which a new connection is expected to send the beginning of a request when room is short.
const FIRST_REQUEST: Duration = Duration::from_secs(2);

/// Time after which a request is a long one. The answer that has a new key may make its own caller
/// an unknown one.
const LASTING: Duration = Duration::from_secs(1);

tokio::task_local! {
    /// The connection whose request is answered.
    static CURRENT: Arc<OpenConnection>;
}

/// The connections of all listeners. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveConnections(Arc<Mutex<Vec<Weak<ConnectionRoom>>>>);

/// The connections of one listener.
#[derive(Debug)]
pub(crate) struct ConnectionRoom {
    places: Arc<Semaphore>,
    /// Maximum number of connections of one address.
    share: usize,
    open: Mutex<HashMap<u64, Arc<OpenConnection>>>,
    /// Notified when a connection becomes idle.
    idle: Notify,
}

/// A place of a connection in its room, which is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionPlace {
    id: u64,
    room: Arc<ConnectionRoom>,
    pub(crate) connection: Arc<OpenConnection>,
    _permit: OwnedSemaphorePermit,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct OpenConnection {
    address: IpAddr,
    activity: Mutex<Activity>,
    /// Whether it waits until the client reads, which can be long after the end of the answer was
    /// handed over.
    pub(crate) is_stalled: AtomicBool,
    /// Canceled to end it after the request that it serves.
    pub(crate) retiring: CancellationToken,
    /// Canceled to end it at once.
    pub(crate) closing: CancellationToken,
}

#[derive(Debug)]
struct Activity {
    /// Number of requests so far.
    requests: u64,
    is_busy: bool,
    is_upgraded: bool,
    since: Instant,
    /// Owner for whom the last request is answered.
    owner: Option<String>,
}

/// A request that a connection serves, until the end of its answer.
#[derive(Debug)]
pub(crate) struct ServedRequest {
    room: Arc<ConnectionRoom>,
    connection: Arc<OpenConnection>,
}

impl LiveConnections {
    /// Makes the room of a listener.
    pub(crate) fn room(&self, max_connections: usize) -> Arc<ConnectionRoom> {
        let room = Arc::new(ConnectionRoom {
            places: Arc::new(Semaphore::new(max_connections)),
            share: (max_connections - max_connections / 4).max(1),
            open: Mutex::default(),
            idle: Notify::new(),
        });
        let mut rooms = lock(&self.0);
        rooms.retain(|it| it.strong_count() > 0);
        rooms.push(Arc::downgrade(&room));
        room
    }

    /// Returns the owners for whom connections are in use for a while.
    pub(crate) fn owners(&self) -> BTreeSet<String> {
        let mut owners = BTreeSet::new();
        self.each(|connection| owners.extend(connection.served()));
        owners
    }

    /// Closes the connections that are in use for an owner; returns their number.
    pub(crate) fn close(&self, owner: &str) -> usize {
        let mut closed = 0;
        self.each(|connection| {
            if connection.served().as_deref() == Some(owner) {
                connection.closing.cancel();
                closed += 1;
            }
        });
        closed
    }

    fn each(&self, mut visit: impl FnMut(&OpenConnection)) {
        let rooms: Vec<_> = lock(&self.0).iter().filter_map(Weak::upgrade).collect();
        for room in rooms {
            lock(&room.open).values().for_each(|it| visit(it));
        }
    }
}

impl ConnectionRoom {
    /// Waits for a place for a connection from an address. Idle connections make room.
    ///
    /// Returns `None` if the address has its share of the places, and uses all of them.
    pub(crate) async fn place(self: &Arc<Self>, address: IpAddr) -> Option<ConnectionPlace> {
        let address = network(address);
        let own = lock(&self.open)
            .values()
            .filter(|it| it.address == address)
            .count();
        if own >= self.share && !self.retire_idle(Some(address)) {
            return None;
        }
        let permit = loop {
            if let Ok(permit) = Arc::clone(&self.places).try_acquire_owned() {
                break permit;
            }
            let changed = self.idle.notified();
            self.retire_idle(None);
            tokio::select! {
                // The semaphore is never closed.
                permit = Arc::clone(&self.places).acquire_owned() => break permit.ok()?,
                () = changed => {}
                () = tokio::time::sleep(FIRST_REQUEST) => {}
            }
        };
        let connection = Arc::new(OpenConnection {
            address,
            activity: Mutex::new(Activity {
                requests: 0,
                is_busy: false,
                is_upgraded: false,
                since: Instant::now(),
                owner: None,
            }),
            is_stalled: AtomicBool::new(false),
            retiring: CancellationToken::new(),
            closing: CancellationToken::new(),
        });
        let id = u64::from_be_bytes(crate::random());
        lock(&self.open).insert(id, Arc::clone(&connection));
        Some(ConnectionPlace {
            id,
            room: Arc::clone(self),
            connection,
            _permit: permit,
        })
    }

    /// Ends the connection that has been idle for the longest time; returns whether there is one.
    fn retire_idle(&self, of: Option<IpAddr>) -> bool {
        let open = lock(&self.open);
        let idle = open
            .values()
            .filter(|it| of.is_none_or(|of| of == it.address) && !it.retiring.is_cancelled());
        let longest = idle
            .filter_map(|it| Some((it.idle_since()?, it)))
            .min_by_key(|(since, _)| *since);
        let Some((_, connection)) = longest else {
            return false;
        };
        connection.retiring.cancel();
        if lock(&connection.activity).requests == 0 {
            // There is no request after which it could end.
            connection.closing.cancel();
        }
        true
    }
}

impl ConnectionPlace {
    /// Notes that the connection serves another request.
    pub(crate) fn request(&self) -> ServedRequest {
        let mut activity = lock(&self.connection.activity);
        activity.requests += 1;
        activity.is_busy = true;
        activity.since = Instant::now();
        activity.owner = None;
        drop(activity);
        ServedRequest {
            room: Arc::clone(&self.room),
            connection: Arc::clone(&self.connection),
        }
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        lock(&self.room.open).remove(&self.id);
    }
}

impl ServedRequest {
    /// Answers the request. What is done for it can [note](note_owner) whose it is.
    pub(crate) async fn answer<T>(&self, answer: impl Future<Output = T>) -> T {
        CURRENT.scope(Arc::clone(&self.connection), answer).await
    }

    /// Notes that the connection goes on with another protocol.
    pub(crate) fn upgraded(&self) {
        lock(&self.connection.activity).is_upgraded = true;
    }
}

impl Drop for ServedRequest {
    fn drop(&mut self) {
        let mut activity = lock(&self.connection.activity);
        activity.is_busy = false;
        activity.since = Instant::now();
        drop(activity);
        self.room.idle.notify_one();
    }
}

impl OpenConnection {
    /// Returns the owner for whom it has been in use for a while.
    fn served(&self) -> Option<String> {
        let activity = lock(&self.activity);
        let is_lasting = activity.is_busy && activity.since.elapsed() >= LASTING;
        activity
            .owner
            .clone()
            .filter(|_| is_lasting || activity.is_upgraded)
    }

    /// Returns since when it waits for a request; `None` if it serves one, still sends an answer,
    /// or is so new that its first request is on the way.
    fn idle_since(&self) -> Option<Instant> {
        let activity = lock(&self.activity);
        let is_stalled = self.is_stalled.load(Ordering::Relaxed);
        let is_used = activity.is_busy || activity.is_upgraded || is_stalled;
        let is_new = activity.requests == 0 && activity.since.elapsed() < FIRST_REQUEST;
        (!is_used && !is_new).then_some(activity.since)
    }
}

/// Notes whose request is answered, so that its connection ends when that owner's key is revoked.
pub(crate) fn note_owner(owner: &str) {
    // Without a connection, there is nothing to end.
    let _ = CURRENT.try_with(|connection| {
        lock(&connection.activity).owner = Some(owner.to_owned());
    });
}

/// The network of one client: a household or a host has 64 bits of IPv6 addresses.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & !u128::from(u64::MAX)).into()),
        address @ IpAddr::V4(_) => address,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    #[tokio::test]
    async fn an_address_has_three_quarters_of_the_places() {
        let room = LiveConnections::default().room(4);
        let mut places = Vec::new();
        for _ in 0..3 {
            places.push(room.place(ONE).await.unwrap());
        }
        assert!(room.place(ONE).await.is_none());
        let other = room.place(OTHER).await.unwrap();
        drop(places.pop());
        assert!(room.place(ONE).await.is_some());
        drop(other);
    }

    #[tokio::test]
    async fn connections_that_wait_for_a_request_make_room() {
        let room = LiveConnections::default().room(1);
        let place = room.place(ONE).await.unwrap();
        let request = place.request();
        let mut next = Box::pin(room.place(OTHER));
        assert!(futures_util::poll!(next.as_mut()).is_pending());
        assert!(!place.connection.retiring.is_cancelled());
        drop(request);
        assert!(futures_util::poll!(next.as_mut()).is_pending());
        assert!(place.connection.retiring.is_cancelled());
        drop(place);
        assert!(next.await.is_some());
    }

    #[tokio::test]
    async fn only_connections_in_use_for_an_owner_are_closed() {
        let live = LiveConnections::default();
        let room = live.room(4);
        let [used, idle, upgraded] = [
            room.place(ONE).await.unwrap(),
            room.place(ONE).await.unwrap(),
            room.place(ONE).await.unwrap(),
        ];
        let noted = async |place: &ConnectionPlace| {
            let request = place.request();
            request.answer(async { note_owner("key_1") }).await;
            request
        };
        let _request = noted(&used).await;
        assert!(live.owners().is_empty());
        lock(&used.connection.activity).since -= LASTING;
        drop(noted(&idle).await);
        let request = noted(&upgraded).await;
        request.upgraded();
        drop(request);
        assert_eq!(live.owners(), BTreeSet::from(["key_1".to_owned()]));
        assert_eq!((live.close("key_2"), live.close("key_1")), (0, 2));
        let closed = [&used, &idle, &upgraded].map(|it| it.connection.closing.is_cancelled());
        assert_eq!(closed, [true, false, true]);
    }

    #[test]
    fn addresses_of_one_network_share_their_places() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), ONE);
        assert_ne!(ONE, OTHER);
    }
}
