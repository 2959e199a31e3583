//! Artifacts in a store in S3, too: damaged and missing ones are restored from it.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use cellblock_testkit::{Cli, CommandOutput, S3Server, home, require};

use crate::support::{answer, default_image, folder, run, text};

/// A data directory of its own, with the images of the tests.
struct Home {
    _folder: tempfile::TempDir,
    path: PathBuf,
    server: Option<S3Server>,
    endpoint: String,
}

impl Home {
    fn new() -> Result<Self> {
        default_image()?;
        let (folder, path) = folder(&[])?;
        for part in ["bytecode", "images", "layers", "refs"] {
            std::os::unix::fs::symlink(home()?.join(part), path.join(part))?;
        }
        let server = S3Server::start();
        server.create_bucket("artifacts");
        Ok(Self {
            _folder: folder,
            path,
            endpoint: server.endpoint(),
            server: Some(server),
        })
    }

    fn in_it(&self, command: Cli) -> Result<CommandOutput> {
        command
            .env("CELLBLOCK_HOME", &self.path)
            .env("CELLBLOCK_FROZEN", "off")
            .env("CELLBLOCK_REMOTE_STORE", "s3://artifacts/here")
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ENDPOINT_URL", &self.endpoint)
            .folder(&self.path)
            .run()
    }

    fn verify(&self, arguments: &[&str]) -> Result<CommandOutput> {
        let arguments = ["artifact", "verify"].iter().chain(arguments);
        self.in_it(Cli::new(arguments.copied()))
    }

    /// Returns the files of all artifacts.
    fn objects(&self) -> Result<Vec<PathBuf>> {
        let mut objects = Vec::new();
        for folder in fs::read_dir(self.path.join("artifacts/objects"))? {
            for object in fs::read_dir(folder?.path())? {
                objects.push(object?.path());
            }
        }
        Ok(objects)
    }
}

#[test]
fn damaged_and_missing_artifacts_are_restored() -> Result<()> {
    require!(S3Server);
    let mut home = Home::new()?;
    let ran = home.in_it(run([
        "--json",
        "-c",
        "pd.DataFrame({'x': [1, 2]})",
        "-c",
        "pd.DataFrame({'y': [3]})",
    ])?)?;
    assert_eq!(answer(&ran)?.0, 0, "{ran:?}");
    let objects = home.objects()?;
    let [damaged, missing] = &objects[..] else {
        panic!("not two artifacts: {objects:?}");
    };
    let before = [fs::read(damaged)?, fs::read(missing)?];
    fs::write(damaged, "rubbish")?;
    fs::remove_file(missing)?;

    let found = home.verify(&["--json"])?;
    assert_eq!(found.code(), 1, "{found:?}");
    let found = found.json()?;
    let error = text(&found, "/damaged/0/error")?;
    assert!(error.contains("is damaged: its bytes hash to"), "{error}");
    assert!(!error.contains("remove"), "{error}");
    let advice = text(&found, "/advice")?;
    assert!(
        advice.starts_with("run `cellblock artifact verify --repair` to restore them"),
        "{advice}"
    );
    let repaired = home.verify(&["--json", "--repair"])?.json()?;
    let number = repaired["repaired"].as_array().map(Vec::len);
    assert_eq!(number, Some(2), "{repaired:#}");
    assert_eq!([fs::read(damaged)?, fs::read(missing)?], before);
    let again = home.verify(&[])?;
    assert_eq!(
        (again.code(), again.stdout.trim()),
        (0, "2 intact, 0 repaired, 0 damaged")
    );

    // Nothing runs, so that nothing is published in one of the stores only.
    home.server = None;
    let ran = home.in_it(run(["--json", "-c", "1"])?)?;
    let (code, report) = answer(&ran)?;
    let message = text(&report, "/error/message")?;
    assert_eq!(code, 70, "{report:#}");
    assert!(
        message.contains("open the store of artifacts: could not write to S3"),
        "{message}"
    );
    Ok(())
}
