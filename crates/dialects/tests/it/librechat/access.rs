//! Keys, tokens, and quotas.

use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cellblock_dialects::{DialectsOptions, JwtKey, JwtOptions, LibreChatOptions};
use cellblock_interpreter::hosting::uploads::UploadAllowance;
use cellblock_interpreter::hosting::{Admission, Meter, MeterDenial, Owner, Permit, UnlimitedMeter};
use reqwest::multipart::{Form, Part};
use reqwest::{RequestBuilder, StatusCode};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};

use super::{CodeApi, code_api, options};
use crate::support::{RequestExt, block_on, client, serve_with};

async fn send(request: RequestBuilder) -> (StatusCode, Value) {
    let answer = request.sent().await;
    (answer.status(), answer.json().await.unwrap())
}

#[test]
fn a_key_is_needed_where_there_are_keys_and_owns_its_files() {
    block_on(async {
        let served = serve_with(options(), &["key-a", "key-b"], Arc::new(UnlimitedMeter)).await;
        let api = CodeApi {
            served,
            client: client(),
        };
        let run = json!({"lang": "py", "code": "open('a.txt', 'w').write('a'); print(1)",
            "runtime_session_hint": "c"});
        let exec = || api.client.post(api.url("/exec")).json(&run);
        let (status, refused) = send(exec()).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        assert!(refused["error"].is_string());
        assert_eq!(
            send(exec().header("X-API-Key", "other")).await.0,
            StatusCode::UNAUTHORIZED
        );
        let both = exec()
            .header("X-API-Key", "key-a")
            .header("Authorization", "Bearer x");
        let (status, refused) = send(both).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(refused["error"].as_str().unwrap().contains("both"), "{refused}");
        let (status, made) = send(exec().header("X-API-Key", "key-a")).await;
        assert_eq!((status, &made["runtime_status"]), (StatusCode::OK, &json!("new")));
        let (_, other) = send(exec().header("X-API-Key", "key-b")).await;
        assert_eq!(other["runtime_status"], "new", "a hint is of its owner");
        let file = &made["files"][0];
        let (session, id) = (
            file["storage_session_id"].as_str().unwrap(),
            file["id"].as_str().unwrap(),
        );
        let place = api.url(&format!("/download/{session}/{id}"));
        let of = async |key: &str| api.client.get(&place).header("X-API-Key", key).status().await;
        assert_eq!(of("key-a").await, StatusCode::OK);
        assert_eq!(of("key-b").await, StatusCode::NOT_FOUND);
    });
}

/// Signs tokens as LibreChat does.
struct Signer(Ed25519KeyPair);

