//! Variables of a session, read without a cell.

use cellblock_protocol::{ToKernel, Variable};

use super::actor::Actor;
use crate::error::{Error, Result};
use crate::output::Output;

impl Actor {
    pub(super) async fn get(&mut self, name: String) -> Result<Option<Output>> {
        self.ready().await?;
        let message = ToKernel::Get {
            cell: self.number(),
            name,
        };
        let ran = self.housekeeping(&message, true).await?;
        Ok(ran.ok().and_then(|mut ran| ran.outputs.pop()))
    }

    pub(super) async fn variables(&mut self) -> Result<Vec<Variable>> {
        self.ready().await?;
        let message = ToKernel::Variables { cell: self.number() };
        match self.housekeeping(&message, true).await? {
            Ok(ran) => Ok(ran.variables),
            Err(reason) => Err(Error::Request(format!("list the variables: {reason}"))),
        }
    }
}
