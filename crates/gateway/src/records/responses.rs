//! Responses, the conversations behind them, and the items that came out.

mod listing;

use cellblock_agent::turn::KeptResult;
use serde_json::{Value, json};

use super::conversations::{self, AddedItems, ConversationUpdate};
use super::database::{Database, DatabaseResult, DatabaseTransaction, params};
use super::results;

pub(crate) use listing::{ListedResponse, list, turn};

/// A response that begins.
#[derive(Clone, Debug)]
pub(crate) struct ResponseStart {
    pub(crate) id: String,
    pub(crate) owner: String,
    /// The gateway that writes it.
    pub(crate) holder: String,
    /// `queued` or `in_progress`.
    pub(crate) status: &'static str,
    pub(crate) created_at: u64,
    /// The response as JSON.
    pub(crate) body: String,
    /// The items of its request as JSON.
    pub(crate) input: String,
}

/// A response that came to its end.
#[derive(Clone, Debug)]
pub(crate) struct ResponseEnd {
    pub(crate) id: String,
    pub(crate) owner: String,
    pub(crate) status: String,
    pub(crate) body: String,
    /// Events that were streamed, if they are kept.
    pub(crate) events: Option<String>,
    /// The turn that it went on from.
    pub(crate) previous: Option<String>,
    /// Items that the model read and said since, as a JSON list.
    pub(crate) turn: String,
    pub(crate) container: Option<String>,
    /// Stored results of tools.
    pub(crate) evidence: Option<String>,
    /// Those results, and pictures of its items.
    pub(crate) results: Vec<KeptResult>,
    /// Ids of its items, each with what the model knows it as.
    pub(crate) items: Vec<(String, String)>,
    /// Items that it leaves in its conversation, if it has one.
    pub(crate) left: Option<ConversationUpdate>,
}

impl ResponseEnd {
    /// Number of bytes that it takes in the records, without its results.
    pub(crate) fn bytes(&self) -> usize {
        let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let items: usize = self.items.iter().map(|(id, items)| id.len() + items.len()).sum();
        let turn = self.turn.len() + optional(&self.evidence) + items;
        let left = self.left.as_ref().map_or(0, ConversationUpdate::bytes);
        self.body.len() + optional(&self.events) + turn + left
    }
}

/// A response as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResponseRecord {
    pub(crate) status: String,
    pub(crate) body: String,
    pub(crate) input: String,
}

/// The conversation that led to a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredConversation {
    /// The response's status.
    pub(crate) status: String,
    /// Items as JSON lists, the oldest turn first.
    pub(crate) turns: Vec<String>,
    /// The container that was used last.
    pub(crate) container: Option<String>,
    /// Stored results of tools.
    pub(crate) evidence: Option<String>,
}

/// Lock of turns that are forgotten: those who continue a turn share it, and the turn stays meanwhile.
const TURNS: &str = "turns";

/// Keeps a response that begins.
pub(crate) fn begin(database: &Database, begun: &ResponseStart) -> DatabaseResult<()> {
    let created_at = i64::try_from(begun.created_at).unwrap_or(i64::MAX);
    database.execute(
        "INSERT INTO responses (id, owner, holder, status, created_at, body, input) VALUES (?1, ?2, ?3, \
         ?4, ?5, ?6, ?7)",
        params![
            begun.id,
            begun.owner,
            begun.holder,
            begun.status,
            created_at,
            begun.body,
            begun.input
        ],
    )?;
    Ok(())
}

/// Notes how far a response is.
pub(crate) fn update(database: &Database, id: &str, status: &str, body: &str) -> DatabaseResult<()> {
    database.execute(
        "UPDATE responses SET status = ?2, body = ?3 WHERE id = ?1",
        params![id, status, body],
    )?;
    Ok(())
}

