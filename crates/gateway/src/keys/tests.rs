//! Keys as they are made, found and revoked.

use super::*;
use crate::quotas::Quota;
use crate::records::conformance::over_each_database;

#[test]
fn a_secret_in_the_form_of_e2b_is_read_back_and_in_no_other_form() {
    let secret = Secret::random(SecretForm::E2b);
    let text = secret.reveal();
    assert_eq!(Secret::parse(&text), Some(secret));
    assert_eq!(text.len(), "e2b_".len() + 40);
    let digits = &text[4..];
    assert!(digits.chars().all(|digit| "0123456789abcdef".contains(digit)));
    for other in [
        digits.to_owned(),
        format!("e2b_{}g", &digits[1..]),
        format!("cbk_{digits}"),
        text + "00",
    ] {
        assert_eq!(Secret::parse(&other), None, "{other}");
    }
    assert_eq!(
        Secret::parse("e2b_ABCDEF0123456789ABCDEF0123456789ABCDEF01"),
        None
    );
}

#[test]
fn a_secret_is_read_back_and_never_shown_by_accident() {
    let secret = Secret::random(SecretForm::default());
    let text = secret.reveal();
    assert_eq!(Secret::parse(&text), Some(secret.clone()));
    assert_eq!(text.len(), "cbk_".len() + 43);
    assert_eq!(format!("{secret:?}"), "Secret(…)");
    for other in ["", "sk-123", &text[4..], &text[..46], &format!("{text}A")] {
        assert_eq!(Secret::parse(other), None, "{other}");
    }
}

over_each_database! {
    async fn a_key_is_found_by_its_secret_and_by_no_other(records: Records) {
        let keys = Keys::new(records);
        assert_eq!(keys.find(Some(Secret::random(SecretForm::default()))).await.unwrap(), KeyLookup::Open);
        let (key, secret) = keys.create("ci", KeyTerms::default()).await.unwrap();
        assert_eq!(
            keys.find(Some(secret)).await.unwrap(),
            KeyLookup::Key(key.id, None)
        );
        assert_eq!(
            keys.find(Some(Secret::random(SecretForm::default()))).await.unwrap(),
            KeyLookup::Unknown
        );
        assert_eq!(keys.find(None).await.unwrap(), KeyLookup::Unknown);
    }
}

#[tokio::test]
async fn only_the_hash_of_a_secret_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("records.sqlite");
    let keys = Keys::new(Records::open(&path).unwrap());
    let (_, secret) = keys.create("ci", KeyTerms::default()).await.unwrap();
    let text = secret.reveal();
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let holds = |needle: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
        assert!(!holds(text.as_bytes()));
        assert!(!holds(&text.as_bytes()[4..]));
    }
}

