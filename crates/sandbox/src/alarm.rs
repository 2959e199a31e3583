//! A timer whose time may move on without any work.

use std::pin::Pin;

use tokio::time::{Instant, Sleep, sleep_until};

/// Completes at a time that each wait names anew.
///
/// A timer of the runtime costs a lock when it is made and when it is dropped, and wakes another
/// thread if it is the earliest. This one stays set: a later time than the one it is set to needs
/// nothing until then.
#[derive(Debug, Default)]
pub struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    /// Completes at a time. Dropping the future loses nothing.
    pub async fn at(&mut self, time: Instant) {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(time)));
        if sleep.deadline() > time {
            sleep.as_mut().reset(time);
        }
        loop {
            sleep.as_mut().await;
            if sleep.deadline() >= time {
                return;
            }
            sleep.as_mut().reset(time);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_completes_at_each_time_whether_later_or_earlier_than_the_last_one() {
        let start = Instant::now();
        let mut alarm = Alarm::default();
        for (given_up, seconds) in [
            (true, 5),
            (true, 60),
            (false, 7),
            (false, 9),
            (true, 100),
            (false, 10),
        ] {
            let time = start + Duration::from_secs(seconds);
            if given_up {
                let waited = tokio::time::timeout(Duration::ZERO, alarm.at(time)).await;
                assert!(waited.is_err(), "it completed before its time");
            } else {
                alarm.at(time).await;
                assert_eq!(Instant::now().duration_since(start).as_secs(), seconds);
            }
        }
    }
}
