//! Skills in Anthropic's form: uploads, and containers of messages that have them.

use std::io::Write as _;
use std::sync::Arc;

use cellblock_gateway::skills::load_shared;
use serde_json::{Value, json};

use super::{after, ask, blocks, body, tool};
use crate::market::says;
use crate::support::{HttpAnswer, Server, block_on, interpreter, runs, scripted, serve_with};

const MANIFEST: &str = "---\nname: report\ndescription: Writes reports.\n---\n";

async fn skills(server: &Server, method: &str, path: &str) -> HttpAnswer {
    let request = server.request(method, path);
    server
        .send(request.header("anthropic-version", "2023-06-01"))
        .await
}

async fn upload(server: &Server, path: &str, body: &str) -> Value {
    let form = format!(
        "--cut\r\ncontent-disposition: form-data; name=\"display_name\"\r\n\r\nReport\r\n\
         --cut\r\ncontent-disposition: form-data; name=\"files[]\"; filename=\"report/SKILL.md\"\r\n\r\n\
         {MANIFEST}{body}\r\n--cut--\r\n"
    );
    let request = server
        .request("POST", path)
        .header("anthropic-version", "2023-06-01")
        .header("content-type", "multipart/form-data; boundary=cut");
    server.send(request.body(form)).await.ok()
}

#[test]
fn a_skill_has_the_forms_of_the_api_and_its_latest_version_counts() {
    block_on(async {
        let (server, _) = scripted([]).await;
        let made = upload(&server, "skills", "One.").await;
        assert_eq!(
            (&made["type"], &made["display_name"], &made["source"]),
            (&json!("skill"), &json!("Report"), &json!({"type": "custom"}))
        );
        assert!(made["updated_at"].as_str().unwrap().ends_with('Z'), "{made}");
        let path = format!("skills/{}", made["id"].as_str().unwrap());
        let version = upload(&server, &format!("{path}/versions"), "Two.").await;
        assert_eq!(
            (&version["type"], &version["name"], &version["skill_id"]),
            (&json!("skill_version"), &json!("report"), &made["id"])
        );
        let found = skills(&server, "GET", &path).await.ok();
        assert_eq!(found["latest_version_id"], version["id"]);
        // The same skill for a client of OpenAI's API.
        assert_eq!(server.get(&path).await.ok()["default_version"], "2");
        let listed = skills(&server, "GET", &format!("{path}/versions?limit=1"))
            .await
            .ok();
        assert_eq!(
            (&listed["data"][0], &listed["has_more"]),
            (&version, &json!(true))
        );
        let next = format!("{path}/versions?page={}", listed["next_page"].as_str().unwrap());
        let rest = skills(&server, "GET", &next).await.ok();
        assert_eq!(
            (rest["data"].as_array().unwrap().len(), &rest["next_page"]),
            (1, &Value::Null)
        );
        let one = format!("{path}/versions/{}", version["id"].as_str().unwrap());
        let gone = skills(&server, "DELETE", &one).await.ok();
        assert_eq!(
            gone,
            json!({"id": version["id"], "type": "skill_version_deleted"})
        );
        assert_eq!(server.get(&path).await.ok()["default_version"], "1");
        assert_eq!(skills(&server.of("eve"), "GET", &path).await.status, 404);
        let gone = skills(&server, "DELETE", &path).await.ok();
        assert_eq!(gone, json!({"id": made["id"], "type": "skill_deleted"}));
    });
}

