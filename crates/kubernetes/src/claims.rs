//! Claims of this process. One thread makes and ends them, with a runtime and a client of its own,
//! so that a claim is deleted even if the caller is canceled or its runtime ends. A request that is
//! canceled while the API server creates a claim would otherwise leave one that nobody knows.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use cellblock_sandbox::{Error, Result};
use parking_lot::Mutex;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::KubernetesOptions;
use crate::api::Cluster;
use crate::claim::{ClaimWaiter, Terms, live};
use crate::error::ClaimError;
use crate::holder::Holder;
use crate::pool;

/// Maximum time for the last claims to be deleted when this process ends. What is left is deleted
/// by other gateways, or at its shutdown time.
const END_LIMIT: Duration = Duration::from_secs(10);

/// Orders that wait until the thread takes them, which it does at once.
const ORDERS: usize = 64;

/// Claims pods of a pool. Dropping the last one waits until all claims have been deleted, for up to 10 s.
#[derive(Debug)]
pub struct Claims {
    orders: Option<mpsc::Sender<ClaimWaiter>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    source: String,
}

/// A pod of this process.
#[derive(Debug)]
pub struct ClaimedPod {
    /// Address of the server in it, `http://ADDRESS:PORT`.
    pub url: String,
    /// Keeps the claim.
    pub claim: HeldClaim,
}

/// Keeps a claim. Dropping it deletes the claim and its pod, in the background.
#[derive(Debug)]
pub struct HeldClaim {
    /// Dropped first, so that the claim is released before its thread may be waited for.
    _keep: oneshot::Sender<()>,
    _claims: Arc<Claims>,
}

impl Claims {
    /// Checks the cluster, and registers this process in it as a holder of claims.
    pub async fn start(options: &KubernetesOptions) -> Result<Arc<Self>> {
        options
            .check()
            .map_err(|(key, reason)| Error::request(format!("`kubernetes.{key}` {reason}")))?;
        let (orders, ordered) = mpsc::channel(ORDERS);
        let (started, ready) = oneshot::channel();
        let own = options.clone();
        let failed = |error: std::io::Error| ClaimError::Internal(error.to_string());
        let thread = thread::Builder::new()
            .name("claims".to_owned())
            .spawn(move || match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime.block_on(run(own, ordered, started)),
                Err(error) => drop(started.send(Err(failed(error)))),
            })
            .map_err(failed)?;
        let claims = Arc::new(Self {
            orders: Some(orders),
            thread: Mutex::new(Some(thread)),
            source: source(options),
        });
        ready.await.map_err(|_| ended())??;
        Ok(claims)
    }

    /// Returns where pods come from, such as ``the warm pool `python` ``.
    pub fn source(&self) -> String {
        self.source.clone()
    }

    /// Claims a pod and waits until it is ready. Dropping the future deletes the claim.
    pub async fn claim(self: &Arc<Self>) -> Result<ClaimedPod> {
        let (waiting, answer) = oneshot::channel();
        let orders = self.orders.as_ref().ok_or_else(ended)?;
        orders.send(waiting).await.map_err(|_| ended())?;
        let (address, keep): (SocketAddr, _) = answer.await.map_err(|_| ended())??;
        Ok(ClaimedPod {
            url: format!("http://{address}"),
            claim: HeldClaim {
                _keep: keep,
                _claims: Arc::clone(self),
            },
        })
    }
}

impl Drop for Claims {
    fn drop(&mut self) {
        self.orders = None;
        let thread = self.thread.get_mut();
        if let Some(thread) = thread.take() {
            let _ = thread.join();
        }
    }
}

fn source(options: &KubernetesOptions) -> String {
    match &options.template {
        Some(template) => format!("the template `{template}`"),
        None => format!("the warm pool `{}`", pool::name(options)),
    }
}

fn ended() -> ClaimError {
    ClaimError::Internal("the thread that claims pods has ended".to_owned())
}

/// Runs until nobody can order or hold a claim anymore.
async fn run(
    options: KubernetesOptions,
    mut orders: mpsc::Receiver<ClaimWaiter>,
    started: oneshot::Sender<Result<(), ClaimError>>,
) {
    let (terms, holder) = match prepare(options).await {
        Ok(prepared) => prepared,
        Err(error) => return drop(started.send(Err(error))),
    };
    let _ = started.send(Ok(()));
    let keeping = tokio::spawn(Arc::clone(&holder).keep());
    let mut lives = JoinSet::new();
    loop {
        tokio::select! {
            order = orders.recv() => match order {
                Some(waiting) => drop(lives.spawn(live(Arc::clone(&terms), waiting))),
                None => break,
            },
            Some(_) = lives.join_next() => {}
        }
    }
    let all = async {
        while lives.join_next().await.is_some() {}
        keeping.abort();
        holder.release().await;
    };
    if timeout(END_LIMIT, all).await.is_err() {
        tracing::error!(
            "claims could not be deleted in time; the cluster deletes them at their shutdown time"
        );
    }
}

async fn prepare(options: KubernetesOptions) -> Result<(Arc<Terms>, Arc<Holder>), ClaimError> {
    let cluster = Cluster::open(&options).await?;
    cluster.check_version().await?;
    pool::find(&cluster, &options).await?;
    let holder = Arc::new(Holder::register(&cluster, &options).await?);
    let terms = Terms {
        cluster,
        holder: holder.id.clone(),
        options,
    };
    Ok((Arc::new(terms), holder))
}
