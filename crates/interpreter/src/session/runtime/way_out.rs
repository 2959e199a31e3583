//! The way out of a session with `network: egress`: a port of its sandbox, behind which a proxy of
//! the host answers.
//!
//! ```text
//! program ── 127.0.0.1:3128 ──> guest ── SandboxConnection ──> EgressProxy ──> hosts on the allow-list
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use cellblock_egress::{EgressProxy, EgressRecord, EgressSink};
use cellblock_protocol::ToKernel;
use cellblock_sandbox::guest::SandboxListener;
use cellblock_sandbox::limits::NetworkPolicy;
use metrics::counter;
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use crate::error::{Error, Result};
use crate::session::egress::EgressTerms;
use crate::session::journal::Journal;
use crate::session::options::SessionOptions;
use crate::session::runtime::RunTerms;
use crate::session::runtime::Runtime;
use crate::session::runtime::run::End;

/// Port of the proxy in the sandbox.
const PORT: u16 = 3128;
/// File of the sandbox with the certificates by which servers are verified.
const CERTIFICATES: &str = "/tmp/.cellblock/certificates.pem";
/// Directory of the sandbox for packages that programs install.
const PACKAGES: &str = "/tmp/.cellblock/packages";
/// Hosts that are in the sandbox itself.
const INSIDE: [&str; 3] = ["127.0.0.1", "localhost", "::1"];
/// Name of the code that tells a kernel.
const NAME: &str = "<egress>";

/// The way out of a session.
#[derive(Debug)]
pub(in crate::session) struct WayOut {
    /// Its rules and its proxy.
    pub(in crate::session) terms: Arc<EgressTerms>,
    /// It in the sandbox that is there. Dropping it closes all connections.
    open: Option<OpenWayOut>,
}

#[derive(Debug)]
struct OpenWayOut {
    /// Variables that name the proxy to programs, and those with placeholders of secrets.
    env: BTreeMap<String, String>,
    _serving: AbortOnDropHandle<()>,
}

/// No variables.
static NONE: BTreeMap<String, String> = BTreeMap::new();

impl WayOut {
    /// One that is closed.
    pub(in crate::session) fn of(options: &SessionOptions) -> Self {
        Self {
            terms: Arc::new(EgressTerms::new(options.egress.clone())),
            open: None,
        }
    }

    /// Closes it with its sandbox.
    pub(in crate::session) fn close(&mut self) {
        self.open = None;
    }
}

impl Runtime {
    /// Opens the way out of a sandbox that has just been taken, if the session has one.
    pub(in crate::session) async fn open_way_out(&mut self, journal: &Journal) -> Result<()> {
        self.way_out.close();
        if self.limits.network != NetworkPolicy::Egress {
            return Ok(());
        }
        let terms = Arc::clone(&self.way_out.terms);
        let (Some(policy), Some(proxy)) = (terms.policy(), terms.proxy(&journal.id, self.sink())?) else {
            return Err(Error::Argument {
                name: "network",
                missing: false,
                reason: "`egress` needs a list of allowed hosts".to_owned(),
            });
        };
        let sandbox = self.sandbox.as_ref().ok_or(Error::Closed)?;
        // What a rule names is reached through the proxy, unless this session gave it up.
        let inside = INSIDE.iter().filter(|host| !policy.names(host));
        let inside: Vec<_> = inside.copied().collect();
        let mut env = environment(&inside.join(","));
        env.extend(proxy.variables());
        let listener = sandbox.guest().link().listen(PORT).await?;
        let certificates = proxy.bundle_pem();
        sandbox
            .guest()
            .write(CERTIFICATES, 0o644, certificates.as_bytes())
            .await?;
        self.way_out.open = Some(OpenWayOut {
            env,
            _serving: AbortOnDropHandle::new(tokio::spawn(serve(listener, proxy))),
        });
        Ok(())
    }

    /// Gives a fork, whose memory is a copy, the rules, and the placeholders and certificates that it knows.
    pub(in crate::session) fn branch_way_out(&self, fork: &Self, session: &str) {
        let sink = fork.sink();
        fork.way_out.terms.inherit(&self.way_out.terms, session, sink);
    }

