//! Responses in a database of their own.

use serde_json::{Value, json};

use super::*;
use crate::records::conformance::over_each_database;
use crate::records::{ConversationRow, ItemRow, Records};

fn begun(id: &str, owner: &str) -> ResponseStart {
    ResponseStart {
        id: id.to_owned(),
        owner: owner.to_owned(),
        holder: "gateway".to_owned(),
        status: "in_progress",
        created_at: 1000,
        body: json!({"id": id, "status": "in_progress", "error": null}).to_string(),
        input: "[]".to_owned(),
    }
}

fn ended(id: &str, previous: Option<&str>) -> ResponseEnd {
    ResponseEnd {
        id: id.to_owned(),
        owner: "ann".to_owned(),
        status: "completed".to_owned(),
        body: json!({"id": id, "status": "completed"}).to_string(),
        events: None,
        previous: previous.map(str::to_owned),
        turn: format!("[\"{id}\"]"),
        container: None,
        evidence: None,
        results: Vec::new(),
        items: vec![(format!("msg_{id}"), format!("[\"{id}\"]"))],
        left: None,
    }
}

/// Keeps responses, each of which goes on from the one before.
fn keep(connection: &mut Database, ids: &[&str]) {
    let mut previous = None;
    for id in ids {
        begin(connection, &begun(id, "ann")).unwrap();
        assert!(end(connection, &ended(id, previous)).unwrap().is_some());
        previous = Some(*id);
    }
}

/// Fails what is not finished.
fn recovered(connection: &mut Database) -> usize {
    let transaction = connection.transaction().unwrap();
    let failed = fail_unfinished(&transaction, "1 = 1").unwrap();
    transaction.commit().unwrap();
    failed
}

async fn with(records: Records, test: impl FnOnce(&mut Database) + Send + 'static) {
    records
        .with(move |connection| {
            test(connection);
            Ok(())
        })
        .await
        .unwrap();
}

