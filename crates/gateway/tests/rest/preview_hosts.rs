//! Ports of sessions at hosts of their own.

use cellblock_gateway::Options;
use cellblock_interpreter::limits::NetworkPolicy;
use cellblock_testkit::require;
use reqwest::header::{COOKIE, HOST, LOCATION, ORIGIN, SET_COOKIE};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};

use crate::browser::show;
use crate::ports::program;
use crate::support::{Api, block_on, served};

/// Browsers resolve all names below `localhost` to this machine.
const DOMAIN: &str = "previews.localhost";

async fn api() -> Api {
    let mut options = Options {
        max_network: NetworkPolicy::Loopback,
        ..Options::default()
    };
    options.http.preview_domain = Some(DOMAIN.to_owned());
    Box::pin(served(options)).await
}

/// A link to a port: its host and its path.
async fn link(api: &Api, session: &str, port: u64) -> (String, String) {
    let (status, link) = api
        .post(&format!("{session}/ports/{port}/links"), &json!({}))
        .await;
    assert_eq!(status, StatusCode::CREATED, "{link}");
    let text = |name: &str| link[name].as_str().unwrap().to_owned();
    (text("host"), text("path"))
}

/// Asks at a host, with these headers.
async fn ask(api: &Api, host: &str, path: &str, headers: &[(&str, &str)]) -> Response {
    let client = Client::builder().redirect(Policy::none()).tls_certs_only([]);
    let mut request = client.build().unwrap().get(api.url(path)).header(HOST, host);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap()
}

/// The status and code of an error.
async fn refusal(answer: Response) -> (StatusCode, Value) {
    let status = answer.status();
    let problem: Value = answer.json().await.unwrap();
    (status, problem["error"]["code"].clone())
}

#[test]
fn a_link_opens_a_host_of_the_ports_own_and_no_other() {
    block_on(async {
        let api = api().await;
        let (session, port) = program(&api).await;
        let (host, path) = link(&api, &session, port).await;
        let id = session.rsplit('/').next().unwrap().replace('_', "-");
        assert_eq!(host, format!("{port}-{id}.{DOMAIN}"));

        let opened = ask(&api, &host, &format!("{path}a/b?c=d"), &[]).await;
        assert_eq!(opened.status(), StatusCode::SEE_OTHER);
        assert_eq!(opened.headers()[LOCATION], "/a/b?c=d");
        let cookie = opened.headers()[SET_COOKIE].to_str().unwrap();
        assert!(
            cookie.contains("; HttpOnly; SameSite=Lax") && !cookie.contains("Domain"),
            "{cookie}"
        );
        let cookies = format!("mine=1; {}", cookie.split(';').next().unwrap());
        let linked = (COOKIE.as_str(), cookies.as_str());

        let told = ask(&api, &host, "/a/b?c=d", &[linked]).await;
        assert_eq!(told.headers().get("content-security-policy"), None);
        let told: Value = told.json().await.unwrap();
        assert_eq!(told["path"], "/a/b?c=d");
        assert_eq!(told["headers"]["cookie"], "mine=1");
        assert_eq!(told["headers"]["x-forwarded-prefix"], Value::Null);
        let moved = ask(&api, &host, "/moved", &[linked]).await;
        assert_eq!(moved.headers()[LOCATION], "/there");
        assert_eq!(moved.headers()[SET_COOKIE], "a=1");

        // Without the link, from another page, at another host, and for routes of the gateway.
        let missing = refusal(ask(&api, &host, "/", &[]).await).await;
        assert_eq!(missing, (StatusCode::UNAUTHORIZED, json!("link_missing")));
        let strange = format!("http://1-{id}.{DOMAIN}");
        for from in [
            (ORIGIN.as_str(), strange.as_str()),
            ("sec-fetch-site", "same-site"),
        ] {
            let refused = refusal(ask(&api, &host, "/", &[linked, from]).await).await;
            assert_eq!(
                refused,
                (StatusCode::FORBIDDEN, json!("origin_not_allowed")),
                "{from:?}"
            );
        }
        let other = format!("1-{id}.{DOMAIN}");
        for (path, headers) in [(path.as_str(), vec![]), ("/", vec![linked])] {
            let refused = refusal(ask(&api, &other, path, &headers).await).await;
            assert_eq!(
                refused,
                (StatusCode::NOT_FOUND, json!("link_not_found")),
                "{path}"
            );
        }
        let told = ask(&api, &host, "/v1/sessions", &[linked]).await;
        assert_eq!(told.json::<Value>().await.unwrap()["path"], "/v1/sessions");
        api.end(&session).await;
    });
}

/// Page of a program that keeps state, and makes attempts against the gateway and another host.
const PAGE: &str = r"
ended = threading.Event()
PAGE = b'''<!doctype html><pre id=said></pre><img src=/hold><script>
const said = [];
const tell = (what, outcome) => {
  said.push(what + ': ' + outcome);
  document.getElementById('said').textContent = said.join('|')
};
const attempt = async (what, act) => {
  try { tell(what, await act()) } catch (error) { tell(what, 'refused') }
};
const make = {method: 'POST', body: '{}'};
(async () => {
  await attempt('cookie', () => { document.cookie = 'a=1'; return document.cookie });
  await attempt('storage', () => { localStorage.setItem('a', '1'); return 'kept' });
  await attempt('own', async () => (await fetch('/own')).status);
  await attempt('read', async () => (await fetch('GATEWAY/v1/sessions')).status);
  const json = {'content-type': 'application/json'};
  await attempt('write', async () => (await fetch('GATEWAY/v1/sessions', {...make, headers: json})).status);
  await attempt('blind', async () => (await fetch('GATEWAY/v1/sessions', {...make, mode: 'no-cors'})).type);
  await attempt('other', async () => (await fetch(location.origin.replace(/[0-9]+-/, '1-') + '/x')).status);
  new Image().src = '/done';
})();
</script>'''";

#[test]
fn a_page_at_a_host_of_its_own_keeps_what_it_stores_and_cannot_act_on_the_gateway() {
    require!(Chromium);
    block_on(async {
        let api = api().await;
        let (session, port) = program(&api).await;
        let (host, path) = link(&api, &session, port).await;
        let (_, before) = api.get("/v1/sessions").await;
        api.run(&session, &PAGE.replace("GATEWAY", &api.url(""))).await;
        let address = api.url("");
        let own_port = address.rsplit(':').next().unwrap();
        let shown = show(&format!("http://{host}:{own_port}{path}page")).await;
        let said = shown.split("<pre id=\"said\">").nth(1);
        let said = said.and_then(|rest| rest.split("</pre>").next());
        let said: Vec<_> = said.unwrap_or_else(|| panic!("{shown}")).split('|').collect();
        for outcome in [
            "cookie: a=1",
            "storage: kept",
            "own: 200",
            "read: refused",
            "write: refused",
            "other: refused",
        ] {
            assert!(said.contains(&outcome), "{outcome} is not in {said:?}");
        }
        let (_, after) = api.get("/v1/sessions").await;
        let count = |listed: &Value| listed["data"].as_array().unwrap().len();
        assert_eq!(count(&before), count(&after));
        api.end(&session).await;
    });
}
