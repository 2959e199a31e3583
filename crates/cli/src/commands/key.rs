//! `cellblock key`: who may call the API.

use std::fmt::Write as _;
use std::io::{BufRead as _, IsTerminal as _};
use std::path::Path;

use cellblock_gateway::keys::{ApiKey, ConnectorGrant, KeyTerms, Keys, Secret, SecretForm};
use cellblock_gateway::quotas::Allowance;
use cellblock_gateway::records::RecordsPlace;
use cellblock_image::Home;
use cellblock_settings::clock::unix_seconds;
use chrono::{DateTime, SecondsFormat};
use serde_json::{Value, json};

use crate::args::key::{KeyArgs, KeyCommand};
use crate::config::{LoadedConfig, Sources};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::render::json::{self, print};
use crate::render::{FAINT, STRONG, Screen, outcome, styled};
use crate::sanitize;

/// Does it, prints, and says how it ended.
pub(crate) async fn run(args: KeyArgs) -> ExitCode {
    let json = match args.command {
        KeyCommand::Create { json, .. } | KeyCommand::List { json } => json,
        KeyCommand::Import { .. } | KeyCommand::Revoke { .. } => false,
    };
    match act(args).await {
        Ok(()) => ExitCode::Success,
        Err(error) => json::failed(&error, json),
    }
}

async fn act(args: KeyArgs) -> Result<()> {
    let loaded = Sources::of_process(args.config, None)
        .with_records(args.records)
        .load()?;
    let home = Home::find()?;
    let keys = Keys::new(loaded.records(home.root())?.open().await?);
    let mut screen = Screen::new();
    match args.command {
        KeyCommand::Create {
            name,
            expires,
            quotas,
            connectors,
            minimum_backend,
            max_network,
            admin,
            e2b,
            yes,
            json,
        } => {
            let expires_at = expires.map(|after| unix_seconds().saturating_add(after.as_secs()));
            let allowance = quotas
                .into_iter()
                .fold(Allowance::default(), |all, (quota, most)| all.with(quota, most));
            let exists = |name: &String| name == "*" || loaded.settings.has_connector(name);
            if let Some(unknown) = connectors.iter().find(|name| !exists(name)) {
                return Err(Error::Refused(format!(
                    "there is no connector `{unknown}`: the configuration has none of this name in \
                     `connectors`, and no `mcp_servers` of this name whose `offer` is `code` or `both`"
                )));
            }
            if closes_server(&loaded, &keys).await? {
                confirm_closing(&loaded, home.root(), &mut screen, yes)?;
            }
            let (key, secret) = keys
                .create(
                    &name,
                    KeyTerms {
                        expires_at,
                        allowance,
                        connectors: ConnectorGrant::new(connectors),
                        minimum_backend,
                        max_network,
                        admin,
                        form: if e2b {
                            SecretForm::E2b
                        } else {
                            SecretForm::Cellblock
                        },
                    },
                )
                .await?;
            if json {
                let mut report = report(&key);
                report["secret"] = secret.reveal().into();
                print(&report);
            } else {
                let name = sanitize::text(&key.name);
                screen.tell(&format!(
                    "made the key {} `{name}`; keep its secret, it is not shown again:",
                    key.id
                ));
                screen.show(&secret.reveal());
            }
        }
        KeyCommand::Import { name, file } => {
            let secret = read_secret(&file)?;
            match keys.import(&name, &secret, KeyTerms::default()).await? {
                Some(key) => {
                    let name = sanitize::text(&key.name);
                    screen.tell(&format!("imported the key {} `{name}`", key.id));
                }
                None => screen.tell("this secret is accepted already"),
            }
        }
        KeyCommand::List { json } => {
            let keys = keys.list().await?;
            if json {
                let reports: Vec<_> = keys.iter().map(report).collect();
                print(&json!({ "keys": reports }));
            } else {
                screen.show(&table(&keys));
            }
        }
        KeyCommand::Revoke { key } => {
            let key = keys.revoke(&key).await?;
            let name = sanitize::text(&key.name);
            screen.tell(&format!("revoked the key {} `{name}`", key.id));
        }
    }
    Ok(())
}

/// Returns whether the first key closes a server that is open to everybody on this machine.
async fn closes_server(loaded: &LoadedConfig, keys: &Keys) -> Result<bool> {
    let is_open = !loaded.settings.auth.required && loaded.settings.listen.0.ip().is_loopback();
    Ok(is_open && keys.list().await?.is_empty())
}

