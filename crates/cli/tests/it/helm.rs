//! The chart renders what a cluster accepts, what the gateway reads, and no more rights than it uses.

use std::io::Write as _;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use cellblock_kubernetes::{KubernetesOptions, permissions};
use cellblock_testkit::{Cli, require, workspace_root};
use serde_json::{Value, json};

/// Renders the chart with these values, as YAML documents.
fn render(values: &[&str]) -> Result<Vec<Value>> {
    let mut command = Command::new("helm");
    command
        .args(["template", "demo"])
        .arg(workspace_root().join("deploy/helm/cellblock"));
    for value in values {
        command.args(["--set", value]);
    }
    let output = command.output()?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout)?;
    let documents = text.split("\n---\n").filter(|it| it.contains("kind:"));
    documents.map(|it| Ok(serde_saphyr::from_str(it)?)).collect()
}

fn find<'a>(documents: &'a [Value], kind: &str) -> Result<&'a Value> {
    let found = documents.iter().find(|it| it["kind"] == kind);
    found.with_context(|| format!("the chart renders no {kind}"))
}

/// Checks built-in kinds against the schemas of Kubernetes, without unknown fields.
fn validate(documents: &[Value]) -> Result<()> {
    let mut file = tempfile::Builder::new().suffix(".yaml").tempfile()?;
    for document in documents {
        writeln!(file, "---\n{document}")?;
    }
    let output = Command::new("kubernetes-validate")
        .args(["--strict", "-k", "1.33"])
        .arg(file.path())
        .output()?;
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{said}");
    Ok(())
}

const EVERYTHING: [&str; 7] = [
    "podKeySecret=keys",
    "gateway.replicas=3",
    "gateway.envSecret=models",
    "gateway.recordsSecret=records",
    "serviceMonitor.enabled=true",
    "serviceMonitor.keySecret=scraper",
    "pods.runtimeClassName=gvisor",
];

#[test]
fn the_chart_passes_lint_and_needs_a_key_for_pods() -> Result<()> {
    require!(Helm);
    let lint = Command::new("helm")
        .args(["lint", "--strict", "--set", "podKeySecret=keys"])
        .arg(workspace_root().join("deploy/helm/cellblock"))
        .output()?;
    let said = String::from_utf8_lossy(&lint.stdout).into_owned();
    ensure!(lint.status.success(), "{said}");
    let error = render(&[]).unwrap_err().to_string();
    assert!(error.contains("podKeySecret is required"), "{error}");
    let error = render(&[
        "podKeySecret=k",
        "gateway.replicas=2",
        "gateway.persistentVolumeClaim=p",
    ]);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("two gateways cannot share one state"), "{error}");
    Ok(())
}

#[test]
fn what_the_chart_renders_is_valid_and_pods_are_restricted() -> Result<()> {
    require!(Helm);
    for values in [&EVERYTHING[..1], &EVERYTHING[..]] {
        let documents = render(values)?;
        let template = find(&documents, "SandboxTemplate")?;
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"},
            "spec": template["spec"]["podTemplate"]["spec"],
        });
        let own = ["SandboxTemplate", "SandboxWarmPool", "ServiceMonitor"];
        let mut builtin: Vec<_> = documents
            .iter()
            .filter(|it| !own.contains(&it["kind"].as_str().unwrap_or_default()))
            .cloned()
            .collect();
        builtin.push(pod);
        validate(&builtin)?;
        // A misspelled field is an error, so the validation is one.
        builtin[0]["spec"]["replicsa"] = json!(1);
        assert!(validate(&builtin).is_err());

        assert_eq!(template["spec"]["networkPolicy"]["egress"], json!([]));
        let from = &template["spec"]["networkPolicy"]["ingress"][0]["from"][0]["podSelector"]["matchLabels"];
        assert_eq!(from["app.kubernetes.io/component"], "gateway");
        let pod = &template["spec"]["podTemplate"]["spec"];
        assert_eq!(pod["automountServiceAccountToken"], false);
        assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        let gateway = &find(&documents, "Deployment")?["spec"]["template"]["spec"];
        for spec in [pod, gateway] {
            for containers in ["initContainers", "containers"] {
                for container in spec[containers].as_array().into_iter().flatten() {
                    let context = &container["securityContext"];
                    assert_eq!(
                        (
                            &context["readOnlyRootFilesystem"],
                            &context["allowPrivilegeEscalation"]
                        ),
                        (&json!(true), &json!(false)),
                        "{container}"
                    );
                    assert_eq!(context["capabilities"], json!({"drop": ["ALL"]}));
                }
            }
        }
        // Gateways forward requests only if they share records.
        let env = gateway["containers"][0]["env"].as_array().context("env")?;
        let advertises = env.iter().any(|it| it["name"] == "CELLBLOCK_SERVE__ADVERTISE");
        assert_eq!(advertises, values.contains(&"gateway.recordsSecret=records"));
        // The key is mounted only where it is imported.
        let mounts = pod["containers"][0]["volumeMounts"]
            .as_array()
            .context("mounts")?;
        assert!(mounts.iter().all(|mount| mount["name"] != "pod-key"));
    }
    Ok(())
}

