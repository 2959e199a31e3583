//! Packages that a cell asks for: installed beside the image, or refused with what to do.

use cellblock_interpreter::error::Blame;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::{Cell, Session};

use crate::support::{block_on, goes_on, interpreter, run, scalar, session, value};

async fn refusal(session: &Session, requirement: &str) -> String {
    let cell = Cell::new("1").with_requirements([requirement]);
    let error = session.execute(cell).await.unwrap_err();
    assert_eq!(error.blame(), Blame::Caller, "{error}");
    error.to_string()
}

#[test]
fn a_required_package_can_be_imported_also_by_later_cells_and_kernels() {
    needs!(Requirements);
    block_on(async {
        let session = session().await;
        run(&session, "kept = 1").await;
        let cell = Cell::new("import humanize\nhumanize.intcomma(1000)");
        let shown = session
            .execute(cell.with_requirements(["humanize"]))
            .await
            .unwrap();
        assert_eq!(scalar(&shown), "1,000");
        assert!(goes_on(&session, "kept").await);
        run(&session, "import os\nos._exit(1)").await;
        assert_eq!(
            value(&session, "import humanize\nhumanize.intcomma(2000)").await,
            "2,000"
        );
        let other = crate::support::session().await;
        assert_eq!(run(&other, "import humanize").await.outcome.name(), "raised");
    });
}

#[test]
fn an_unknown_package_is_named_and_the_next_cell_works() {
    block_on(async {
        let session = session().await;
        run(&session, "kept = 1").await;
        let message = refusal(&session, "cellblock-has-no-such-package").await;
        assert!(message.contains("cellblock-has-no-such-package"), "{message}");
        assert!(goes_on(&session, "kept").await);
    });
}

#[test]
fn requirements_that_exclude_each_other_are_rejected_and_the_next_cell_works() {
    block_on(async {
        let session = session().await;
        run(&session, "kept = 1").await;
        let cell = Cell::new("1").with_requirements(["tabulate<0.9", "tabulate>=0.9"]);
        let error = session.execute(cell).await.unwrap_err();
        assert_eq!(error.blame(), Blame::Caller, "{error}");
        assert!(error.to_string().contains("tabulate"), "{error}");
        assert!(goes_on(&session, "kept").await);
    });
}

#[test]
fn a_requirement_that_could_lead_elsewhere_is_rejected_before_anything_is_fetched() {
    block_on(async {
        let session = session().await;
        for requirement in [
            "-r other.txt",
            "six @ https://example.org/six.whl",
            "../local",
            "six --hash=x",
        ] {
            let message = refusal(&session, requirement).await;
            assert!(message.contains(requirement), "{message}");
        }
        assert_eq!(value(&session, "6 * 7").await, 42);
    });
}

#[test]
fn a_session_has_the_packages_of_its_options_also_in_later_kernels() {
    needs!(Requirements);
    block_on(async {
        let session = interpreter().await.session(SessionOptions {
            requirements: vec!["humanize".to_owned()],
            ..SessionOptions::default()
        });
        let code = "import humanize\nhumanize.intcomma(1000)";
        assert_eq!(value(&session, code).await, "1,000");
        run(&session, "import os\nos._exit(1)").await;
        assert_eq!(value(&session, code).await, "1,000");
    });
}
