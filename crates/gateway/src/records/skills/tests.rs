//! Tests of records of skills, over each database.

use super::*;
use crate::records::conformance::over_each_database;

fn row(skill: &str, version: i64) -> SkillVersionRow {
    SkillVersionRow {
        id: format!("{skill}-{version}"),
        skill: skill.to_owned(),
        version,
        name: format!("name-{version}"),
        description: "Does it.".to_owned(),
        bytes: 10,
        sha256: "ab".repeat(32),
        created_ms: version,
    }
}

async fn add(records: &Records, owner: &str, row: SkillVersionRow, is_default: bool) -> Option<i64> {
    match records
        .add_skill_version(owner, row, is_default, 4)
        .await
        .unwrap()
    {
        VersionAddition::Added(row) => Some(row.version),
        VersionAddition::Full | VersionAddition::Missing => None,
    }
}

fn given(text: &str) -> VersionChoice {
    VersionChoice::Given(text.to_owned())
}

over_each_database! {
    async fn versions_are_counted_and_the_default_is_chosen(records: Records) {
        assert!(records.add_skill("ann", None, row("s", 1), 5).await.unwrap());
        for (number, is_default) in [(2, false), (3, true), (4, false)] {
            assert_eq!(add(&records, "ann", row("s", 99 + number), is_default).await, Some(number));
        }
        let full = records.add_skill_version("ann", row("s", 200), true, 4).await.unwrap();
        assert_eq!(full, VersionAddition::Full);
        let found = records.skill("ann", "s").await.unwrap().unwrap();
        assert_eq!((found.default_version, found.latest_version), (3, 4));
        assert_eq!((&*found.name, &*found.latest_id), ("name-102", "s-103"));
        for (choice, version) in [
            (VersionChoice::Default, Some(3)),
            (VersionChoice::Latest, Some(4)),
            (given("2"), Some(2)),
            (given("s-1"), Some(1)),
            (given("7"), None),
            (given("other"), None),
        ] {
            let found = records.skill_version("ann", "s", choice.clone()).await.unwrap();
            assert_eq!(found.map(|row| row.version), version, "{choice:?}");
        }
        assert!(records.set_default_version("ann", "s", given("1")).await.unwrap());
        assert!(!records.set_default_version("ann", "s", given("9")).await.unwrap());
        let found = records.skill("ann", "s").await.unwrap().unwrap();
        assert_eq!(found.default_version, 1);
        let all = records.skill_versions("ann", "s", Page::all()).await.unwrap().unwrap();
        let all: Vec<_> = all.rows.iter().map(|row| row.version).collect();
        assert_eq!(all, [1, 2, 3, 4]);
    }

    async fn the_default_is_removed_last_and_numbers_are_not_used_again(records: Records) {
        records.add_skill("ann", None, row("s", 1), 5).await.unwrap();
        assert_eq!(add(&records, "ann", row("s", 2), false).await, Some(2));
        let remove = |version: &'static str, moves| {
            let records = records.clone();
            async move { records.remove_skill_version("ann", "s", given(version), moves).await.unwrap() }
        };
        assert_eq!(remove("1", false).await, VersionRemoval::IsDefault);
        assert_eq!(remove("9", false).await, VersionRemoval::Missing);
        assert!(matches!(remove("2", false).await, VersionRemoval::Removed(_)));
        assert_eq!(add(&records, "ann", row("s", 30), false).await, Some(3));
        assert!(matches!(remove("1", true).await, VersionRemoval::Removed(_)));
        assert_eq!(records.skill("ann", "s").await.unwrap().unwrap().default_version, 3);
        assert!(matches!(remove("3", false).await, VersionRemoval::Removed(_)));
        assert_eq!(records.skill("ann", "s").await.unwrap(), None);
    }

    async fn skills_are_their_owners_alone_and_count_as_stored(records: Records) {
        assert!(records.add_skill("ann", Some("A".to_owned()), row("a", 1), 2).await.unwrap());
        assert!(records.add_skill("ann", None, row("b", 1), 2).await.unwrap());
        assert!(!records.add_skill("ann", None, row("c", 1), 2).await.unwrap());
        assert_eq!(add(&records, "ann", row("b", 2), false).await, Some(2));
        assert_eq!(records.stored_bytes("ann").await.unwrap(), 30);
        assert_eq!(records.skill("bob", "a").await.unwrap(), None);
        assert_eq!(records.skill_version("bob", "a", VersionChoice::Default).await.unwrap(), None);
        let missing = records.add_skill_version("bob", row("a", 5), true, 4).await.unwrap();
        assert_eq!(missing, VersionAddition::Missing);
        assert_eq!(records.remove_skill("bob", "a").await.unwrap(), None);
        assert!(!records.set_default_version("bob", "a", VersionChoice::Latest).await.unwrap());
        assert_eq!(records.skills("bob", Page::all()).await.unwrap().unwrap().rows, []);
        let listed = records.skills("ann", Page::all()).await.unwrap().unwrap();
        let listed: Vec<_> = listed.rows.iter().map(|row| &*row.id).collect();
        assert_eq!(listed, ["a", "b"]);
        let removed = records.remove_skill("ann", "b").await.unwrap().unwrap();
        assert_eq!(removed.len(), 2);
        assert_eq!(records.stored_bytes("ann").await.unwrap(), 10);
        assert_eq!(records.skill_version("ann", "b", VersionChoice::Latest).await.unwrap(), None);
    }
}
