//! TCP connections between the host and programs of the room, over the room's own loopback device.
//!
//! The host asks for each part in both directions, so a side that is slow makes the other wait, and a
//! connection costs the guest at most one part of each direction.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use cellblock_jail::Result;
use cellblock_protocol::{FromGuest, ToGuest};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{
    AddressFamily, RecvFlags, SocketFlags, SocketType, accept_with, bind, connect, listen, recv, socket_with,
    sockopt,
};

use super::Guest;
use super::feed::Feed;
use super::path::Refusal;

/// Maximum number of connections, and of listeners, at the same time.
const OPEN: usize = 128;
/// Maximum number of bytes of an answer.
const PART: usize = 256 * 1024;
/// Maximum time for a program of the room to accept a connection. The guest does nothing else
/// meanwhile; the kernel connects at once unless the program's queue is full.
const CONNECT_LIMIT: Duration = Duration::from_millis(100);
/// Number of connections that wait to be accepted.
const BACKLOG: i32 = 64;
/// Sockets must not make the guest wait.
const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);
/// State of a listening socket in the tables of `/proc`.
const LISTENING: &str = "0A";

/// The connections and listeners of a room.
#[derive(Debug, Default)]
pub(super) struct Connections {
    open: Vec<Connection>,
    listeners: Vec<Listener>,
    /// Bytes on their way to the host; empty until something is received.
    part: Vec<u8>,
}

#[derive(Debug)]
struct Connection {
    number: u64,
    socket: OwnedFd,
    feed: Feed,
    /// The request to answer when the queued bytes are handed over.
    sending: Option<u64>,
    /// The request to answer when there are bytes, and how many it takes.
    receiving: Option<(u64, usize)>,
}

#[derive(Debug)]
struct Listener {
    number: u64,
    port: u16,
    socket: OwnedFd,
    accepting: Option<u64>,
}

type ReplyResult = std::result::Result<(), Refusal>;

impl Connections {
    /// Returns the sockets that somebody waits for.
    pub(super) fn awaited(&self) -> impl Iterator<Item = PollFd<'_>> {
        let open = self.open.iter().flat_map(|connection| {
            let bytes = connection
                .receiving
                .map(|_| PollFd::new(&connection.socket, PollFlags::IN));
            let room = connection
                .feed
                .waiting()
                .map(|end| PollFd::new(end, PollFlags::OUT));
            bytes.into_iter().chain(room)
        });
        let listeners = self
            .listeners
            .iter()
            .filter(|listener| listener.accepting.is_some());
        open.chain(listeners.map(|listener| PollFd::new(&listener.socket, PollFlags::IN)))
    }

    fn add(&mut self, number: u64, socket: OwnedFd) -> ReplyResult {
        self.has_room()?;
        // The host sends whole parts; waiting for more of them only delays answers.
        sockopt::set_tcp_nodelay(&socket, true)?;
        let feed = Feed::socket(fcntl_dupfd_cloexec(&socket, 3)?);
        self.open.push(Connection {
            number,
            socket,
            feed,
            sending: None,
            receiving: None,
        });
        Ok(())
    }

    fn has_room(&self) -> ReplyResult {
        if self.open.len() + self.listeners.len() >= OPEN {
            return Err(Refusal::new(
                "too_many",
                format!("{OPEN} connections are open, which is the limit"),
            ));
        }
        Ok(())
    }

    fn find(&mut self, number: u64) -> std::result::Result<&mut Connection, Refusal> {
        let found = self
            .open
            .iter_mut()
            .find(|connection| connection.number == number);
        found.ok_or_else(|| Refusal::new("not_found", "there is no such connection"))
    }
}

