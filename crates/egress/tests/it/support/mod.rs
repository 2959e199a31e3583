//! A proxy with what it recorded, servers on loopback, and clients.

mod client;
mod server;
mod tls;

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use cellblock_egress::{EgressOptions, EgressPolicy, EgressProxy, EgressRecord, HostResolver};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

pub(crate) use client::{ProxyReply, connect, open, request};
pub(crate) use server::{OriginServer, pattern};
pub(crate) use tls::{Authority, handshake, intercepted, trusting};

/// Maximum wait of a test for something that must happen.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// A proxy, and the records that its sink received.
pub(crate) struct Proxy {
    pub(crate) proxy: EgressProxy,
    records: Arc<Mutex<Vec<EgressRecord>>>,
}

impl Proxy {
    /// Makes a proxy of a policy written as JSON.
    pub(crate) fn new(policy: serde_json::Value, options: EgressOptions) -> Self {
        Self::of(serde_json::from_value(policy).unwrap(), options)
    }

    /// Makes a proxy of a policy.
    pub(crate) fn of(policy: EgressPolicy, options: EgressOptions) -> Self {
        let records: Arc<Mutex<Vec<EgressRecord>>> = Arc::default();
        let kept = Arc::clone(&records);
        let sink = Arc::new(move |record: &EgressRecord| kept.lock().push(record.clone()));
        let proxy = EgressProxy::with_options(policy, "test", Some(sink), options).unwrap();
        Self { proxy, records }
    }

    /// Makes a proxy that allows some rules.
    pub(crate) fn allowing(rules: &[&str]) -> Self {
        Self::new(serde_json::json!({ "allow": rules }), EgressOptions::default())
    }

    /// Waits until a number of requests is recorded, and returns the records.
    pub(crate) async fn records(&self, count: usize) -> Vec<EgressRecord> {
        let recorded = || self.records.lock().clone();
        wait(|| recorded().len() >= count).await;
        assert_eq!(recorded().len(), count, "{:?}", recorded());
        recorded()
    }

    /// Waits for the only record, and returns its reason.
    pub(crate) async fn reason(&self) -> &'static str {
        self.records(1).await[0].reason
    }
}

/// Waits until something is so.
pub(crate) async fn wait(mut so: impl FnMut() -> bool) {
    let waiting = async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .expect("it did not happen within a minute");
}

/// A resolver that gives one answer after the other, and then the last one again.
#[derive(Debug)]
pub(crate) struct Answers {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    pub(crate) asked: AtomicUsize,
}

impl Answers {
    pub(crate) fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
        Arc::new(Self {
            answers: Mutex::new(answers.iter().map(parse).collect()),
            asked: AtomicUsize::new(0),
        })
    }

    /// A resolver for which every name is this machine.
    pub(crate) fn loopback() -> Arc<Self> {
        Self::new(&[&["127.0.0.1"]])
    }
}

impl HostResolver for Answers {
    fn resolve<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.asked.fetch_add(1, SeqCst);
        let mut answers = self.answers.lock();
        let answer = match answers.len() {
            1 => answers[0].clone(),
            _ => answers.pop_front().unwrap(),
        };
        Box::pin(async move { Ok(answer) })
    }
}
