//! Whether a gateway may start as it is set up.

use std::net::SocketAddr;

use super::tls::TlsError;
use crate::keys::Keys;
use crate::options::Options;
use crate::records::{Records, RecordsError};

/// Reason that a gateway does not start, or stops serving.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It would let anybody run code.
    #[error(
        "listen on {address}: other machines can reach this address, and there is no API key; make one with \
         `cellblock key create NAME`, or listen on 127.0.0.1"
    )]
    Exposed {
        /// Address at which it would listen.
        address: SocketAddr,
    },
    /// The metrics would be accessible to other machines.
    #[error("listen on {address} for metrics: its address has to be another one than the API's")]
    Metrics {
        /// Address at which they would be.
        address: SocketAddr,
    },
    /// An origin that no browser sends.
    #[error(
        "allow pages of `{origin}`: write an origin, such as `https://app.example.com`, without a path or \
         a `*`"
    )]
    Origin {
        /// As it is configured.
        origin: String,
    },
    /// A domain that no host is below.
    #[error(
        "serve previews below `{domain}`: write a domain, such as `previews.example.com`, without a \
         scheme, a port or a `*`"
    )]
    PreviewDomain {
        /// As it is configured.
        domain: String,
    },
    /// Certificates.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The records.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// The listener.
    #[error("listen on {address}")]
    Listen {
        /// Address of the listener.
        address: SocketAddr,
        /// Reason.
        source: std::io::Error,
    },
}

/// Checks what can be checked before anything is started: [`Gateway::serve`](crate::Gateway::serve)
/// does it again.
pub async fn check(options: &Options, records: &Records) -> Result<(), ServeError> {
    records.check().await?;
    let address = options.listen;
    if !address.ip().is_loopback() && !options.auth.required {
        let keys = Keys::new(records.clone());
        if !keys.any_usable().await? {
            tracing::warn!(target: crate::SECURITY, event = "start_refused", %address, "no key");
            return Err(ServeError::Exposed { address });
        }
    }
    if let Some(metrics) = options.metrics.listen
        && metrics == address
        && metrics.port() != 0
    {
        return Err(ServeError::Metrics { address: metrics });
    }
    for origin in &options.http.origins {
        if !is_origin(origin) {
            let origin = origin.clone();
            return Err(ServeError::Origin { origin });
        }
    }
    if let Some(domain) = options.http.preview_domain.as_ref().filter(|it| !is_domain(it)) {
        let domain = domain.clone();
        return Err(ServeError::PreviewDomain { domain });
    }
    if let Some(tls) = &options.tls {
        super::tls::Tls::load(tls)?;
    }
    Ok(())
}

fn is_domain(text: &str) -> bool {
    let plain = |label: &str| {
        let bytes = label.as_bytes();
        let ends = [bytes.first(), bytes.last()];
        ends.iter().all(|end| end.is_some_and(u8::is_ascii_alphanumeric))
            && bytes
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
    };
    text.split('.').all(plain)
}

fn is_origin(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else {
        return false;
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    scheme
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-+.".contains(&byte))
        && !scheme.is_empty()
        && !rest.is_empty()
        && rest.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::KeyTerms;

    fn beyond_loopback() -> Options {
        Options {
            listen: "0.0.0.0:0".parse().unwrap(),
            ..Options::default()
        }
    }

    #[tokio::test]
    async fn what_others_can_reach_needs_a_key() {
        let records = Records::in_memory().unwrap();
        let refused = check(&beyond_loopback(), &records).await.unwrap_err();
        assert_eq!(
            refused.to_string(),
            "listen on 0.0.0.0:0: other machines can reach this address, and there is no API key; make \
             one with `cellblock key create NAME`, or listen on 127.0.0.1"
        );
        check(&Options::default(), &records).await.unwrap();
        let mut required = beyond_loopback();
        required.auth.required = true;
        check(&required, &records).await.unwrap();

        let keys = Keys::new(records.clone());
        keys.create("ci", KeyTerms::default()).await.unwrap();
        check(&beyond_loopback(), &records).await.unwrap();
        keys.revoke("ci").await.unwrap();
        assert!(matches!(
            check(&beyond_loopback(), &records).await,
            Err(ServeError::Exposed { .. })
        ));
    }

    #[test]
    fn an_origin_is_a_scheme_and_a_host() {
        for origin in [
            "https://app.example.com",
            "http://localhost:3000",
            "tauri://localhost",
            "http://[::1]:1",
        ] {
            assert!(is_origin(origin), "{origin}");
        }
        for origin in [
            "*",
            "https://*.example.com",
            "https://a.example/",
            "a.example",
            "null",
            "https://",
        ] {
            assert!(!is_origin(origin), "{origin}");
        }
    }
}
