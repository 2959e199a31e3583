//! Messages between the host and a guest.

use super::*;

fn file_stamp() -> impl Strategy<Value = FileStamp> {
    (any::<u64>(), any::<u64>(), any::<i64>(), any::<i64>()).prop_map(|(inode, size, mtime_ns, ctime_ns)| {
        FileStamp {
            inode,
            size,
            mtime_ns,
            ctime_ns,
        }
    })
}

fn size() -> impl Strategy<Value = TerminalSize> {
    (any::<u16>(), any::<u16>()).prop_map(|(rows, columns)| TerminalSize { rows, columns })
}

/// Generates any message about connections.
fn connections() -> impl Strategy<Value = ToGuest> {
    let id = any::<u64>;
    prop_oneof![
        id().prop_map(|request| ToGuest::Ports { request }),
        (id(), any::<u16>()).prop_map(|(request, port)| ToGuest::Connect { request, port }),
        (id(), any::<u16>()).prop_map(|(request, port)| ToGuest::Listen { request, port }),
        (id(), id()).prop_map(|(request, listener)| ToGuest::Accept { request, listener }),
        (id(), id(), any::<u32>()).prop_map(|(request, connection, length)| ToGuest::Receive {
            request,
            connection,
            length
        }),
        (id(), id(), any::<bool>()).prop_map(|(request, connection, close)| ToGuest::Send {
            request,
            connection,
            close
        }),
        id().prop_map(|connection| ToGuest::HangUp { connection }),
    ]
}

/// Generates any message about a snapshot.
fn snapshots() -> impl Strategy<Value = ToGuest> {
    let id = any::<u64>;
    prop_oneof![
        (id(), id(), id()).prop_map(|(request, snapshot, limit)| ToGuest::Save {
            request,
            snapshot,
            limit
        }),
        (id(), id()).prop_map(|(request, snapshot)| ToGuest::Restore { request, snapshot }),
        Just(ToGuest::KillStopped),
        (id(), id(), any::<u32>(), vec(any::<u32>(), 0..3)).prop_map(
            |(request, snapshot, needed, except)| ToGuest::RollBack {
                request,
                snapshot,
                needed,
                except
            }
        ),
        (id(), id(), any::<u32>()).prop_map(|(request, snapshot, most)| ToGuest::Changes {
            request,
            snapshot,
            most
        }),
        (id(), id(), id(), id()).prop_map(|(request, snapshot, offset, length)| ToGuest::ReadSnapshot {
            request,
            snapshot,
            offset,
            length
        }),
        (id(), id(), any::<bool>()).prop_map(|(request, snapshot, last)| ToGuest::WriteSnapshot {
            request,
            snapshot,
            last
        }),
        (id(), id()).prop_map(|(request, snapshot)| ToGuest::Discard { request, snapshot }),
    ]
}

/// Generates any message from the host to a guest.
pub(crate) fn to_guest() -> impl Strategy<Value = ToGuest> {
    let id = any::<u64>;
    prop_oneof![
        any::<u32>().prop_map(|pid| ToGuest::Interrupt { pid }),
        (id(), vec(any::<u32>(), 0..3)).prop_map(|(request, except)| ToGuest::KillAll { request, except }),
        snapshots(),
        (
            id(),
            texts(),
            text(),
            btree_map(text(), text(), 0..3),
            any::<bool>(),
            id(),
            any::<bool>(),
            (of(text()), of(size()))
        )
            .prop_map(
                |(exec, argv, cwd, env, inherit, timeout_ms, input, (keep, terminal))| ToGuest::Exec {
                    exec,
                    argv,
                    cwd,
                    env,
                    inherit,
                    timeout_ms,
                    input,
                    keep,
                    terminal,
                }
            ),
        (id(), any::<bool>()).prop_map(|(exec, kill)| ToGuest::Stop { exec, kill }),
        (id(), id(), any::<i32>()).prop_map(|(request, exec, signal)| ToGuest::Signal {
            request,
            exec,
            signal
        }),
        (id(), id(), any::<bool>()).prop_map(|(request, exec, close)| ToGuest::Input {
            request,
            exec,
            close
        }),
        (id(), id(), size()).prop_map(|(request, exec, size)| ToGuest::Resize { request, exec, size }),
        connections(),
        (id(), id(), id(), id(), id()).prop_map(|(request, exec, offset, length, wait_ms)| {
            ToGuest::Output {
                request,
                exec,
                offset,
                length,
                wait_ms,
            }
        }),
        id().prop_map(|exec| ToGuest::Forget { exec }),
        (id(), text(), of(id()), any::<u32>()).prop_map(|(request, root, since, max_files)| ToGuest::List {
            request,
            root,
            since,
            max_files
        }),
        (id(), text(), id(), id()).prop_map(|(request, path, offset, length)| ToGuest::Read {
            request,
            path,
            offset,
            length
        }),
        (
            id(),
            text(),
            any::<u32>(),
            any::<bool>(),
            any::<bool>(),
            of(file_stamp())
        )
            .prop_map(|(request, path, mode, append, keep, expect)| ToGuest::Write {
                request,
                path,
                mode,
                append,
                keep,
                expect,
            }),
        (id(), text()).prop_map(|(request, path)| ToGuest::Remove { request, path }),
        id().prop_map(|request| ToGuest::Stats { request }),
    ]
}

