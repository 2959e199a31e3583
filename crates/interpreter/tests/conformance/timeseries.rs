//! The time-series helpers, in the image they run in: properties that hypothesis tries to break.

use std::time::Duration;

use cellblock_interpreter::Cell;
use cellblock_interpreter::execution::Outcome;
use cellblock_testkit::workspace_root;

use crate::support::{block_on, run, scalar, session};

/// One release, so that the examples are the same in every run.
const HYPOTHESIS: &str = "hypothesis==6.170.15";
const LIMIT: Duration = Duration::from_mins(2);

#[test]
fn the_time_series_helpers_keep_their_promises() {
    block_on(async {
        let session = session().await;
        let path = workspace_root().join("tests/timeseries/properties.py");
        let file = std::fs::read_to_string(path).unwrap();
        let declared = file.matches("\n@given(").count();
        let cell = Cell::new(format!("{file}\n','.join(one.__name__ for one in PROPERTIES)"))
            .from_file("properties.py", 1)
            .with_requirements([HYPOTHESIS])
            .with_timeout(LIMIT);
        let named = scalar(&session.execute(cell).await.unwrap());
        let properties: Vec<&str> = named.as_str().unwrap().split(',').collect();
        assert_eq!(properties.len(), declared, "{properties:?}");
        for property in properties {
            let cell = Cell::new(format!("{property}()")).with_timeout(LIMIT);
            let tried = session.execute(cell).await.unwrap();
            assert_eq!(tried.outcome, Outcome::Completed, "{property}: {tried:#?}");
        }
    });
}

#[test]
fn findings_of_helpers_are_part_of_the_execution() {
    block_on(async {
        let session = session().await;
        let noticed = run(
            &session,
            "from cellblock_kernel.timeseries import derive_change_series\n\
             rows = [{'date': '2024-01-01', 'a': 10, 'b': None}, \
             {'date': '2024-01-02', 'a': 12, 'b': 35_000}]\n\
             flows = derive_change_series(rows)\n\
             str(flows.loc['2024-01-02', ['total_change', 'stable_entities_change', \
             'coverage_change']].values.tolist())",
        )
        .await;
        assert_eq!(scalar(&noticed), "[35002.0, 2.0, 35000.0]");
        let [finding] = &noticed.findings[..] else {
            panic!("{:#?}", noticed.findings);
        };
        assert_eq!(finding.code, "coverage_events");
        assert_eq!(finding.details["entered"], 1);
        assert_eq!(finding.details["events"][0]["entity"], "b");
        assert_eq!(run(&session, "1").await.findings, []);
    });
}
