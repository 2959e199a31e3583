//! Limits that a request asks for: at most those of the gateway.

use std::time::Duration;

use cellblock_interpreter::json_error;
use cellblock_interpreter::limits::Limits;
use serde_json::{Map, Value};

use crate::problem::Problem;

/// Replaces the gateway's limits with requested ones. Each must be lower, except the time of a
/// cell, which may be up to the maximum that the gateway permits.
pub(super) fn lowered(
    most: &Limits,
    longest: Duration,
    asked: &Map<String, Value>,
) -> Result<Limits, Problem> {
    let field = |name: &str| format!("limits.{name}");
    let usual = Limits {
        cell_timeout: most.cell_timeout.min(longest),
        ..most.clone()
    };
    let Ok(Value::Object(mut limits)) = serde_json::to_value(usual) else {
        return Err(Problem::invalid("limits", "limits cannot be changed here"));
    };
    for (name, value) in asked {
        let Some(limit) = limits.get(name) else {
            let known: Vec<_> = limits.keys().map(String::as_str).collect();
            return Err(Problem::invalid(
                &field(name),
                format!("there is no such limit; there are {}", known.join(", ")),
            ));
        };
        let wanted = value.as_f64().filter(|wanted| *wanted > 0.0);
        let Some(wanted) = wanted else {
            return Err(Problem::invalid(&field(name), "give a number above 0"));
        };
        let most = match name.as_str() {
            "cell_time" => Some(longest.as_secs_f64()),
            _ => limit.as_f64(),
        };
        if let Some(most) = most.filter(|most| wanted > *most) {
            return Err(Problem::invalid(
                &field(name),
                format!("it is {value}, and this gateway allows {most} at most"),
            ));
        }
        limits.insert(name.clone(), value.clone());
    }
    let limits: Limits = serde_json::from_value(Value::Object(limits))
        .map_err(|error| Problem::invalid("limits", json_error::describe(&error)))?;
    match limits.below_minimum() {
        Some((name, reason)) => Err(Problem::invalid(&field(name), reason)),
        None => Ok(limits),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ask(asked: &Value) -> Result<Limits, Problem> {
        within(300, asked)
    }

    fn within(longest: u64, asked: &Value) -> Result<Limits, Problem> {
        lowered(
            &Limits::default(),
            Duration::from_secs(longest),
            asked.as_object().unwrap(),
        )
    }

    #[test]
    fn a_cell_has_no_more_time_than_the_gateway_lets_code_run() {
        let limits = within(600, &json!({"cell_time": 600})).unwrap();
        assert_eq!(limits.cell_timeout, Duration::from_mins(10));
        for (longest, asked) in [(600, 601), (20, 21)] {
            let problem = within(longest, &json!({"cell_time": asked})).unwrap_err();
            let said = format!("it is {asked}, and this gateway allows {longest} at most");
            assert_eq!(problem.error().message, said);
        }
        // Nor one that does not say how much it needs.
        assert_eq!(
            within(20, &json!({})).unwrap().cell_timeout,
            Duration::from_secs(20)
        );
        assert_eq!(within(600, &json!({})).unwrap(), Limits::default());
    }

    #[test]
    fn requested_limits_replace_the_defaults() {
        let limits = ask(&json!({"memory_bytes": 64 << 20, "cell_time": 2.5, "cpu_millis": 500})).unwrap();
        assert_eq!(limits.memory_bytes, 64 << 20);
        assert_eq!(limits.cell_timeout, Duration::from_millis(2500));
        assert_eq!(limits.cpu_millis, Some(500));
        assert_eq!(limits.processes, Limits::default().processes);
        assert_eq!(ask(&json!({})).unwrap(), Limits::default());
    }

    #[test]
    fn excessive_and_invalid_limits_are_rejected_by_name() {
        for (asked, said) in [
            (json!({"memory_bytes": 1_u64 << 40}), "allows 2147483648 at most"),
            (
                json!({"memory_bytes": 1}),
                "it is 1, and a kernel needs at least 33554432",
            ),
            (json!({"processes": 7}), "a kernel needs at least 8"),
            (json!({"open_files": 63}), "a kernel needs at least 64"),
            (json!({"cell_time": 301}), "allows 300 at most"),
            (json!({"processes": 0}), "above 0"),
            (json!({"processes": -1}), "above 0"),
            (json!({"processes": "9"}), "above 0"),
            (json!({"processes": 1.5}), "expected an integer"),
            (json!({"memory": 1}), "there is no such limit"),
        ] {
            let problem = ask(&asked).unwrap_err();
            let error = problem.error();
            assert!(error.message.contains(said), "{asked}: {}", error.message);
            assert!(error.param.as_deref().unwrap().starts_with("limits"), "{asked}");
        }
    }
}