impl Signer {
    fn new(place: &PathBuf) -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap();
        let public = URL_SAFE_NO_PAD.encode(pair.public_key());
        let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": public});
        std::fs::write(place, jwk.to_string()).unwrap();
        Self(pair)
    }

    fn token(&self, tenant: &str, user: &str, change: impl FnOnce(&mut Value)) -> String {
        let now = chrono::Utc::now().timestamp();
        let header = json!({"alg": "EdDSA", "typ": "JWT", "kid": "lc-codeapi-2026-05"});
        let mut claims = json!({
            "iss": "librechat", "aud": ["codeapi"], "sub": user, "tenant_id": tenant, "iat": now, "nbf": now,
            "exp": now + 120, "jti": "j", "role": "USER", "principal_source": "librechat_jwt",
        });
        change(&mut claims);
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", encode(&header), encode(&claims));
        let signature = self.0.sign(message.as_bytes());
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// Lets everybody run one cell fewer than everybody wants.
#[derive(Debug)]
struct NoCellsFor(&'static str);

impl Meter for NoCellsFor {
    fn session<'a>(&'a self, _: &'a Owner) -> Admission<'a, Permit> {
        Box::pin(async { Ok(Permit::new(())) })
    }

    fn cell<'a>(&'a self, owner: &'a Owner) -> Admission<'a, Permit> {
        Box::pin(async move {
            if owner.name() == self.0 {
                return Err(MeterDenial("no cells are left".to_owned()));
            }
            Ok(Permit::new(()))
        })
    }

    fn upload<'a>(&'a self, _: &'a Owner, _: u64) -> Admission<'a, Box<dyn UploadAllowance>> {
        Box::pin(async { Ok(Box::new(()) as _) })
    }
}

#[test]
fn a_token_stands_for_its_user_whose_quota_counts() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key.json");
        let signer = Signer::new(&file);
        let jwt = JwtOptions {
            keys: vec![JwtKey {
                kid: "lc-codeapi-2026-05".to_owned(),
                file,
            }],
            ..JwtOptions::default()
        };
        let options = DialectsOptions {
            librechat: Some(LibreChatOptions {
                jwt: Some(jwt),
                ..LibreChatOptions::default()
            }),
            ..DialectsOptions::default()
        };
        let meter = Arc::new(NoCellsFor("librechat:acme:poor%3Auser"));
        let api = CodeApi {
            served: serve_with(options, &["key-a"], meter).await,
            client: client(),
        };
        let run = json!({"lang": "py", "code": "print(1)"});
        let exec = |token: &str| {
            let request = api.client.post(api.url("/exec")).json(&run);
            request.header("Authorization", format!("Bearer {token}"))
        };
        let good = signer.token("acme", "u1", |_| {});
        let (status, answer) = send(exec(&good)).await;
        assert_eq!(
            (status, &answer["stdout"]),
            (StatusCode::OK, &json!("1\n")),
            "{answer}"
        );
        let (status, answer) = send(exec(&signer.token("acme", "poor:user", |_| {}))).await;
        assert_eq!(
            (status, &answer["error"]),
            (StatusCode::TOO_MANY_REQUESTS, &json!("rate_limited"))
        );
        assert!(answer["retry_after_seconds"].as_u64().unwrap() > 0);
        for (claim, value, reason) in [
            ("exp", json!(1_000_000_000), "within 300 seconds"),
            ("aud", json!("other"), "`aud`"),
            ("iss", json!("other"), "`iss`"),
        ] {
            let wrong = signer.token("acme", "u1", |claims| claims[claim] = value);
            let (status, answer) = send(exec(&wrong)).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED);
            assert!(answer["error"].as_str().unwrap().contains(reason), "{answer}");
        }
        let key = api
            .client
            .post(api.url("/exec"))
            .json(&run)
            .header("X-API-Key", "key-a");
        assert_eq!(send(key).await.0, StatusCode::UNAUTHORIZED);

        // The files of an agent are its tenant's, those of a user its own.
        let upload = async |kind: &str| -> String {
            let form = Form::new()
                .text("kind", kind.to_owned())
                .text("id", "x")
                .part("file", Part::text("x").file_name("a.txt"));
            let sent = api.client.post(api.url("/upload")).multipart(form);
            let (_, answer) = send(sent.header("Authorization", format!("Bearer {good}"))).await;
            answer["storage_session_id"].as_str().unwrap().to_owned()
        };
        let list = async |session: &str, kind: &str, tenant: &str, user: &str| {
            let token = signer.token(tenant, user, |_| {});
            let request = api
                .client
                .get(api.url(&format!("/files/{session}?kind={kind}&id=x")));
            send(request.header("Authorization", format!("Bearer {token}")))
                .await
                .0
        };
        let (agent, user) = (upload("agent").await, upload("user").await);
        assert_eq!(list(&agent, "agent", "acme", "u2").await, StatusCode::OK);
        assert_eq!(list(&agent, "agent", "other", "u1").await, StatusCode::NOT_FOUND);
        assert_eq!(list(&user, "user", "acme", "u1").await, StatusCode::OK);
        assert_eq!(list(&user, "user", "acme", "u2").await, StatusCode::NOT_FOUND);
    });
}

#[test]
fn a_profile_that_the_server_does_not_have_is_refused_for_good() {
    block_on(async {
        let api = code_api().await;
        let run = json!({"lang": "py", "code": "print(1)"});
        let request = api.client.post(api.url("/exec")).json(&run);
        let (status, answer) = send(request.header("X-CodeAPI-Expected-Profile", "gpu")).await;
        assert_eq!(
            (status, &answer["code"]),
            (StatusCode::BAD_REQUEST, &json!("execution_profile_mismatch"))
        );
        let request = api.client.post(api.url("/exec")).json(&run);
        assert_eq!(
            send(request.header("X-CodeAPI-Expected-Profile", "stateful"))
                .await
                .0,
            StatusCode::OK
        );
    });
}