/// Warns about that, and asks if there is a person to ask.
fn confirm_closing(loaded: &LoadedConfig, home: &Path, screen: &mut Screen, yes: bool) -> Result<()> {
    let reopening = match loaded.records(home)? {
        RecordsPlace::File(_) => format!("move `{}` away while it is stopped", loaded.state(home).display()),
        RecordsPlace::Postgres(_) => "start it with another database".to_owned(),
    };
    screen.tell(&outcome::note(&sanitize::line(&format!(
        "this is the first key: from now on, a server with these records rejects every client without a \
         key, and revoking the key does not open it again. To do that, {reopening}, which also hides \
         everything else that it keeps"
    ))));
    let mut stdin = std::io::stdin().lock();
    if yes || !stdin.is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(());
    }
    screen.tell("Create the key? [y/N]");
    let mut answer = String::new();
    stdin
        .read_line(&mut answer)
        .map_err(Error::process("read the answer"))?;
    if is_yes(&answer) {
        return Ok(());
    }
    Err(Error::Refused(
        "no key was created; `--yes` creates it without asking".to_owned(),
    ))
}

fn is_yes(answer: &str) -> bool {
    ["y", "yes"].contains(&answer.trim().to_lowercase().as_str())
}

/// Reads a secret, which no message repeats.
fn read_secret(file: &Path) -> Result<Secret> {
    let read = if file == Path::new("-") {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(file)
    };
    let text = read.map_err(Error::own_file("read the secret in", file))?;
    Secret::parse(text.trim()).ok_or_else(|| {
        Error::Refused(format!(
            "import a key: `{}` does not hold a secret, which is `cbk_` and 32 bytes in base64url without \
             `=`, or `e2b_` and 40 hexadecimal digits",
            file.display()
        ))
    })
}

fn report(key: &ApiKey) -> Value {
    json!({
        "id": key.id,
        "name": key.name,
        "usable": key.is_usable(unix_seconds()),
        "created_at": date(key.created_at),
        "expires_at": key.expires_at.map(date),
        "revoked_at": key.revoked_at.map(date),
        "last_used_at": key.last_used_at.map(date),
        "quotas": key.allowance,
        "connectors": key.connectors,
        "minimum_backend": key.minimum_backend,
        "max_network": key.max_network,
        "admin": key.admin,
    })
}

fn table(keys: &[ApiKey]) -> String {
    if keys.is_empty() {
        return "no keys; `cellblock key create NAME` makes one".to_owned();
    }
    let mut text = String::new();
    for key in keys {
        let state = match (key.revoked_at, key.expires_at) {
            (Some(at), _) => format!("revoked {}", date(at)),
            (None, Some(at)) if !key.is_usable(unix_seconds()) => format!("expired {}", date(at)),
            (None, Some(at)) => format!("expires {}", date(at)),
            (None, None) => "does not expire".to_owned(),
        };
        let used = key
            .last_used_at
            .map_or_else(|| "never used".to_owned(), |at| format!("last used {}", date(at)));
        let name = styled(STRONG, &sanitize::text(&key.name));
        let rest = styled(FAINT, &format!("made {}, {state}, {used}", date(key.created_at)));
        // Writing to a string does not fail.
        let _ = write!(text, "{name}  {}  {rest}", key.id);
        for (quota, most) in key.allowance.iter() {
            let most = most.map_or_else(|| "unlimited".to_owned(), |most| most.to_string());
            let _ = write!(text, "  {}={most}", quota.name());
        }
        let connectors: Vec<_> = key.connectors.names().map(sanitize::text).collect();
        if !connectors.is_empty() {
            let _ = write!(text, "  connectors={}", connectors.join(","));
        }
        if let Some(minimum) = key.minimum_backend {
            let _ = write!(text, "  minimum_backend={minimum}");
        }
        if let Some(most) = key.max_network {
            let _ = write!(text, "  max_network={most}");
        }
        if key.admin {
            text.push_str("  admin");
        }
        text.push('\n');
    }
    text.trim_end().to_owned()
}

fn date(seconds: u64) -> String {
    let date = i64::try_from(seconds)
        .ok()
        .and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    date.map_or_else(
        || "never".to_owned(),
        |date| date.to_rfc3339_opts(SecondsFormat::Secs, true),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        for answer in ["y\n", "Yes\n", " YES "] {
            assert!(is_yes(answer), "{answer:?}");
        }
        for answer in ["", "\n", "n\n", "yellow\n", "no\n"] {
            assert!(!is_yes(answer), "{answer:?}");
        }
    }
}
