//! Processes whose output a pump sends to a client.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use cellblock_interpreter::error::Error;
use cellblock_interpreter::session::processes::terminal::{
    TerminalCodec, TerminalFrame, TerminalInput, closing, pump,
};
use cellblock_interpreter::session::processes::{MAX_WAIT, ProcessOrder, ProcessReader, ProcessReport};
use futures_util::{Sink, Stream};

use crate::support::{block_on, session};

/// A client that takes messages and sends none.
#[derive(Debug, Default)]
struct SilentClient(Vec<TerminalFrame>);

impl Stream for SilentClient {
    type Item = TerminalFrame;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<TerminalFrame>> {
        Poll::Pending
    }
}

impl Sink<TerminalFrame> for SilentClient {
    type Error = Infallible;

    fn poll_ready(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn start_send(mut self: Pin<&mut Self>, frame: TerminalFrame) -> Result<(), Infallible> {
        self.0.push(frame);
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }
}

struct ImpatientCodec;

impl TerminalCodec for ImpatientCodec {
    const SILENCE: Duration = Duration::from_secs(5);

    fn text(&self, _: &str) -> TerminalInput {
        TerminalInput::Nothing
    }

    fn end(&self, ended: Result<ProcessReport, Error>) -> Vec<TerminalFrame> {
        closing(1000, ended.unwrap().state_in_words())
    }
}

#[test]
fn a_client_sees_output_and_the_end_of_its_process_and_is_left_if_it_is_silent() {
    block_on(async {
        let session = session().await;
        let pumped = async |command: &str| {
            let order = ProcessOrder {
                command: ["sh", "-c", command].map(str::to_owned).to_vec(),
                ..ProcessOrder::default()
            };
            let id = session.processes().start(order).await.unwrap().id;
            let mut client = SilentClient::default();
            let greeting = vec![TerminalFrame::Text("hello".to_owned())];
            let reader = ProcessReader::new(&session, &id, 0);
            let end = pump(&ImpatientCodec, reader, greeting, MAX_WAIT, &mut client).await;
            (client.0, end)
        };
        let seen = vec![
            TerminalFrame::Text("hello".to_owned()),
            TerminalFrame::Binary("there\n".into()),
        ];
        let ended = pumped("echo there; exit 3").await;
        assert_eq!(ended, (seen.clone(), closing(1000, "exited with code 3")));
        // Its process continues; the client gets no reason.
        assert_eq!(pumped("echo there; sleep 1000").await, (seen, Vec::new()));
    });
}
