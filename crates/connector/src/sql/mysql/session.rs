//! A connection to MySQL with a transaction that only reads. If it is dropped, the server ends its statement.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use cellblock_interpreter::connector::{ConnectorError, ConnectorErrorKind};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Opts, OptsBuilder, SslOpts};
use tokio::runtime::Handle;

use super::failed;
use crate::sql::dial::ServerEndpoint;
use crate::sql::target::{Encryption, ServerAddress, ServerTarget};
use crate::sql::tls::roots;

/// Maximum wait for a connection to end, and for a cancellation.
const ENDING: Duration = Duration::from_secs(5);
/// The largest packet that the protocol has.
const LARGEST: u64 = 1 << 30;
/// Rights that reach more than data, which a transaction does not prevent.
const RIGHTS: [&str; 3] = ["ALL PRIVILEGES", "FILE", "SUPER"];

/// A connection with an open transaction.
pub(super) struct Session {
    connection: Option<Conn>,
    id: u32,
    opts: Opts,
}

impl Session {
    /// Connects, and begins a transaction that ends at `until`. A row may have so many bytes, and some.
    pub(super) async fn open(
        server: &ServerTarget,
        max_row: u64,
        until: Instant,
    ) -> Result<Self, ConnectorError> {
        let opts = opts(server, max_row).await?;
        let connection = Conn::new(opts.clone()).await.map_err(|error| failed(&error))?;
        let mut session = Self {
            id: connection.id(),
            connection: Some(connection),
            opts,
        };
        let left = until.saturating_duration_since(Instant::now()).as_millis().max(1);
        session.begin(left).await?;
        Ok(session)
    }

    pub(super) fn connection(&mut self) -> Result<&mut Conn, ConnectorError> {
        self.connection
            .as_mut()
            .ok_or_else(|| ConnectorError::provider("the connection has ended"))
    }

    async fn begin(&mut self, left: u128) -> Result<(), ConnectorError> {
        let connection = self.connection()?;
        let (version, roles): (String, String) = connection
            .query_first("select version(), current_role()")
            .await
            .or_else(|error| match error {
                // MySQL 5.7 has no roles, and asks for none.
                mysql_async::Error::Server(server) if server.code == 1305 => Ok(None),
                error => Err(failed(&error)),
            })?
            .map_or_else(Default::default, |(version, role): (String, Option<String>)| {
                (version, role.unwrap_or_default())
            });
        let mariadb = version.contains("MariaDB");
        // The server ends what is too slow, even if this host is gone.
        let limit = if mariadb {
            format!(
                "set session max_statement_time = {}.{:03}",
                left / 1000,
                left % 1000
            )
        } else {
            format!("set session max_execution_time = {left}")
        };
        for sql in [
            limit.as_str(),
            "set session time_zone = '+00:00'",
            "set session transaction read only",
            "start transaction read only",
        ] {
            connection.query_drop(sql).await.map_err(|error| failed(&error))?;
        }
        // MySQL lists the rights of a role only if it is named, as the server has just written it.
        let grants = if mariadb || matches!(roles.as_str(), "" | "NONE") {
            "show grants".to_owned()
        } else {
            format!("show grants for current_user() using {roles}")
        };
        let grants: Vec<String> = connection.query(grants).await.map_err(|error| failed(&error))?;
        if grants.iter().any(|grant| is_privileged(grant)) {
            let text = "the account has the right FILE, SUPER or all rights, which reach files of the \
                        server or more, and which a transaction that only reads does not prevent; the \
                        operator must name an account in the URL that can only read tables";
            return Err(ConnectorError::new(ConnectorErrorKind::Unauthorized, text));
        }
        Ok(())
    }

    /// Ends the connection in order, or its statement at once if rows may remain.
    pub(super) async fn close(mut self, read: bool) {
        if let Some(connection) = self.connection.take_if(|_| read) {
            let _ = tokio::time::timeout(ENDING, connection.disconnect()).await;
        }
    }
}

/// Whether a line of `show grants` has rights beyond data.
fn is_privileged(grant: &str) -> bool {
    let Some((rights, _)) = grant
        .strip_prefix("GRANT ")
        .and_then(|rest| rest.split_once(" ON *.* "))
    else {
        return false;
    };
    rights.split(',').any(|right| RIGHTS.contains(&right.trim()))
}

impl Drop for Session {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let (opts, id) = (self.opts.clone(), self.id);
        runtime.spawn(async move {
            let ended = async {
                let mut other = Conn::new(opts).await?;
                other.query_drop(format!("kill {id}")).await?;
                other.disconnect().await
            };
            match tokio::time::timeout(ENDING, ended).await {
                Ok(Ok(())) => {}
                failed => tracing::debug!(?failed, "a statement could not be canceled"),
            }
            // Only now: it would wait for the rows that remain.
            drop(connection);
        });
    }
}

/// Returns the settings of a connection to the address that was checked.
async fn opts(server: &ServerTarget, max_row: u64) -> Result<Opts, ConnectorError> {
    let reached = server.place.addresses().await?;
    let packet = usize::try_from(max_row.saturating_add(1 << 20).min(LARGEST)).unwrap_or(usize::MAX);
    let mut opts = OptsBuilder::default()
        .user(Some(&server.user))
        .pass(server.password.as_ref())
        .db_name(server.database.as_ref())
        .max_allowed_packet(Some(packet))
        .wait_timeout(Some(28_800))
        // A socket that the server names would not have been checked.
        .prefer_socket(false);
    match &server.place {
        ServerAddress::Socket(path) => opts = opts.socket(path.to_str()),
        ServerAddress::Host {
            host,
            port,
            encryption,
            ..
        } => {
            let addresses: Vec<IpAddr> = reached
                .iter()
                .filter_map(|reached| match reached {
                    ServerEndpoint::Address(address) => Some(address.ip()),
                    ServerEndpoint::Socket(_) => None,
                })
                .collect();
            opts = opts
                .ip_or_hostname(host)
                .tcp_port(*port)
                .resolved_ips(Some(addresses));
            if let Encryption::Verified(file) = encryption {
                let roots = roots(file.as_deref())?;
                let roots = roots.into_iter().map(|root| root.to_vec().into()).collect();
                let tls = SslOpts::default()
                    .with_disable_built_in_roots(true)
                    .with_root_certs(roots);
                opts = opts.ssl_opts(tls);
            }
        }
    }
    Ok(opts.into())
}