#[test]
fn code_of_a_message_reads_its_skills_and_the_answer_names_their_versions() {
    block_on(async {
        let code = "print(open('/skills/report/SKILL.md').read())";
        let (server, provider) = scripted([
            runs("c1", code),
            says("Done."),
            runs("c2", code),
            says("Again."),
            says("Pinned."),
        ])
        .await;
        let made = upload(&server, "skills", "First.").await;
        let (id, version) = (&made["id"], &made["latest_version_id"]);
        let tools = json!([tool("20250522")]);
        let container = json!({"skills": [{"type": "custom", "skill_id": id, "version": "latest"}]});
        let first = ask(&server, json!({"tools": tools, "container": container})).await;
        let expected = json!([{"type": "custom", "skill_id": id, "version": "1"}]);
        assert_eq!(first["container"]["skills"], expected, "{first}");
        let told = provider.asked()[0].instructions.clone().unwrap();
        assert!(
            told.contains("- `report` (`/skills/report/SKILL.md`): Writes reports."),
            "{told}"
        );

        // A later version changes nothing for a container that exists.
        upload(
            &server,
            &format!("skills/{}/versions", id.as_str().unwrap()),
            "Second.",
        )
        .await;
        let container = json!({"id": first["container"]["id"], "skills": container["skills"]});
        let fields = json!({
            "tools": tools, "container": container, "messages": after(&first, &json!("again")),
        });
        let second = ask(&server, fields).await;
        assert_eq!(second["container"]["skills"], expected);
        // The version that it began with may also be named by its ID.
        let skill = json!({"type": "custom", "skill_id": id, "version": version});
        let container = json!({"id": first["container"]["id"], "skills": [skill]});
        ask(&server, json!({"tools": tools, "container": container})).await;
        for message in [&first, &second] {
            let results = blocks(message, "code_execution_tool_result");
            assert!(
                results[0]["content"]["stdout"]
                    .as_str()
                    .unwrap()
                    .contains("First."),
                "{message}"
            );
        }
    });
}

#[test]
fn skills_that_a_message_cannot_have_are_rejected() {
    block_on(async {
        let (server, provider) = scripted([runs("c1", "1"), says("Done.")]).await;
        let id = upload(&server, "skills", "").await["id"].clone();
        let tools = json!([tool("20250522")]);
        let plain = ask(&server, json!({"tools": tools})).await;
        let skill = json!({"type": "custom", "skill_id": id});
        for (fields, reason) in [
            (
                json!({"container": {"skills": [skill]}}),
                "this request cannot run any",
            ),
            (
                json!({"tools": tools, "container": {"skills": vec![skill.clone(); 9]}}),
                "at most 8 are allowed",
            ),
            (
                json!({"tools": tools, "container": {"skills": [{"type": "anthropic", "skill_id": "pptx"}]}}),
                "there is no skill `pptx`",
            ),
            (
                json!({"tools": tools, "container": {"id": plain["container"]["id"], "skills": [skill]}}),
                "was created without this version of the skill",
            ),
        ] {
            let refused = server.post("messages", &body(&fields)).await;
            assert!(matches!(refused.status, 400 | 404), "{}", refused.body);
            let message = refused.body["error"]["message"].as_str().unwrap();
            assert!(message.contains(reason), "{reason}: {message}");
        }
        assert_eq!(provider.asked().len(), 2);
    });
}

#[test]
fn skills_that_the_operator_shares_are_everybodys_and_nobody_changes_them() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let skill = folder.path().join("pptx");
        std::fs::create_dir(&skill).unwrap();
        let mut file = std::fs::File::create(skill.join("SKILL.md")).unwrap();
        file.write_all(b"---\nname: pptx\ndescription: Makes decks.\n---\nShared.\n")
            .unwrap();
        let store = interpreter().await.store();
        let shared = load_shared(store, &[folder.path().to_owned()]).await.unwrap();
        let code = "print(open('/skills/pptx/SKILL.md').read())";
        let provider =
            cellblock_agent::provider::scripted::ScriptedProvider::new([runs("c1", code), says("Done.")]);
        let server = serve_with(Arc::new(provider), |options| options.skills.shared = shared).await;
        let fields = json!({
            "tools": [tool("20250522")],
            "container": {"skills": [{"type": "anthropic", "skill_id": "pptx"}]},
        });
        let message = ask(&server, fields).await;
        let expected = json!([{"type": "anthropic", "skill_id": "pptx", "version": "1"}]);
        assert_eq!(message["container"]["skills"], expected, "{message}");
        for owner in [&server, &server.of("eve")] {
            let listed = owner.get("skills").await.ok();
            assert_eq!(listed["data"][0]["id"], "pptx");
            let request = owner.request("DELETE", "skills/pptx");
            assert_eq!(owner.send(request).await.error(), (400, "skill_is_shared"));
        }
        let content = server.request("GET", "skills/pptx/content").send().await.unwrap();
        assert!(content.bytes().await.unwrap().starts_with(b"PK"));
    });
}
