//! `CELLBLOCK_WARM`: whether a run, or a server that is asked to, uses a warm host, and starts one.

use std::time::Duration;

use cellblock_settings::Time;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as ValueError, StrDeserializer};

use crate::env_vars;
use crate::error::{Error, Result};

/// Default time for which a host lives while no run uses it.
pub(crate) const DEFAULT_IDLE: &str = "15m";
/// Longer than any pause between two runs that have something to do with each other.
const MOST_IDLE: Duration = Duration::from_hours(24 * 30);

/// Use of warm hosts by a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WarmSetting {
    /// It uses none.
    Off,
    /// It uses one that is there.
    IfThere,
    /// It also starts one with this idle timeout, for the runs after it.
    Start(Duration),
}

impl WarmSetting {
    /// Reads the environment.
    pub(crate) fn from_env() -> Result<Self> {
        env_vars::WARM
            .get()
            .map_or(Ok(Self::IfThere), |value| Self::parse(&value))
    }

    fn parse(value: &str) -> Result<Self> {
        if value == "off" {
            return Ok(Self::Off);
        }
        parse_idle(value).map(Self::Start).map_err(|reason| {
            Error::Refused(format!(
                "{}: {reason}; `off` uses no warm host",
                env_vars::WARM.name
            ))
        })
    }
}

/// Reads an idle timeout.
pub(crate) fn parse_idle(text: &str) -> Result<Duration, String> {
    let reader: StrDeserializer<'_, ValueError> = text.into_deserializer();
    match Time::deserialize(reader) {
        Ok(idle) if !idle.is_zero() && idle <= MOST_IDLE => Ok(idle),
        Ok(_) => Err(format!(
            "invalid idle timeout `{text}`: must be greater than 0 and at most 720h"
        )),
        Err(_) => Err(format!(
            "invalid idle timeout `{text}`: must be a time such as `15m`, `90s` or `1h`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_an_idle_timeout_or_off() {
        let parsed = |text: &str| WarmSetting::parse(text).unwrap();
        assert_eq!(parsed("off"), WarmSetting::Off);
        assert_eq!(parsed("15m"), WarmSetting::Start(Duration::from_mins(15)));
        assert_eq!(parsed("2.5"), WarmSetting::Start(Duration::from_millis(2500)));
    }

    #[test]
    fn the_error_for_an_invalid_setting_names_the_variable_and_a_valid_value() {
        for (text, reason) in [
            ("soon", "must be a time such as `15m`, `90s` or `1h`"),
            ("-1", "must be a time such as `15m`, `90s` or `1h`"),
            ("15 minutes", "must be a time such as `15m`, `90s` or `1h`"),
            ("0", "must be greater than 0 and at most 720h"),
            ("721h", "must be greater than 0 and at most 720h"),
        ] {
            let error = WarmSetting::parse(text).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("CELLBLOCK_WARM: invalid idle timeout `{text}`: {reason}; `off` uses no warm host")
            );
        }
    }
}
