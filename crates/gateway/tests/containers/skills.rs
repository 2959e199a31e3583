//! Skills in OpenAI's form: uploads and versions, and containers that have them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cellblock_agent::provider::scripted::ScriptedAnswer;
use cellblock_gateway::records::Records;
use serde_json::{Value, json};

use crate::support::{Bench, HttpAnswer, bench, block_on, logs, runs, start};

fn manifest(name: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}.\n---\n{body}\n")
}

impl Bench {
    /// Uploads the files of a skill, and other fields.
    async fn skill(&self, path: &str, files: &[(&str, &str)], fields: &[(&str, &str)]) -> HttpAnswer {
        let mut body = String::new();
        for (field, value) in fields {
            let disposition = format!("content-disposition: form-data; name=\"{field}\"");
            body.extend(["--cut\r\n", &disposition, "\r\n\r\n", value, "\r\n"]);
        }
        for (name, content) in files {
            let disposition =
                format!("content-disposition: form-data; name=\"files[]\"; filename=\"{name}\"");
            body.extend(["--cut\r\n", &disposition, "\r\n\r\n", content, "\r\n"]);
        }
        self.form(path, body + "--cut--\r\n").await
    }

    async fn form(&self, path: &str, body: impl Into<reqwest::Body>) -> HttpAnswer {
        let request = self.request("POST", path);
        let request = request.header("content-type", "multipart/form-data; boundary=cut");
        let answer = request.body(body).send().await.unwrap();
        let status = answer.status().as_u16();
        let body = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        HttpAnswer { status, body }
    }

    /// The ID of a new skill with a file.
    async fn report(&self, words: &str) -> String {
        let manifest = manifest("report", "Read `words.txt`.");
        let files = [("report/SKILL.md", &*manifest), ("report/words.txt", words)];
        let made = self.skill("skills", &files, &[]).await.ok();
        made["id"].as_str().unwrap().to_owned()
    }
}

#[test]
fn a_skill_is_uploaded_in_versions_listed_and_deleted() {
    block_on(async {
        let bench = bench().await.of("skills-1");
        let id = bench.report("one").await;
        let skill = bench.get(&format!("skills/{id}")).await.ok();
        let expected = json!({
            "id": id, "object": "skill", "created_at": skill["created_at"], "name": "report",
            "description": "Does report.", "default_version": "1", "latest_version": "1",
        });
        assert_eq!(skill, expected);

        let manifest = manifest("report", "More.");
        let versions = format!("skills/{id}/versions");
        let files = [("x/skill.md", &*manifest), ("x/words.txt", "two")];
        let second = bench.skill(&versions, &files, &[]).await.ok();
        assert_eq!(
            (&second["object"], &second["version"], &second["skill_id"]),
            (&json!("skill.version"), &json!("2"), &json!(id))
        );
        let skill = bench.get(&format!("skills/{id}")).await.ok();
        assert_eq!(
            (&skill["default_version"], &skill["latest_version"]),
            (&json!("1"), &json!("2"))
        );
        let other = manifest.replace("name: report", "name: other");
        let renamed = bench.skill(&versions, &[("SKILL.md", &other)], &[]).await;
        assert_eq!(renamed.error(), (400, "invalid_value"));

        let first = format!("{versions}/1");
        let refused = bench.delete(&first).await;
        assert_eq!(refused.error(), (400, "invalid_value"));
        let changed = bench
            .post(&format!("skills/{id}"), &json!({"default_version": "2"}))
            .await
            .ok();
        assert_eq!(changed["default_version"], "2");
        let gone = bench.delete(&first).await.ok();
        assert_eq!(
            (&gone["object"], &gone["version"], &gone["deleted"]),
            (&json!("skill.version.deleted"), &json!("1"), &json!(true))
        );
        assert_eq!(bench.get(&first).await.error(), (404, "skill_version_not_found"));
        let listed = bench.get(&versions).await.ok();
        assert_eq!(listed["data"], json!([second]));
        let listed = bench.get("skills?limit=1").await.ok();
        assert_eq!(listed["data"][0]["id"], json!(id));

        // The archive that comes out goes in again as one file.
        let zip = bench.content(&format!("skills/{id}/content")).await;
        let head = "--cut\r\ncontent-disposition: form-data; name=\"files\"; filename=\"a.zip\"\r\n\r\n";
        let form = [head.as_bytes(), &zip, b"\r\n--cut--\r\n"].concat();
        let again = bench.form("skills", form).await.ok();
        assert_eq!(again["name"], "report");
        let again = format!("skills/{}/versions/1/content", again["id"].as_str().unwrap());
        assert_eq!(bench.content(&again).await, zip);

        let gone = bench.delete(&format!("skills/{id}")).await.ok();
        assert_eq!(
            gone,
            json!({"id": id, "object": "skill.deleted", "deleted": true})
        );
        assert_eq!(
            bench.get(&format!("skills/{id}")).await.error(),
            (404, "skill_not_found")
        );
    });
}

