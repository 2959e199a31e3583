//! Gateways that share a database, what each of them has, and what becomes of the responses and
//! volumes of one that has ended.
//!
//! Each gateway has a lease, which it renews. Where one has expired, its responses have failed, its
//! volumes are free, and the row of the gateway is gone: a row means that the gateway lives. A file
//! has one gateway, and no leases.

use std::time::Duration;

use super::database::{Database, DatabaseClock, DatabaseResult, DatabaseRow, params};
use super::{responses, volumes};

/// A gateway that has something in its process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HoldingGateway {
    pub(crate) id: String,
    /// The URL at which other gateways reach it.
    pub(crate) address: Option<String>,
}

/// Begins or renews the lease of a gateway, and fails the responses of gateways that have none any
/// more. Returns how many.
pub(crate) fn renew(
    database: &mut Database,
    holder: &HoldingGateway,
    lease: Duration,
) -> DatabaseResult<usize> {
    match database.clock()? {
        Some(clock) => renew_at(database, holder, lease, clock),
        None => Ok(0),
    }
}

pub(super) fn renew_at(
    database: &mut Database,
    holder: &HoldingGateway,
    lease: Duration,
    clock: DatabaseClock,
) -> DatabaseResult<usize> {
    let transaction = database.transaction()?;
    // Of two gateways, one fails a response.
    transaction.lock("gateways")?;
    let lease = i64::try_from(lease.as_millis()).unwrap_or(i64::MAX);
    let sql = "INSERT INTO gateways (id, expires_ms, address) VALUES (?1, ?2, ?3) \
               ON CONFLICT (id) DO UPDATE SET expires_ms = excluded.expires_ms, address = excluded.address";
    let expires = clock.now_ms.saturating_add(lease);
    transaction.execute(sql, params![holder.id, expires, holder.address])?;
    // While the database was down, nobody could renew.
    let failed = if clock.up_ms > lease {
        let sql = "DELETE FROM gateways WHERE expires_ms < ?1";
        if transaction.execute(sql, params![clock.now_ms])? > 0 {
            for table in ["places", "homes"] {
                let gone = format!(
                    "DELETE FROM {table} WHERE NOT EXISTS \
                     (SELECT 1 FROM gateways WHERE gateways.id = {table}.gateway)"
                );
                transaction.execute(&gone, &[])?;
            }
        }
        let gone = "NOT EXISTS (SELECT 1 FROM gateways WHERE gateways.id = volumes.holder)";
        volumes::lose(&transaction, gone)?;
        let gone = "NOT EXISTS (SELECT 1 FROM gateways WHERE gateways.id = responses.holder)";
        responses::fail_unfinished(&transaction, gone)?
    } else {
        0
    };
    transaction.commit()?;
    Ok(failed)
}

/// Ends the lease of a gateway.
pub(crate) fn release(database: &Database, holder: &str) -> DatabaseResult<()> {
    database.execute("DELETE FROM places WHERE gateway = ?1", params![holder])?;
    leave_homes(database, holder)?;
    database.execute("DELETE FROM gateways WHERE id = ?1", params![holder])?;
    Ok(())
}

/// Gives up the homes in a gateway: the next one that is asked becomes the home.
pub(crate) fn leave_homes(database: &Database, gateway: &str) -> DatabaseResult<()> {
    database.execute("DELETE FROM homes WHERE gateway = ?1", params![gateway])?;
    Ok(())
}

/// Gives up a container, which the next gateway that uses it makes anew from its files.
pub(crate) fn leave_container(database: &Database, gateway: &str, id: &str) -> DatabaseResult<()> {
    let sql = "UPDATE containers SET holder = NULL WHERE id = ?1 AND holder = ?2";
    database.execute(sql, params![id, gateway])?;
    Ok(())
}

/// Does what is needed when a gateway starts: fails the responses that nobody writes any more.
/// Returns how many.
pub(crate) fn start(
    database: &mut Database,
    holder: &HoldingGateway,
    lease: Duration,
) -> DatabaseResult<usize> {
    if database.clock()?.is_some() {
        return renew(database, holder, lease);
    }
    let transaction = database.transaction()?;
    volumes::lose(&transaction, "1 = 1")?;
    let failed = responses::fail_unfinished(&transaction, "1 = 1")?;
    transaction.commit()?;
    Ok(failed)
}

