//! Stores in S3, and in other servers with its protocol.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use cellblock_settings::clock;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, RetryConfig};
use url::{Host, Url};

use crate::{ArtifactError, ArtifactId, Store};

/// Environment variables that can provide credentials.
const CREDENTIALS: [&str; 4] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
];
/// Maximum time for repeating requests after temporary failures.
const PATIENCE: Duration = Duration::from_secs(30);

/// Location of a store in S3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3 {
    /// Existing bucket.
    pub bucket: String,
    /// Prefix of its objects' names; may be empty.
    pub prefix: String,
    /// Endpoint of another server than Amazon's, such as `https://minio.example`. If unset,
    /// `AWS_ENDPOINT_URL` is used.
    pub endpoint: Option<String>,
    /// The region; if unset, `AWS_REGION` is used.
    pub region: Option<String>,
    /// The key's id and secret; if unset, the environment (`AWS_ACCESS_KEY_ID` …) is used.
    pub credentials: Option<Credentials>,
}

/// An access key for S3.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Id of the key.
    pub key_id: String,
    /// Secret of the key.
    pub secret: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials")
            .field("key_id", &self.key_id)
            .finish_non_exhaustive()
    }
}

impl S3 {
    /// Parses `s3://bucket/prefix`; everything else comes from the environment.
    pub fn at(address: &str) -> Result<Self, ArtifactError> {
        let refuse = || ArtifactError::address(address, "expected s3://bucket/prefix");
        let rest = address.strip_prefix("s3://").ok_or_else(refuse)?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '=');
        let segments = prefix.trim_end_matches('/');
        let sound = |part: &str| !matches!(part, "" | "." | "..") && part.chars().all(plain);
        if !sound(bucket) || !(segments.is_empty() || segments.split('/').all(sound)) {
            return Err(refuse());
        }
        Ok(Self {
            bucket: bucket.to_owned(),
            prefix: segments.to_owned(),
            endpoint: None,
            region: None,
            credentials: None,
        })
    }

    /// Returns the objects below the prefix. Requests are repeated after temporary failures for at
    /// most `patience`. Sends nothing.
    pub fn objects(&self, patience: Duration) -> Result<Arc<dyn ObjectStore>, ArtifactError> {
        // A program has one; the first to be installed is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let s3 = self.builder(patience)?.build();
        let s3 = s3.map_err(ArtifactError::store("set up the connection to S3"))?;
        Ok(match self.prefix.as_str() {
            "" => Arc::new(s3),
            prefix => Arc::new(PrefixStore::new(s3, prefix)),
        })
    }

    fn builder(&self, patience: Duration) -> Result<AmazonS3Builder, ArtifactError> {
        let mut builder = AmazonS3Builder::from_env().with_bucket_name(&self.bucket);
        if let Some(region) = &self.region {
            builder = builder.with_region(region);
        }
        if let Some(key) = &self.credentials {
            builder = builder
                .with_access_key_id(&key.key_id)
                .with_secret_access_key(&key.secret);
        } else if CREDENTIALS.iter().all(|name| std::env::var_os(name).is_none()) {
            let why = format!(
                "the environment contains no credentials; set one of {}",
                CREDENTIALS.join(", ")
            );
            return Err(ArtifactError::address(&self.address(), why));
        }
        if let Some(endpoint) = &self.endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        let keys = [AmazonS3ConfigKey::S3Endpoint, AmazonS3ConfigKey::Endpoint];
        let mut unencrypted = false;
        for endpoint in keys.iter().filter_map(|key| builder.get_config_value(key)) {
            unencrypted |= self.is_unencrypted(&endpoint)?;
        }
        Ok(builder
            // The environment cannot change this: unencrypted requests go only to this machine.
            .with_allow_http(unencrypted)
            .with_conditional_put(S3ConditionalPut::ETagMatch)
            .with_retry(RetryConfig {
                retry_timeout: patience,
                ..RetryConfig::default()
            }))
    }

    /// Returns whether requests to a server are unencrypted, which is permitted only on this
    /// machine.
    fn is_unencrypted(&self, endpoint: &str) -> Result<bool, ArtifactError> {
        let refuse =
            |why: &str| ArtifactError::address(&self.address(), format!("its endpoint {endpoint} {why}"));
        let url = Url::parse(endpoint).map_err(|_| refuse("is not a valid URL"))?;
        let here = match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => IpAddr::from(address).is_loopback(),
            Some(Host::Ipv6(address)) => IpAddr::from(address).is_loopback(),
            None => return Err(refuse("has no host")),
        };
        match url.scheme() {
            "https" => Ok(false),
            "http" if here => Ok(true),
            _ => Err(refuse(
                "is not encrypted; use https (http is permitted only for this machine)",
            )),
        }
    }

    fn address(&self) -> String {
        format!("s3://{}/{}", self.bucket, self.prefix)
    }
}

