//! `cellblock skill`: skills of this machine's user, for `cellblock run --skill`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cellblock_artifact::Store;
use cellblock_image::Home;
use cellblock_interpreter::skill::{
    LibrarySkill, SessionSkill, SkillBundle, SkillError, SkillLibrary, SkillPackage,
};
use cellblock_settings::Size;
use serde_json::json;

use crate::args::skill::{SkillArgs, SkillCommand};
use crate::artifact_store;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::render::json::{self, print};
use crate::render::table::counted;
use crate::render::{FAINT, STRONG, Screen, date, styled};
use crate::sanitize;

/// Does it, prints, and returns its exit code.
pub(crate) async fn run(args: SkillArgs) -> ExitCode {
    let json = args.json;
    match act(args).await {
        Ok(()) => ExitCode::Success,
        Err(error) => json::failed(&error, json),
    }
}

async fn act(args: SkillArgs) -> Result<()> {
    let home = Home::find()?;
    let library = SkillLibrary::new(artifact_store::open(&home).await?);
    let mut screen = Screen::new();
    match args.command {
        SkillCommand::Add { path } => {
            let added = library.add(package(&path)?).await?;
            if args.json {
                print(&json!({ "skill": added }));
            } else {
                screen.show(&line(&added));
            }
        }
        SkillCommand::List => {
            let skills = library.all().await?;
            if args.json {
                print(&json!({ "skills": skills }));
            } else if skills.is_empty() {
                screen.show("no skills; `cellblock skill add FOLDER` adds one");
            } else {
                screen.show(&skills.iter().map(line).collect::<Vec<_>>().join("\n"));
            }
        }
        SkillCommand::Show { name } => {
            let skill = found(&library, &name).await?;
            let versions = library.versions(&name).await?;
            let opened = library.open(&skill).await?;
            if args.json {
                let files = opened.bundle.files.iter();
                let files: Vec<_> = files
                    .map(|file| json!({"path": file.path, "bytes": file.bytes}))
                    .collect();
                print(&json!({ "skill": skill, "files": files, "versions": versions }));
            } else {
                screen.show(&shown(&skill, &opened.bundle, &versions));
            }
        }
        SkillCommand::Remove { name } => {
            found(&library, &name).await?;
            library.remove(&name).await?;
            if args.json {
                print(&json!({ "removed": name }));
            } else {
                screen.tell(&format!("removed {name}"));
            }
        }
    }
    Ok(())
}

/// Opens skills for a run: each is the name of one in the library, or a folder or zip.
pub(crate) async fn chosen(store: &Store, names: &[PathBuf]) -> Result<Vec<SessionSkill>> {
    let library = SkillLibrary::new(store.clone());
    let mut skills = Vec::new();
    for name in names {
        if !is_path(name) {
            let skill = found(&library, &name.to_string_lossy()).await?;
            skills.push(library.open(&skill).await?);
            continue;
        }
        let bundle = SkillBundle::store(store, package(name)?).await?;
        skills.push(SessionSkill::inline(None, Arc::new(bundle))?);
    }
    Ok(skills)
}

/// Returns whether a text is a path rather than a name: names have neither slashes nor dots.
fn is_path(text: &Path) -> bool {
    text.components().count() != 1 || text.to_string_lossy().contains(['/', '.'])
}

fn package(path: &Path) -> Result<SkillPackage> {
    let packed = if path.is_dir() {
        SkillPackage::from_folder(path)
    } else {
        SkillPackage::from_archive(File::open(path).map_err(Error::user_file("open the skill", path))?)
    };
    packed.map_err(|error| match error {
        SkillError::Invalid(reason) => {
            let path = sanitize::line(&path.to_string_lossy());
            Error::Refused(format!("the skill `{path}` cannot be used: {reason}"))
        }
        other => other.into(),
    })
}

async fn found(library: &SkillLibrary, name: &str) -> Result<LibrarySkill> {
    let skill = library.find(name).await?;
    skill.ok_or_else(|| {
        Error::Refused(format!(
            "there is no skill `{}`; `cellblock skill list` lists them, and a folder is given as a path, \
             such as `./{0}`",
            sanitize::line(name)
        ))
    })
}

fn line(skill: &LibrarySkill) -> String {
    let about = format!(
        "version {}, {}, {}",
        skill.version,
        counted(skill.files as u64, "file"),
        Size(skill.bytes)
    );
    format!(
        "{}  {}  {}",
        styled(STRONG, &skill.name),
        sanitize::line(&skill.description),
        styled(FAINT, &about)
    )
}

fn shown(skill: &LibrarySkill, bundle: &SkillBundle, versions: &[LibrarySkill]) -> String {
    let mut lines = vec![line(skill)];
    lines.extend(bundle.files.iter().map(|file| {
        let size = styled(FAINT, &Size(file.bytes).to_string());
        format!("  {}  {size}", sanitize::line(&file.path))
    }));
    lines.extend(versions.iter().rev().map(|version| {
        let seconds = i64::try_from(version.added_unix_ms / 1000).unwrap_or(i64::MAX);
        let about = format!(
            "version {}  {}  {}",
            version.version,
            date(seconds),
            version.sha256
        );
        styled(FAINT, &about)
    }));
    lines.join("\n")
}