over_each_database! {
    async fn a_revoked_key_is_rejected_and_opens_nothing(records: Records) {
        let keys = Keys::new(records);
        let (key, secret) = keys.create("ci", KeyTerms::default()).await.unwrap();
        let revoked = keys.revoke("ci").await.unwrap();
        assert_eq!(revoked.id, key.id);
        assert!(revoked.revoked_at.is_some());
        assert_eq!(keys.find(Some(secret)).await.unwrap(), KeyLookup::Revoked);
        // Without any usable key, a key is still required.
        assert_eq!(keys.find(None).await.unwrap(), KeyLookup::Unknown);
        assert!(!keys.any_usable().await.unwrap());
        assert!(matches!(keys.revoke("ci").await, Err(KeysError::Missing { .. })));
        // The name is free again; the id is not a name.
        let (again, _) = keys.create("ci", KeyTerms::default()).await.unwrap();
        assert_eq!(keys.revoke(&again.id).await.unwrap().id, again.id);
        assert_eq!(keys.list().await.unwrap().len(), 2);
    }

    async fn a_key_expires(records: Records) {
        let keys = Keys::new(records);
        let (key, secret) = keys
            .create(
                "old",
                KeyTerms {
                    expires_at: Some(crate::now()),
                    ..KeyTerms::default()
                },
            )
            .await
            .unwrap();
        assert_eq!(keys.find(Some(secret)).await.unwrap(), KeyLookup::Expired);
        assert!(!key.is_usable(crate::now()));
        let later = crate::now() + 3600;
        let (_, secret) = keys
            .create(
                "new",
                KeyTerms {
                    expires_at: Some(later),
                    ..KeyTerms::default()
                },
            )
            .await
            .unwrap();
        assert!(matches!(
            keys.find(Some(secret)).await.unwrap(),
            KeyLookup::Key(..)
        ));
    }

    async fn a_name_is_taken_once_and_has_to_be_one(records: Records) {
        let keys = Keys::new(records);
        keys.create("ci", KeyTerms::default()).await.unwrap();
        let again = keys.create("ci", KeyTerms::default()).await;
        assert_eq!(
            again.unwrap_err().to_string(),
            "make a key: there is a key `ci` already; revoke it, or choose another name"
        );
        for name in ["", "a\nb", &"x".repeat(101)] {
            let refused = keys.create(name, KeyTerms::default()).await;
            assert!(matches!(refused, Err(KeysError::Name)), "{name}");
        }
    }

    async fn quotas_of_a_key_are_kept_with_it(records: Records) {
        let keys = Keys::new(records);
        let allowance = Allowance::default()
            .with(Quota::CellsPerMinute, Some(5))
            .with(Quota::Sandboxes, None);
        keys.create(
            "ci",
            KeyTerms {
                allowance: allowance.clone(),
                ..KeyTerms::default()
            },
        )
        .await
        .unwrap();
        assert_eq!(keys.list().await.unwrap()[0].allowance, allowance);
    }

    async fn a_key_keeps_its_minimum_backend(records: Records) {
        let keys = Keys::new(records);
        let terms = KeyTerms {
            minimum_backend: Some(BackendKind::Gvisor),
            ..KeyTerms::default()
        };
        let (key, secret) = keys.create("strict", terms).await.unwrap();
        assert_eq!(
            keys.list().await.unwrap()[0].minimum_backend,
            Some(BackendKind::Gvisor)
        );
        assert_eq!(
            keys.find(Some(secret)).await.unwrap(),
            KeyLookup::Key(key.id, Some(BackendKind::Gvisor))
        );
    }

    async fn a_key_is_of_an_administrator_only_if_it_was_made_so(records: Records) {
        let keys = Keys::new(records);
        let admin = KeyTerms { admin: true, ..KeyTerms::default() };
        let (first, _) = keys.create_first("first", admin.clone()).await.unwrap();
        let (usual, _) = keys.create("usual", KeyTerms::default()).await.unwrap();
        let of = |id: String| {
            let keys = keys.clone();
            async move { keys.usable(&id).await.unwrap().unwrap().admin }
        };
        assert!(of(first.id.clone()).await);
        assert!(!of(usual.id).await);
        keys.revoke(&first.id).await.unwrap();
        // A key that was revoked is still the first.
        let again = keys.create_first("second", admin).await;
        assert!(matches!(again, Err(KeysError::NotFirst)));
    }

    async fn a_key_keeps_its_widest_network(records: Records) {
        let keys = Keys::new(records);
        let terms = KeyTerms {
            max_network: Some(NetworkPolicy::None),
            ..KeyTerms::default()
        };
        let (narrow, _) = keys.create("narrow", terms).await.unwrap();
        let (usual, _) = keys.create("usual", KeyTerms::default()).await.unwrap();
        let most = |id: String| {
            let keys = keys.clone();
            async move { keys.max_network(&id).await.unwrap() }
        };
        assert_eq!(most(narrow.id).await, Some(NetworkPolicy::None));
        assert_eq!(most(usual.id).await, None);
        assert_eq!(most("local".to_owned()).await, None);
        assert_eq!(
            keys.list().await.unwrap()[0].max_network,
            Some(NetworkPolicy::None)
        );
    }
}
