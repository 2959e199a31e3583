//! Hibernation: a session gives back its processes and keeps its files.

use cellblock_interpreter::session::hibernate::Hibernated;

use crate::support::{block_on, run, session, value};

#[test]
fn a_hibernated_session_keeps_its_files_and_says_that_variables_are_gone() {
    block_on(async {
        let session = session().await;
        assert_eq!(session.hibernate().await.unwrap(), Hibernated::default());
        run(
            &session,
            "x = bytearray(50 << 20)\n_ = open('/workspace/a', 'w').write('kept')",
        )
        .await;
        let lost = session.hibernate().await.unwrap();
        assert!(lost.lost_variables);
        // Again, which loses nothing more.
        assert_eq!(session.hibernate().await.unwrap(), Hibernated::default());
        assert_eq!(session.read_file("/workspace/a").await.unwrap(), b"kept");
        let next = run(&session, "'x' in globals()").await;
        let notes = format!("{next:?}");
        assert!(
            notes.contains("the session was hibernated; all variables are gone"),
            "{notes}"
        );
        assert_eq!(value(&session, "'x' in globals()").await, false);
        assert_eq!(value(&session, "open('/workspace/a').read()").await, "kept");
        let again = format!("{:?}", run(&session, "1").await);
        assert!(!again.contains("hibernated"), "{again}");
    });
}

#[test]
fn hibernation_ends_checkpoints_and_their_memory() {
    needs!(Checkpoints);
    block_on(async {
        let session = session().await;
        let processes = "len([p for p in __import__('os').listdir('/proc') if p.isdigit()])";
        let alone = value(&session, processes).await;
        run(&session, "x = 1").await;
        session.checkpoint(None).await.unwrap();
        let lost = session.hibernate().await.unwrap();
        assert_eq!((lost.lost_variables, lost.lost_checkpoints), (true, 1));
        assert!(session.checkpoints().await.unwrap().is_empty());
        assert_eq!(value(&session, processes).await, alone);
        assert_eq!(session.checkpoint(None).await.unwrap().checkpoint.id, "c2");
    });
}
