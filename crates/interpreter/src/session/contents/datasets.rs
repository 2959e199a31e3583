//! Showing datasets in a session's sandbox, when it is made and while it lives.

use std::io::Seek;
use std::os::unix::fs::FileExt;

use cellblock_sandbox::jail::protection::Protection;

use crate::error::{Effect, Error, Result};
use crate::session::contents::Contents;
use crate::session::contents::dataset::{DatasetMount, MountKind, file_name};
use crate::session::contents::spool::{Dataset, SpooledFile};
use crate::session::journal::Journal;
use crate::session::runtime::Runtime;
use crate::shared::InterpreterState;

/// Directory in which code finds datasets and inputs.
const FOLDER: &str = "/tmp/data/";

/// Whether sandboxes have mounts of their own.
pub(in crate::session) fn can_mount(shared: &InterpreterState) -> bool {
    shared.backend.report().is_active(Protection::MountNamespace)
}

impl Runtime {
    /// Adds a dataset: to the sandbox that lives, and to each that comes after it.
    pub(in crate::session) async fn add_dataset(
        &mut self,
        contents: &mut Contents,
        requested: String,
        extension: &str,
        spooled: SpooledFile,
    ) -> Result<DatasetMount> {
        let taken = |name: &str| {
            let path = format!("{FOLDER}{name}");
            contents.datasets.iter().any(|dataset| dataset.name == name)
                || contents.inputs.iter().any(|input| input.sandbox_path() == path)
        };
        let name = file_name(&requested, extension, taken);
        let dataset = Dataset {
            name: name.clone(),
            spooled: spooled.clone(),
        };
        let mounted = match &self.sandbox {
            Some(_) => self.show(&dataset).await?,
            None => self.mounts(),
        };
        contents.datasets.push(dataset);
        let (how, reason) = match (mounted, spooled.how) {
            (false, MountKind::Mounted | MountKind::Cloned | MountKind::Copied) => (
                MountKind::Streamed,
                Some("nothing can be mounted in this sandbox".to_owned()),
            ),
            (_, how) => (how, spooled.reason),
        };
        Ok(DatasetMount {
            requested,
            path: format!("{FOLDER}{name}"),
            name,
            bytes: spooled.bytes,
            how,
            reason,
            shape: spooled.shape,
        })
    }

    /// Shows all datasets in a new sandbox. One that cannot be shown is reported, and the session
    /// continues without it.
    pub(in crate::session) async fn show_all(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
    ) -> Result<()> {
        for dataset in std::mem::take(&mut contents.datasets) {
            let shown = self.show(&dataset).await;
            let path = format!("{FOLDER}{}", dataset.name);
            contents.datasets.push(dataset);
            if let Err(error) = shown {
                if let Error::Sandbox(broken) = &error
                    && broken.effect() == Effect::Destroys
                {
                    return Err(error);
                }
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "could not show a dataset"
                );
                let told = format!("`{path}` could not be brought into a new sandbox");
                let lost: Vec<_> = self.lost_files.take().into_iter().chain([told.clone()]).collect();
                self.lost_files = Some(lost.join(". "));
                journal.unreported.push(told);
            }
        }
        Ok(())
    }

    fn mounts(&self) -> bool {
        can_mount(&self.shared)
    }

    /// Answers whether it is mounted; otherwise it was copied.
    async fn show(&self, dataset: &Dataset) -> Result<bool> {
        let sandbox = self.sandbox.as_ref().ok_or(Error::Closed)?;
        let (guest, path) = (sandbox.guest(), format!("{FOLDER}{}", dataset.name));
        let file = &dataset.spooled.file;
        if let Some(own) = dataset.spooled.path().filter(|_| self.mounts()) {
            // What is mounted needs a place.
            guest.write(&path, 0o644, std::io::empty()).await?;
            match sandbox.mount_data(&dataset.name, file, own).await {
                Ok(()) => {
                    // The guest is of the same user as the code, and looks where the code does:
                    // what it may not read, or finds empty as the place for it was, is no dataset.
                    let (start, _) = guest.read(&path, 0, 1).await?;
                    let is_empty = file.read_at(&mut [0], 0).map_err(Error::Spool)? == 0;
                    if start.is_empty() != is_empty {
                        return Err(Error::Request(format!(
                            "mount `{path}`: the file is not what is found there"
                        )));
                    }
                    return Ok(true);
                }
                Err(error) if error.effect() == Effect::Destroys => return Err(error.into()),
                Err(error) => {
                    tracing::info!(
                        error = &error as &dyn std::error::Error,
                        "could not mount a dataset; it is copied"
                    );
                }
            }
        }
        if dataset.spooled.bytes > self.limits.data_bytes {
            return Err(Error::Request(format!(
                "copy `{path}` into the sandbox: it has {} bytes, the limit is {}; raise `data_bytes`",
                dataset.spooled.bytes, self.limits.data_bytes
            )));
        }
        let mut content = file.try_clone().map_err(Error::Spool)?;
        content.rewind().map_err(Error::Spool)?;
        guest.write(&path, 0o644, content).await?;
        Ok(false)
    }
}