    /// Counts each request, and records it where the session's host wants that.
    fn sink(&self) -> EgressSink {
        let log = self.options.egress_log.clone();
        Arc::new(move |record| {
            count(record);
            if let Some(log) = &log {
                log.record(record);
            }
        })
    }

    /// Tells the kernel of the way out. Returns whether it is still there.
    pub(in crate::session) async fn show_way_out(&mut self, journal: &mut Journal) -> Result<bool> {
        let Some(OpenWayOut { env, .. }) = &self.way_out.open else {
            return Ok(true);
        };
        // JSON with nothing but texts is Python, too.
        let code = format!(
            "import os, site, sys\n\
             os.environ.update({})\n\
             os.makedirs(packages := \
             f'{PACKAGES}/lib/python{{sys.version_info[0]}}.{{sys.version_info[1]}}/site-packages', \
             exist_ok=True)\n\
             site.addsitedir(packages)\n",
            json!(env)
        );
        // Its names are not the cells'.
        let code = format!("exec({}, {{}})", json!(code));
        let message = ToKernel::Setup {
            cell: self.number(),
            name: NAME.to_owned(),
            code,
            guarded: false,
        };
        let timeout = self.limits.cell_timeout;
        let ran = self.run(journal, &message, RunTerms::alone(timeout)).await?;
        Ok(!matches!(ran.end, End::Lost(_)))
    }

    /// Returns the variables of commands and processes that name the way out.
    pub(in crate::session) fn way_out_env(&self) -> &BTreeMap<String, String> {
        self.way_out.open.as_ref().map_or(&NONE, |open| &open.env)
    }
}

/// Returns whether an environment variable is one by which programs find the way out, or their own files.
pub fn is_reserved_variable(name: &str) -> bool {
    const FILES: [&str; 4] = ["HOME", "PATH", "PWD", "TMPDIR"];
    FILES.contains(&name)
        || ["CELLBLOCK_", "LD_", "PYTHON"]
            .iter()
            .any(|start| name.starts_with(start))
        || environment("").contains_key(name)
}

/// Serves connections until the sandbox ends.
async fn serve(listener: SandboxListener, proxy: EgressProxy) {
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok(connection) => {
                let proxy = proxy.clone();
                connections.spawn(async move { proxy.serve(connection.into_stream(())).await });
            }
            // A guest that cannot take another one says so, and goes on.
            Err(error) if error.guest_refusal().is_some_and(|(code, _)| code == "too_many") => {}
            Err(_) => return,
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Counts a request that has ended.
fn count(record: &EgressRecord) {
    let decision = record.decision.as_str();
    counter!("cellblock_egress_requests_total", "decision" => decision, "reason" => record.reason)
        .increment(1);
    counter!("cellblock_egress_bytes_total", "direction" => "up").increment(record.bytes_up);
    counter!("cellblock_egress_bytes_total", "direction" => "down").increment(record.bytes_down);
}

/// Names the proxy, and the certificates, in all the ways that programs know.
fn environment(inside: &str) -> BTreeMap<String, String> {
    let proxy = format!("http://127.0.0.1:{PORT}");
    let named = |names: &[&str], value: &str| -> Vec<(String, String)> {
        names
            .iter()
            .map(|name| ((*name).to_owned(), value.to_owned()))
            .collect()
    };
    let proxies = named(
        &["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"],
        &proxy,
    );
    let direct = named(&["NO_PROXY", "no_proxy"], inside);
    let certificates = named(
        &[
            "SSL_CERT_FILE",
            "REQUESTS_CA_BUNDLE",
            "CURL_CA_BUNDLE",
            "NODE_EXTRA_CA_CERTS",
            "PIP_CERT",
            "GIT_SSL_CAINFO",
        ],
        CERTIFICATES,
    );
    // Node ignores the others without the first one.
    let switches = named(
        &[
            "NODE_USE_ENV_PROXY",
            "CELLBLOCK_EGRESS",
            "PIP_USER",
            "PIP_BREAK_SYSTEM_PACKAGES",
        ],
        "1",
    );
    let packages = named(&["PYTHONUSERBASE"], PACKAGES);
    [proxies, direct, certificates, switches, packages]
        .into_iter()
        .flatten()
        .collect()
}
