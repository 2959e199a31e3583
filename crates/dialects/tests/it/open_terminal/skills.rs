//! Skills of chats.

use std::sync::Arc;

use cellblock_dialects::DialectsOptions;
use cellblock_dialects::open_terminal::OpenTerminalOptions;
use cellblock_interpreter::hosting::uploads::UploadAllowance;
use cellblock_interpreter::hosting::{Admission, Meter, Owner, Permit, UnlimitedMeter};
use cellblock_interpreter::skill::{SessionSkill, SkillBundle, SkillPackage};
use serde_json::json;

use super::Chat;
use crate::support::{DialectServer, KEYS, KeyRing, block_on, server_store};

/// Gives one owner a skill.
#[derive(Debug)]
struct OneSkill(SessionSkill);

impl Meter for OneSkill {
    fn session<'a>(&'a self, owner: &'a Owner) -> Admission<'a, Permit> {
        UnlimitedMeter.session(owner)
    }

    fn cell<'a>(&'a self, owner: &'a Owner) -> Admission<'a, Permit> {
        UnlimitedMeter.cell(owner)
    }

    fn skills<'a>(&'a self, owner: &'a Owner) -> Admission<'a, Vec<SessionSkill>> {
        let has = owner.name() == KEYS[0].1;
        Box::pin(async move { Ok(has.then(|| self.0.clone()).into_iter().collect()) })
    }

    fn upload<'a>(&'a self, owner: &'a Owner, bytes: u64) -> Admission<'a, Box<dyn UploadAllowance>> {
        UnlimitedMeter.upload(owner, bytes)
    }
}

async fn skill() -> SessionSkill {
    let folder = tempfile::tempdir().unwrap();
    let manifest = "---\nname: report\ndescription: Writes reports.\n---\nRun the script.\n";
    std::fs::write(folder.path().join("SKILL.md"), manifest).unwrap();
    std::fs::create_dir(folder.path().join("scripts")).unwrap();
    std::fs::write(folder.path().join("scripts/run.py"), "print(6 * 7)").unwrap();
    let package = SkillPackage::from_folder(folder.path()).unwrap();
    let bundle = SkillBundle::store(&server_store(), package).await.unwrap();
    SessionSkill::stored("skill_1", "1", Arc::new(bundle))
}

#[test]
fn a_chat_lists_reads_and_runs_the_skills_of_its_key_alone() {
    block_on(async {
        let skill = skill().await;
        let options = DialectsOptions {
            open_terminal: Some(OpenTerminalOptions::default()),
            ..DialectsOptions::default()
        };
        let keys = KeyRing::Known(KEYS.into());
        let server =
            DialectServer::with(&options, keys, |terms| terms.meter = Arc::new(OneSkill(skill))).await;
        let chat = Chat::new(&server);
        let listed = json!({
            "id": "terminal:report", "name": "report", "description": "Writes reports.",
            "location": "/skills/report/SKILL.md", "scope": "user",
        });
        assert_eq!(chat.read("/skills").await, json!([listed]));
        let mut read = listed;
        read["content"] = "---\nname: report\ndescription: Writes reports.\n---\nRun the script.\n".into();
        read["resources"] = json!(["scripts/run.py"]);
        assert_eq!(chat.read("/skills/read?name=report").await, read);
        let (status, answer) = chat.get("/skills/read?name=other").await;
        assert_eq!(status, 404, "{answer}");
        let code = "import subprocess\n\
                    subprocess.run(['python', '/skills/report/scripts/run.py'], capture_output=True, \
                    text=True).stdout";
        let ran = chat.done("/python", json!({"code": code})).await;
        assert!(ran.to_string().contains("42"), "{ran}");
        let other = Chat {
            key: KEYS[1].0,
            ..Chat::new(&server)
        };
        assert_eq!(other.read("/skills").await, json!([]));
        assert_eq!(other.get("/skills/read?name=report").await.0, 404);
    });
}
