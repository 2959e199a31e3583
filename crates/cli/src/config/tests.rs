//! Whole configurations: what they say, and what is told of broken ones.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cellblock_gateway::Models;
use cellblock_gateway::options::{Options, StickyKey};
use cellblock_settings::Size;
use cellblock_testkit::Schema;

use super::listen::Listen;
use super::{ConfigError, LoadedConfig, Sources, schema};

/// Writes a configuration and reads it, with variables.
fn load(text: &str, variables: &[(&str, &str)]) -> Result<LoadedConfig, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cellblock.yaml");
    std::fs::write(&file, text).unwrap();
    let sources = Sources {
        file: Some(file),
        listen: None,
        records: None,
        variables: variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
    };
    let loaded = sources.load().and_then(|loaded| {
        loaded.models(Models::default())?;
        loaded.site()?;
        Ok(loaded)
    });
    loaded.map_err(|error| told(&error, folder.path()))
}

/// An error as it is told, without the folder of the test.
fn told(error: &ConfigError, folder: &Path) -> String {
    error.to_string().replace(&format!("{}/", folder.display()), "")
}

const WHOLE: &str = r#"
listen: 127.0.0.1:9000
state: /var/lib/cellblock
providers:
  code_interpreter:
    enabled: true
    settings: {execution_timeout: 30.0, claim_timeout: 5}
  openai:
    type: responses
    base_url: https://api.openai.com/v1
    models: ["gpt-*", "o3"]
    vision: true
  local:
    type: chat
    base_url: http://127.0.0.1:11434/v1
    rename: {fast: "qwen3:8b"}
    timeouts: {first: 10m}
    retries: {count: 0}
    dialect: {max_tokens_field: max_completion_tokens, system_role: developer, send_reasoning: same, stream_usage: false}
limits: {memory: 512MiB, cpus: 1.5, max_cell_timeout: 10m}
pool: {ready: 4}
protections: {demands: {landlock: strict, own_user_id: disabled}}
turn: {max_steps: 5}
http: {max_body: 1MiB}
"#;

#[test]
fn a_configuration_says_everything_that_counts() {
    let loaded = load(WHOLE, &[]).unwrap();
    let settings = &loaded.settings;
    assert_eq!(settings.limits.enforced().memory_bytes, 512 << 20);
    assert_eq!(settings.limits.enforced().cpu_millis, Some(1500));
    assert_eq!(settings.limits.enforced().cell_timeout, Duration::from_secs(30));
    assert_eq!(settings.pool.ready, 4);
    assert_eq!(settings.pool.acquire_timeout, Duration::from_secs(5));
    let options = loaded.options();
    assert_eq!(options.listen, "127.0.0.1:9000".parse().unwrap());
    assert_eq!((options.turn.max_steps, options.http.max_body), (5, 1 << 20));
    assert_eq!(options.max_cell_timeout, Duration::from_mins(10));
    assert!(options.code_interpreter);
    let models = loaded.models(Models::default()).unwrap();
    for model in ["gpt-5", "o3", "fast", "anything"] {
        assert!(models.provider(model).is_ok(), "{model}");
    }
    assert_eq!(loaded.state(Path::new("/data")), Path::new("/var/lib/cellblock"));
}

