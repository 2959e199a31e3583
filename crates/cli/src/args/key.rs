//! The command line of keys.

use std::path::PathBuf;
use std::time::Duration;

use cellblock_gateway::quotas::Quota;
use clap::{Args, Subcommand};

/// What to do with keys.
#[derive(Args, Clone, Debug)]
pub(crate) struct KeyArgs {
    /// The configuration of the server whose keys these are [default: as for `serve`]
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: KeyCommand,
}

/// What to do with keys.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a key, and print its secret alone; it is not shown again
    ///
    /// All that is said besides the secret goes to stderr.
    Create {
        /// What it is called; no other usable key may have the name
        #[arg(value_name = "NAME")]
        name: String,
        /// Refuse it from then on: a number and `m`, `h` or `d`, such as `30d` [default: never]
        #[arg(long, value_name = "TIME", value_parser = parse_time)]
        expires: Option<Duration>,
        /// Allow it so much instead of what is configured; `unlimited` lifts a limit. There are `sandboxes`, `concurrent_cells`,
        /// `cells_per_minute`, `cell_seconds_per_day`, `upload_bytes_per_day` and `stored_bytes`
        #[arg(long = "quota", value_name = "NAME=NUMBER", value_parser = parse_quota)]
        quotas: Vec<(Quota, Option<u64>)>,
        /// Print one JSON object as the only line of stdout
        #[arg(long)]
        json: bool,
    },
    /// List keys, without their secrets
    List {
        /// Print one JSON object as the only line of stdout
        #[arg(long)]
        json: bool,
    },
    /// Refuse a key from now on; what it has made stays until it expires
    Revoke {
        /// Its id or name
        #[arg(value_name = "KEY")]
        key: String,
    },
}

fn parse_time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no time; write a number and `m`, `h` or `d`, such as `30d`");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds = match unit {
        'm' => 60,
        'h' => 3600,
        'd' => 24 * 3600,
        _ => return Err(wrong()),
    };
    let number: u32 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    if number == 0 {
        return Err(format!("`{text}` is over at once; give more than 0"));
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
        .map_err(|_| format!("`{most}` is no whole number; write one, or `unlimited`"))?;
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
                format!("`{text}` is no time; write a number and `m`, `h` or `d`, such as `30d`")
            );
        }
        assert_eq!(
            parse_time("0d").unwrap_err(),
            "`0d` is over at once; give more than 0"
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
            "there is no quota `rooms`; there are sandboxes, concurrent_cells, cells_per_minute, cell_seconds_per_day, \
             upload_bytes_per_day, stored_bytes"
        );
        assert_eq!(
            parse_quota("sandboxes=-1").unwrap_err(),
            "`-1` is no whole number; write one, or `unlimited`"
        );
        assert_eq!(
            parse_quota("sandboxes").unwrap_err(),
            "`sandboxes` has no `=`; write a quota and a number, such as `sandboxes=5`"
        );
    }
}
