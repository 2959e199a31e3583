//! Random bytes, for this crate and those above it.

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

/// Returns bytes of the operating system's generator, which nobody can guess.
///
/// It panics if there is no generator: no secret and no id is safe without one.
pub fn random_bytes<const COUNT: usize>() -> [u8; COUNT] {
    let mut bytes = [0_u8; COUNT];
    let mut filled = 0;
    while filled < COUNT {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(error) => panic!("cannot read random bytes of the operating system: {error}"),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_draw_is_another_and_fills_all_bytes() {
        let (one, other) = (random_bytes::<1000>(), random_bytes::<1000>());
        for (one, other) in one.chunks(100).zip(other.chunks(100)) {
            assert_ne!(one, other);
            assert_ne!(one, [0_u8; 100]);
        }
    }
}
