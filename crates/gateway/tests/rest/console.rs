//! The console: over HTTP, and in a browser.

use std::io::Write as _;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use cellblock_agent::provider::demo::Demo;
use cellblock_artifact::{ArtifactDescription, Kind};
use cellblock_gateway::{Gateway, Models, Options};
use cellblock_testkit::{require, workspace_root};
use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::{Api, block_on, gateway_with, revoke, serve, served};
use crate::weather::Weather;

/// Maximum time for all that the browser does.
const LIMIT: Duration = Duration::from_mins(4);
const HEADER: &str = "x-cellblock-console";

#[test]
fn a_cell_and_what_it_shows_are_seen_in_a_browser() {
    require!(Chromium);
    require!(ConsoleClient);
    block_on(browse("console.test.js", None));
}

#[test]
fn sessions_runs_turns_and_toolsets_are_seen_in_a_browser() {
    require!(Chromium);
    require!(ConsoleClient);
    block_on(browse("panels.test.js", None));
}

/// `CONSOLE_LIVE` is a number of sessions. For the numbers in `docs/performance.md`,
/// `CONSOLE_SCENARIOS` names the file that measures them, and `CONSOLE_TABLE` a Parquet file.
#[test]
fn many_live_sessions_are_listed_while_one_is_used() {
    require!(Chromium);
    require!(ConsoleClient);
    let file = std::env::var("CONSOLE_SCENARIOS").unwrap_or_else(|_| "live.test.js".into());
    let table = std::env::var_os("CONSOLE_TABLE").map(|path| std::fs::File::open(path).unwrap());
    block_on(browse(&file, table));
}

/// Runs the scenarios of a file in Chromium, with a table that a cell could have shown.
async fn browse(file: &str, table: Option<std::fs::File>) {
    let mut options = Options {
        connectors: vec![Weather::named("weather")],
        ..Options::default()
    };
    options.sessions.max_per_key = 256;
    let models = Models::default().with("demo", Arc::new(Demo));
    let gateway = gateway_with(options, models).await;
    let table = match table {
        Some(table) => stored(&gateway, table).await,
        None => String::new(),
    };
    let api = Api::at(serve(gateway.router()).await);
    let keyed = Api::of("console").await;
    let which = Command::new("which").arg("chromium").output().await.unwrap();
    let ran = Command::new("node")
        .args(["--test", "--test-reporter=spec", file])
        .current_dir(workspace_root().join("tests/clients/console"))
        .env("CONSOLE_URL", api.url(""))
        .env("CONSOLE_KEYED_URL", keyed.url(""))
        .env("CONSOLE_KEY", keyed.key())
        .env("CONSOLE_TABLE_SHA256", table)
        .env(
            "CONSOLE_ADMIN_KEY",
            Api::of("administrator of the console").await.key(),
        )
        .env(
            "CONSOLE_CHROMIUM",
            String::from_utf8(which.stdout).unwrap().trim(),
        )
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let ran = tokio::time::timeout(LIMIT, ran).await.unwrap().unwrap();
    let printed = String::from_utf8_lossy(&ran.stdout);
    let _ = writeln!(std::io::stdout(), "{printed}");
    assert!(
        ran.status.success(),
        "{printed}\n{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    assert!(
        printed.contains("fail 0") && !printed.contains("pass 0"),
        "{printed}"
    );
}

/// Stores a table as if a cell had shown it; its hash.
async fn stored(gateway: &Gateway, table: std::fs::File) -> String {
    let about = ArtifactDescription {
        kind: Kind::Dataframe,
        media_type: "application/vnd.apache.parquet".to_owned(),
        origin: None,
    };
    let id = gateway.store.put_file(table, &about).await.unwrap().to_string();
    let granted = gateway.records.grant_artifacts("local", vec![id.clone()]);
    granted.await.unwrap();
    id
}

async fn sign_in(api: &Api, key: &str) -> Response {
    let request = api.without_key(Method::POST, "/console/sign-in");
    let body = json!({ "key": key });
    request.header(HEADER, "1").json(&body).send().await.unwrap()
}

async fn status(request: RequestBuilder) -> StatusCode {
    request.send().await.unwrap().status()
}

#[test]
fn a_cookie_opens_the_api_only_with_the_consoles_header() {
    block_on(async {
        let api = Api::of("console cookie").await;
        let wrong = sign_in(&api, "cbk_wrong").await;
        assert_eq!(wrong.status(), StatusCode::UNAUTHORIZED);
        assert!(!wrong.headers().contains_key(SET_COOKIE));
        let answer = sign_in(&api, api.key()).await;
        assert_eq!(answer.status(), StatusCode::NO_CONTENT);
        let set = answer.headers()[SET_COOKIE].to_str().unwrap();
        assert!(set.contains("HttpOnly; SameSite=Strict") && !set.contains(api.key()));
        let cookie = set.split(';').next().unwrap();
        let with = |method, path: &str| api.without_key(method, path).header(COOKIE, cookie);
        let get = || with(Method::GET, "/v1/sessions");
        assert_eq!(status(get().header(HEADER, "1")).await, StatusCode::OK);
        // What a page of another site can make a browser send.
        assert_eq!(status(get()).await, StatusCode::UNAUTHORIZED);
        let cross = get().header(HEADER, "1").header("sec-fetch-site", "cross-site");
        assert_eq!(status(cross).await, StatusCode::UNAUTHORIZED);
        let foreign = get().header(HEADER, "1").header("origin", "https://evil.example");
        assert_eq!(status(foreign).await, StatusCode::FORBIDDEN);
        let created = with(Method::POST, "/v1/sessions");
        assert_eq!(status(created).await, StatusCode::UNAUTHORIZED);
        let preflight = api.without_key(Method::OPTIONS, "/v1/sessions");
        let preflight = preflight
            .header("origin", api.url(""))
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", HEADER);
        let allowed = preflight.send().await.unwrap();
        let allowed = allowed.headers().get("access-control-allow-headers").cloned();
        assert!(allowed.is_none_or(|names| !names.to_str().unwrap().contains(HEADER)));
        for path in ["/console/sign-in", "/console/sign-out"] {
            let forged = with(Method::POST, path).json(&json!({ "key": api.key() }));
            assert_eq!(status(forged).await, StatusCode::FORBIDDEN, "{path}");
        }
        // A changed cookie is none, nor is one whose key is revoked.
        let changed = api.without_key(Method::GET, "/v1/sessions");
        let changed = changed.header(HEADER, "1").header(COOKIE, format!("{cookie}x"));
        assert_eq!(status(changed).await, StatusCode::UNAUTHORIZED);
        revoke("console cookie").await;
        assert_eq!(status(get().header(HEADER, "1")).await, StatusCode::UNAUTHORIZED);
    });
}