#[test]
fn groups_of_options_reach_the_gateway() {
    let text = "
advertise: http://10.0.0.3:8080
auth: {required: true}
quotas: {sandboxes: 3, stored_bytes: null}
tls: {certificates: tls/a.pem, key: /b.pem}
metrics: {public: true, listen: '127.0.0.1:9'}
containers: {idle_timeout: 5m, max_memory: 1GiB, max_sandboxes: 40, max_concurrent: 3,
             sticky_keys: [user, session]}
files: {max_upload: 1MiB}
sessions: {max_per_key: 2}
execute: {max_concurrent: 7, max_body: 2MiB}
remote: {serve: true}
responses: {retention: null}
http: {hosts: [a.example], origins: ['https://b.example'], max_connections: 9, grace: 3}
";
    let loaded = load(text, &[]).unwrap();
    let options = loaded.options();
    assert!(options.auth.required && options.metrics.public);
    let quotas = (options.quotas.sandboxes, options.quotas.stored_bytes);
    assert_eq!(quotas, (Some(3), None));
    let folder = loaded.file.as_deref().and_then(Path::parent).unwrap();
    let tls = options.tls.unwrap();
    assert_eq!(
        (tls.certificates, tls.key),
        (folder.join("tls/a.pem"), "/b.pem".into())
    );
    assert_eq!(options.metrics.listen, Some("127.0.0.1:9".parse().unwrap()));
    assert_eq!(options.containers.idle_timeout, Duration::from_mins(5));
    let (sandboxes, concurrent) = (
        options.containers.max_sandboxes,
        options.containers.max_concurrent,
    );
    assert_eq!((sandboxes, concurrent), (Some(40), Some(3)));
    assert_eq!(options.containers.max_memory, Some(Size(1 << 30)));
    let by_default = [StickyKey::Session, StickyKey::PromptCacheKey];
    assert_eq!(Options::default().containers.sticky_keys, by_default);
    assert_eq!(
        options.containers.sticky_keys,
        [StickyKey::User, StickyKey::Session]
    );
    assert_eq!(options.files.max_upload, 1 << 20);
    assert_eq!(options.sessions.max_per_key, 2);
    let execute = (options.execute.max_concurrent, options.execute.max_body);
    assert_eq!(execute, (7, 2 << 20));
    // What no configuration has keeps its default.
    let max_files = Options::default().execute.max_files;
    assert_eq!(options.execute.max_files, max_files);
    assert!(options.remote.serve);
    assert_eq!(options.responses.retention, None);
    assert_eq!(options.http.hosts, ["a.example"]);
    assert_eq!(options.http.origins, ["https://b.example"]);
    assert_eq!(options.http.max_connections, 9);
    assert_eq!(options.http.grace, Duration::from_secs(3));
    let advertised = options.advertise.map(|url| url.to_string());
    assert_eq!(advertised.as_deref(), Some("http://10.0.0.3:8080"));
}

#[test]
fn what_counts_is_shown_with_its_origin() {
    let variables = [
        ("CELLBLOCK_SERVE__LIMITS__MEMORY", "1GiB"),
        (
            "CELLBLOCK_SERVE__PROVIDERS__LOCAL__BASE_URL",
            "http://127.0.0.1:8000/v1",
        ),
        ("CELLBLOCK_SERVE__PROVIDERS__LOCAL__MODELS", "[a, 'b*']"),
    ];
    let loaded = load(WHOLE, &variables).unwrap();
    let folder = loaded.file.as_deref().and_then(Path::parent).unwrap();
    let shown = loaded.show().replace(&format!("{}/", folder.display()), "");
    insta::assert_snapshot!(shown);
    // It can be read again, and says the same.
    let again = load(&shown, &[]).unwrap();
    let values = |loaded: &LoadedConfig| serde_json::to_value(&loaded.settings).unwrap();
    assert_eq!(values(&again), values(&loaded));
    let names = |loaded: &LoadedConfig| -> Vec<_> {
        let models = &loaded.settings.providers.models;
        models.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(&again), ["openai", "local"]);
    assert_eq!(names(&loaded), names(&again));
}

#[test]
fn defaults_are_a_configuration_too() {
    let loaded = load("", &[]).unwrap();
    assert_eq!(
        loaded.settings.limits.enforced(),
        cellblock_interpreter::limits::Limits::default()
    );
    assert_eq!(loaded.options().listen, "127.0.0.1:8080".parse().unwrap());
    assert_eq!(loaded.state(Path::new("/data")), Path::new("/data/gateway"));
    insta::assert_snapshot!(loaded.show());
}

#[cfg(not(feature = "kubernetes"))]
#[test]
fn pods_need_a_build_that_claims_them() {
    let text = "backend: kubernetes\nsandbox_allow_http: true\nkubernetes: {warm_pool: w}";
    assert_eq!(
        load(text, &[]).unwrap_err(),
        "read the configuration: cellblock.yaml:1:10: `backend`: this build lacks `kubernetes`: rebuild \
         with `--features kubernetes` (or `--features full`)"
    );
}