/// Keeps what came of a response and what it leaves in its conversation, at once: who sees its end
/// can go on from it. One that was deleted meanwhile stays so. `None` where the turn before is not
/// there any more: then nothing is kept, and the whole conversation has to be.
pub(crate) fn end(database: &mut Database, ended: &ResponseEnd) -> DatabaseResult<Option<AddedItems>> {
    let transaction = database.transaction()?;
    transaction.share(TURNS)?;
    let changed = transaction.execute(
        "UPDATE responses SET status = ?3, body = ?4, events = ?5 WHERE id = ?1 AND owner = ?2",
        params![ended.id, ended.owner, ended.status, ended.body, ended.events],
    )?;
    if changed == 0 {
        return Ok(Some(AddedItems::Deleted));
    }
    if let Some(previous) = &ended.previous {
        let sql = "SELECT 1 FROM turns WHERE id = ?1 AND owner = ?2";
        if !transaction.exists(sql, params![previous, ended.owner])? {
            return Ok(None);
        }
    }
    transaction.execute(
        // A connection may have broken after all of this was kept, so that it is tried again.
        "INSERT INTO turns (id, owner, previous, items, container, evidence) VALUES (?1, ?2, ?3, ?4, ?5, \
         ?6) ON CONFLICT DO NOTHING",
        params![
            ended.id,
            ended.owner,
            ended.previous,
            ended.turn,
            ended.container,
            ended.evidence
        ],
    )?;
    results::keep(&transaction, &ended.owner, &ended.id, &ended.results)?;
    for (id, items) in &ended.items {
        transaction.execute(
            "INSERT INTO output_items (owner, id, response, items) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (owner, id) DO UPDATE SET response = excluded.response, items = excluded.items",
            params![ended.owner, id, ended.id, items],
        )?;
    }
    let added = match &ended.left {
        Some(left) => conversations::extend(&transaction, &ended.owner, left)?,
        None => AddedItems::Yes,
    };
    transaction.commit()?;
    Ok(Some(added))
}

/// A response of an owner.
pub(crate) fn find(database: &Database, owner: &str, id: &str) -> DatabaseResult<Option<ResponseRecord>> {
    let sql = "SELECT status, body, input FROM responses WHERE id = ?1 AND owner = ?2";
    database.first(sql, params![id, owner], |row| {
        Ok(ResponseRecord {
            status: row.get(0)?,
            body: row.get(1)?,
            input: row.get(2)?,
        })
    })
}

/// Returns the events that were streamed of an owner's response, if they were kept.
pub(crate) fn events(database: &Database, owner: &str, id: &str) -> DatabaseResult<Option<String>> {
    let sql = "SELECT events FROM responses WHERE id = ?1 AND owner = ?2 AND events IS NOT NULL";
    database.first(sql, params![id, owner], |row| row.get(0))
}

/// The conversation that led to a response of an owner.
pub(crate) fn conversation(
    database: &Database,
    owner: &str,
    id: &str,
) -> DatabaseResult<Option<StoredConversation>> {
    let sql = "SELECT status FROM responses WHERE id = ?1 AND owner = ?2";
    let Some(status) = database.first(sql, params![id, owner], |row| row.get(0))? else {
        return Ok(None);
    };
    let sql = "WITH RECURSIVE chain (id, previous, place) AS (
             SELECT id, previous, 0 FROM turns WHERE id = ?1 AND owner = ?2
             UNION ALL
             SELECT turns.id, turns.previous, place + 1 FROM turns JOIN chain ON turns.id = chain.previous
         )
         SELECT turns.items, turns.container, turns.evidence
         FROM chain JOIN turns USING (id) ORDER BY place DESC";
    let rows = database.query(sql, params![id, owner], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })?;
    let mut turns = Vec::new();
    let mut container = None;
    let mut evidence = None;
    for (items, used, fetched) in rows {
        let (used, fetched): (Option<String>, Option<String>) = (used, fetched);
        turns.push(items);
        container = used.or(container);
        evidence = fetched.or(evidence);
    }
    Ok(Some(StoredConversation {
        status,
        turns,
        container,
        evidence,
    }))
}

