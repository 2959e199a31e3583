//! `cellblock dataset`: what sessions have published in a project on this machine.

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use cellblock_image::Home;
use cellblock_interpreter::project::{DatasetVersion, Project, PublishedDataset};
use serde_json::json;

mod publish;

use crate::args::dataset::{DatasetArgs, DatasetCommand};
use crate::artifact_store::{self, failed};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::render::json::{self, print};
use crate::render::table::{counted, plural};
use crate::render::{FAINT, STRONG, Screen, styled};
use crate::sanitize;
use crate::toolset::project;

/// Does it, prints, and says how it ended.
pub(crate) async fn run(args: DatasetArgs) -> ExitCode {
    let json = args.json;
    match act(args).await {
        Ok(()) => ExitCode::Success,
        Err(error) => json::failed(&error, json),
    }
}

async fn act(args: DatasetArgs) -> Result<()> {
    let Some(name) = &args.project else {
        return Err(Error::Refused(
            "missing `--project NAME`: the project whose datasets are meant".to_owned(),
        ));
    };
    let home = Home::find()?;
    let store = artifact_store::open(&home).await?;
    let project = project(&store, name)?;
    match args.command {
        DatasetCommand::List => {
            let datasets = project.datasets().await.map_err(failed("list datasets"))?;
            if args.json {
                print(&json!({ "datasets": datasets }));
            } else {
                Screen::new().show(listed(&datasets, name).trim_end());
            }
        }
        DatasetCommand::Show { slug } => {
            let dataset = found(&project, &slug).await?;
            let versions = project.versions(&slug).await.map_err(failed("list versions"))?;
            if args.json {
                print(&json!({ "dataset": dataset, "versions": versions }));
            } else {
                Screen::new().show(shown(&dataset, &versions).trim_end());
            }
        }
        DatasetCommand::Export { slug, format, out } => {
            let version = found(&project, &slug).await?.current;
            let path = out.unwrap_or_else(|| PathBuf::from(format!("{slug}.{}", format.name())));
            if path == Path::new("-") {
                version.export(&store, format, io::stdout()).await?;
                return Ok(());
            }
            let file = File::create(&path).map_err(Error::user_file("create", &path))?;
            let file = version.export(&store, format, file).await?;
            if args.json {
                let bytes = file.metadata().map_err(Error::user_file("read", &path))?.len();
                print(&json!({ "path": path, "bytes": bytes, "rows": version.rows }));
            } else {
                Screen::new().show(&json::path(&path));
            }
        }
        DatasetCommand::Publish(publication) => {
            publish::publish(&home, &store, &project, &publication).await?;
            let dataset = found(&project, &publication.slug).await?;
            if args.json {
                print(&json!({ "dataset": dataset }));
            } else {
                Screen::new().show(shown(&dataset, &[]).trim_end());
            }
        }
        DatasetCommand::Remove { slug } => {
            found(&project, &slug).await?;
            project
                .remove(&slug)
                .await
                .map_err(failed("remove the dataset"))?;
            if args.json {
                print(&json!({ "removed": slug }));
            } else {
                Screen::new().tell(&format!("removed {slug}"));
            }
        }
    }
    Ok(())
}

async fn found(project: &Project, slug: &str) -> Result<PublishedDataset> {
    let dataset = project.dataset(slug).await.map_err(failed("read the dataset"))?;
    dataset.ok_or_else(|| {
        let (slug, name) = (sanitize::line(slug), project.name());
        Error::Refused(format!(
            "the project `{name}` has no dataset `{slug}`; `cellblock dataset list --project {name}` \
             lists them"
        ))
    })
}

fn listed(datasets: &[PublishedDataset], project: &str) -> String {
    if datasets.is_empty() {
        return format!(
            "the project `{project}` has no datasets; code publishes one with publish_dataset(df, \"slug\")"
        );
    }
    let mut text = String::new();
    for dataset in datasets {
        let PublishedDataset {
            slug,
            title,
            versions,
            current,
            ..
        } = dataset;
        let counted = |count: u64, word| format!("{count} {}", plural(count, word));
        let about = [
            counted(current.rows, "row"),
            counted(current.columns.len() as u64, "column"),
            counted(*versions, "version"),
            current.published_at(),
        ]
        .join(", ");
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{}  {}  {}",
            styled(STRONG, slug),
            sanitize::line(title),
            styled(FAINT, &about)
        );
    }
    text
}

fn shown(dataset: &PublishedDataset, versions: &[DatasetVersion]) -> String {
    let current = &dataset.current;
    let mut lines = vec![
        format!(
            "{}  {}",
            styled(STRONG, &dataset.slug),
            sanitize::line(&dataset.title)
        ),
        sanitize::text(&dataset.description),
    ];
    if !dataset.tags.is_empty() {
        lines.push(format!("tags: {}", sanitize::line(&dataset.tags.join(", "))));
    }
    lines.extend(
        dataset
            .notes
            .iter()
            .map(|note| format!("note: {}", sanitize::line(note))),
    );
    let origin = [
        current
            .producer
            .as_ref()
            .map(|producer| format!("from {producer}")),
        current
            .variable
            .as_ref()
            .map(|variable| format!("variable {variable}")),
        Some(format!("published by {}", current.session)),
    ];
    let origin: Vec<_> = origin.into_iter().flatten().collect();
    lines.push(sanitize::line(&origin.join(", ")));
    let sources = current.fetches.iter().chain(&current.loads);
    lines.extend(sources.map(|source| format!("source: {}", sanitize::line(source))));
    lines.push(counted(current.rows, "row"));
    let columns = current.columns.iter();
    lines.extend(columns.map(|it| format!("  {}: {}", sanitize::line(&it.name), sanitize::line(&it.dtype))));
    lines.extend(versions.iter().rev().map(|version| {
        let about = format!(
            "{}  {}  {}",
            version.published_at(),
            version.sha256,
            counted(version.rows, "row")
        );
        styled(FAINT, &about)
    }));
    lines.retain(|line| !line.is_empty());
    lines.join("\n")
}