#[cfg(feature = "kubernetes")]
#[test]
fn mistakes_are_told_with_their_place_and_a_repair() {
    let mut told = String::new();
    for text in [
        "limits: {memry: 1}",
        "lissten: 8080",
        "frobnicate: 1",
        "limits:\n  memory: lots",
        "limits: {memory: 1MiB, cpus: 0, processes: 1, open_files: 2}",
        "limits: {cell_timeout: 400}",
        "limits: {cell_timeout: soon}",
        "turn: 5",
        "turn: {max_steps: -1}",
        "turn: {max_steps: 0}",
        "turn: {max_steps: 99999999999999999999999}",
        "tls: {certificates: a.pem}",
        "containers: {idle_timeout: 25h, max_per_key: 0}",
        "sessions: {idle_timeout: 25h}",
        "execute: {max_concurrent: 0, timeout: 2h}",
        "responses: {keep_alive: 0}",
        "quotas: {sandboxs: 1}",
        "metrics: {listen: here}",
        "listen: here",
        "advertise: 10.0.0.3:8080",
        "listen: 99999",
        "pool: {ready: true}",
        "image: 5",
        "[]",
        "text",
        "listen: 1\nlisten: 2",
        "a: [1\nb: 2",
        "a: *none",
        "1: 2",
        "protections: {demands: {firewall: strict}}",
        "protections: {demands: {landlock: maybe}}",
        "providers: {a: {type: chatt}}",
        "providers: {a: {type: 5}}",
        "providers: {a: {base_url: http://127.0.0.1/v1}}",
        "providers: {a: {type: chat}}",
        "providers: {a: {type: chat, base_urll: x}}",
        "providers: {a: {type: chat, base_url: localhost}}",
        "providers: {a: {type: chat, base_url: 'http://user:hunter2@h/v1'}}",
        "providers: {a: {type: chat, base_url: http://h/v1, api_key: sk-hunter2}}",
        "providers: {a: {type: chat, base_url: http://h/v1, key_env: A, key_file: b}}",
        "providers: {a: {type: chat, base_url: http://h/v1, key_env: CELLBLOCK_TEST_NO_SUCH_KEY}}",
        "providers: {a: {type: chat, base_url: http://h/v1, key_file: /nowhere/key}}",
        "providers: {a: {type: chat, base_url: http://h/v1, key_env: CARGO_PKG_NAME}}",
        "providers: {a: {type: chat, base_url: http://h/v1, models: ['*b', '']}}",
        "providers: {a: {type: chat, base_url: http://h/v1, models: gpt}}",
        "providers: {a: {type: chat, base_url: http://h/v1, retries: {count: 99}, timeouts: {idle: 0}}}",
        "providers: {a: {type: demo, base_url: http://h/v1, dialect: {}}}",
        "providers: {a: {type: scripted}}",
        "providers: {a: {type: scripted, script: /nowhere/script.yaml}}",
        "providers: {web_search: {enabled: true, settings: {}}}",
        "providers: {code_interpreter: {settings: {sandbox_url: http://h, sandbox_template: t}}}",
        "providers: {code_interpreter: {settings: {sandbox_template: t, sandbox_namespace: n}}}",
        "providers: {code_interpreter: {settings: {sandbox_namespace: n}}}",
        "providers: {code_interpreter: {settings: {execution_timeout: 301.5}}}",
        "providers: {code_interpreter: {settings: {execution_timeout: 10}}}\nlimits: {cell_timeout: 20}",
        "providers: {code_interpreter: {settings: {claim_timout: 10}}}",
        "providers: {code_interpreter: {settings: {claim_timeout: 0}}}",
        "providers: {code_interpreter: {settings: {sandbox_url: 'http://b'}}}\nsandbox_url: http://a",
        "sandbox_url: h:8080",
        "sandbox_url: 'http://user:hunter2@h:8080'",
        "sandbox_key_env: A\nsandbox_allow_http: true",
        "sandbox_url: http://h\nsandbox_key_env: A\nsandbox_key_file: b\nimage: mine",
        "sandbox_url: http://h\nsandbox_key_env: CELLBLOCK_TEST_NO_SUCH_KEY",
        "backend: kubernetes",
        "backend: kubernetes\nsandbox_url: http://h\nsandbox_allow_http: true\n\
         kubernetes: {warm_pool: w, template: t}",
        "backend: kubernetes\nsandbox_allow_http: true\nminimum_backend: gvisor\nimage: mine\n\
         kubernetes: {warm_pool: w, claim_timeout: 1m}",
        "kubernetes: {warm_pool: w}",
        "remote: {serve: maybe}",
    ] {
        let error = load(text, &[]).unwrap_err();
        assert!(!error.contains("hunter2"), "{error}");
        let _ = writeln!(told, "{text}\n    {}\n", error.replace('\n', "\n    "));
    }
    insta::assert_snapshot!(told);
}