/// Returns an item of an owner's responses in the form in which a model knows it.
pub(crate) fn item(database: &Database, owner: &str, id: &str) -> DatabaseResult<Option<String>> {
    let sql = "SELECT output_items.items, turns.items
         FROM output_items LEFT JOIN turns ON turns.id = output_items.response
         WHERE output_items.owner = ?1 AND output_items.id = ?2";
    let found: Option<(String, Option<String>)> =
        database.first(sql, params![owner, id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(found.map(|(items, turn)| at_places(&items, turn.as_deref()).unwrap_or(items)))
}

/// The items of a turn at these places, if they are places: else they are items themselves, as they
/// always were in older records.
fn at_places(places: &str, turn: Option<&str>) -> Option<String> {
    let places: Vec<usize> = serde_json::from_str(places).ok()?;
    let turn: Vec<Value> = serde_json::from_str(turn?).ok()?;
    let items: Option<Vec<&Value>> = places.into_iter().map(|place| turn.get(place)).collect();
    Some(json!(items?).to_string())
}

/// Returns the stored results of tools of the owner's response that an item belongs to.
pub(crate) fn evidence(database: &Database, owner: &str, item: &str) -> DatabaseResult<Option<String>> {
    let sql = "SELECT turns.evidence FROM output_items JOIN turns ON turns.id = output_items.response
         WHERE output_items.owner = ?1 AND output_items.id = ?2 AND turns.evidence IS NOT NULL";
    database.first(sql, params![owner, item], |row| row.get(0))
}

/// Deletes a response of an owner; gives the turns that nothing needs any more, or nothing where
/// there was no such response. What later responses need of it stays.
pub(crate) fn delete(database: &mut Database, owner: &str, id: &str) -> DatabaseResult<Option<Vec<String>>> {
    let transaction = database.transaction()?;
    transaction.lock(TURNS)?;
    let deleted = transaction.execute(
        "DELETE FROM responses WHERE id = ?1 AND owner = ?2",
        params![id, owner],
    )?;
    let unneeded = forget_turns(&transaction, &[id.to_owned()])?;
    transaction.commit()?;
    Ok((deleted > 0).then_some(unneeded))
}

/// Deletes the responses that started before a time, in seconds since 1970, except running ones;
/// returns their ids, and the turns that are no longer needed.
pub(crate) fn sweep(database: &mut Database, before: u64) -> DatabaseResult<(Vec<String>, Vec<String>)> {
    let transaction = database.transaction()?;
    transaction.lock(TURNS)?;
    let before = i64::try_from(before).unwrap_or(i64::MAX);
    let sql = "DELETE FROM responses WHERE created_at < ?1 AND status NOT IN ('queued', 'in_progress') \
               RETURNING id";
    let deleted: Vec<String> = transaction.query(sql, params![before], |row| row.get(0))?;
    let unneeded = if deleted.is_empty() {
        Vec::new()
    } else {
        forget_turns(&transaction, &deleted)?
    };
    transaction.commit()?;
    Ok((deleted, unneeded))
}

/// Forgets turns that neither a response nor a later turn needs; gives them, and the deleted
/// responses that had none. Each round may free those before.
fn forget_turns(database: &Database, deleted: &[String]) -> DatabaseResult<Vec<String>> {
    let sql = "DELETE FROM turns WHERE id NOT IN (SELECT id FROM responses)
         AND id NOT IN (SELECT previous FROM turns WHERE previous IS NOT NULL) RETURNING id";
    let mut unneeded: Vec<String> = Vec::new();
    loop {
        let round: Vec<String> = database.query(sql, &[], |row| row.get(0))?;
        if round.is_empty() {
            break;
        }
        unneeded.extend(round);
    }
    for id in deleted {
        let kept = "SELECT 1 FROM turns WHERE id = ?1";
        if !unneeded.contains(id) && !database.exists(kept, params![id])? {
            unneeded.push(id.clone());
        }
    }
    Ok(unneeded)
}

/// Fails the responses that are not finished and fulfill a condition: nobody writes them any more.
/// Returns how many.
pub(crate) fn fail_unfinished(
    transaction: &DatabaseTransaction<'_>,
    condition: &str,
) -> DatabaseResult<usize> {
    let sql =
        format!("SELECT id, body FROM responses WHERE status IN ('queued', 'in_progress') AND {condition}");
    let broken: Vec<(String, String)> = transaction.query(&sql, &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (id, body) in &broken {
        // What cannot be read is told as an object without fields rather than not at all.
        let mut body: Value = serde_json::from_str(body).unwrap_or_else(|_| json!({"id": id}));
        body["status"] = json!("failed");
        body["error"] = json!({
            "code": "server_error",
            "message": "the gateway ended while this response was being written; send the request again",
        });
        update(transaction, id, "failed", &body.to_string())?;
    }
    Ok(broken.len())
}

/// Writes something and deletes it: fails where nothing can be written, as on a disk that is full.
pub(crate) fn probe(database: &Database) -> DatabaseResult<()> {
    let sql = "INSERT INTO secrets (name, key) VALUES ('probe', ?1) ON CONFLICT (name) DO UPDATE SET key \
               = excluded.key";
    database.execute(sql, params![vec![0; 65536].as_slice()])?;
    database.execute("DELETE FROM secrets WHERE name = 'probe'", &[])?;
    Ok(())
}

/// A key by its name; the first who asks for it brings it along.
pub(crate) fn secret(database: &Database, name: &str, new: &[u8]) -> DatabaseResult<Vec<u8>> {
    database.execute(
        "INSERT INTO secrets (name, key) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        params![name, new],
    )?;
    let found = database.first("SELECT key FROM secrets WHERE name = ?1", params![name], |row| {
        row.get(0)
    })?;
    Ok(found.unwrap_or_default())
}

#[cfg(test)]
mod tests;
