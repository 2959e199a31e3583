//! Variables of a session, read without a cell.

use cellblock_protocol::{ToKernel, Variable};

use crate::error::{Error, Result};
use crate::output::Output;
use crate::session::contents::Contents;
use crate::session::journal::Journal;
use crate::session::runtime::Runtime;

impl Runtime {
    pub(in crate::session) async fn get(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
        name: String,
    ) -> Result<Option<Output>> {
        self.ready(contents, journal).await?;
        let message = ToKernel::Get {
            cell: self.number(),
            name,
        };
        let ran = self.housekeeping(journal, &message, true).await?;
        Ok(ran.ok().and_then(|mut ran| ran.outputs.pop()))
    }

    pub(in crate::session) async fn variables(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
    ) -> Result<Vec<Variable>> {
        self.ready(contents, journal).await?;
        let message = ToKernel::Variables { cell: self.number() };
        match self.housekeeping(journal, &message, true).await? {
            Ok(ran) => Ok(ran.variables),
            Err(reason) => Err(Error::Request(format!("list the variables: {reason}"))),
        }
    }
}
