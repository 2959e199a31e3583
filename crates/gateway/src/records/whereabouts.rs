//! Container of a conversation: found by its items, and by a key that its client repeats.

use super::database::{Database, DatabaseResult, params};

/// Something in a conversation that can lead to its container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lead {
    /// The id of a container.
    Container(String),
    /// The id of an item, which a stored response may have.
    Item(String),
}

/// A key that a client repeats in each request of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConversationKey {
    pub(crate) owner: String,
    /// The kind of the key, and the SHA-256 of its value.
    pub(crate) text: String,
    /// Whether it belongs to one conversation, though clients may use it for several.
    pub(crate) one_conversation: bool,
}

/// Returns the container that the last of these leads to; leads to containers of others, or that
/// were deleted, are passed over.
pub(crate) fn by_leads(database: &Database, owner: &str, leads: &[Lead]) -> DatabaseResult<Option<String>> {
    let by_id = "SELECT id FROM containers WHERE id = ?1 AND owner = ?2";
    let by_item = "SELECT containers.id FROM output_items
         JOIN turns ON turns.id = output_items.response
         JOIN containers ON containers.id = turns.container AND containers.owner = output_items.owner
         WHERE output_items.id = ?1 AND output_items.owner = ?2";
    for lead in leads.iter().rev() {
        let (sql, id) = match lead {
            Lead::Container(id) => (by_id, id),
            Lead::Item(id) => (by_item, id),
        };
        let found = database.first(sql, params![id, owner], |row| row.get(0))?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Returns the container that a key leads to. A request that `begins` a conversation is given none
/// by a key of one conversation; where such a key has begun one before, it is shared from then on:
/// nobody can say which of them a request goes on from, so it leads to none.
pub(crate) fn by_key(
    database: &Database,
    key: &ConversationKey,
    begins: bool,
    now_ms: i64,
) -> DatabaseResult<Option<String>> {
    let begins = key.one_conversation && begins;
    let sql = "INSERT INTO container_keys (owner, key, used_ms) VALUES (?1, ?2, ?3)
         ON CONFLICT (owner, key) DO UPDATE
         SET used_ms = ?3, shared = CASE WHEN ?4 = 1 THEN 1 ELSE container_keys.shared END";
    database.execute(sql, params![key.owner, key.text, now_ms, begins])?;
    if begins {
        return Ok(None);
    }
    let sql = "SELECT container FROM container_keys WHERE owner = ?1 AND key = ?2 AND shared = 0";
    let found = database.first(sql, params![key.owner, key.text], |row| row.get(0))?;
    Ok(found.flatten())
}

/// Notes the container that a conversation with a key has used. One that is forgotten already is passed over.
pub(crate) fn bind(
    database: &Database,
    key: &ConversationKey,
    container: &str,
    now_ms: i64,
) -> DatabaseResult<()> {
    let sql = "INSERT INTO container_keys (owner, key, container, used_ms)
         SELECT ?1, ?2, id, ?4 FROM containers WHERE id = ?3 AND owner = ?1
         ON CONFLICT (owner, key) DO UPDATE SET container = excluded.container, used_ms = excluded.used_ms";
    database.execute(sql, params![key.owner, key.text, container, now_ms])?;
    Ok(())
}

/// Forgets keys that nobody has used since a time.
pub(crate) fn forget(database: &Database, before_ms: i64) -> DatabaseResult<()> {
    database.execute(
        "DELETE FROM container_keys WHERE used_ms < ?1",
        params![before_ms],
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::conformance::over_each_database;
    use crate::records::{ContainerRow, Records};

    async fn with(records: Records, test: impl FnOnce(&Database) -> DatabaseResult<()> + Send + 'static) {
        for (id, owner) in [("one", "ann"), ("two", "ann"), ("hers", "eve")] {
            let row = ContainerRow {
                id: id.to_owned(),
                owner: owner.to_owned(),
                name: "auto".to_owned(),
                created_ms: 0,
                active_ms: 0,
                idle_ms: 1,
                memory_limit: None,
                allowed_domains: None,
                automatic: true,
                holder: None,
            };
            records.add_container(row).await.unwrap();
        }
        records.with(|connection| test(connection)).await.unwrap();
    }

    fn key(text: &str, one_conversation: bool) -> ConversationKey {
        ConversationKey {
            owner: "ann".to_owned(),
            text: text.to_owned(),
            one_conversation,
        }
    }

    over_each_database! {
        async fn a_key_leads_to_the_container_that_was_used_last(records: Records) {
            with(records, |connection| {
                let session = key("session", false);
                assert_eq!(by_key(connection, &session, true, 1)?, None);
                bind(connection, &session, "one", 2)?;
                assert_eq!(by_key(connection, &session, false, 3)?.as_deref(), Some("one"));
                bind(connection, &session, "two", 4)?;
                // A session is one whatever begins in it.
                assert_eq!(by_key(connection, &session, true, 5)?.as_deref(), Some("two"));
                // Nothing leads to the container of somebody else.
                bind(connection, &session, "hers", 6)?;
                assert_eq!(by_key(connection, &session, true, 7)?.as_deref(), Some("two"));
                let eve = ConversationKey {
                    owner: "eve".to_owned(),
                    ..session.clone()
                };
                assert_eq!(by_key(connection, &eve, true, 8)?, None);
                forget(connection, 8)?;
                assert_eq!(by_key(connection, &session, true, 9)?, None);
                Ok(())
            })
            .await;
        }

        async fn a_key_that_begins_two_conversations_leads_to_neither(records: Records) {
            with(records, |connection| {
                let cache = key("cache", true);
                assert_eq!(by_key(connection, &cache, true, 1)?, None);
                bind(connection, &cache, "one", 2)?;
                assert_eq!(by_key(connection, &cache, false, 3)?.as_deref(), Some("one"));
                assert_eq!(by_key(connection, &cache, true, 4)?, None);
                assert_eq!(by_key(connection, &cache, false, 5)?, None);
                bind(connection, &cache, "two", 6)?;
                assert_eq!(by_key(connection, &cache, false, 7)?, None);
                Ok(())
            })
            .await;
        }

        async fn the_last_lead_to_a_container_of_the_owner_counts(records: Records) {
            with(records, |connection| {
                let container = |id: &str| Lead::Container(id.to_owned());
                let item = Lead::Item("msg_1".to_owned());
                let found = |leads: &[Lead]| by_leads(connection, "ann", leads).unwrap();
                assert_eq!(
                    found(&[container("one"), container("two")]).as_deref(),
                    Some("two")
                );
                assert_eq!(
                    found(&[
                        container("one"),
                        container("hers"),
                        container("gone"),
                        item.clone()
                    ])
                    .as_deref(),
                    Some("one")
                );
                connection.batch(
                    "INSERT INTO responses (id, owner, status, created_at, body, input)
                     VALUES ('r', 'ann', 'completed', 1, '', '');
                     INSERT INTO turns (id, owner, items, container) VALUES ('r', 'ann', '[]', 'two');
                     INSERT INTO output_items VALUES ('ann', 'msg_1', 'r', '[]');",
                )?;
                assert_eq!(found(&[container("one"), item.clone()]).as_deref(), Some("two"));
                assert_eq!(by_leads(connection, "eve", &[item])?, None);
                Ok(())
            })
            .await;
        }
    }
}