impl Guest {
    /// Answers a message about connections.
    pub(super) fn answer_about_connection(&mut self, message: &ToGuest, blobs: &[Vec<u8>]) -> Result<()> {
        match *message {
            ToGuest::Ports { request } => self.ports(request),
            ToGuest::Connect { request, port } => {
                let done = self.connect(request, port);
                self.finish(request, done)
            }
            ToGuest::Listen { request, port } => {
                let done = self.listen(request, port);
                self.finish(request, done)
            }
            ToGuest::Accept { request, listener } => self.accept(request, listener),
            ToGuest::Receive {
                request,
                connection,
                length,
            } => self.receive_from(request, connection, length),
            ToGuest::Send {
                request,
                connection,
                close,
            } => {
                let bytes = blobs.first().map_or(&[][..], Vec::as_slice);
                self.send_over(request, connection, bytes, close)
            }
            ToGuest::HangUp { connection } => self.hang_up(connection),
            _ => Ok(()),
        }
    }

    /// Lists the ports on which programs of the room listen.
    fn ports(&mut self, request: u64) -> Result<()> {
        if self.network.is_none() {
            // Without namespaces, the machine's would be listed.
            return self.channel.send(
                &FromGuest::Ports {
                    request,
                    ports: Vec::new(),
                },
                &[],
            );
        }
        let mut ports: Vec<_> = ["/proc/self/net/tcp", "/proc/self/net/tcp6"]
            .iter()
            .filter_map(|table| std::fs::read_to_string(table).ok())
            .flat_map(|table| table.lines().filter_map(listening_port).collect::<Vec<_>>())
            .filter(|port| self.connections.listeners.iter().all(|own| own.port != *port))
            .collect();
        ports.sort_unstable();
        ports.dedup();
        self.channel.send(&FromGuest::Ports { request, ports }, &[])
    }

    fn connect(&mut self, number: u64, port: u16) -> ReplyResult {
        self.needs_loopback()?;
        self.connections.has_room()?;
        let socket = match connected((Ipv4Addr::LOCALHOST, port).into()) {
            Err(Errno::CONNREFUSED) => connected((Ipv6Addr::LOCALHOST, port).into()),
            done => done,
        };
        let socket = socket.map_err(|error| match error {
            // A machine without IPv6 has no such family.
            Errno::CONNREFUSED | Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL | Errno::NETUNREACH => {
                Refusal::new("refused", "no program listens on it")
            }
            Errno::TIMEDOUT => {
                Refusal::new("refused", "the program that listens on it accepts no connections")
            }
            other => other.into(),
        })?;
        self.connections.add(number, socket)
    }

    fn listen(&mut self, number: u64, port: u16) -> ReplyResult {
        self.needs_loopback()?;
        self.connections.has_room()?;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, FLAGS, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
        listen(&socket, BACKLOG)?;
        self.connections.listeners.push(Listener {
            number,
            port,
            socket,
            accepting: None,
        });
        Ok(())
    }

    fn accept(&mut self, request: u64, listener: u64) -> Result<()> {
        let mut listeners = self.connections.listeners.iter_mut();
        match listeners.find(|it| it.number == listener) {
            Some(found) if found.accepting.is_none() => {
                found.accepting = Some(request);
                self.pump_connections()
            }
            Some(_) => self.refuse(request, Refusal::new("busy", "another request accepts")),
            None => self.refuse(request, Refusal::new("not_found", "there is no such listener")),
        }
    }

    fn receive_from(&mut self, request: u64, connection: u64, length: u32) -> Result<()> {
        let length = usize::try_from(length).unwrap_or(PART).clamp(1, PART);
        match self.connections.find(connection) {
            Ok(found) if found.receiving.is_none() => {
                found.receiving = Some((request, length));
                self.pump_connections()
            }
            Ok(_) => self.refuse(request, Refusal::new("busy", "another request receives")),
            Err(refusal) => self.refuse(request, refusal),
        }
    }

    fn send_over(&mut self, request: u64, connection: u64, bytes: &[u8], close: bool) -> Result<()> {
        let queued = self.connections.find(connection).and_then(|found| {
            if found.sending.is_some() {
                return Err(Refusal::new("busy", "another request sends"));
            }
            found.feed.push(bytes, close)?;
            found.sending = Some(request);
            Ok(())
        });
        match queued {
            Ok(()) => self.pump_connections(),
            Err(refusal) => self.refuse(request, refusal),
        }
    }