/// Returns the gateway whose id begins with a text.
pub(crate) fn beginning_with(database: &Database, start: &str) -> DatabaseResult<Option<HoldingGateway>> {
    let sql = "SELECT id, address FROM gateways WHERE substr(id, 1, length(?1)) = ?1";
    database.first(sql, params![start], read)
}

/// Returns the gateways that live and can be reached, except one.
pub(crate) fn others(database: &Database, own: &str) -> DatabaseResult<Vec<HoldingGateway>> {
    let sql = "SELECT id, address FROM gateways WHERE id <> ?1 AND address IS NOT NULL ORDER BY id";
    database.query(sql, params![own], read)
}

/// Returns the gateway that used an owner's container last, if it lives and other gateways reach it.
pub(crate) fn of_container(
    database: &Database,
    owner: &str,
    id: &str,
) -> DatabaseResult<Option<HoldingGateway>> {
    let sql = "SELECT gateways.id, gateways.address FROM containers \
               JOIN gateways ON gateways.id = containers.holder \
               WHERE containers.id = ?1 AND containers.owner = ?2 AND gateways.address IS NOT NULL";
    database.first(sql, params![id, owner], read)
}

/// The same of the gateway that wrote an owner's response; with `unfinished`, only of one that
/// still writes it.
pub(crate) fn of_response(
    database: &Database,
    owner: &str,
    id: &str,
    unfinished: bool,
) -> DatabaseResult<Option<HoldingGateway>> {
    let sql = "SELECT gateways.id, gateways.address FROM responses \
               JOIN gateways ON gateways.id = responses.holder \
               WHERE responses.id = ?1 AND responses.owner = ?2 AND gateways.address IS NOT NULL \
               AND (?3 = 0 OR responses.status IN ('queued', 'in_progress'))";
    database.first(sql, params![id, owner, unfinished], read)
}

/// Returns the gateway that has an owner's sessions behind a path. If none that lives has them, it
/// is this one from now on.
pub(crate) fn home(
    database: &Database,
    path: &str,
    owner: &str,
    own: &str,
) -> DatabaseResult<Option<HoldingGateway>> {
    let find = || {
        let sql = "SELECT gateways.id, gateways.address FROM homes \
                   JOIN gateways ON gateways.id = homes.gateway \
                   WHERE homes.path = ?1 AND homes.owner = ?2";
        database.first(sql, params![path, owner], read)
    };
    if let Some(found) = find()? {
        return Ok(Some(found));
    }
    // Of two gateways that do this at once, the second one finds the first.
    let sql = "INSERT INTO homes (path, owner, gateway) VALUES (?1, ?2, ?3) \
               ON CONFLICT (path, owner) DO UPDATE SET gateway = excluded.gateway \
               WHERE NOT EXISTS (SELECT 1 FROM gateways WHERE gateways.id = homes.gateway)";
    database.execute(sql, params![path, owner, own])?;
    find()
}

fn read(row: &DatabaseRow<'_>) -> DatabaseResult<HoldingGateway> {
    Ok(HoldingGateway {
        id: row.get(0)?,
        address: row.get(1)?,
    })
}

#[cfg(test)]
mod tests {
    use cellblock_testkit::require;

    use super::*;
    use crate::options::LEASE;
    use crate::records::Records;
    use crate::records::conformance::PostgresDatabase;
    use crate::records::responses::ResponseStart;

    fn gateway(id: &str) -> HoldingGateway {
        HoldingGateway {
            id: id.to_owned(),
            address: Some(format!("http://{id}:8080")),
        }
    }

    async fn begin(records: &Records, id: &'static str, holder: &'static str) {
        let begun = ResponseStart {
            id: id.to_owned(),
            owner: "ann".to_owned(),
            holder: holder.to_owned(),
            status: "in_progress",
            created_at: 1000,
            body: "{}".to_owned(),
            input: "[]".to_owned(),
        };
        let kept = records.with(move |database| responses::begin(database, &begun));
        kept.await.unwrap();
    }