#[test]
fn uploads_that_are_not_one_skill_are_rejected_with_what_is_wrong() {
    block_on(async {
        let bench = bench().await.of("skills-2");
        let good = manifest("a", "");
        for (files, reason) in [
            (&[("a.txt", "x")][..], "there is no `SKILL.md`"),
            (&[("SKILL.md", "# x")], "no front matter"),
            (&[("SKILL.md", &*good), ("../x", "x")], "invalid path"),
            (
                &[("SKILL.md", &*good), ("b/SKILL.md", &*good)],
                "there are 2 files",
            ),
            (&[("SKILL.md", "PK not a zip")], "the archive cannot be read"),
        ] {
            let refused = bench.skill("skills", files, &[]).await;
            assert_eq!(refused.error(), (400, "invalid_skill"), "{}", refused.body);
            assert!(
                refused.message().contains(reason),
                "{reason}: {}",
                refused.message()
            );
            assert_eq!(refused.body["error"]["param"], "files");
        }
        let nothing = bench.skill("skills", &[], &[("default", "true")]).await;
        assert_eq!(nothing.error(), (400, "missing_required_parameter"));
        assert_eq!(bench.get("skills").await.ok()["data"], json!([]));
    });
}

#[test]
fn a_skill_of_another_key_does_not_exist() {
    block_on(async {
        let bench = bench().await;
        let id = bench.of("skills-3").report("secret").await;
        let eve = bench.of("eve");
        for path in ["", "/content", "/versions", "/versions/1", "/versions/1/content"] {
            let path = format!("skills/{id}{path}");
            assert_eq!(eve.get(&path).await.error(), (404, "skill_not_found"), "{path}");
        }
        for path in ["", "/versions/1"] {
            let path = format!("skills/{id}{path}");
            assert_eq!(
                eve.delete(&path).await.error(),
                (404, "skill_not_found"),
                "{path}"
            );
        }
        let manifest = manifest("report", "Mine.");
        let files = [("SKILL.md", &*manifest)];
        let path = format!("skills/{id}/versions");
        assert_eq!(
            eve.skill(&path, &files, &[]).await.error(),
            (404, "skill_not_found")
        );
        let reference = json!([{"type": "skill_reference", "skill_id": id}]);
        let body = json!({"name": "c", "skills": reference});
        assert_eq!(
            eve.post("containers", &body).await.error(),
            (404, "skill_not_found")
        );
        assert_eq!(eve.get("skills").await.ok()["data"], json!([]));
    });
}

