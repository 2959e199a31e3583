//! Values that a session's code finds bound: inputs, and the tool results of a cell.

use std::sync::Arc;

use cellblock_protocol::{Reference, ToKernel};

use crate::binding::Binding;
use crate::error::{Error, Result};
use crate::input::Input;
use crate::session::contents::Contents;
use crate::session::journal::Journal;
use crate::session::runtime::{BoundInputs, Runtime};

impl Runtime {
    /// Puts a cell's tool results into the sandbox, unless they are there, and says where its
    /// kernel finds them.
    pub(in crate::session) async fn refer(
        &mut self,
        binding: Option<&Arc<Binding>>,
    ) -> Result<Vec<Reference>> {
        let Some(binding) = binding else {
            return Ok(Vec::new());
        };
        if let Some(bound) = &self.bound
            && bound.key == binding.key()
        {
            return Ok(bound.references.clone());
        }
        let sandbox = self.sandbox.as_ref().ok_or(Error::Closed)?;
        self.bound = None;
        let opened = binding.open(self.limits.data_bytes).await?;
        for (path, content) in opened.files {
            sandbox.guest().write(&path, 0o644, content).await?;
        }
        let references = opened.references;
        self.bound = Some(BoundInputs {
            key: binding.key().to_owned(),
            references: references.clone(),
        });
        Ok(references)
    }

    /// Copies all inputs into a new sandbox. One whose file has gone from the host is given up, and
    /// the next cell says so: the session goes on without it.
    pub(in crate::session) async fn furnish(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
    ) -> Result<()> {
        for input in std::mem::take(&mut contents.inputs) {
            match self.upload(&input).await {
                Ok(()) => contents.inputs.push(input),
                // The reason names a path of the host, which is nothing for a model.
                Err(Error::Input { name, reason }) => {
                    tracing::warn!(name, reason, "gave up an input");
                    journal.unreported.push(format!(
                        "input `{name}` could not be copied into a new sandbox and is no longer bound"
                    ));
                }
                Err(error) => {
                    contents.inputs.push(input);
                    return Err(error);
                }
            }
        }
        self.show_all(contents, journal).await?;
        self.furnished = true;
        Ok(())
    }

    pub(in crate::session) async fn bind(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
        input: Input,
    ) -> Result<Vec<String>> {
        // Opened first: what cannot be read must not cost a sandbox, nor replace what was bound.
        input.open(self.limits.data_bytes)?;
        let digest = self.options.runs.as_ref().map(|_| self.digest(&input));
        self.ready(contents, journal).await?;
        let bound = match self.upload(&input).await {
            Ok(()) => self.bind_uploaded(journal, &input, true).await,
            Err(refused) => Err(refused),
        };
        let detected = match bound {
            Ok(detected) => detected,
            Err(refused) => {
                self.restore_file(contents, &input).await;
                return Err(refused);
            }
        };
        if !detected.is_empty() {
            let (name, detected) = (input.name(), detected.join("; "));
            // The model that writes the next cell has not seen the answer to this request.
            journal.unreported.push(format!("input `{name}`: {detected}"));
        }
        journal.chain.bound(input.name(), digest);
        contents.inputs.retain(|bound| bound.name() != input.name());
        contents.inputs.push(input);
        self.furnished = true;
        Ok(detected)
    }

    /// Puts back the file that a refused input has overwritten: a reset or the next kernel reads it again.
    async fn restore_file(&mut self, contents: &mut Contents, refused: &Input) {
        let path = refused.sandbox_path();
        let before = contents.inputs.iter().find(|bound| bound.sandbox_path() == path);
        if let Some(before) = before.cloned() {
            self.furnished &= self.upload(&before).await.is_ok();
        }
    }

    pub(in crate::session) async fn upload(&mut self, input: &Input) -> Result<()> {
        let content = input.open(self.limits.data_bytes)?;
        let sandbox = self.sandbox.as_ref().ok_or(Error::Closed)?;
        // Writable for its owner, who appends part by part; code finds it on a read-only mount.
        sandbox
            .guest()
            .write(&input.sandbox_path(), 0o644, content)
            .await?;
        Ok(())
    }

    /// Has the kernel read an input, and returns what it detected.
    pub(in crate::session) async fn bind_uploaded(
        &mut self,
        journal: &mut Journal,
        input: &Input,
        stoppable: bool,
    ) -> Result<Vec<String>> {
        let message = ToKernel::Bind {
            cell: self.number(),
            name: input.name().to_owned(),
            format: input.format,
            path: Some(input.sandbox_path()),
        };
        match self.housekeeping(journal, &message, stoppable).await? {
            Ok(ran) => Ok(ran.findings.into_iter().map(|finding| finding.message).collect()),
            Err(reason) => Err(input.refuse(reason)),
        }
    }
}
