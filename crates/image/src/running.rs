//! Builds that run on this machine: each build writes how far it is into a separate file, which is locked as
//! long as the build runs.

use std::fs::{self, File};
use std::io::{Seek as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cellblock_settings::clock;
use parking_lot::Mutex;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::home::names;
use crate::{Home, Progress, Sink};

/// Interval between two writes of the number of bytes.
const PACE: Duration = Duration::from_millis(200);
/// Files that are not locked yet begin with it.
const UNREADY: &str = ".";

/// A build that runs on this machine, in this process or another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningBuild {
    /// Target of the build, such as `image default` or `requirements rapidfuzz`.
    pub what: String,
    /// Current stage, such as `installing packages`.
    pub stage: String,
    /// Bytes done in this stage, if it counts them.
    pub done: Option<u64>,
    /// Bytes known so far in this stage, which may grow.
    pub total: Option<u64>,
    /// Time of its start, in seconds since 1970.
    pub began: u64,
}

/// Returns the builds that run now, the oldest first.
pub(crate) fn running_builds(home: &Home) -> Vec<RunningBuild> {
    let folder = home.builds();
    let files = names(&folder).unwrap_or_default();
    let ready = files.iter().filter(|name| !name.starts_with(UNREADY));
    let mut builds: Vec<_> = ready.filter_map(|name| read(&folder.join(name))).collect();
    builds.sort_by_key(|build| build.began);
    builds
}

/// Reads the file of a build that runs; that of one that was killed is removed.
fn read(path: &PathBuf) -> Option<RunningBuild> {
    let file = File::open(path).ok()?;
    if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
        let _ = fs::remove_file(path);
        return None;
    }
    let text = fs::read_to_string(path).ok()?;
    serde_json::from_str(text.lines().next()?).ok()
}

/// Shows a build in the list of those that run, until this is dropped. It never fails a build.
#[derive(Debug)]
pub(crate) struct BuildNotice(Option<PathBuf>);

impl BuildNotice {
    /// Shows a build; what the returned sink hears is shown and passed on to `sink`.
    pub(crate) fn start(home: &Home, what: impl Into<String>, sink: &Sink) -> (Self, Sink) {
        let build = RunningBuild {
            what: what.into(),
            stage: "starting".to_owned(),
            done: None,
            total: None,
            began: clock::unix_seconds(),
        };
        match create(home, build) {
            Ok((path, shown)) => (Self(Some(path)), shown.over(sink)),
            // The build itself says what is wrong with the disk.
            Err(_) => (Self(None), sink.clone()),
        }
    }
}

impl Drop for BuildNotice {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = fs::remove_file(path);
        }
    }
}

/// The file of a build.
struct BuildFile {
    file: File,
    build: RunningBuild,
    written: Instant,
}

fn create(home: &Home, build: RunningBuild) -> std::io::Result<(PathBuf, BuildFile)> {
    let folder = home.builds();
    fs::create_dir_all(&folder)?;
    let unready = tempfile::Builder::new().prefix(UNREADY).tempfile_in(&folder)?;
    flock(unready.as_file(), FlockOperation::NonBlockingLockExclusive)?;
    let name = unready.path().file_name().unwrap_or_default().to_string_lossy();
    let path = folder.join(name.trim_start_matches(UNREADY));
    let file = unready.persist_noclobber(&path).map_err(|error| error.error)?;
    let mut shown = BuildFile {
        file,
        build,
        written: Instant::now(),
    };
    shown.write();
    Ok((path, shown))
}

impl BuildFile {
    fn over(self, sink: &Sink) -> Sink {
        let (shown, sink) = (Arc::new(Mutex::new(self)), sink.clone());
        Sink::new(move |progress| {
            shown.lock().hear(&progress);
            sink.send(progress);
        })
    }

    fn hear(&mut self, progress: &Progress) {
        match progress {
            Progress::Stage { name } => self.stage(name.clone()),
            Progress::Waiting { what } => self.stage(format!("waiting for {what}")),
            Progress::Bytes { done, total } => {
                (self.build.done, self.build.total) = (Some(*done), Some(*total));
                if self.written.elapsed() >= PACE || done == total {
                    self.write();
                }
            }
            Progress::Line(_) => {}
        }
    }

    fn stage(&mut self, stage: String) {
        self.build.stage = stage;
        (self.build.done, self.build.total) = (None, None);
        self.write();
    }

    /// Writes it over what was there: a reader takes the first line, and a line that is half
    /// written cannot be parsed.
    fn write(&mut self) {
        self.written = Instant::now();
        let line = serde_json::json!(self.build).to_string() + "\n";
        // The build itself says what is wrong with the disk.
        let _ = self
            .file
            .rewind()
            .and_then(|()| self.file.write_all(line.as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_is_listed_with_its_stage_and_bytes_until_it_ends() {
        let place = tempfile::tempdir().unwrap();
        let home = Home::at(place.path()).unwrap();
        assert_eq!(running_builds(&home), []);
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hearing = Arc::clone(&heard);
        let sink = Sink::new(move |progress| hearing.lock().push(progress));
        let (announced, sink) = BuildNotice::start(&home, "image tiny", &sink);
        let first = running_builds(&home);
        assert_eq!((&*first[0].what, &*first[0].stage), ("image tiny", "starting"));
        sink.stage("installing packages with a long name");
        sink.bytes(5, 5);
        let stage = &running_builds(&home)[0];
        assert_eq!(stage.stage, "installing packages with a long name");
        assert_eq!((stage.done, stage.total), (Some(5), Some(5)));
        sink.stage("short");
        assert_eq!(
            running_builds(&home),
            [RunningBuild {
                stage: "short".to_owned(),
                ..first[0].clone()
            }]
        );
        assert_eq!(heard.lock().len(), 3);
        drop((announced, sink));
        assert_eq!(running_builds(&home), []);
        assert_eq!(names(&home.builds()).unwrap(), [""; 0]);
    }

    #[test]
    fn what_a_killed_build_has_left_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let home = Home::at(place.path()).unwrap();
        let build = RunningBuild {
            what: "image tiny".to_owned(),
            stage: "starting".to_owned(),
            done: None,
            total: None,
            began: 0,
        };
        drop(create(&home, build).unwrap());
        assert_eq!(running_builds(&home), []);
        assert_eq!(names(&home.builds()).unwrap(), [""; 0]);
    }
}