#[test]
fn mistakes_in_variables_are_told_with_their_names() {
    let mut told = String::new();
    for (name, value) in [
        ("CELLBLOCK_SERVE__LISTNE", "8080"),
        ("CELLBLOCK_SERVE__LIMITS__MEMORY", "lots"),
        ("CELLBLOCK_SERVE__LIMITS", "5"),
        ("CELLBLOCK_SERVE__", "5"),
        ("CELLBLOCK_SERVE__LIMITS____MEMORY", "5"),
        ("CELLBLOCK_SERVE__PROVIDERS__OPEN_AI__KEY", "hunter2"),
        ("CELLBLOCK_SERVE__PROVIDERS__OPEN_AI__TYPE", "chatter"),
    ] {
        let error = load("providers: {open-ai: {type: demo}}", &[(name, value)]).unwrap_err();
        assert!(!error.contains("hunter2"), "{error}");
        let _ = writeln!(told, "{name}={value}\n    {error}\n");
    }
    insta::assert_snapshot!(told);
}

#[test]
fn where_code_runs_is_said_in_two_forms() {
    for text in [
        "sandbox_url: https://far.example\nlimits: {cell_timeout: 20}",
        "providers: {code_interpreter: {enabled: true, \
         settings: {sandbox_url: 'https://far.example', execution_timeout: 20.0}}}",
    ] {
        let loaded = load(text, &[]).unwrap();
        let site = loaded.site().unwrap().unwrap();
        assert_eq!(
            (site.url.as_str(), site.allow_plain),
            ("https://far.example", false)
        );
        assert!(site.key.is_none());
        let limits = loaded.settings.limits.enforced();
        assert_eq!(limits.cell_timeout, Duration::from_secs(20));
    }
    assert!(load("", &[]).unwrap().site().unwrap().is_none());
}

#[test]
fn variables_and_the_command_line_count_more_than_the_file() {
    let loaded = load(
        "listen: 1\nimage: a\nlimits: {memory: 1GiB, disk: 2GiB}",
        &[
            ("CELLBLOCK_SERVE__LISTEN", "2"),
            // Text that looks like a number.
            ("CELLBLOCK_SERVE__IMAGE", "5"),
            ("CELLBLOCK_SERVE__LIMITS__MEMORY", "3GiB"),
            ("CELLBLOCK_SERVE__PROVIDERS__X__TYPE", "demo"),
            ("CELLBLOCK_HOME", "/elsewhere"),
        ],
    );
    let settings = loaded.unwrap().settings;
    assert_eq!(settings.listen, "127.0.0.1:2".parse().unwrap());
    assert_eq!(settings.image.0, "5");
    assert_eq!(settings.limits.memory.0, 3 << 30);
    assert_eq!(settings.limits.disk.0, 2 << 30);
    assert_eq!(settings.providers.models[0].0, "x");
    let argument = Listen("127.0.0.1:3".parse().unwrap());
    let sources = Sources {
        file: None,
        listen: Some(argument),
        records: Some("postgres://ann@db/argument".to_owned()),
        variables: vec![("CELLBLOCK_SERVE__LISTEN".to_owned(), "2".to_owned())],
    };
    let loaded = sources.load().unwrap();
    assert_eq!(loaded.settings.listen, argument);
    let records = loaded.records(Path::new("/data")).unwrap();
    assert_eq!(format!("{records:?}"), "Postgres(postgres://db:5432/argument)");
}

