//! Conversations and their items.

use super::database::{Database, DatabaseResult, DatabaseRow, params};
use super::page::{self, ListPage, Page};
use super::{Records, RecordsError};

/// A conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConversationRow {
    pub(crate) id: String,
    pub(crate) owner: String,
    /// Seconds since 1970.
    pub(crate) created_at: i64,
    /// A JSON object of strings.
    pub(crate) metadata: String,
    /// The container that its code ran in last.
    pub(crate) container: Option<String>,
    /// Stored results of tools.
    pub(crate) evidence: Option<String>,
}

/// An item of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ItemRow {
    pub(crate) id: String,
    /// Returns it in the form for clients.
    pub(crate) body: String,
    /// A JSON list of what the model knows it as.
    pub(crate) items: String,
}

impl ItemRow {
    /// Number of bytes that it takes in the records.
    pub(crate) const fn bytes(&self) -> usize {
        self.id.len() + self.body.len() + self.items.len()
    }
}

/// Items that a response leaves in a conversation.
#[derive(Clone, Debug)]
pub(crate) struct ConversationUpdate {
    /// Id of the conversation.
    pub(crate) conversation: String,
    pub(crate) items: Vec<ItemRow>,
    pub(crate) container: Option<String>,
    pub(crate) evidence: Option<String>,
    /// The most items that the conversation may have.
    pub(crate) most: usize,
    /// Seconds since 1970.
    pub(crate) now: u64,
}

impl ConversationUpdate {
    /// Number of bytes that it takes in the records.
    pub(crate) fn bytes(&self) -> usize {
        let items: usize = self.items.iter().map(ItemRow::bytes).sum();
        items + self.evidence.as_ref().map_or(0, String::len)
    }
}

/// Whether items could be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddedItems {
    /// They are there.
    Yes,
    /// Its owner has no such conversation.
    Unknown,
    /// It would have more items than allowed.
    Full,
    /// The response was deleted meanwhile, and leaves nothing.
    Deleted,
}

const COLUMNS: &str = "id, owner, created_at, metadata, container, evidence";
const ITEM_COLUMNS: &str = "id, body, items";

fn conversation(row: &DatabaseRow<'_>) -> DatabaseResult<ConversationRow> {
    Ok(ConversationRow {
        id: row.get("id")?,
        owner: row.get("owner")?,
        created_at: row.get("created_at")?,
        metadata: row.get("metadata")?,
        container: row.get("container")?,
        evidence: row.get("evidence")?,
    })
}

fn item(row: &DatabaseRow<'_>) -> DatabaseResult<ItemRow> {
    Ok(ItemRow {
        id: row.get("id")?,
        body: row.get("body")?,
        items: row.get("items")?,
    })
}

impl Records {
    /// Keeps a new conversation with its first items.
    pub(crate) async fn add_conversation(
        &self,
        row: ConversationRow,
        items: Vec<ItemRow>,
    ) -> Result<(), RecordsError> {
        self.with(move |database| {
            let transaction = database.transaction()?;
            transaction.execute(
                "INSERT INTO conversations (id, owner, created_at, used_at, metadata) VALUES (?1, ?2, ?3, \
                 ?3, ?4)",
                params![row.id, row.owner, row.created_at, row.metadata],
            )?;
            insert(&transaction, &row.owner, &row.id, &items)?;
            transaction.commit()
        })
        .await
    }

    pub(crate) async fn conversation(
        &self,
        owner: &str,
        id: &str,
    ) -> Result<Option<ConversationRow>, RecordsError> {
        let (owner, id) = (owner.to_owned(), id.to_owned());
        self.with(move |database| {
            let sql = format!("SELECT {COLUMNS} FROM conversations WHERE id = ?1 AND owner = ?2");
            database.first(&sql, params![id, owner], conversation)
        })
        .await
    }

    /// Changes a conversation's notes, and says whether there is one.
    pub(crate) async fn annotate_conversation(
        &self,
        owner: &str,
        id: &str,
        metadata: String,
    ) -> Result<bool, RecordsError> {
        let (owner, id) = (owner.to_owned(), id.to_owned());
        self.with(move |database| {
            let sql = "UPDATE conversations SET metadata = ?3 WHERE id = ?1 AND owner = ?2";
            Ok(database.execute(sql, params![id, owner, metadata])? > 0)
        })
        .await
    }

    /// Deletes a conversation with its items, and says whether there was one.
    pub(crate) async fn remove_conversation(&self, owner: &str, id: &str) -> Result<bool, RecordsError> {
        let (owner, id) = (owner.to_owned(), id.to_owned());
        self.with(move |database| {
            let sql = "DELETE FROM conversations WHERE id = ?1 AND owner = ?2";
            Ok(database.execute(sql, params![id, owner])? > 0)
        })
        .await
    }