impl Store {
    /// Keeps artifacts in a bucket. Servers that overwrite objects despite If-None-Match are
    /// rejected, because publishers and collectors rely on it.
    pub async fn s3(place: S3) -> Result<Self, ArtifactError> {
        let objects = place.objects(PATIENCE)?;
        if !creates_once(objects.as_ref()).await? {
            let why = "its server ignores If-None-Match and overwrites existing objects; use a server \
                       that supports it";
            return Err(ArtifactError::address(&place.address(), why));
        }
        Ok(Self::new(objects))
    }
}

/// Creates an object twice, and returns whether the second attempt was rejected.
async fn creates_once(objects: &dyn ObjectStore) -> Result<bool, ArtifactError> {
    let unique = format!("{} {}", clock::now().as_nanos(), std::process::id());
    let location = Path::from_iter(["probe".to_owned(), ArtifactId::of(unique.as_bytes()).to_string()]);
    let create = || objects.put_opts(&location, "".into(), PutOptions::from(PutMode::Create));
    create().await.map_err(ArtifactError::store("write to S3"))?;
    let again = create().await;
    let deleted = objects.delete(&location).await;
    deleted.map_err(ArtifactError::store("remove from S3"))?;
    match again {
        Ok(_) => Ok(false),
        Err(object_store::Error::AlreadyExists { .. }) => Ok(true),
        Err(source) => Err(ArtifactError::store("write to S3")(source)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_bucket_and_a_prefix() {
        for (address, bucket, prefix) in [
            ("s3://b", "b", ""),
            ("s3://b/", "b", ""),
            (
                "s3://my.bucket-1/a/b_c/year=2025/",
                "my.bucket-1",
                "a/b_c/year=2025",
            ),
        ] {
            let place = S3::at(address).expect(address);
            assert_eq!((place.bucket.as_str(), place.prefix.as_str()), (bucket, prefix));
        }
        for address in [
            "s3://",
            "s3:///a",
            "s3://b/../c",
            "s3://b//c",
            "s3://b/a b",
            "http://b",
            "s3://u@b",
        ] {
            assert!(S3::at(address).is_err(), "{address}");
        }
    }

    #[test]
    fn unencrypted_requests_go_only_to_this_machine() {
        let place = S3::at("s3://b/p").expect("an address");
        for (endpoint, unencrypted) in [
            ("https://minio.example", false),
            ("http://127.0.0.1:9000", true),
            ("http://[::1]:9000", true),
            ("http://localhost:9000/", true),
        ] {
            assert_eq!(
                place.is_unencrypted(endpoint).ok(),
                Some(unencrypted),
                "{endpoint}"
            );
        }
        for endpoint in [
            "http://minio.example",
            "http://10.0.0.1",
            "ftp://127.0.0.1",
            "x",
            "http://localhost.example",
        ] {
            let error = place.is_unencrypted(endpoint).expect_err(endpoint).to_string();
            assert!(
                error.starts_with("could not open the store s3://b/p: its endpoint"),
                "{error}"
            );
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let key = Credentials {
            key_id: "id".into(),
            secret: "hush".into(),
        };
        assert_eq!(format!("{key:?}"), "Credentials { key_id: \"id\", .. }");
    }
}
