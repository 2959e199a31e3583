//! Skills of a session, in each sandbox that it has.

use std::sync::Arc;
use std::time::Duration;

use cellblock_interpreter::Session;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::session::fork::ForkOptions;
use cellblock_interpreter::skill::{SessionSkill, SkillBundle, SkillPackage};
use cellblock_testkit::wait::until;

use crate::support::{block_on, interpreter, run, store, value};

const MANIFEST: &str = "---\nname: report\ndescription: Writes reports.\n---\nRead on.\n";
/// Reads a file of the skill.
const READ: &str = "open('/skills/report/data/words.txt').read()";

async fn skill(words: &str) -> SessionSkill {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    std::fs::write(folder.path().join("SKILL.md"), MANIFEST).unwrap();
    std::fs::write(folder.path().join("data/words.txt"), words).unwrap();
    std::fs::write(folder.path().join("run.py"), "print(6 * 7)").unwrap();
    let package = SkillPackage::from_folder(folder.path()).unwrap();
    let bundle = SkillBundle::store(&store(), package).await.unwrap();
    SessionSkill::stored("skill_1", "1", Arc::new(bundle))
}

async fn skilled(words: &str) -> Session {
    interpreter().await.session(SessionOptions {
        skills: vec![skill(words).await],
        ..SessionOptions::default()
    })
}

#[test]
fn code_programs_and_hosts_read_a_skill_and_none_of_them_changes_it() {
    block_on(async {
        let session = skilled("one").await;
        assert_eq!(value(&session, READ).await, "one");
        let program = "import subprocess\nsubprocess.run(['python', '/skills/report/run.py'], \
                       capture_output=True, text=True).stdout";
        assert_eq!(value(&session, program).await, "42\n");
        let changes = "\
import os, shutil
folder = '/skills/report/'
def refused(change, *arguments):
    try:
        change(*arguments)
    except OSError:
        return True
    return False
all([
    refused(open, folder + 'SKILL.md', 'w'),
    refused(open, folder + 'new', 'w'),
    refused(os.remove, folder + 'SKILL.md'),
    refused(os.rename, folder + 'data', folder + 'other'),
    refused(os.mkdir, '/skills/other'),
    refused(os.chmod, folder + 'SKILL.md', 0o777),
    refused(os.symlink, '/etc/passwd', folder + 'link'),
    refused(shutil.rmtree, folder),
])";
        assert_eq!(value(&session, changes).await, true);
        let path = "/skills/report/SKILL.md";
        assert_eq!(session.read_file(path).await.unwrap(), MANIFEST.as_bytes());
        let listed = session.list_files("/skills", 10).await.unwrap();
        let listed: Vec<_> = listed.files.iter().map(|file| file.path.as_str()).collect();
        let expected = ["SKILL.md", "data/words.txt", "run.py"].map(|name| format!("/skills/report/{name}"));
        assert_eq!(listed, expected);
        for path in [
            path,
            "/tmp/data/.skills/report/SKILL.md",
            "/tmp/./data//.skills/report/new",
        ] {
            let error = session.write_file(path, "x").await.unwrap_err().to_string();
            assert!(error.contains("skills are read-only"), "{path}: {error}");
            assert!(session.remove_file(path).await.is_err(), "{path}");
        }
        assert_eq!(value(&session, READ).await, "one");
        // A skill is nothing that a cell has made.
        assert!(run(&session, "1").await.files.is_empty());
    });
}

#[test]
fn a_new_sandbox_has_the_skills_that_the_session_began_with() {
    block_on(async {
        let interpreter = interpreter().await;
        let skill = skill("two").await;
        let artifact = skill.bundle.sha256;
        let session = interpreter.session(SessionOptions {
            idle: Duration::from_secs(2),
            skills: vec![skill],
            ..SessionOptions::default()
        });
        assert_eq!(value(&session, READ).await, "two");
        let first = session.prepare().await.unwrap().sandbox;
        until("it is given back", || {
            !interpreter.sandboxes_in_use().contains(&first)
        })
        .await;
        // Also if it was deleted meanwhile.
        assert!(store().remove(artifact).await.unwrap());
        assert_eq!(value(&session, READ).await, "two");
    });
}

#[test]
fn checkpoints_and_forks_have_the_skills_of_their_session() {
    needs!(Checkpoints, Forks);
    block_on(async {
        let session = skilled("three").await;
        run(&session, "x = 1").await;
        let kept = session.checkpoint(None).await.unwrap();
        let forks = session.fork(ForkOptions::new(1)).await.unwrap();
        assert_eq!(value(&forks[0], READ).await, "three");
        session.roll_back(&kept.checkpoint.id).await.unwrap();
        assert_eq!(value(&session, READ).await, "three");
    });
}

#[test]
fn sessions_without_skills_have_no_folder_for_them() {
    block_on(async {
        let session = crate::support::session().await;
        assert_eq!(
            value(&session, "import os\nos.path.exists('/skills')").await,
            false
        );
        assert!(session.read_file("/skills/report/SKILL.md").await.is_err());
    });
}

#[test]
fn skills_that_a_session_cannot_have_are_rejected_before_it_runs() {
    block_on(async {
        let interpreter = interpreter().await;
        let twice = [skill("four").await, skill("five").await];
        let error = interpreter.check_skills(None, &twice).unwrap_err().to_string();
        assert!(error.contains("two have the name `report`"), "{error}");
        let limits = cellblock_interpreter::limits::Limits {
            data_bytes: 10,
            ..interpreter.limits().clone()
        };
        let error = interpreter
            .check_skills(Some(&limits), &twice[..1])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("the limit `data_bytes` of the session is 10"),
            "{error}"
        );
        let many: Vec<_> = (0..21).map(|_| twice[0].clone()).collect();
        assert!(interpreter.check_skills(None, &many).is_err());
        assert!(interpreter.check_skills(None, &[]).is_ok());
    });
}
