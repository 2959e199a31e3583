//! Namespaces that a sandbox lacks.

use cellblock_interpreter::Interpreter;
use cellblock_sandbox::jail::protection::{Protection, ProtectionStatus, Report};

use crate::sanitize;

/// Returns the note for a machine where namespaces are missing and no other wall replaces them.
pub(in crate::commands) fn without_namespaces(interpreter: &Interpreter) -> Option<String> {
    match interpreter.backend().wall() {
        Some(_) => None,
        None => missing_namespaces(&interpreter.report()),
    }
}

fn missing_namespaces(report: &Report) -> Option<String> {
    let lost = Protection::ALL
        .into_iter()
        .filter(|it| it.needs_namespaces() && !report.is_active(*it));
    let names: Vec<_> = lost.map(|it| it.to_string()).collect();
    let reason = match report.0.get(&Protection::UserNamespace)? {
        ProtectionStatus::Active => return None,
        ProtectionStatus::Degraded { reason } => reason.split("; ").next().unwrap_or_default(),
        ProtectionStatus::Disabled => "the policy disables namespaces",
    };
    Some(format!(
        "running without namespaces, as the policy allows: {}; not active: {}",
        sanitize::line(reason),
        names.join(", ")
    ))
}
