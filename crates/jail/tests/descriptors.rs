//! Missing descriptors are noticed. A separate process, because it lowers its limit of open files.

use std::os::fd::{AsFd, AsRawFd};

use cellblock_jail::fds;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn a_message_arrives_without_descriptors_when_not_all_of_them_fit() {
    let (ours, theirs) = fds::packet_pair().unwrap();
    let null = std::fs::File::open("/dev/null").unwrap();
    let three = [null.as_fd(); 3];
    fds::send(&ours, &"few", &three).unwrap();
    let (_, arrived) = fds::receive::<String>(&theirs).unwrap().unwrap();
    assert_eq!(arrived.len(), 3);
    let highest = arrived.iter().map(AsRawFd::as_raw_fd).max().unwrap();
    drop(arrived);

    fds::send(&ours, &"many", &three).unwrap();
    // Leave room for two of the three.
    let limit = u64::try_from(highest).unwrap();
    let maximum = getrlimit(Resource::Nofile).maximum;
    let lower = Rlimit {
        current: Some(limit),
        maximum,
    };
    setrlimit(Resource::Nofile, lower).unwrap();
    let (message, arrived) = fds::receive::<String>(&theirs).unwrap().unwrap();
    assert_eq!((message.as_str(), arrived.len()), ("many", 0));

    cellblock_jail::confine::open_many_files().unwrap();
    assert_eq!(getrlimit(Resource::Nofile).current, maximum);
}
