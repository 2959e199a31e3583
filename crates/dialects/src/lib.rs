//! Other people's HTTP protocols over Cellblock's sessions, so that the clients people already have work unchanged.
//!
//! ```text
//! client ──its own protocol──> dialect ──hosting──> Session
//! ```
//!
//! Each dialect is a module with its own routes, errors and forms of keys, below a path of its own. What they share is the [`Host`]: who
//! calls ([`Doorkeeper`]), how much that may use ([`Meter`](cellblock_interpreter::hosting::Meter)), and how sessions are made.
//! A dialect is served if the configuration names it; otherwise its path says so ([`off`]).

mod attended;
mod door;
mod fault;
mod host;
pub mod jupyter;
mod off;
pub mod open_terminal;
mod options;
mod presented;
mod session;
mod shown;
mod workspace;

use axum::Router;

pub use door::{Doorkeeper, NoEntry};
pub use host::{Host, HostError, HostTerms, SessionWish};
pub use options::DialectsOptions;
pub use session::{DialectSession, Sessions};

/// A dialect's routes, and the path that they are below.
#[derive(Clone, Debug)]
pub struct Served {
    /// The path, such as `/e2b`.
    pub path: &'static str,
    /// The routes, without that path.
    pub routes: Router,
}

/// Returns the routes of every dialect; those of one that is off say that it is.
pub fn routes(host: &Host, options: &DialectsOptions) -> Vec<Served> {
    let jupyter = options.jupyter.as_ref();
    let open_terminal = options.open_terminal.as_ref();
    let all: [(&'static str, &'static str, Option<Router>); 2] = [
        ("/jupyter", "jupyter", jupyter.map(|it| jupyter::routes(host, it))),
        (
            "/open-terminal",
            "open_terminal",
            open_terminal.map(|it| open_terminal::routes(host, it)),
        ),
    ];
    all.into_iter()
        .map(|(path, setting, routes)| Served {
            path,
            routes: routes.unwrap_or_else(|| off::routes(setting)),
        })
        .collect()
}
