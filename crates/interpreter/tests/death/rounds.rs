//! Many short lives one after the other leave nothing, and nothing grows. `cargo xtask soak` runs a
//! thousand with the whole image.

use crate::world::{World, alone, answer, block_on};

#[test]
fn a_hundred_and_fifty_rounds_leave_nothing() {
    let _alone = alone();
    block_on(async {
        let mut world = World::new().await;
        for round in 0..150 {
            let session = world.session();
            answer(&session).await;
            if round % 2 == 0 {
                session.close().await.unwrap();
            }
        }
        world.is_at_rest("after the rounds");
    });
}