#[test]
fn a_key_that_signed_in_sees_what_is_its_own_until_it_signs_out() {
    block_on(async {
        let api = Api::of("console owner").await;
        let session = api.session(&json!({})).await;
        let state = |cookie: String| {
            let request = api.without_key(Method::GET, "/console/state");
            async move {
                let answer = request.header(HEADER, "1").header(COOKIE, cookie).send().await;
                answer.unwrap().json::<Value>().await.unwrap()
            }
        };
        let cookie_of = |answer: Response| {
            let set = answer.headers()[SET_COOKIE].to_str().unwrap();
            set.split(';').next().unwrap().to_owned()
        };
        let cookie = cookie_of(sign_in(&api, api.key()).await);
        let signed_in = state(cookie.clone()).await;
        assert_eq!(signed_in["account"]["name"], "console owner", "{signed_in}");
        let get = |cookie: &str| {
            let request = api.without_key(Method::GET, &session);
            status(request.header(HEADER, "1").header(COOKIE, cookie))
        };
        assert_eq!(get(&cookie).await, StatusCode::OK);
        let stranger = Api::of("console stranger").await;
        let other = cookie_of(sign_in(&stranger, stranger.key()).await);
        assert_eq!(get(&other).await, StatusCode::NOT_FOUND);
        let out = api.without_key(Method::POST, "/console/sign-out");
        let out = out.header(HEADER, "1").header(COOKIE, cookie.as_str());
        assert_eq!(status(out).await, StatusCode::NO_CONTENT);
        assert_eq!(get(&cookie).await, StatusCode::UNAUTHORIZED);
        let after = state(cookie).await;
        assert_eq!(after["sign_in_required"], true);
        assert_eq!(
            (&after["account"], &after["server"]),
            (&Value::Null, &Value::Null)
        );
        api.end(&session).await;
    });
}

#[test]
fn the_page_is_sent_under_a_policy_without_inline_scripts() {
    block_on(async {
        let api = Api::of("console").await;
        let page = api.without_key(Method::GET, "/console").send().await.unwrap();
        assert_eq!(page.status(), StatusCode::OK);
        let header = |name: &str| page.headers()[name].to_str().unwrap().to_owned();
        let policy = header("content-security-policy");
        assert!(policy.contains("script-src 'self';") && policy.contains("frame-ancestors 'none'"));
        assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("referrer-policy"), "no-referrer");
        let html = page.text().await.unwrap();
        let script = html.split("src=\"").nth(1).unwrap().split('"').next().unwrap();
        let script = api.without_key(Method::GET, script).send().await.unwrap();
        let cache = script.headers()["cache-control"].to_str().unwrap();
        assert!(cache.contains("immutable"), "{cache}");
        assert_eq!(script.headers()["content-type"], "text/javascript; charset=utf-8");
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
        let root = client
            .build()
            .unwrap()
            .get(api.url("/"))
            .header("accept", "text/html");
        let moved = root.send().await.unwrap();
        assert_eq!(moved.headers()[LOCATION], "/console");
    });
}

#[test]
fn a_console_that_is_switched_off_says_what_switches_it_on() {
    block_on(async {
        let mut options = Options::default();
        options.http.console = false;
        let api = served(options).await;
        for path in ["/console", "/console/state", "/console/assets/main.js"] {
            let (status, error) = api.get(path).await;
            assert_eq!(
                (status, &error["error"]["code"]),
                (StatusCode::NOT_FOUND, &json!("console_off"))
            );
            let message = error["error"]["message"].as_str().unwrap();
            assert!(message.contains("`http.console: true`"), "{message}");
        }
        let root = api.request(Method::GET, "/").header("accept", "text/html");
        assert_eq!(status(root).await, StatusCode::NOT_FOUND);
    });
}

#[test]
fn a_key_sees_its_quotas_and_what_it_used_of_them() {
    block_on(async {
        let api = Api::of("two fetches").await;
        let session = api.session(&json!({})).await;
        let (status, key) = api.get("/v1/key").await;
        assert_eq!(status, StatusCode::OK, "{key}");
        assert_eq!(
            (&key["name"], &key["connectors"]),
            (&json!("two fetches"), &json!(["*"]))
        );
        let quota = |name: &str| {
            let all = key["quotas"].as_array().unwrap();
            all.iter().find(|quota| quota["quota"] == name).unwrap().clone()
        };
        assert_eq!(
            quota("fetches_per_minute"),
            json!({"quota": "fetches_per_minute", "limit": 2})
        );
        assert_eq!(quota("sandboxes")["used"], 1);
        assert!(!key.to_string().contains(api.key()));
        api.end(&session).await;
    });
}
