//! Request that an interrupt is meant for: the one that is served, or, where none is, the one that waits to
//! be served next.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

/// The side of a session's handles. Requests are numbered from 1, in the order in which they are served.
#[derive(Debug)]
pub(super) struct Interrupts {
    asked: AtomicU64,
    served: Arc<AtomicU64>,
    /// The latest request that is to stop.
    stop: watch::Sender<u64>,
}

/// The side of the task that serves the requests.
#[derive(Debug)]
pub(super) struct InterruptReceiver {
    served: Arc<AtomicU64>,
    stop: watch::Receiver<u64>,
    /// Whether the kernel that is there was sent a signal that it may see only now.
    pub(super) unseen: bool,
}

pub(super) fn interrupts() -> (Interrupts, InterruptReceiver) {
    let served = Arc::new(AtomicU64::new(0));
    let (sender, stop) = watch::channel(0);
    let interrupts = Interrupts {
        asked: AtomicU64::new(0),
        served: Arc::clone(&served),
        stop: sender,
    };
    let interrupted = InterruptReceiver {
        served,
        stop,
        unseen: false,
    };
    (interrupts, interrupted)
}

impl Interrupts {
    /// Counts a request that is about to be sent, and will be.
    pub(super) fn asking(&self) {
        self.asked.fetch_add(1, Ordering::AcqRel);
    }

    /// Stops one request, if there is one. Requests that come later are not hit.
    pub(super) fn interrupt(&self) {
        let first = self.served.load(Ordering::Acquire) + 1;
        if first <= self.asked.load(Ordering::Acquire) {
            self.stop.send_if_modified(|stop| {
                let later = *stop < first;
                *stop = first.max(*stop);
                later
            });
        }
    }
}

impl InterruptReceiver {
    /// Completes with `true` when the current request must stop, also if the interrupt came before,
    /// and with `false` when nobody can interrupt it any more.
    pub(super) async fn asked(&mut self) -> bool {
        let number = self.number();
        self.stop.wait_for(|stop| *stop >= number).await.is_ok()
    }

    /// The request that was served is over. To be called before it is answered: who has the answer
    /// can stop it no more.
    pub(super) fn over(&self) {
        self.served.fetch_add(1, Ordering::AcqRel);
    }

    fn number(&self) -> u64 {
        self.served.load(Ordering::Acquire) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn stopped(interrupted: &mut InterruptReceiver) -> Option<bool> {
        interrupted.asked().now_or_never()
    }

    #[test]
    fn an_interrupt_without_a_request_hits_none() {
        let (interrupts, mut interrupted) = interrupts();
        interrupts.interrupt();
        interrupts.asking();
        assert_eq!(stopped(&mut interrupted), None);
        interrupts.interrupt();
        assert_eq!(stopped(&mut interrupted), Some(true));
        interrupted.over();
        interrupts.interrupt();
        interrupts.asking();
        assert_eq!(stopped(&mut interrupted), None);
    }

    #[test]
    fn an_interrupt_hits_the_first_of_those_that_wait_and_no_other() {
        let (interrupts, mut interrupted) = interrupts();
        interrupts.asking();
        interrupts.asking();
        interrupts.interrupt();
        interrupts.interrupt();
        assert_eq!(stopped(&mut interrupted), Some(true));
        interrupted.over();
        assert_eq!(stopped(&mut interrupted), None);
        interrupts.interrupt();
        assert_eq!(stopped(&mut interrupted), Some(true));
    }

    #[test]
    fn without_a_handle_no_interrupt_is_possible() {
        let (interrupts, mut interrupted) = interrupts();
        interrupts.asking();
        drop(interrupts);
        assert_eq!(stopped(&mut interrupted), Some(false));
    }
}
