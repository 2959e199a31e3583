//! Sandboxes of an owner in each of the gateways that share a database.
//!
//! Each gateway enters its whole number, read while it holds the owner: a number that could not be written is made up for by the next one.

use super::database::{Database, DatabaseResult, DatabaseTransaction, params};

/// An owner in a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnerPlace {
    pub(crate) owner: String,
    pub(crate) gateway: String,
}

/// Enters one more sandbox than the `own` ones that an owner has here, if it then has at most so many in all gateways that live. The new
/// one is counted by `admit` while the owner is held, so that the next request finds it.
pub(crate) fn enter(
    database: &mut Database,
    place: &OwnerPlace,
    most: u64,
    own: impl FnOnce() -> u64,
    admit: impl FnOnce(),
) -> DatabaseResult<()> {
    let transaction = database.transaction()?;
    transaction.lock(&format!("places {}", place.owner))?;
    let own = own().saturating_add(1);
    let sql = "SELECT CAST(COALESCE(SUM(places.taken), 0) AS BIGINT) FROM places JOIN gateways ON gateways.id = places.gateway \
               WHERE places.owner = ?1 AND places.gateway <> ?2";
    let others = transaction.first(sql, params![place.owner, place.gateway], |row| row.get::<i64>(0))?;
    let others = others.and_then(|sum| u64::try_from(sum).ok()).unwrap_or(0);
    if others.saturating_add(own) > most {
        return Ok(());
    }
    write(&transaction, place, own)?;
    admit();
    transaction.commit()
}

/// Enters how many an owner still has here.
pub(crate) fn leave(
    database: &mut Database,
    place: &OwnerPlace,
    own: impl FnOnce() -> u64,
) -> DatabaseResult<()> {
    let transaction = database.transaction()?;
    transaction.lock(&format!("places {}", place.owner))?;
    write(&transaction, place, own())?;
    transaction.commit()
}

fn write(transaction: &DatabaseTransaction<'_>, place: &OwnerPlace, own: u64) -> DatabaseResult<()> {
    let own = i64::try_from(own).unwrap_or(i64::MAX);
    if own == 0 {
        let sql = "DELETE FROM places WHERE owner = ?1 AND gateway = ?2";
        return transaction
            .execute(sql, params![place.owner, place.gateway])
            .map(drop);
    }
    let sql = "INSERT INTO places (owner, gateway, taken) VALUES (?1, ?2, ?3) \
               ON CONFLICT (owner, gateway) DO UPDATE SET taken = excluded.taken";
    transaction
        .execute(sql, params![place.owner, place.gateway, own])
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Records;
    use crate::records::conformance::over_each_database;

    async fn entered(records: &Records, gateway: &'static str, most: u64, own: u64) -> bool {
        let entered = records.with(move |database| {
            let mut admitted = false;
            enter(database, &ann(gateway), most, || own - 1, || admitted = true)?;
            Ok(admitted)
        });
        entered.await.unwrap()
    }

    fn ann(gateway: &str) -> OwnerPlace {
        OwnerPlace {
            owner: "ann".to_owned(),
            gateway: gateway.to_owned(),
        }
    }

    over_each_database! {
        async fn gateways_that_live_share_the_sandboxes_of_an_owner(records: Records) {
            let sql = "INSERT INTO gateways (id, expires_ms) VALUES ('one', 0), ('two', 0)";
            records.with(move |database| database.batch(sql)).await.unwrap();
            assert!(entered(&records, "one", 3, 2).await);
            assert!(entered(&records, "two", 3, 1).await);
            assert!(!entered(&records, "two", 3, 2).await);
            assert!(!entered(&records, "one", 3, 3).await);
            let left = records.with(|database| leave(database, &ann("one"), || 1));
            left.await.unwrap();
            assert!(entered(&records, "two", 3, 2).await);
            // What a gateway that has ended had counts no more.
            let sql = "DELETE FROM gateways WHERE id = 'two'";
            records.with(move |database| database.batch(sql)).await.unwrap();
            assert!(entered(&records, "one", 3, 3).await);
        }
    }
}
