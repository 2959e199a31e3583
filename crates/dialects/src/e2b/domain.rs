//! Domain of the hosts of sandboxes and of the API, and its certificates.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use cellblock_interpreter::egress::{HostPattern, LocalAuthority, LocalCertificate};

use super::options::{DomainTls, E2bOptions};
use super::state::E2b;
use crate::DialectListenError;

/// Domain whose hosts lead to the machine that asks.
const LOCAL: &str = ".localhost";
/// Port of HTTPS.
const HTTPS: u16 = 443;
/// Time after which hosts get a new certificate. Each is valid for a year.
const RENEWAL: Duration = Duration::from_hours(30 * 24);

/// The domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostDomain {
    pub(super) name: String,
    /// Port at which clients reach its hosts, unless it is the one of HTTPS.
    port: Option<u16>,
}

impl HostDomain {
    /// Reads the domain of the options, if they have one.
    pub(super) fn of(options: &E2bOptions) -> Result<Option<Self>, DialectListenError> {
        let text = options.domain.as_deref();
        let invalid = |why: String| DialectListenError::Domain {
            domain: text.unwrap_or_default().to_owned(),
            why,
        };
        let Some(text) = text else {
            return match options.tls {
                Some(DomainTls::Local) => Err(invalid("it is missing, and `tls: local` needs it".to_owned())),
                None => Ok(None),
            };
        };
        let (name, port) = text
            .split_once(':')
            .map_or((text, None), |(name, port)| (name, Some(port)));
        let port = match port.map(str::parse) {
            None => None,
            Some(Ok(port)) if port > 0 => Some(port),
            Some(_) => return Err(invalid("its port is not a number from 1 to 65535".to_owned())),
        };
        let host: HostPattern = name.parse().map_err(|error| invalid(format!("{error}")))?;
        let name = host.to_string();
        if name.starts_with('*') || name.parse::<Ipv4Addr>().is_ok() || !name.contains('.') {
            return Err(invalid("it is not a name with at least two labels".to_owned()));
        }
        Ok(Some(Self { name, port }))
    }

    /// Returns the label of a host of the domain.
    pub(super) fn label<'a>(&self, host: &'a str) -> Option<&'a str> {
        host.strip_suffix(&self.name)?.strip_suffix('.')
    }

    /// Returns the address at which requests to its hosts come in, if no other is configured: that
    /// of a domain whose hosts lead to this machine.
    pub(super) fn address(&self, tls: Option<DomainTls>) -> Option<SocketAddr> {
        let port = match tls {
            Some(DomainTls::Local) => Some(self.port.unwrap_or(HTTPS)),
            None => self.port.filter(|_| self.name.ends_with(LOCAL)),
        };
        port.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }

    /// Returns whether clients reach its hosts with TLS: that of this server, or that of a proxy if
    /// the hosts do not lead to this machine.
    pub(super) fn is_encrypted(&self, tls: Option<DomainTls>) -> bool {
        tls.is_some() || self.address(None).is_none()
    }

    /// Makes certificates for its hosts, and renews them until the server stops.
    pub(super) fn certificate(
        &self,
        e2b: &E2b,
        folder: &Path,
    ) -> Result<LocalCertificate, DialectListenError> {
        let authority = LocalAuthority::open(folder, &self.name)?;
        let files = authority.files().clone();
        tracing::info!(
            domain = self.name,
            authority = %files.authority.display(),
            "clients of E2B have to trust this certificate"
        );
        let stopping = e2b.host.stopping.clone();
        let renewing = async move {
            loop {
                tokio::time::sleep(RENEWAL).await;
                if let Err(error) = authority.renew() {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, "renew the certificate for hosts of E2B");
                }
            }
        };
        e2b.host
            .tasks
            .spawn(async move { stopping.run_until_cancelled(renewing).await });
        Ok(files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(text: &str, tls: Option<DomainTls>) -> Result<Option<HostDomain>, DialectListenError> {
        HostDomain::of(&E2bOptions {
            domain: (!text.is_empty()).then(|| text.to_owned()),
            tls,
            ..E2bOptions::default()
        })
    }

    #[test]
    fn only_a_domain_of_this_machine_has_an_address_of_its_own() {
        const TLS: Option<DomainTls> = Some(DomainTls::Local);
        for (text, tls, expected) in [
            ("cell.localhost:8443", TLS, Some("127.0.0.1:8443")),
            ("cell.localhost", TLS, Some("127.0.0.1:443")),
            ("Cell.example.", TLS, Some("127.0.0.1:443")),
            ("cell.localhost:8090", None, Some("127.0.0.1:8090")),
            ("cell.localhost", None, None),
            ("cell.example:8443", None, None),
        ] {
            let domain = domain(text, tls).unwrap().unwrap();
            let address = domain.address(tls).map(|address| address.to_string());
            assert_eq!(address.as_deref(), expected, "{text}");
            let is_plain = text == "cell.localhost:8090";
            assert_eq!(domain.is_encrypted(tls), !is_plain, "{text}");
        }
        assert_eq!(domain("", None).unwrap(), None);
        let name = domain("Cell.example.", None).unwrap().unwrap();
        assert_eq!(name.label("api.cell.example"), Some("api"));
        assert_eq!(name.label("api.evilcell.example"), None);
    }

    #[test]
    fn a_domain_without_hosts_below_it_is_refused() {
        for text in [
            "localhost:8443",
            "*.cell.example",
            "127.0.0.1",
            "https://cell.example",
            "cell.example:0",
            "cell.example:x",
            "cell.example/x",
        ] {
            let error = domain(text, None).unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")), "{error}");
        }
        let missing = domain("", Some(DomainTls::Local)).unwrap_err().to_string();
        assert!(missing.contains("`tls: local` needs it"), "{missing}");
    }
}