#[test]
fn records_are_in_a_file_or_in_the_database_of_a_url_whose_password_is_elsewhere() {
    let home = Path::new("/data");
    let place = |text: &str| format!("{:?}", load(text, &[]).unwrap().records(home).unwrap());
    assert_eq!(place("state: /s"), "File(\"/s/records.sqlite\")");
    assert_eq!(
        place("records: postgres://ann@db.example:6000/x"),
        "Postgres(postgres://db.example:6000/x)"
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("url");
    std::fs::write(&file, "postgres://ann:s3cret@db.example/x\n").unwrap();
    assert_eq!(
        place(&format!("records: {{file: {}}}", file.display())),
        "Postgres(postgres://db.example:5432/x)"
    );
    std::fs::write(&file, "mysql://ann:s3cret@db.example/x\n").unwrap();
    let loaded = load(&format!("records: {{file: {}}}", file.display()), &[]).unwrap();
    let error = loaded.records(home).unwrap_err().to_string();
    assert!(
        error.contains("`records`: must be a URL such as") && !error.contains("s3cret"),
        "{error}"
    );
    for (text, expected) in [
        (
            "records: postgres://ann:s3cret@db.example/x",
            "must not contain a password; read the URL with `{env: NAME}` or `{file: PATH}`",
        ),
        (
            "records: postgres://ann@db.example/x?sslmode=prefer",
            "has an `sslmode` that could send everything unencrypted",
        ),
        (
            "records: {env: A, file: b}",
            "must have `env`, an environment variable, or `file`",
        ),
        ("records: records.sqlite", "must be a URL such as"),
    ] {
        let error = load(text, &[]).unwrap_err();
        assert!(
            error.contains("cellblock.yaml:1:") && error.contains("`records`") && error.contains(expected),
            "{error}"
        );
        assert!(!error.contains("s3cret"), "{error}");
    }
}

#[test]
fn paths_count_from_the_file_and_a_script_is_read_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cellblock.yaml");
    std::fs::write(
        &file,
        "state: here\nproviders: {s: {type: scripted, script: script.yaml, models: [s]}}\n",
    )
    .unwrap();
    let sources = || Sources {
        file: Some(file.clone()),
        ..Sources::default()
    };
    let script = folder.path().join("script.yaml");
    std::fs::write(
        &script,
        "answers:\n  - text: hello\n    fail: {status: 503}\n  - fail: cut\n",
    )
    .unwrap();
    let loaded = sources().load().unwrap();
    assert!(loaded.models(Models::default()).unwrap().provider("s").is_ok());
    assert_eq!(loaded.state(Path::new("/data")), folder.path().join("here"));
    std::fs::write(&script, "answers:\n  - txt: hello\n").unwrap();
    let error = loaded.models(Models::default()).unwrap_err();
    assert_eq!(
        told(&error, folder.path()),
        "read the configuration: cellblock.yaml:2:41: `providers.s.script`: read the configuration: \
         script.yaml:2:5: `answers.0.txt`: unknown key; did you mean `text`?"
    );
}

#[test]
fn a_file_that_is_not_there_or_too_large_is_told() {
    let sources = Sources {
        file: Some(PathBuf::from("/nowhere/cellblock.yaml")),
        ..Sources::default()
    };
    let error = sources.load().unwrap_err();
    assert_eq!(
        error.to_string(),
        "read the configuration `/nowhere/cellblock.yaml`"
    );
    let error = load(&"# x\n".repeat(1 << 19), &[]).unwrap_err();
    assert_eq!(error, "read the configuration `cellblock.yaml`");
}

#[test]
fn the_schema_accepts_what_is_read_and_refuses_what_is_not() {
    let schema = Schema::new(&serde_json::from_str(&schema()).unwrap()).unwrap();
    let json = |text: &str| serde_saphyr::from_str::<serde_json::Value>(text).unwrap();
    for text in [
        WHOLE,
        "{}",
        "listen: 80",
        "limits: {memory: 1000, cell_timeout: 1.5}",
    ] {
        let checked = schema.check(&json(text));
        assert!(checked.is_ok(), "{text}: {checked:?}");
    }
    for text in [
        "lissten: 80",
        "limits: {memory: lots}",
        "providers: {a: {type: chatt}}",
        "providers: {a: {base_url: x}}",
        "turn: {max_steps: -1}",
    ] {
        assert!(schema.check(&json(text)).is_err(), "{text}");
    }
}
