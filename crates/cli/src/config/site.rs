//! The server that runs code, where that is another one than this.

use cellblock_agent::provider::ProviderKey;
use cellblock_gateway::remote::Site;
use cellblock_image::Mirror;

use super::check::Check;
use super::{ConfigError, ImageName, LoadedConfig, Settings};

impl Settings {
    pub(super) fn check_mirror(&self, check: &mut Check<'_>) {
        let Some(mirror) = &self.image_mirror else { return };
        if has_user(mirror) {
            check.wrong(
                &["image_mirror"],
                "must not contain a password; set CELLBLOCK_IMAGE_MIRROR instead",
            );
        } else if let Err(problem) = mirror.parse::<Mirror>() {
            check.wrong(&["image_mirror"], &problem);
        }
    }

    pub(super) fn check_site(&self, check: &mut Check<'_>) {
        let Some(url) = &self.sandbox_url else {
            if self.uses_kubernetes() {
                return;
            }
            for (key, said) in [
                ("sandbox_key_env", self.sandbox_key_env.is_some()),
                ("sandbox_key_file", self.sandbox_key_file.is_some()),
                ("sandbox_allow_http", self.sandbox_allow_http),
            ] {
                if said {
                    check.wrong(
                        &[key],
                        "has an effect only with `sandbox_url` or `backend: kubernetes`; set one of \
                         these, or remove this one",
                    );
                }
            }
            return;
        };
        if !(url.starts_with("http://") || url.starts_with("https://")) {
            check.wrong(&["sandbox_url"], "must begin with `http://` or `https://`");
        } else if has_user(url) {
            check.wrong(
                &["sandbox_url"],
                "must not contain a key; use `sandbox_key_env` or `sandbox_key_file`",
            );
        }
        self.check_key(check);
        if self.image != ImageName::default() {
            check.wrong(
                &["image"],
                "cannot be combined with `sandbox_url`, whose server has its own image; remove one \
                 of the two",
            );
        }
    }
}

impl Settings {
    pub(super) fn check_key(&self, check: &mut Check<'_>) {
        if self.sandbox_key_env.is_some() && self.sandbox_key_file.is_some() {
            check.wrong(
                &["sandbox_key_file"],
                "cannot be combined with `sandbox_key_env`; remove one of the two",
            );
        }
    }
}

/// Whether an address has a user, and so perhaps a password.
fn has_user(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.contains('@')
}

impl LoadedConfig {
    /// Returns the site at which code runs, if not here. The key is read now, and no request is sent.
    pub(crate) fn site(&self) -> Result<Option<Site>, ConfigError> {
        let settings = &self.settings;
        let Some(url) = settings.sandbox_url.clone() else {
            return Ok(None);
        };
        Ok(Some(Site {
            url,
            key: self.sandbox_key()?,
            allow_plain: settings.sandbox_allow_http,
            demands: settings.protections.demands(),
        }))
    }

    /// The key of the server that runs code, if it has one. It is read now.
    pub(super) fn sandbox_key(&self) -> Result<Option<ProviderKey>, ConfigError> {
        let settings = &self.settings;
        let mut check = Check::new(&self.tree);
        let key = match (&settings.sandbox_key_env, &settings.sandbox_key_file) {
            (Some(variable), _) => Some(("sandbox_key_env", ProviderKey::from_environment(variable))),
            (None, Some(file)) => Some(("sandbox_key_file", ProviderKey::from_file(&self.path(file)))),
            (None, None) => None,
        };
        match key {
            Some((_, Ok(key))) => Ok(Some(key)),
            Some((written, Err(error))) => {
                check.failed(&[written], &error);
                Err(ConfigError::Wrong(check.mistakes))
            }
            None => Ok(None),
        }
    }
}