    /// Adds what a response leaves to a conversation.
    pub(crate) async fn extend_conversation(
        &self,
        owner: &str,
        left: ConversationUpdate,
    ) -> Result<AddedItems, RecordsError> {
        let owner = owner.to_owned();
        self.with(move |database| {
            let transaction = database.transaction()?;
            let added = extend(&transaction, &owner, &left)?;
            transaction.commit()?;
            Ok(added)
        })
        .await
    }

    /// Everything that the model knows of a conversation, item by item.
    pub(crate) async fn conversation_so_far(
        &self,
        owner: &str,
        id: &str,
    ) -> Result<Vec<String>, RecordsError> {
        let (owner, id) = (owner.to_owned(), id.to_owned());
        self.with(move |database| {
            let sql =
                "SELECT items FROM conversation_items WHERE conversation = ?1 AND owner = ?2 ORDER BY number";
            database.query(sql, params![id, owner], |row| row.get(0))
        })
        .await
    }

    /// Items of a conversation; `None` where the page begins after an unknown one.
    pub(crate) async fn conversation_items(
        &self,
        owner: &str,
        id: &str,
        page: Page,
    ) -> Result<Option<ListPage<ItemRow>>, RecordsError> {
        let (owner, id) = (owner.to_owned(), id.to_owned());
        self.with(move |database| {
            let condition = ("conversation = ?4", &params![id][..]);
            let rows = (ITEM_COLUMNS, "conversation_items");
            page::read(database, rows, condition, &owner, &page, item)
        })
        .await
    }

    pub(crate) async fn conversation_item(
        &self,
        owner: &str,
        conversation: &str,
        id: &str,
    ) -> Result<Option<ItemRow>, RecordsError> {
        let (owner, conversation, id) = (owner.to_owned(), conversation.to_owned(), id.to_owned());
        self.with(move |database| {
            let sql = format!(
                "SELECT {ITEM_COLUMNS} FROM conversation_items WHERE owner = ?1 AND conversation = ?2 AND \
                 id = ?3"
            );
            database.first(&sql, params![owner, conversation, id], item)
        })
        .await
    }

    /// Deletes an item, and says whether there was one.
    pub(crate) async fn remove_conversation_item(
        &self,
        owner: &str,
        conversation: &str,
        id: &str,
    ) -> Result<bool, RecordsError> {
        let (owner, conversation, id) = (owner.to_owned(), conversation.to_owned(), id.to_owned());
        self.with(move |database| {
            let sql = "DELETE FROM conversation_items WHERE owner = ?1 AND conversation = ?2 AND id = ?3";
            Ok(database.execute(sql, params![owner, conversation, id])? > 0)
        })
        .await
    }

    /// Deletes the conversations that nobody has used since a time, in seconds since 1970, and says how many.
    pub(crate) async fn sweep_conversations(&self, before: u64) -> Result<u64, RecordsError> {
        let before = i64::try_from(before).unwrap_or(i64::MAX);
        self.with(move |database| {
            database.execute("DELETE FROM conversations WHERE used_at < ?1", params![before])
        })
        .await
    }
}

/// Adds what a response leaves to a conversation within a transaction: all of it, or nothing.
pub(super) fn extend(
    database: &Database,
    owner: &str,
    left: &ConversationUpdate,
) -> DatabaseResult<AddedItems> {
    let id = &left.conversation;
    // The conversation is locked by this, so that nobody adds to it meanwhile.
    let sql = "UPDATE conversations SET used_at = ?3 WHERE id = ?1 AND owner = ?2";
    let now = i64::try_from(left.now).unwrap_or(i64::MAX);
    if database.execute(sql, params![id, owner, now])? == 0 {
        return Ok(AddedItems::Unknown);
    }
    let sql = "SELECT count(*) FROM conversation_items WHERE conversation = ?1";
    let there: Option<i64> = database.first(sql, params![id], |row| row.get(0))?;
    let there = usize::try_from(there.unwrap_or(0)).unwrap_or(usize::MAX);
    if there.saturating_add(left.items.len()) > left.most {
        return Ok(AddedItems::Full);
    }
    database.execute(
        "UPDATE conversations SET container = coalesce(?3, container), evidence = coalesce(?4, evidence)
         WHERE id = ?1 AND owner = ?2",
        params![id, owner, left.container, left.evidence],
    )?;
    insert(database, owner, id, &left.items)?;
    Ok(AddedItems::Yes)
}

fn insert(database: &Database, owner: &str, conversation: &str, items: &[ItemRow]) -> DatabaseResult<()> {
    // What is there already under its id is not added again.
    let sql = "INSERT INTO conversation_items (id, owner, conversation, body, items) VALUES (?1, ?2, ?3, \
               ?4, ?5) ON CONFLICT DO NOTHING";
    for item in items {
        database.execute(sql, params![item.id, owner, conversation, item.body, item.items])?;
    }
    Ok(())
}
