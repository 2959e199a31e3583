//! Blocks of a message in a stream: one at a time, whatever else is written meanwhile.

use std::collections::VecDeque;

use serde_json::{Value, json};

/// The place of a block: that of its item in the output, and that of its part in the item.
pub(super) type BlockPosition = (usize, usize);

/// Blocks that are not sent yet. The first is sent as it grows; others wait for its end.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    waiting: VecDeque<Block>,
    /// Number of blocks that were sent to their ends.
    sent: usize,
}

#[derive(Debug)]
struct Block {
    place: BlockPosition,
    /// The block at its start, until it is sent.
    start: Option<Value>,
    deltas: Vec<Value>,
    ended: bool,
}

impl Blocks {
    /// Starts a block.
    pub(super) fn start(&mut self, place: BlockPosition, block: Value) {
        self.waiting.push_back(Block {
            place,
            start: Some(block),
            deltas: Vec::new(),
            ended: false,
        });
    }

    /// Adds a block that is whole.
    pub(super) fn whole(&mut self, place: BlockPosition, block: Value) {
        self.start(place, block);
        self.end(place);
    }

    /// Adds to a block, if it is there and has not ended.
    pub(super) fn add(&mut self, place: BlockPosition, delta: Value) {
        if let Some(block) = self.open(place) {
            block.deltas.push(delta);
        }
    }

    /// Ends a block.
    pub(super) fn end(&mut self, place: BlockPosition) {
        if let Some(block) = self.open(place) {
            block.ended = true;
        }
    }

    /// Whether a block is there that has not ended.
    pub(super) fn is_open(&mut self, place: BlockPosition) -> bool {
        self.open(place).is_some()
    }

    /// Ends all blocks.
    pub(super) fn end_all(&mut self) {
        for block in &mut self.waiting {
            block.ended = true;
        }
    }

    /// Returns the events that can be sent now.
    pub(super) fn events(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(block) = self.waiting.front_mut() {
            let index = self.sent;
            if let Some(start) = block.start.take() {
                events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
            }
            let deltas = block.deltas.drain(..);
            events.extend(
                deltas.map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})),
            );
            if !block.ended {
                break;
            }
            events.push(json!({"type": "content_block_stop", "index": index}));
            self.sent += 1;
            self.waiting.pop_front();
        }
        events
    }

    fn open(&mut self, place: BlockPosition) -> Option<&mut Block> {
        self.waiting
            .iter_mut()
            .find(|block| block.place == place && !block.ended)
    }
}
