//! Sandboxes that an owner has, and cells that it runs, in each of the gateways that share a database.
//!
//! Each gateway enters its whole number, read while it holds the owner: a number that could not be
//! written is made up for by the next one.

use super::Quota;
use super::database::{Database, DatabaseResult, DatabaseTransaction, params};

/// Kinds of places that an owner has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlaceKind {
    /// Sessions and containers.
    Sandboxes,
    /// Cells and commands that run.
    Cells,
}

/// An owner in a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnerPlace {
    pub(crate) owner: String,
    pub(crate) gateway: String,
}

impl PlaceKind {
    /// The quota that limits it.
    pub(crate) const fn quota(self) -> Quota {
        match self {
            Self::Sandboxes => Quota::Sandboxes,
            Self::Cells => Quota::ConcurrentCells,
        }
    }

    /// The column that counts it, and that of the other kind.
    const fn columns(self) -> (&'static str, &'static str) {
        match self {
            Self::Sandboxes => ("taken", "cells"),
            Self::Cells => ("cells", "taken"),
        }
    }
}

/// Enters one more than the `own` ones that an owner has here, if it then has at most so many in
/// all gateways that live. The new one is counted by `admit` while the owner is held, so that the
/// next request finds it.
pub(crate) fn enter(
    database: &mut Database,
    place: &OwnerPlace,
    kind: PlaceKind,
    most: u64,
    own: impl FnOnce() -> u64,
    admit: impl FnOnce(),
) -> DatabaseResult<()> {
    let transaction = database.transaction()?;
    transaction.lock(&format!("places {}", place.owner))?;
    let own = own().saturating_add(1);
    let (column, _) = kind.columns();
    let sql = format!(
        "SELECT CAST(COALESCE(SUM(places.{column}), 0) AS BIGINT) FROM places JOIN gateways ON \
         gateways.id = places.gateway WHERE places.owner = ?1 AND places.gateway <> ?2"
    );
    let others = transaction.first(&sql, params![place.owner, place.gateway], |row| row.get::<i64>(0))?;
    let others = others.and_then(|sum| u64::try_from(sum).ok()).unwrap_or(0);
    if others.saturating_add(own) > most {
        return Ok(());
    }
    write(&transaction, place, kind, own)?;
    admit();
    transaction.commit()
}

/// Enters how many an owner still has here.
pub(crate) fn leave(
    database: &mut Database,
    place: &OwnerPlace,
    kind: PlaceKind,
    own: impl FnOnce() -> u64,
) -> DatabaseResult<()> {
    let transaction = database.transaction()?;
    transaction.lock(&format!("places {}", place.owner))?;
    write(&transaction, place, kind, own())?;
    transaction.commit()
}

fn write(
    transaction: &DatabaseTransaction<'_>,
    place: &OwnerPlace,
    kind: PlaceKind,
    own: u64,
) -> DatabaseResult<()> {
    let own = i64::try_from(own).unwrap_or(i64::MAX);
    let (column, other) = kind.columns();
    let sql = format!(
        "INSERT INTO places (owner, gateway, {column}, {other}) VALUES (?1, ?2, ?3, 0) \
         ON CONFLICT (owner, gateway) DO UPDATE SET {column} = excluded.{column}"
    );
    transaction.execute(&sql, params![place.owner, place.gateway, own])?;
    if own == 0 {
        let sql = "DELETE FROM places WHERE owner = ?1 AND gateway = ?2 AND taken = 0 AND cells = 0";
        transaction.execute(sql, params![place.owner, place.gateway])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Records;
    use crate::records::conformance::over_each_database;

    async fn entered(records: &Records, gateway: &'static str, most: u64, own: u64) -> bool {
        entered_as(records, PlaceKind::Sandboxes, gateway, most, own).await
    }

    async fn entered_as(
        records: &Records,
        kind: PlaceKind,
        gateway: &'static str,
        most: u64,
        own: u64,
    ) -> bool {
        let entered = records.with(move |database| {
            let mut admitted = false;
            enter(
                database,
                &ann(gateway),
                kind,
                most,
                || own - 1,
                || admitted = true,
            )?;
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
            let sandboxes = PlaceKind::Sandboxes;
            let left = records.with(move |database| leave(database, &ann("one"), sandboxes, || 1));
            left.await.unwrap();
            assert!(entered(&records, "two", 3, 2).await);
            // What a gateway that has ended had counts no more.
            let sql = "DELETE FROM gateways WHERE id = 'two'";
            records.with(move |database| database.batch(sql)).await.unwrap();
            assert!(entered(&records, "one", 3, 3).await);
        }

        async fn cells_are_counted_apart_from_sandboxes(records: Records) {
            let sql = "INSERT INTO gateways (id, expires_ms) VALUES ('one', 0), ('two', 0)";
            records.with(move |database| database.batch(sql)).await.unwrap();
            let cells = PlaceKind::Cells;
            assert!(entered(&records, "one", 1, 1).await);
            assert!(entered_as(&records, cells, "two", 1, 1).await);
            assert!(!entered_as(&records, cells, "one", 1, 1).await);
            let left = records.with(move |database| leave(database, &ann("two"), cells, || 0));
            left.await.unwrap();
            assert!(entered_as(&records, cells, "one", 1, 1).await);
            assert!(!entered(&records, "two", 1, 1).await);
            for kind in [cells, PlaceKind::Sandboxes] {
                let left = records.with(move |database| leave(database, &ann("one"), kind, || 0));
                left.await.unwrap();
            }
            let any = records.with(|database| database.exists("SELECT 1 FROM places", &[]));
            assert!(!any.await.unwrap());
        }
    }
}
