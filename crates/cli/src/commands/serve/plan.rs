//! Plan of a server: everything that `cellblock serve` decides before it starts anything.

use std::sync::Arc;
use std::time::Duration;

use cellblock_agent::ToolServers;
use cellblock_agent::provider::demo::Demo;
use cellblock_agent::tools::{ConfiguredServer, Tools};
use cellblock_gateway::Models;
use cellblock_gateway::options::Options;
use cellblock_gateway::remote::Site;
use cellblock_gateway::server;
use cellblock_image::{Home, ImageStore};
use cellblock_mcp::Options as McpOptions;

use crate::args::serve::ServeArgs;
use crate::config::{LoadedConfig, OfferPolicy, OfferedServer, PodSite, Sources};
use crate::error::{Error, Result};
use crate::warm::setting::WarmSetting;

/// Hint for a server without a model.
const NO_MODEL: &str = "\
serve: there is no model to answer with; run `cellblock serve --demo` to try it without one, \
`cellblock serve --no-model` for sandboxes alone (REST, MCP), or write a provider into `cellblock.yaml`:

    providers:
      local:
        type: chat
        base_url: http://127.0.0.1:11434/v1
";

const WARM_ELSEWHERE: &str = "serve: `--warm` takes sandboxes of this machine, and the configuration \
                              takes those of `sandbox_url` or of pods; remove one of the two";

/// A configuration and a command line that were read, with the keys and files that they name.
#[derive(Debug)]
pub(in crate::commands) struct Plan {
    pub(in crate::commands) loaded: LoadedConfig,
    pub(super) options: Options,
    pub(super) models: Models,
    pub(super) site: Option<Site>,
    pub(super) pods: Option<PodSite>,
    /// Setting for warm hosts.
    pub(super) warm: WarmSetting,
    pub(super) mcp: Option<McpOptions>,
}

impl Plan {
    /// Reads and checks everything that needs no other file of the state, and starts nothing.
    pub(in crate::commands) fn of(args: &ServeArgs) -> Result<Self> {
        let loaded = Sources::of_process(args.config.clone(), args.listen)
            .with_records(args.records.clone())
            .load()?;
        let models = models(&loaded, args)?;
        let site = loaded.site()?;
        let pods = loaded.pods()?;
        let warm = match (args.warm, site.is_some() || pods.is_some()) {
            (false, _) => WarmSetting::Off,
            (true, false) => WarmSetting::from_env()?,
            (true, true) => return Err(Error::Refused(WARM_ELSEWHERE.to_owned())),
        };
        let mcp = loaded.mcp()?;
        let mut options = loaded.options();
        let (offered, named) = loaded.tool_servers()?;
        options.cells = loaded.cells()?;
        options.egress = loaded.egress()?;
        options.connectors = loaded.connectors(&offered)?;
        options.tools = servers_of_tools(&loaded, &offered, named);
        if let Some(seconds) = args.grace {
            options.http.grace = Duration::from_secs(seconds.into());
        }
        Ok(Self {
            loaded,
            options,
            models,
            site,
            pods,
            warm,
            mcp,
        })
    }

    /// Checks what `serve` checks as it starts, and changes nothing: keys and records,
    /// certificates, addresses, and whether there is such an image.
    pub(in crate::commands) async fn check(&self) -> Result<()> {
        let home = Home::find()?;
        let records = self.loaded.records(home.root())?.look().await?;
        server::check(&self.options, &records).await?;
        if self.site.is_none() && self.pods.is_none() {
            ImageStore::new(home).check(&self.loaded.settings.image.0)?;
        }
        Ok(())
    }
}

/// The servers whose tools turns may call. None is started or asked yet.
fn servers_of_tools(loaded: &LoadedConfig, offered: &[OfferedServer], named: Arc<dyn ToolServers>) -> Tools {
    let configured = offered
        .iter()
        .filter(|offered| offered.offer != OfferPolicy::Code);
    let configured = configured.map(|offered| ConfiguredServer {
        server: offered.server(),
        always: offered.offer != OfferPolicy::OnRequest,
    });
    Tools {
        configured: configured.collect(),
        named: (!loaded.settings.mcp_requests.allowed_urls.is_empty()).then_some(named),
    }
}

fn models(loaded: &LoadedConfig, args: &ServeArgs) -> Result<Models> {
    let mut models = Models::default();
    if args.no_model {
        return Ok(models);
    }
    if !args.demo && loaded.settings.providers.models.is_empty() && !loaded.settings.dialects.is_any() {
        return Err(Error::Refused(NO_MODEL.trim_end().to_owned()));
    }
    if args.demo {
        models = models.with("demo", Arc::new(Demo));
    }
    Ok(loaded.models(models)?)
}
