//! The command line of keys.

use cellblock_sandbox::backend::BackendKind;
use cellblock_sandbox::limits::NetworkPolicy;
use std::path::PathBuf;
use std::time::Duration;

use cellblock_gateway::quotas::Quota;
use clap::{Args, Subcommand};

/// Command for keys.
#[derive(Args, Clone, Debug)]
pub(crate) struct KeyArgs {
    /// Configuration of the server that uses the keys [default: as for `serve`]
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,
    /// Postgres database with the server's records [default: as for `serve`]
    #[arg(long, value_name = "URL", global = true)]
    pub(crate) records: Option<String>,
    #[command(subcommand)]
    pub(crate) command: KeyCommand,
}

/// Command for keys.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Create a key and print only its secret, which is not shown again
    ///
    /// All other output goes to stderr. Once there is a key, a server on this machine that was open to
    /// all requires one, and revoking the key does not open it again: before the first key, the command
    /// warns, and asks if it runs on a terminal.
    Create {
        /// Name of the key; it must be unique among usable keys
        #[arg(value_name = "NAME")]
        name: String,
        /// Let the key expire after this time: a number and `m`, `h` or `d`, such as `30d`
        /// [default: never]
        #[arg(long, value_name = "TIME", value_parser = parse_time)]
        expires: Option<Duration>,
        /// Set a quota of this key; `unlimited` removes a limit. The quotas are `sandboxes`,
        /// `concurrent_cells`, `cells_per_minute`, `cell_seconds_per_day`, `fetches_per_minute`,
        /// `fetched_bytes_per_day`, `upload_bytes_per_day`, `layers_per_day` and `stored_bytes`
        #[arg(long = "quota", value_name = "NAME=NUMBER", value_parser = parse_quota)]
        quotas: Vec<(Quota, Option<u64>)>,
        /// Let code of this key call these connectors, such as `weather,crm`: names of `connectors`, and of
        /// `mcp_servers` whose `offer` is `code` or `both`; `*` means all [default: none]
        #[arg(long, value_name = "NAMES", value_delimiter = ',')]
        connectors: Vec<String>,
        /// Reject the key's requests where sandboxes have a weaker wall: `gvisor` or `microvm` [default:
        /// every backend is accepted]
        #[arg(long, value_name = "BACKEND")]
        minimum_backend: Option<BackendKind>,
        /// Widest network policy that the key's requests can set: `none`, `loopback` or `egress` [default:
        /// `limits.max_network` of the configuration, which is never exceeded]
        #[arg(long, value_name = "POLICY")]
        max_network: Option<NetworkPolicy>,
        /// Let the key make, list and revoke keys over HTTP and in the console; keys that it makes cannot do
        /// so themselves
        #[arg(long)]
        admin: bool,
        /// Give the secret the form that E2B's clients look for: `e2b_` and 40 hexadecimal digits
        #[arg(long)]
        e2b: bool,
        /// Create the first key without asking
        #[arg(long)]
        yes: bool,
        /// Print one JSON object as the only line of stdout
        #[arg(long)]
        json: bool,
    },
    /// Accept a secret that was made elsewhere, such as that of a Kubernetes Secret for all servers of a
    /// pool
    ///
    /// Nothing happens if it is accepted already.
    Import {
        /// Name of the key; it must be unique among usable keys
        #[arg(value_name = "NAME")]
        name: String,
        /// File with the secret: `cbk_` and 32 random bytes in base64url, as `key create` prints it; `-`
        /// reads stdin
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// List keys, without their secrets
    List {
        /// Print one JSON object as the only line of stdout
        #[arg(long)]
        json: bool,
    },
    /// Revoke a key. Its sessions and files remain until they expire
    #[command(aliases = ["remove", "delete"])]
    Revoke {
        /// ID or name of the key
        #[arg(value_name = "KEY")]
        key: String,
    },
}

pub(super) fn parse_time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a valid time; write a number and `m`, `h` or `d`, such as `30d`");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds = match unit {
        'm' => 60,
        'h' => 3600,
        'd' => 24 * 3600,
        _ => return Err(wrong()),
    };
    let number: u32 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    if number == 0 {
        return Err(format!("`{text}` is not a valid time; it must be greater than 0"));
    }
    Ok(Duration::from_secs(u64::from(number) * seconds))
}

fn parse_quota(text: &str) -> Result<(Quota, Option<u64>), String> {
    let (name, most) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}` has no `=`; write a quota and a number, such as `sandboxes=5`"))?;
    let quota: Quota = name
        .parse()
        .map_err(|error: cellblock_gateway::quotas::UnknownQuota| error.to_string())?;
    if most == "unlimited" {
        return Ok((quota, None));
    }
    let most = most
        .parse()
        .map_err(|_| format!("`{most}` is not a whole number; write one, or `unlimited`"))?;
    Ok((quota, Some(most)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_and_a_unit() {
        assert_eq!(parse_time("90m"), Ok(Duration::from_mins(90)));
        assert_eq!(parse_time("30d"), Ok(Duration::from_hours(720)));
        for text in ["", "30", "d", "1.5h", "-1d", "1w", "ü"] {
            assert_eq!(
                parse_time(text).unwrap_err(),
                format!("`{text}` is not a valid time; write a number and `m`, `h` or `d`, such as `30d`")
            );
        }
        assert_eq!(
            parse_time("0d").unwrap_err(),
            "`0d` is not a valid time; it must be greater than 0"
        );
    }

    #[test]
    fn a_quota_is_a_name_and_a_number() {
        assert_eq!(parse_quota("sandboxes=5"), Ok((Quota::Sandboxes, Some(5))));
        assert_eq!(
            parse_quota("stored_bytes=unlimited"),
            Ok((Quota::StoredBytes, None))
        );
        assert_eq!(
            parse_quota("rooms=5").unwrap_err(),
            "there is no quota `rooms`; there are sandboxes, concurrent_cells, cells_per_minute, \
             cell_seconds_per_day, fetches_per_minute, fetched_bytes_per_day, upload_bytes_per_day, \
             layers_per_day, stored_bytes"
        );
        assert_eq!(
            parse_quota("sandboxes=-1").unwrap_err(),
            "`-1` is not a whole number; write one, or `unlimited`"
        );
        assert_eq!(
            parse_quota("sandboxes").unwrap_err(),
            "`sandboxes` has no `=`; write a quota and a number, such as `sandboxes=5`"
        );
    }
}
