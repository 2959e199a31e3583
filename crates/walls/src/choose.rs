//! Choice of the backend: never one that is weaker than the minimum.

use cellblock_sandbox::backend::{BackendChoice, BackendKind};
use cellblock_sandbox::jail::error::chain;
use cellblock_sandbox::{Error, Result};

use crate::{WallOptions, probe};

/// Returns the backend of a choice, or the error that says why none is strong enough. Without a
/// choice, it is the process backend, or the strongest one that works if there is a minimum.
pub async fn choose(
    choice: Option<BackendChoice>,
    minimum: Option<BackendKind>,
    options: &WallOptions,
) -> Result<BackendKind> {
    let choice = match (choice, minimum) {
        (Some(choice), _) => choice,
        (None, Some(_)) => BackendChoice::Auto,
        (None, None) => BackendChoice::Only(BackendKind::Process),
    };
    let minimum = minimum.unwrap_or_default();
    if choice == BackendChoice::Kubernetes {
        return Err(Error::request(
            "the backend `kubernetes` is only for `cellblock serve`, with `backend: kubernetes` \
             in its configuration",
        ));
    }
    if let BackendChoice::Only(kind) = choice {
        return if kind >= minimum {
            Ok(kind)
        } else {
            Err(Error::missing_protection(format!(
                "backend `{kind}` is weaker than the minimum `{minimum}`; choose `{minimum}` or a \
                 stronger one"
            )))
        };
    }
    let mut missing = Vec::new();
    for kind in BackendKind::ALL.into_iter().rev().filter(|kind| *kind >= minimum) {
        match Box::pin(probe(kind, options)).await {
            Ok(_) => return Ok(kind),
            Err(error) => missing.push(format!("`{kind}`: {}", chain(&error))),
        }
    }
    Err(Error::missing_protection(format!(
        "no backend as strong as `{minimum}` works on this machine: {}",
        missing.join("; ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_backend_below_the_minimum_is_never_used() {
        let options = WallOptions::default();
        let chosen = |kind, minimum| choose(Some(BackendChoice::Only(kind)), Some(minimum), &options);
        let refused = chosen(BackendKind::Process, BackendKind::Gvisor).await;
        assert_eq!(
            refused.unwrap_err().to_string(),
            "backend `process` is weaker than the minimum `gvisor`; choose `gvisor` or a stronger one"
        );
        for kind in BackendKind::ALL {
            assert_eq!(chosen(kind, BackendKind::Process).await.unwrap(), kind);
        }
    }

    #[tokio::test]
    async fn the_error_names_what_each_backend_is_missing() {
        let options = WallOptions {
            gvisor: crate::gvisor::GvisorOptions {
                runsc: Some("/nowhere/runsc".into()),
            },
            microvm: crate::microvm::MicrovmOptions {
                qemu: Some("/nowhere/qemu".into()),
                ..Default::default()
            },
            restore_timeout: None,
            suspended_bytes: None,
        };
        let error = choose(None, Some(BackendKind::Gvisor), &options).await;
        let error = error.unwrap_err().to_string();
        assert!(
            error.starts_with("no backend as strong as `gvisor` works"),
            "{error}"
        );
        assert!(
            error.contains("`microvm`: ") && error.contains("`gvisor`: "),
            "{error}"
        );
        let weakest = choose(Some(BackendChoice::Auto), None, &options).await;
        assert_eq!(weakest.unwrap(), BackendKind::Process);
    }
}
