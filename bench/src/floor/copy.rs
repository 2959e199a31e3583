//! A bare copy of bytes over a socket pair, from one thread to another.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::WHO;
use crate::probe::{Probe, SampleFuture};
use crate::samples::Samples;

/// Copies so many bytes, some times.
pub(crate) struct CopyProbe {
    pub(crate) bytes: usize,
    pub(crate) times: usize,
}

impl CopyProbe {
    fn run(&self, samples: &mut Samples) -> Result<()> {
        let sent = vec![7_u8; self.bytes];
        let mut received = vec![0_u8; self.bytes];
        for _ in 0..self.times {
            let (mut from, mut to) = UnixStream::pair().context("make a socket pair")?;
            let elapsed = std::thread::scope(|threads| -> Result<_> {
                let started = Instant::now();
                let sending = threads.spawn(|| from.write_all(&sent));
                to.read_exact(&mut received).context("receive the bytes")?;
                let elapsed = started.elapsed();
                let sending = sending
                    .join()
                    .map_err(|_| anyhow::anyhow!("the sender panicked"))?;
                sending.context("send the bytes")?;
                Ok(elapsed)
            })?;
            ensure!(received.last() == Some(&7), "other bytes came");
            samples.time(WHO, "copy_10mb", elapsed);
        }
        Ok(())
    }
}

impl Probe for CopyProbe {
    fn who(&self) -> &'static str {
        WHO
    }

    fn what(&self) -> &'static str {
        "copy"
    }

    fn sample<'a>(&'a mut self, samples: &'a mut Samples) -> SampleFuture<'a> {
        Box::pin(async { self.run(samples) })
    }
}