fn difference() -> impl Strategy<Value = FileDifference> {
    let kinds = vec![ChangeKind::Created, ChangeKind::Changed, ChangeKind::Removed];
    (text(), prop::sample::select(kinds)).prop_map(|(path, change)| FileDifference { path, change })
}

/// Generates any message from a guest to the host.
pub(crate) fn from_guest() -> impl Strategy<Value = FromGuest> {
    let id = any::<u64>;
    let file =
        (text(), id(), any::<i64>(), any::<u32>()).prop_map(|(path, size, mtime_ns, mode)| FileEntry {
            path,
            size,
            mtime_ns,
            mode,
        });
    let skipped = (text(), text()).prop_map(|(path, reason)| SkippedFile { path, reason });
    let disk = (text(), id(), id(), id(), id()).prop_map(
        |(path, bytes_used, bytes_limit, inodes_used, inodes_limit)| Disk {
            path,
            bytes_used,
            bytes_limit,
            inodes_used,
            inodes_limit,
        },
    );
    prop_oneof![
        any::<u32>().prop_map(|generation| FromGuest::Hello { generation }),
        id().prop_map(|exec| FromGuest::Started { exec }),
        (id(), id(), id(), any::<bool>(), vec([id(), id()], 0..3)).prop_map(
            |(request, offset, total, eof, stderr)| FromGuest::Output {
                request,
                offset,
                total,
                eof,
                stderr
            }
        ),
        (id(), prop::sample::select(vec![Stream::Stdout, Stream::Stderr]))
            .prop_map(|(exec, stream)| FromGuest::Stream { exec, stream }),
        (
            id(),
            of(any::<i32>()),
            of(any::<i32>()),
            any::<bool>(),
            any::<bool>()
        )
            .prop_map(|(exec, code, signal, timed_out, leaked)| FromGuest::Exited {
                exec,
                code,
                signal,
                timed_out,
                leaked
            }),
        (id(), id(), vec(file, 0..3), vec(skipped, 0..3), id()).prop_map(
            |(request, stamp, files, skipped, total)| FromGuest::Files {
                request,
                stamp,
                files,
                skipped,
                total
            }
        ),
        (id(), vec(any::<u16>(), 0..3)).prop_map(|(request, ports)| FromGuest::Ports { request, ports }),
        (id(), any::<bool>(), of(file_stamp())).prop_map(|(request, eof, stamp)| FromGuest::Content {
            request,
            eof,
            stamp
        }),
        (id(), id(), id()).prop_map(|(request, files, bytes)| FromGuest::Saved {
            request,
            files,
            bytes
        }),
        (id(), vec(difference(), 0..3), id()).prop_map(|(request, found, total)| FromGuest::Changes {
            request,
            found,
            total
        }),
        id().prop_map(|request| FromGuest::Ok { request }),
        (id(), text(), text()).prop_map(|(request, code, message)| FromGuest::Error {
            request,
            code,
            message
        }),
        (id(), vec(disk, 0..3), any::<u32>()).prop_map(|(request, disks, processes)| FromGuest::Stats {
            request,
            disks,
            processes
        }),
    ]
}