over_each_database! {
    async fn an_owner_lists_responses_page_by_page(records: Records) {
        with(records, |connection| {
            for (id, created_at) in [("b", 1000), ("a", 1000), ("c", 900), ("d", 2000)] {
                let begun = ResponseStart { created_at, ..begun(id, "ann") };
                begin(connection, &begun).unwrap();
            }
            begin(connection, &begun("e", "bob")).unwrap();
            let page = |after: Option<&str>, ascending| {
                let page = crate::records::Page { after: after.map(str::to_owned), limit: 2, ascending };
                let found = list(connection, "ann", &page).unwrap();
                found.map(|found| (found.rows.into_iter().map(|row| row.id).collect::<String>(), found.more))
            };
            assert_eq!(page(None, false), Some(("db".to_owned(), true)));
            assert_eq!(page(Some("b"), false), Some(("ac".to_owned(), false)));
            assert_eq!(page(None, true), Some(("ca".to_owned(), true)));
            assert_eq!(page(Some("a"), true), Some(("bd".to_owned(), false)));
            assert_eq!(page(Some("e"), false), None);
        })
        .await;
    }

    async fn objects_of_other_owners_do_not_exist(records: Records) {
        with(records, |connection| {
            keep(connection, &["r1"]);
            assert!(find(connection, "ann", "r1").unwrap().is_some());
            assert_eq!(find(connection, "bob", "r1").unwrap(), None);
            assert_eq!(conversation(connection, "bob", "r1").unwrap(), None);
            assert_eq!(item(connection, "bob", "msg_r1").unwrap(), None);
            assert!(delete(connection, "bob", "r1").unwrap().is_none());
            // Nor can somebody else end it.
            begin(connection, &begun("r2", "bob")).unwrap();
            end(connection, &ended("r2", None)).unwrap();
            assert_eq!(
                find(connection, "bob", "r2").unwrap().unwrap().status,
                "in_progress"
            );
        })
        .await;
    }

    async fn a_conversation_is_whole_after_its_beginning_was_deleted(records: Records) {
        with(records, |connection| {
            keep(connection, &["r1", "r2", "r3"]);
            assert!(delete(connection, "ann", "r1").unwrap().is_some());
            assert!(delete(connection, "ann", "r2").unwrap().is_some());
            let kept = conversation(connection, "ann", "r3").unwrap().unwrap();
            assert_eq!(kept.turns, ["[\"r1\"]", "[\"r2\"]", "[\"r3\"]"]);
            assert_eq!(conversation(connection, "ann", "r2").unwrap(), None);
            assert_eq!(item(connection, "ann", "msg_r2").unwrap(), None);
            // And nothing is left when the last one goes.
            assert!(delete(connection, "ann", "r3").unwrap().is_some());
            assert!(!connection.exists("SELECT 1 FROM turns", &[]).unwrap());
        })
        .await;
    }

    async fn a_turn_whose_previous_one_is_gone_has_to_be_kept_whole(records: Records) {
        with(records, |connection| {
            keep(connection, &["r1"]);
            begin(connection, &begun("r2", "ann")).unwrap();
            delete(connection, "ann", "r1").unwrap();
            assert!(end(connection, &ended("r2", Some("r1"))).unwrap().is_none());
            assert_eq!(
                find(connection, "ann", "r2").unwrap().unwrap().status,
                "in_progress"
            );
            assert!(end(connection, &ended("r2", None)).unwrap().is_some());
            let kept = conversation(connection, "ann", "r2").unwrap().unwrap();
            assert_eq!(kept.turns, ["[\"r2\"]"]);
        })
        .await;
    }

    async fn a_response_that_was_deleted_while_it_ran_stays_deleted(records: Records) {
        with(records, |connection| {
            begin(connection, &begun("r1", "ann")).unwrap();
            delete(connection, "ann", "r1").unwrap();
            end(connection, &ended("r1", None)).unwrap();
            assert_eq!(find(connection, "ann", "r1").unwrap(), None);
            assert_eq!(item(connection, "ann", "msg_r1").unwrap(), None);
        })
        .await;
    }

    async fn responses_that_ran_when_the_process_ended_have_failed(records: Records) {
        with(records, |connection| {
            keep(connection, &["r1"]);
            begin(connection, &begun("r2", "ann")).unwrap();
            assert_eq!(recovered(connection), 1);
            let whole = find(connection, "ann", "r1").unwrap().unwrap();
            assert_eq!(whole.status, "completed");
            let broken = find(connection, "ann", "r2").unwrap().unwrap();
            assert_eq!(broken.status, "failed");
            let body: Value = serde_json::from_str(&broken.body).unwrap();
            assert_eq!(body["status"], "failed");
            assert_eq!(body["error"]["code"], "server_error");
            assert_eq!(recovered(connection), 0);
        })
        .await;
    }

    async fn responses_conversations_and_what_they_keep_count_as_stored_bytes(records: Records) {
        let stored = || records.stored_bytes("ann");
        let row = ConversationRow {
            id: "conv".to_owned(),
            owner: "ann".to_owned(),
            created_at: 1000,
            metadata: r#"{"a": "é"}"#.to_owned(),
            container: None,
            evidence: None,
        };
        let item = ItemRow { id: "i".to_owned(), body: "{}".to_owned(), items: "[1]".to_owned() };
        records.add_conversation(row, vec![item.clone()]).await.unwrap();
        assert_eq!(stored().await.unwrap(), 4 + 11 + 1 + 2 + 3);
        records.annotate_conversation("ann", "conv", "{}".to_owned()).await.unwrap();
        assert_eq!(stored().await.unwrap(), 4 + 2 + 1 + 2 + 3);
        let left = ConversationUpdate {
            conversation: "conv".to_owned(),
            items: vec![item.clone(), ItemRow { id: "j".to_owned(), ..item }],
            container: None,
            evidence: Some("12345".to_owned()),
            most: 10,
            now: 2000,
        };
        let kept = ResponseEnd {
            events: Some("events".to_owned()),
            evidence: Some("evidence".to_owned()),
            results: vec![KeptResult { sha256: "a".to_owned(), bytes: 100 }],
            left: Some(left),
            ..ended("r1", None)
        };
        let bytes = kept.bytes();
        with(records.clone(), move |connection| {
            begin(connection, &begun("r1", "ann")).unwrap();
            update(connection, "r1", "in_progress", &"x".repeat(1000)).unwrap();
            end(connection, &kept).unwrap();
        })
        .await;
        // With the request's input; an item that the conversation has is not added again.
        assert_eq!(stored().await.unwrap(), 12 + bytes as u64 + 100 + 2 - 6);
        assert_eq!(records.stored_bytes("bob").await.unwrap(), 0);
        records.remove_conversation_item("ann", "conv", "j").await.unwrap();
        assert_eq!(stored().await.unwrap(), 12 + bytes as u64 + 100 + 2 - 6 - 6);
        with(records.clone(), |connection| {
            assert_eq!(sweep(connection, 1001).unwrap().0, ["r1"]);
        })
        .await;
        assert_eq!(stored().await.unwrap(), 12 + 5);
        assert_eq!(records.sweep_conversations(2001).await.unwrap(), 1);
        assert_eq!(stored().await.unwrap(), 0);
    }

    async fn old_responses_are_swept_but_not_those_that_run(records: Records) {
        with(records, |connection| {
            keep(connection, &["r1"]);
            begin(connection, &begun("r2", "ann")).unwrap();
            assert_eq!(sweep(connection, 1000).unwrap().0.len(), 0);
            assert_eq!(sweep(connection, 1001).unwrap().0.len(), 1);
            assert_eq!(find(connection, "ann", "r1").unwrap(), None);
            assert!(find(connection, "ann", "r2").unwrap().is_some());
        })
        .await;
    }

    async fn a_secret_is_the_one_that_was_brought_first(records: Records) {
        with(records, |connection| {
            assert_eq!(secret(connection, "compaction", b"first").unwrap(), b"first");
            assert_eq!(secret(connection, "compaction", b"second").unwrap(), b"first");
        })
        .await;
    }

    async fn an_item_is_found_in_its_turn_or_as_older_records_have_it(records: Records) {
        with(records, |connection| {
            begin(connection, &begun("r1", "ann")).unwrap();
            let r1 = ResponseEnd {
                turn: r#"[{"n": 0}, {"n": 1}, {"n": 2}]"#.to_owned(),
                items: vec![
                    ("ci_1".to_owned(), "[1,2]".to_owned()),
                    ("msg_1".to_owned(), r#"[{"n": "own"}]"#.to_owned()),
                ],
                ..ended("r1", None)
            };
            assert!(end(connection, &r1).unwrap().is_some());
            let found = |id: &str| item(connection, "ann", id).unwrap().unwrap();
            assert_eq!(found("ci_1"), r#"[{"n":1},{"n":2}]"#);
            assert_eq!(found("msg_1"), r#"[{"n": "own"}]"#);
        })
        .await;
    }

    async fn an_end_comes_with_what_it_leaves_in_its_conversation(records: Records) {
        let row = ConversationRow {
            id: "conv".to_owned(),
            owner: "ann".to_owned(),
            created_at: 1000,
            metadata: "{}".to_owned(),
            container: None,
            evidence: None,
        };
        records.add_conversation(row, Vec::new()).await.unwrap();
        let leaving = |id: &str, conversation: &str| ResponseEnd {
            left: Some(ConversationUpdate {
                conversation: conversation.to_owned(),
                items: vec![ItemRow {
                    id: format!("msg_{id}"),
                    body: "{}".to_owned(),
                    items: format!("[\"{id}\"]"),
                }],
                container: Some(format!("container of {id}")),
                evidence: None,
                most: 1,
                now: 2000,
            }),
            ..ended(id, None)
        };
        let ends = [
            (leaving("r1", "conv"), AddedItems::Yes),
            // It is kept although there is no room for it, or no conversation.
            (leaving("r2", "conv"), AddedItems::Full),
            (leaving("r3", "deleted"), AddedItems::Unknown),
        ];
        with(records.clone(), move |connection| {
            for (ended, added) in ends {
                begin(connection, &begun(&ended.id, "ann")).unwrap();
                assert_eq!(end(connection, &ended).unwrap(), Some(added));
                assert_eq!(find(connection, "ann", &ended.id).unwrap().unwrap().status, "completed");
            }
            // What it goes on from is gone: nothing is kept.
            begin(connection, &begun("r4", "ann")).unwrap();
            let lost = ResponseEnd { previous: Some("r0".to_owned()), ..leaving("r4", "conv") };
            assert_eq!(end(connection, &lost).unwrap(), None);
        })
        .await;
        assert_eq!(records.conversation_so_far("ann", "conv").await.unwrap(), ["[\"r1\"]"]);
        let conversation = records.conversation("ann", "conv").await.unwrap().unwrap();
        assert_eq!(conversation.container.as_deref(), Some("container of r1"));
    }

    async fn turns_that_are_no_longer_needed_are_returned(records: Records) {
        with(records, |connection| {
            keep(connection, &["r1", "r2"]);
            begin(connection, &begun("r3", "ann")).unwrap();
            // A later turn needs the first one; one that never ended has none.
            assert_eq!(delete(connection, "ann", "r1").unwrap(), Some(Vec::new()));
            assert_eq!(
                delete(connection, "ann", "r3").unwrap(),
                Some(vec!["r3".to_owned()])
            );
            let mut both = delete(connection, "ann", "r2").unwrap().unwrap();
            both.sort();
            assert_eq!(both, ["r1", "r2"]);
        })
        .await;
    }
}
