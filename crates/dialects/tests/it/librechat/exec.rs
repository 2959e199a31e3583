//! Code, its outputs and its files.

use reqwest::StatusCode;
use serde_json::json;

use super::{code_api, named};
use crate::support::block_on;

#[test]
fn code_prints_and_its_files_can_be_downloaded() {
    block_on(async {
        let api = code_api().await;
        let answer = api
            .python(
                "import os\nprint('hi', os.path.realpath('/mnt/data') == os.getcwd())\n\
                 open('/mnt/data/a.txt', 'w').write('one')\n7",
            )
            .await;
        assert_eq!(
            (answer["stdout"].as_str(), &answer["code"]),
            (Some("hi True\n"), &json!(0)),
            "{answer}"
        );
        assert_eq!(answer["session_id"].as_str().unwrap().len(), 21);
        let file = named(&answer, "a.txt");
        assert_eq!(file["id"].as_str().unwrap().len(), 21);
        assert_eq!(api.content(file).await, "one");
        assert!(answer.get("runtime_session_id").is_none());
    });
}

#[test]
fn three_languages_take_arguments_and_others_are_refused_by_name() {
    block_on(async {
        let api = code_api().await;
        for (lang, code) in [
            ("py", "import sys; print('|'.join(sys.argv[1:]))"),
            ("bash", "printf '%s\\n' \"$1|$2\""),
            ("js", "console.log(process.argv.slice(2).join('|'))"),
        ] {
            let answer = api
                .exec(json!({"lang": lang, "code": code, "args": ["a 'b'", "c\\d"]}))
                .await;
            assert_eq!(answer["stdout"], "a 'b'|c\\d\n", "{lang}: {answer}");
        }
        let (status, answer) = api
            .post("/exec", json!({"lang": "rs", "code": "fn main() {}"}))
            .await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert_eq!(
            answer["error"],
            "language \"rs\" is not supported; use `py`, `bash`, `js`, or `r` if the image has it"
        );
    });
}

#[test]
fn code_that_fails_is_an_answer_with_its_traceback() {
    block_on(async {
        let api = code_api().await;
        let answer = api.python("print('before')\n1 / 0").await;
        assert_eq!(
            (answer["stdout"].as_str(), &answer["code"]),
            (Some("before\n"), &json!(1))
        );
        assert!(
            answer["stderr"].as_str().unwrap().contains("ZeroDivisionError"),
            "{answer}"
        );
        let late = api
            .exec(json!({"lang": "py", "code": "while True: pass", "timeout": 300}))
            .await;
        assert_eq!(late["status"], "TO", "{late}");
        let (status, _) = api
            .post("/exec", json!({"lang": "py", "code": "1", "timeout": 0}))
            .await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
    });
}

#[test]
fn inputs_are_told_from_what_code_has_made_of_them() {
    block_on(async {
        let api = code_api().await;
        let same = api.file("same.csv", "a,b\n1,2\n").await;
        let changed = api.file("sub/changed.txt", "old").await;
        let gone = api.file("gone.txt", "x").await;
        let earlier = api.file("twice.txt", "first").await;
        let later = api.file("twice.txt", "second").await;
        let code = "import os\nprint(open('same.csv').read(), open('twice.txt').read())\n\
                    open('sub/changed.txt', 'w').write('new')\nos.remove('gone.txt')\n\
                    open('made.txt', 'w').write('made')";
        let files = [&same, &changed, &gone, &earlier, &later];
        let answer = api
            .exec(json!({"lang": "py", "code": code, "files": files}))
            .await;
        assert_eq!(answer["stdout"], "a,b\n1,2\n second\n", "{answer}");
        let inherited = named(&answer, "same.csv");
        assert_eq!(
            (&inherited["inherited"], &inherited["id"]),
            (&json!(true), &same["id"])
        );
        assert_eq!(inherited["storage_session_id"], same["storage_session_id"]);
        let modified = named(&answer, "sub/changed.txt");
        assert_eq!(modified["modified_from"]["id"], changed["id"]);
        assert_eq!(api.content(modified).await, "new");
        assert_eq!(api.content(&changed).await, "old");
        assert_eq!(answer["deleted_files"], json!(["gone.txt"]));
        assert!(named(&answer, "made.txt").get("inherited").is_none());
        let unknown = json!({"id": "x".repeat(21), "storage_session_id": "y".repeat(21), "name": "a"});
        let (status, _) = api
            .post("/exec", json!({"lang": "py", "code": "1", "files": [unknown]}))
            .await;
        assert_eq!(status, StatusCode::NOT_FOUND);
    });
}

#[test]
fn a_conversation_keeps_its_files_and_not_its_variables() {
    block_on(async {
        let api = code_api().await;
        let input = api.file("in.txt", "first").await;
        let run = async |code: &str| {
            let request = json!({"lang": "py", "code": code, "files": [input],
                "runtime_session_hint": "conversation-1"});
            api.exec(request).await
        };
        let first =
            run("x = 1\nopen('in.txt', 'w').write('changed')\nopen('kept.txt', 'w').write('kept')").await;
        assert_eq!(first["runtime_status"], "new");
        let second = run("print(open('kept.txt').read(), open('in.txt').read(), 'x' in globals())").await;
        assert_eq!(second["stdout"], "kept changed False\n", "{second}");
        assert_eq!(second["runtime_status"], "reused");
        assert_eq!(second["runtime_session_id"], first["runtime_session_id"]);
        let other = json!({"lang": "py", "code": "import os; print(os.listdir())",
            "runtime_session_hint": "conversation-2"});
        assert_eq!(api.exec(other).await["stdout"], "[]\n");
        assert_eq!(
            api.python("import os; print(os.listdir())").await["stdout"],
            "[]\n"
        );
    });
}

#[test]
fn calls_of_one_conversation_at_once_share_its_sandbox() {
    block_on(async {
        let api = code_api().await;
        let run = async |number: u32| {
            let code = format!("print('x' in globals())\nx = 1\nopen('{number}.txt', 'w').write('x')");
            let request = json!({"lang": "py", "code": code, "runtime_session_hint": "at-once"});
            api.exec(request).await
        };
        let (one, other) = tokio::join!(run(1), run(2));
        assert_eq!(one["runtime_session_id"], other["runtime_session_id"]);
        assert_eq!(
            (&one["stdout"], &other["stdout"]),
            (&json!("False\n"), &json!("False\n"))
        );
        let list = json!({"lang": "bash", "code": "ls", "runtime_session_hint": "at-once"});
        assert_eq!(api.exec(list).await["stdout"], "1.txt\n2.txt\n");
    });
}

#[test]
fn a_figure_that_is_shown_becomes_a_file() {
    block_on(async {
        let api = code_api().await;
        let answer = api
            .python("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()")
            .await;
        let file = named(&answer, "figure-1.png");
        assert!(file["size"].as_u64().unwrap() > 1000, "{file}");
    });
}