#[test]
fn a_gateway_is_killed_only_after_it_could_drain() -> Result<()> {
    require!(Helm);
    for (values, grace, killed_after) in [
        (&["podKeySecret=keys"][..], "30", 55),
        (
            &[
                "podKeySecret=keys",
                "gateway.graceSeconds=300",
                "gateway.preStopSeconds=10",
            ],
            "300",
            330,
        ),
    ] {
        let documents = render(values)?;
        let gateway = &find(&documents, "Deployment")?["spec"]["template"]["spec"];
        assert_eq!(gateway["terminationGracePeriodSeconds"], killed_after);
        let container = &gateway["containers"][0];
        assert_eq!(container["lifecycle"]["preStop"]["exec"]["command"][0], "sleep");
        let args = container["args"].as_array().context("args")?;
        let at = args.iter().position(|it| it == "--grace").context("--grace")?;
        assert_eq!(args.get(at + 1), Some(&json!(grace)));
    }
    Ok(())
}

/// The rules of the chart's Role, also without Helm: the file has one condition.
fn rules(warm_pool: bool) -> Result<Value> {
    let file = workspace_root().join("deploy/helm/cellblock/templates/rbac.yaml");
    let text = std::fs::read_to_string(file)?;
    let mut lines = Vec::new();
    let mut is_rendered = true;
    for line in text.lines() {
        match line.trim() {
            "{{- if .Values.pods.warmPool }}" => is_rendered = warm_pool,
            "{{- else }}" => is_rendered = !warm_pool,
            "{{- end }}" => is_rendered = true,
            _ if is_rendered => lines.push(line),
            _ => {}
        }
    }
    let text = lines.join("\n");
    let (_, rules) = text.split_once("\nrules:\n").context("rules")?;
    let (rules, _) = rules.split_once("\n---").context("the end of the rules")?;
    Ok(serde_saphyr::from_str(rules)?)
}

#[test]
fn the_role_has_exactly_the_verbs_that_the_gateway_uses_with_a_pool_and_with_a_template() -> Result<()> {
    for warm_pool in [true, false] {
        let name = Some("demo".to_owned());
        let options = KubernetesOptions {
            warm_pool: name.clone().filter(|_| warm_pool),
            template: name.filter(|_| !warm_pool),
            ..KubernetesOptions::default()
        };
        let mut used: Vec<_> = permissions(&options)
            .iter()
            .map(|it| [it.group, it.resource, it.verb].map(str::to_owned))
            .collect();
        let mut granted = Vec::new();
        for rule in rules(warm_pool)?.as_array().into_iter().flatten() {
            for verb in rule["verbs"].as_array().into_iter().flatten() {
                let parts = [&rule["apiGroups"][0], &rule["resources"][0], verb];
                granted.push(parts.map(|part| part.as_str().unwrap_or_default().to_owned()));
            }
        }
        granted.sort();
        used.sort();
        assert_eq!(granted, used, "warm pool: {warm_pool}");
    }
    Ok(())
}

#[test]
fn what_helm_renders_has_a_role_in_one_namespace() -> Result<()> {
    require!(Helm);
    for warm_pool in [true, false] {
        let documents = render(&["podKeySecret=keys", &format!("pods.warmPool={warm_pool}")])?;
        assert_eq!(find(&documents, "Role")?["rules"], rules(warm_pool)?);
        assert_eq!(find(&documents, "SandboxWarmPool").is_ok(), warm_pool);
        assert!(documents.iter().all(|it| it["kind"] != "ClusterRole"));
        let config = find(&documents, "ConfigMap")?["data"]["cellblock.yaml"].clone();
        let source = if warm_pool {
            "warm_pool: demo"
        } else {
            "template: demo"
        };
        assert!(
            config.as_str().is_some_and(|config| config.contains(source)),
            "{config}"
        );
    }
    Ok(())
}

#[test]
fn gateway_and_pods_read_the_configuration_that_the_chart_writes() -> Result<()> {
    require!(Helm);
    let documents = render(&EVERYTHING)?;
    let config = find(&documents, "ConfigMap")?;
    for (file, line) in [
        ("cellblock.yaml", "warm_pool: demo"),
        ("cellblock.yaml", "file: /run/secrets/records/url"),
        ("pod.yaml", "serve: true"),
    ] {
        let text = config["data"][file].as_str().context("a configuration")?;
        let (_folder, path) = crate::support::folder(&[("cellblock.yaml", text.as_bytes())])?;
        let finished = Cli::new(["config", "show"]).folder(&path).run()?;
        assert_eq!(finished.code(), 0, "{}", finished.stderr);
        assert!(finished.stdout.contains(line), "{}", finished.stdout);
    }
    Ok(())
}
