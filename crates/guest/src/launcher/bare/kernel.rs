//! Paths and start of a kernel that is not forked from a template.

use std::ffi::CString;
use std::path::PathBuf;

use cellblock_jail::Error;
use cellblock_jail::process::execute;
use cellblock_jail::scratch::{RoomDir, Scratch};

use super::PACKAGE;
use crate::launcher::control::Launch;

/// Descriptor of the channel.
pub(super) const CHANNEL: i32 = 3;

const SCRIPT: &str = "import gc, json, sys; gc.disable(); given = json.loads(sys.argv[1]); sys.path[:] = \
                      [given['package'], *filter(None, sys.path)]; from cellblock_kernel.boot import \
                      lone; lone.run(given['places'], given['preload'])";

/// The paths of one room.
#[derive(Debug)]
pub(super) struct RoomPaths {
    pub(super) dir: RoomDir,
    /// Paths that it may read in addition to the system's libraries and commands.
    pub(super) readable: Vec<PathBuf>,
    program: String,
    flags: &'static [&'static str],
    argument: serde_json::Value,
    /// Modules of a kernel that a snapshot will contain.
    preload: Vec<String>,
    /// Environment of kernels and commands, as `NAME=value`.
    pub(super) environment: Vec<String>,
}

impl RoomPaths {
    pub(super) fn new(launch: &Launch, scratch: &Scratch, dir: &RoomDir) -> Self {
        let image = &launch.image;
        // In a machine of gVisor, a root filesystem is the root already.
        let at = if image.is_root {
            image.inside()
        } else {
            &*image.directory
        };
        let package = scratch.path().join(PACKAGE);
        let mut places = vec![
            ("/workspace", dir.workspace()),
            ("/tmp/data", dir.data()),
            ("/tmp", dir.tmp()),
        ];
        places.extend(launch.layers.clone().map(|layers| ("/opt/layers", layers)));
        let places: serde_json::Map<_, _> = places
            .into_iter()
            .map(|(name, path)| (name.to_owned(), path.display().to_string().into()))
            .collect();
        let argument = serde_json::json!({"package": package.display().to_string(), "places": places});
        let (workspace, tmp) = (dir.workspace(), dir.tmp());
        let (workspace, tmp) = (workspace.display(), tmp.display());
        let fixed = [
            ("HOME", workspace.to_string()),
            ("TMPDIR", tmp.to_string()),
            ("MPLCONFIGDIR", format!("{tmp}/.matplotlib")),
            ("XDG_CACHE_HOME", format!("{tmp}/.cache")),
            // There is no user database to search.
            ("USER", "user".to_owned()),
            ("MPLBACKEND", "Agg".to_owned()),
            ("PYTHONDONTWRITEBYTECODE", "1".to_owned()),
            ("TERM", "dumb".to_owned()),
            // The machine's own configuration cannot be read here, and Node.js does not start after
            // a refusal; with namespaces there is none.
            ("OPENSSL_CONF", "/dev/null".to_owned()),
        ];
        let environment = image.environment(at, &format!("{}/bin", package.display()), &fixed);
        let mut readable = vec![image.directory.clone(), package];
        readable.extend(launch.layers.clone());
        Self {
            dir: dir.clone(),
            readable,
            program: at.join(&image.interpreter).display().to_string(),
            flags: image.flags(),
            argument,
            preload: if launch.walled {
                launch.preload.clone()
            } else {
                Vec::new()
            },
            environment,
        }
    }

    /// Becomes the kernel; returns only on failure. The first one of a walled machine imports the
    /// image's modules before the snapshot; later ones, which would take seconds, import what cells
    /// need.
    pub(super) fn execute(&self, first: bool) -> Error {
        let mut argument = self.argument.clone();
        argument["preload"] = if first {
            self.preload.clone().into()
        } else {
            serde_json::json!([])
        };
        let argument = argument.to_string();
        let flags = self.flags.iter().copied();
        let arguments = std::iter::once(self.program.as_str())
            .chain(flags)
            .chain([SCRIPT, argument.as_str()]);
        let text =
            |text: &str| CString::new(text).map_err(|_| Error::Child("path contains a NUL character".into()));
        let prepared = || -> cellblock_jail::Result<_> {
            let arguments = arguments.map(text).collect::<cellblock_jail::Result<Vec<_>>>()?;
            let environment = self.environment.iter().map(|it| text(it));
            Ok((
                arguments,
                environment.collect::<cellblock_jail::Result<Vec<_>>>()?,
            ))
        };
        match prepared() {
            Ok((arguments, environment)) => Error::Path {
                action: "start the interpreter",
                path: PathBuf::from(&self.program),
                source: execute(&arguments[0], &arguments, &environment),
            },
            Err(error) => error,
        }
    }
}
