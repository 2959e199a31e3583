//! Figures and stored contents among outputs.

use cellblock_interpreter::output::{Figure, Output};

use crate::support::interpreter;

pub(crate) fn figure(output: &Output) -> &Figure {
    match output {
        Output::Figure(figure) => figure,
        other => panic!("not a figure: {other:#?}"),
    }
}

pub(crate) async fn content(sha256: &str) -> Vec<u8> {
    let id = sha256.parse().unwrap();
    interpreter().await.store().get(id).await.unwrap().to_vec()
}
