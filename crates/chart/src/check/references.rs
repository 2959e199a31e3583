//! Checks that reference lines and areas have a position.

use crate::error::{ChartProblem, Problems, code, quoted};
use crate::{AxisPlace, AxisType, ChartSpec, ChartType, Columns, Side};

pub(super) fn check(spec: &ChartSpec, columns: &Columns, problems: &mut Problems) {
    let x_type = match spec.kind {
        ChartType::Histogram if spec.series.is_empty() || spec.x_key.is_none() => AxisType::Number,
        _ => spec.x_type(columns),
    };
    for (at, line) in spec.reference_lines.iter().enumerate() {
        let field = format!("referenceLines[{at}]");
        match (&line.x, &line.y) {
            (Some(_), None) | (None, Some(_)) => {}
            (Some(_), Some(_)) => problems.add(
                code::INVALID_VALUE,
                &field,
                "has x and y; give one of them per line",
            ),
            (None, None) => problems.add(code::MISSING_KEY, &field, "has no position; give x or y"),
        }
        place(line.x.as_ref(), x_type, &format!("{field}.x"), problems);
        axis(spec, line.y_axis, &field, problems);
    }
    for (at, area) in spec.reference_areas.iter().enumerate() {
        let field = format!("referenceAreas[{at}]");
        let there = area.x1.is_some() || area.x2.is_some() || area.y1.is_some() || area.y2.is_some();
        if !there {
            problems.add(
                code::MISSING_KEY,
                &field,
                "has no position; give at least one of x1, x2, y1 and y2",
            );
        }
        place(area.x1.as_ref(), x_type, &format!("{field}.x1"), problems);
        place(area.x2.as_ref(), x_type, &format!("{field}.x2"), problems);
        axis(spec, area.y_axis, &field, problems);
    }
}

fn place(place: Option<&AxisPlace>, x_type: AxisType, field: &str, problems: &mut Problems) {
    let fits = match (place, x_type) {
        (None, _) | (_, AxisType::Category) | (Some(AxisPlace::Number(_)), AxisType::Number) => true,
        (Some(AxisPlace::Text(_)), AxisType::Number) => false,
        (Some(place), AxisType::Time) => place.time().is_some(),
    };
    if !fits && let Some(place) = place {
        let message = format!(
            "{} is not a position on an x axis of type {}; write {}",
            quoted(&place.label()),
            x_type.name(),
            match x_type {
                AxisType::Time => "an ISO 8601 time, or seconds or milliseconds since 1970",
                _ => "a number",
            }
        );
        problems.push(ChartProblem::new(code::INVALID_VALUE, field, message));
    }
}

fn axis(spec: &ChartSpec, side: Option<Side>, field: &str, problems: &mut Problems) {
    let there = spec.series.iter().any(|it| it.side() == Side::Right);
    if side == Some(Side::Right) && !there {
        let message = "no series is on the right axis; set it to left, or move a series there";
        let problem = ChartProblem::new(code::UNUSED_AXIS, format!("{field}.yAxis"), message);
        problems.push(problem.with_valid([Side::Left.name()]));
    }
}
