//! Limits that a request asks for: at most those of the gateway.

use cellblock_interpreter::{Limits, MAX_CELL_TIME};
use serde_json::{Map, Value};

use crate::problem::Problem;

/// The gateway's limits with those that are asked for in their place; each of them is lower.
pub(super) fn lowered(most: &Limits, asked: &Map<String, Value>) -> Result<Limits, Problem> {
    let field = |name: &str| format!("limits.{name}");
    let Ok(Value::Object(mut limits)) = serde_json::to_value(most) else {
        return Err(Problem::invalid("limits", "limits cannot be told here"));
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
            "cell_time" => limit.as_f64().map(|limit| limit.max(MAX_CELL_TIME.as_secs_f64())),
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
    serde_json::from_value(Value::Object(limits))
        .map_err(|error| Problem::invalid("limits", error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn ask(asked: &Value) -> Result<Limits, Problem> {
        lowered(&Limits::default(), asked.as_object().unwrap())
    }

    #[test]
    fn what_is_asked_for_takes_the_place_of_the_default() {
        let limits = ask(&json!({"memory_bytes": 1_048_576, "cell_time": 2.5, "cpu_millis": 500})).unwrap();
        assert_eq!(limits.memory_bytes, 1 << 20);
        assert_eq!(limits.cell_time, Duration::from_millis(2500));
        assert_eq!(limits.cpu_millis, Some(500));
        assert_eq!(limits.processes, Limits::default().processes);
        assert_eq!(ask(&json!({})).unwrap(), Limits::default());
    }

    #[test]
    fn more_than_the_gateway_has_and_what_is_no_limit_are_refused_by_name() {
        for (asked, said) in [
            (json!({"memory_bytes": 1_u64 << 40}), "allows 2147483648 at most"),
            (json!({"cell_time": 301}), "allows 300 at most"),
            (json!({"processes": 0}), "above 0"),
            (json!({"processes": -1}), "above 0"),
            (json!({"processes": "9"}), "above 0"),
            (json!({"processes": 1.5}), "u64"),
            (json!({"memory": 1}), "there is no such limit"),
        ] {
            let problem = ask(&asked).unwrap_err();
            let error = problem.error();
            assert!(error.message.contains(said), "{asked}: {}", error.message);
            assert!(error.param.as_deref().unwrap().starts_with("limits"), "{asked}");
        }
    }
}