#[test]
fn skills_count_against_the_quotas_of_their_key() {
    block_on(async {
        let manifest = manifest("a", "");
        let files = [("SKILL.md", &*manifest)];
        let bench = start(Records::in_memory().unwrap(), |options| {
            options.quotas.stored_bytes = Some(100);
        })
        .await;
        let refused = bench.skill("skills", &files, &[]).await;
        assert_eq!(refused.error(), (429, "rate_limit_exceeded"), "{}", refused.body);
        assert_eq!(bench.get("skills").await.ok()["data"], json!([]));
        let bench = start(Records::in_memory().unwrap(), |options| {
            options.skills.max_per_key = 1;
        })
        .await;
        bench.skill("skills", &files, &[]).await.ok();
        let second = bench.skill("skills", &files, &[]).await;
        assert_eq!(second.error(), (429, "too_many_skills"));
    });
}

#[test]
fn code_of_a_container_reads_its_skills_and_the_model_hears_of_them() {
    block_on(async {
        let bench = bench().await.of("skills-4");
        let id = bench.report("stored").await;
        let own = manifest("own", "Inside.");
        let inline = bench.skill("skills", &[("SKILL.md", &own)], &[]).await.ok();
        let zip = bench
            .content(&format!("skills/{}/content", inline["id"].as_str().unwrap()))
            .await;
        let source = json!({
            "type": "base64", "media_type": "application/zip", "data": STANDARD.encode(&zip),
        });
        let skills = json!([
            {"type": "skill_reference", "skill_id": id, "version": "latest"},
            {"type": "inline", "name": "house-style", "description": "How we write.", "source": source},
        ]);
        let made = bench
            .post("containers", &json!({"name": "c", "skills": skills}))
            .await
            .ok();
        let container = made["id"].as_str().unwrap();
        // Deleting a skill changes nothing for those who have it.
        bench.delete(&format!("skills/{id}")).await.ok();
        let code = "print(open('/skills/report/words.txt').read(), \
                    open('/skills/house-style/SKILL.md').read())";
        let model = "skilled";
        let script = bench.script(model, [runs("c", code), ScriptedAnswer::new().text("Done.")]);
        let response = bench.respond(model, &json!("go"), &json!(container)).await.ok();
        let logs = logs(&response["output"][0]);
        assert!(logs.contains("stored") && logs.contains("Inside."), "{logs}");
        let instructions = script.asked()[0].instructions.clone().unwrap();
        for line in [
            "- `report` (`/skills/report/SKILL.md`): Does report.",
            "- `house-style` (`/skills/house-style/SKILL.md`): How we write.",
        ] {
            assert!(instructions.contains(line), "{instructions}");
        }
    });
}

#[test]
fn skills_that_a_container_cannot_have_are_rejected_with_their_place() {
    block_on(async {
        let bench = bench().await.of("skills-5");
        let id = bench.report("x").await;
        let reference = |fields: Value| {
            let mut skill = json!({"type": "skill_reference", "skill_id": id});
            skill
                .as_object_mut()
                .unwrap()
                .extend(fields.as_object().unwrap().clone());
            skill
        };
        let source = json!({"type": "base64", "media_type": "application/zip", "data": "UEs="});
        let broken = json!({"type": "inline", "name": "a", "description": "b", "source": source});
        for (skills, param, code) in [
            (
                json!([reference(json!({"version": "7"}))]),
                "skills[0].version",
                "skill_version_not_found",
            ),
            (
                json!([reference(json!({"skill_id": "none"}))]),
                "skills[0].skill_id",
                "skill_not_found",
            ),
            (json!([broken]), "skills[0].source.data", "invalid_skill"),
            (json!([{"type": "url"}]), "skills[0].type", "invalid_value"),
            (
                json!([reference(json!({})), reference(json!({}))]),
                "skills",
                "invalid_value",
            ),
        ] {
            let refused = bench
                .post("containers", &json!({"name": "c", "skills": skills}))
                .await;
            assert_eq!(refused.error().1, code, "{}", refused.body);
            assert_eq!(refused.body["error"]["param"], param);
        }
        assert_eq!(bench.get("containers").await.ok()["data"], json!([]));
    });
}
