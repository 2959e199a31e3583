//! `connectors` of the type `openapi`: mistakes of the configuration and of its document are
//! reported with their lines.

use anyhow::Result;
use cellblock_testkit::Cli;

use crate::support::{check_rejected, folder};

const DOCUMENT: &str = "
openapi: 3.1.0
servers: [{url: https://crm.example.com}]
paths:
  /contacts:
    get: {operationId: listContacts, summary: Lists contacts.,
          parameters: [{name: tag, in: query, schema: {type: string}}]}
    post: {operationId: createContact}
";

#[test]
fn functions_of_a_document_are_listed() -> Result<()> {
    let config = "connectors: {crm: {type: openapi, document: crm.yaml}}";
    let (_folder, path) = folder(&[
        ("cellblock.yaml", config.as_bytes()),
        ("crm.yaml", DOCUMENT.as_bytes()),
    ])?;
    let finished = Cli::new(["connector", "list"]).folder(&path).run()?;
    assert_eq!(finished.code(), 0, "{}", finished.stderr);
    assert!(finished.stdout.contains("listContacts"), "{}", finished.stdout);
    assert!(finished.stdout.contains("Lists contacts."), "{}", finished.stdout);
    assert!(!finished.stdout.contains("createContact"), "{}", finished.stdout);
    Ok(())
}

#[test]
fn mistakes_of_documents_are_reported_with_the_line_of_the_connector() -> Result<()> {
    let cases = [
        ("crm: {type: openapi}", "missing key `document`"),
        (
            "crm: {type: openapi, document: none.yaml}",
            "`connectors.crm.document`: `",
        ),
        (
            "crm: {type: openapi, document: crm.yaml, operations: [createContact]}",
            "`createContact` is a POST request",
        ),
        (
            "crm: {type: openapi, document: crm.yaml, operations: [dropContacts]}",
            "`connectors.crm.operations`: `dropContacts` is not an operation of the document",
        ),
        (
            "crm: {type: openapi, document: crm.yaml, query: {tag: x}}",
            "`connectors.crm.document`: `listContacts` (GET /contacts): `parameters.tag` is also \
             set in `query`",
        ),
        (
            "crm: {type: openapi, document: crm.yaml, functions: {a: {get: /a}}}",
            "`connectors.crm.functions`: has no effect with `type: openapi`; remove it",
        ),
        (
            "crm: {type: openapi, document: crm.yaml, headers: {authorization: abc}}",
            "a configuration must not contain secrets",
        ),
    ];
    check_rejected(
        &["connector", "list"],
        &[("crm.yaml", DOCUMENT.as_bytes())],
        &cases,
    )
}