    async fn status(records: &Records, id: &'static str) -> String {
        let find = records.with(|database| responses::find(database, "ann", id));
        find.await.unwrap().unwrap().status
    }

    /// Renews a lease of a database that has been up for so long.
    async fn renewed(records: &Records, holder: &'static str, up_ms: i64) -> usize {
        let renewed = records.with(move |database| {
            let clock = database.clock()?.unwrap();
            renew_at(
                database,
                &gateway(holder),
                LEASE,
                DatabaseClock { up_ms, ..clock },
            )
        });
        renewed.await.unwrap()
    }

    #[tokio::test]
    async fn unfinished_responses_of_a_file_fail_when_its_gateway_starts() {
        let records = Records::in_memory().unwrap();
        begin(&records, "r1", "gone").await;
        let started = records.with(|database| start(database, &gateway("one"), LEASE));
        assert_eq!(started.await.unwrap(), 1);
        assert_eq!(status(&records, "r1").await, "failed");
    }

    #[tokio::test]
    async fn the_first_gateway_that_is_asked_is_an_owners_home_until_it_ends() {
        require!(Postgres);
        let database = PostgresDatabase::create().await;
        let records = database.records().await;
        for holder in ["one", "two"] {
            let started = records.with(move |database| start(database, &gateway(holder), LEASE));
            started.await.unwrap();
        }
        let at = async |path: &'static str, owner: &'static str, own: &'static str| {
            let found = records.with(move |database| home(database, path, owner, own));
            found.await.unwrap().unwrap().id
        };
        assert_eq!(at("/mcp", "ann", "one").await, "one");
        assert_eq!(at("/mcp", "ann", "two").await, "one");
        assert_eq!(at("/e2b", "ann", "two").await, "two");
        assert_eq!(at("/mcp", "eve", "two").await, "two");
        let expire = "UPDATE gateways SET expires_ms = 0 WHERE id = 'one'";
        records.with(|database| database.batch(expire)).await.unwrap();
        renewed(&records, "two", i64::MAX).await;
        assert_eq!(at("/mcp", "ann", "two").await, "two");
        // A gateway that stops in order leaves nothing behind.
        records.with(|database| release(database, "two")).await.unwrap();
        let left = records.with(|database| database.exists("SELECT 1 FROM homes", &[]));
        assert!(!left.await.unwrap());
    }

    #[tokio::test]
    async fn a_gateway_leaves_the_responses_of_others_alone_until_their_lease_expires() {
        require!(Postgres);
        let database = PostgresDatabase::create().await;
        let records = database.records().await;
        for holder in ["one", "two"] {
            assert_eq!(
                records
                    .with(move |database| start(database, &gateway(holder), LEASE))
                    .await
                    .unwrap(),
                0
            );
        }
        begin(&records, "r1", "one").await;
        begin(&records, "r2", "two").await;
        let found = records.with(|database| {
            let writes = of_response(database, "ann", "r1", true)?;
            let of_another_owner = of_response(database, "eve", "r1", true)?;
            Ok([writes, of_another_owner, beginning_with(database, "on")?])
        });
        assert_eq!(
            found.await.unwrap(),
            [Some(gateway("one")), None, Some(gateway("one"))]
        );
        assert_eq!(renewed(&records, "three", i64::MAX).await, 0);
        let expire = "UPDATE gateways SET expires_ms = 0 WHERE id = 'one'";
        records.with(|database| database.batch(expire)).await.unwrap();
        // The server has just started, so that the other one could not renew its lease.
        assert_eq!(renewed(&records, "two", 29_000).await, 0);
        assert_eq!(renewed(&records, "two", 31_000).await, 1);
        assert_eq!(status(&records, "r1").await, "failed");
        assert_eq!(status(&records, "r2").await, "in_progress");
        let found = records.with(|database| of_response(database, "ann", "r1", false));
        assert_eq!(found.await.unwrap(), None);
        // A gateway that stops in order says so.
        records.with(|database| release(database, "two")).await.unwrap();
        assert_eq!(renewed(&records, "three", i64::MAX).await, 1);
        assert_eq!(status(&records, "r2").await, "failed");
    }
}