    /// Ends a connection or listener. Requests that wait for it are answered.
    fn hang_up(&mut self, number: u64) -> Result<()> {
        let Connections { open, listeners, .. } = &mut self.connections;
        let ended = open.extract_if(.., |it| it.number == number);
        let waiting = ended.flat_map(|it| {
            it.sending
                .into_iter()
                .chain(it.receiving.map(|(request, _)| request))
        });
        let mut waiting: Vec<_> = waiting.collect();
        waiting.extend(
            listeners
                .extract_if(.., |it| it.number == number)
                .filter_map(|it| it.accepting),
        );
        waiting
            .into_iter()
            .try_for_each(|request| self.refuse(request, Refusal::new("closed", "the connection was ended")))
    }

    /// Moves what can be moved without waiting.
    pub(super) fn pump_connections(&mut self) -> Result<()> {
        self.accept_ready()?;
        let Connections { open, part, .. } = &mut self.connections;
        for connection in open {
            connection.feed.flush();
            if connection.feed.waiting().is_none()
                && let Some(request) = connection.sending.take()
            {
                self.channel.send(&FromGuest::Ok { request }, &[])?;
            }
            let Some((request, length)) = connection.receiving else {
                continue;
            };
            if part.len() < length {
                part.resize(length, 0);
            }
            let read = match recv(&connection.socket, &mut part[..length], RecvFlags::empty()) {
                Err(Errno::AGAIN | Errno::INTR) => continue,
                Ok((read, _)) => read,
                // A reset ends it as well.
                Err(_) => 0,
            };
            connection.receiving = None;
            let message = FromGuest::Content {
                request,
                eof: read == 0,
                stamp: None,
            };
            self.channel.send(&message, &[&part[..read]])?;
        }
        Ok(())
    }

    fn accept_ready(&mut self) -> Result<()> {
        let mut accepted = Vec::new();
        for listener in &mut self.connections.listeners {
            let Some(request) = listener.accepting else {
                continue;
            };
            if let Ok(socket) = accept_with(&listener.socket, FLAGS) {
                listener.accepting = None;
                accepted.push((request, socket));
            }
        }
        for (request, socket) in accepted {
            let done = self.connections.add(request, socket);
            self.finish(request, done)?;
        }
        Ok(())
    }

    fn needs_loopback(&self) -> ReplyResult {
        if self.network.is_none() {
            return Err(Refusal::new("no_network", "the sandbox has no network"));
        }
        Ok(())
    }
}

/// Connects within [`CONNECT_LIMIT`].
fn connected(address: SocketAddr) -> rustix::io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let socket = socket_with(family, SocketType::STREAM, FLAGS, None)?;
    match connect(&socket, &address) {
        Ok(()) => return Ok(socket),
        Err(Errno::INPROGRESS) => {}
        Err(error) => return Err(error),
    }
    let mut polled = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::OUT)];
    let limit = Timespec::try_from(CONNECT_LIMIT).unwrap_or_default();
    if poll(&mut polled, Some(&limit))? == 0 {
        return Err(Errno::TIMEDOUT);
    }
    sockopt::socket_error(&socket)??;
    Ok(socket)
}

/// Reads a line of `/proc/net/tcp`: the port, if it is that of a listening socket.
fn listening_port(line: &str) -> Option<u16> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (_, port) = fields.next()?.rsplit_once(':')?;
    (fields.nth(1)? == LISTENING).then(|| u16::from_str_radix(port, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_listening_sockets_are_read() {
        let line = |state| format!("   0: 0100007F:1F90 00000000:0000 {state} 00000000:00000000 00:00000000");
        assert_eq!(listening_port(&line("0A")), Some(8080));
        assert_eq!(listening_port(&line("01")), None);
        let six = "   1: 00000000000000000000000001000000:0016 00000000000000000000000000000000:0000 0A 0";
        assert_eq!(listening_port(six), Some(22));
        assert_eq!(listening_port("  sl  local_address rem_address   st"), None);
        assert_eq!(listening_port(""), None);
    }
}
