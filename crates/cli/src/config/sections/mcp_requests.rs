//! Servers of tools that a request names.

use cellblock_mcp_client::{RequestedServerOptions, UrlPattern};

use super::mcp_servers::check_limits;
use crate::config::check::Check;

pub(in crate::config) fn check(options: &RequestedServerOptions, check: &mut Check<'_>) {
    for (place, text) in options.allowed_urls.iter().enumerate() {
        if let Err(error) = UrlPattern::new(text, options.allow_http) {
            check.failed(&["mcp_requests", "allowed_urls", &place.to_string()], &error);
        }
    }
    check_limits(
        |key| vec!["mcp_requests", key],
        (options.timeout, options.connect_timeout, options.max_result),
        check,
    );
}
