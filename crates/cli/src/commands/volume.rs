//! `cellblock volume`: files of a server that outlive its sessions.

use cellblock_gateway::volumes::{OwnedVolume, Volumes};
use cellblock_image::Home;
use cellblock_settings::Size;
use serde_json::json;

use crate::args::volume::{VolumeArgs, VolumeCommand};
use crate::artifact_store;
use crate::config::Sources;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::render::json::{self, print};
use crate::render::table::counted;
use crate::render::{FAINT, STRONG, Screen, date, styled};
use crate::sanitize;

/// Does it, prints, and says how it ended.
pub(crate) async fn run(args: VolumeArgs) -> ExitCode {
    let json = args.json;
    match act(args).await {
        Ok(()) => ExitCode::Success,
        Err(error) => json::failed(&error, json),
    }
}

async fn act(args: VolumeArgs) -> Result<()> {
    let home = Home::find()?;
    let loaded = Sources::of_process(args.config, None)
        .with_records(args.records)
        .load()?;
    let records = loaded.records(home.root())?.open().await?;
    let volumes = Volumes::new(records, artifact_store::open(&home).await?);
    let all = volumes.all().await?;
    let mut screen = Screen::new();
    match args.command {
        VolumeCommand::List if args.json => print(&json!({ "volumes": all })),
        VolumeCommand::List => screen.show(&table(&all)),
        VolumeCommand::Show { volume } => {
            let found = one(&all, &volume)?;
            if args.json {
                print(&json!({ "volume": found }));
            } else {
                screen.show(&line(found));
            }
        }
        VolumeCommand::Remove { volume } => {
            let found = one(&all, &volume)?;
            if !volumes.delete(found).await? {
                let writer = found.volume.last_writer.as_ref();
                return Err(Error::Refused(format!(
                    "delete the volume `{}`: the session `{}` writes it; delete this session first",
                    found.volume.name,
                    writer.map_or("unknown", |writer| &writer.session)
                )));
            }
            if args.json {
                print(&json!({ "deleted": found.volume.id }));
            } else {
                screen.tell(&format!("deleted {} {}", found.volume.id, found.volume.name));
            }
        }
    }
    Ok(())
}

/// Finds a volume by its ID, or by a name that only one key has given.
fn one<'a>(all: &'a [OwnedVolume], wanted: &str) -> Result<&'a OwnedVolume> {
    let named = |it: &&OwnedVolume| it.volume.id == wanted || it.volume.name == wanted;
    let found: Vec<_> = all.iter().filter(named).collect();
    match found[..] {
        [found] => Ok(found),
        [] => Err(Error::Refused(format!(
            "there is no volume `{}`; `cellblock volume list` lists them",
            sanitize::line(wanted)
        ))),
        _ => Err(Error::Refused(format!(
            "{} keys have a volume `{}`; use an ID that `cellblock volume list` shows",
            found.len(),
            sanitize::line(wanted)
        ))),
    }
}

fn table(all: &[OwnedVolume]) -> String {
    if all.is_empty() {
        return "no volumes; a session over REST with `\"volume\": \"NAME\"` creates one".to_owned();
    }
    all.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn line(owned: &OwnedVolume) -> String {
    let volume = &owned.volume;
    let saved = volume
        .saved_at
        .map_or_else(|| "never saved".to_owned(), |at| format!("saved {}", date(at)));
    let writer = volume.last_writer.as_ref();
    let writer = writer.map_or_else(String::new, |it| format!(", {} {}", it.session, it.state));
    let size = Size(u64::try_from(volume.bytes).unwrap_or(0));
    let rest = format!(
        "revision {}, {saved}, {}, {size}, of {}{writer}",
        volume.revision,
        counted(volume.files, "file"),
        owned.owner
    );
    format!(
        "{}  {}  {}",
        styled(STRONG, &sanitize::text(&volume.name)),
        volume.id,
        styled(FAINT, &sanitize::line(&rest))
    )
}
