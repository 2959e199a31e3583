//! Variables of a session, read without a cell.

use cellblock_protocol::{ToKernel, Variable};

use super::contents::Contents;
use super::journal::Journal;
use super::request::Request;
use super::runtime::Runtime;
use crate::error::{Error, Result};
use crate::output::Output;

impl Runtime {
    pub(super) async fn get(
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

    pub(super) async fn variables(
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
