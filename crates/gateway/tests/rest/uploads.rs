//! Uploads beyond quotas, beyond what may be received at a time, and beyond their time.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use cellblock_gateway::Options;
use cellblock_gateway::keys::KeyTerms;
use cellblock_testkit::UploadProbe;
use reqwest::StatusCode;
use serde_json::json;
use tempfile::TempDir;

use crate::support::{Api, block_on, gateway, serve};

/// Bytes that a key may upload on a day.
const QUOTA: u64 = 1 << 20;

/// A server whose uploads stand in a folder, and a key of it.
struct UploadServer {
    address: SocketAddr,
    api: Api,
    folder: TempDir,
}

impl UploadServer {
    async fn start(change: impl FnOnce(&mut Options)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::default();
        options.quotas.upload_bytes_per_day = Some(QUOTA);
        options.uploads.timeout = Duration::from_secs(10);
        options.uploads.folder = Some(folder.path().to_owned());
        change(&mut options);
        let gateway = gateway(options).await;
        let made = gateway.keys.create("uploads", KeyTerms::default()).await;
        let key = made.unwrap().1.reveal();
        let address = serve(gateway.router()).await;
        Self {
            api: Api::at(address).with_key(&key),
            address,
            folder,
        }
    }

    fn probe(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> UploadProbe {
        let key = format!("Bearer {}", self.api.key());
        let mut all = vec![("authorization", &*key)];
        all.extend(headers);
        UploadProbe::new(self.address, method, path, &all, self.folder.path())
    }
}

#[test]
fn files_volumes_inputs_and_datasets_of_sessions_are_refused_before_and_while_they_come() {
    block_on(async {
        let server = UploadServer::start(|_| {}).await;
        let session = server
            .api
            .session(&json!({"toolset": "workbench", "volume": "kept"}))
            .await;
        let bytes = ("content-type", "application/octet-stream");
        for (method, path) in [
            ("PUT", "files/workspace/a.bin"),
            ("PUT", "files/workspace/volume/a.bin"),
            ("PUT", "inputs/data"),
            ("POST", "datasets?name=a.csv"),
        ] {
            let probe = server.probe(method, &format!("{session}/{path}"), &[bytes]);
            probe.assert_bounded(QUOTA).await;
        }
        let small = format!("{session}/files/workspace/a.bin");
        let (status, written) = server.api.put(&small, bytes.1, b"abc".to_vec()).await;
        assert_eq!(status, StatusCode::OK, "{written}");
        assert_eq!(left(server.folder.path()), 0);
        server.api.end(&session).await;
    });
}

#[test]
fn files_of_openai_and_anthropic_and_of_containers_are_refused_before_and_while_they_come() {
    block_on(async {
        let server = UploadServer::start(|_| {}).await;
        let (status, container) = server.api.post("/v1/containers", &json!({"name": "mine"})).await;
        assert_eq!(status, StatusCode::OK, "{container}");
        let of_container = format!("/v1/containers/{}/files", container["id"].as_str().unwrap());
        let anthropic = ("anthropic-version", "2023-06-01");
        for (path, headers) in [
            ("/v1/files", &[][..]),
            ("/v1/files", &[anthropic]),
            (&*of_container, &[]),
        ] {
            let probe = server.probe("POST", path, headers);
            let probe = probe.in_a_form(&[("purpose", "user_data")]);
            probe.assert_bounded(QUOTA).await;
        }
        let (_, files) = server.api.get("/v1/files").await;
        assert_eq!(files["data"], json!([]));
    });
}

#[test]
fn a_file_for_which_there_is_no_storage_is_refused_before_it_comes() {
    block_on(async {
        let server = UploadServer::start(|options| {
            options.quotas.upload_bytes_per_day = None;
            options.quotas.stored_bytes = Some(QUOTA);
        })
        .await;
        let probe = server
            .probe("POST", "/v1/files", &[])
            .in_a_form(&[("purpose", "vision")]);
        for answer in [probe.declared(4 << 20).await, probe.chunked(QUOTA).await] {
            assert_eq!(answer.status, 429, "{answer:?}");
            let words = "`stored_bytes` of this key is used up: its limit is 1048576 bytes";
            assert!(answer.text.contains(words), "{answer:?}");
            assert!(answer.spooled <= QUOTA, "{answer:?}");
        }
    });
}

#[test]
fn uploads_are_bounded_in_size_and_in_bytes_at_a_time() {
    block_on(async {
        let server = UploadServer::start(|options| {
            options.quotas.upload_bytes_per_day = None;
            options.sessions.max_upload = QUOTA;
            options.uploads.max_bytes_per_key = QUOTA / 2;
            options.uploads.timeout = Duration::from_mins(1);
        })
        .await;
        let session = server.api.session(&json!({})).await;
        let path = format!("{session}/files/workspace/a.bin");
        let probe = server.probe("PUT", &path, &[]);
        let large = probe.declared(QUOTA + 1).await;
        assert_eq!(large.status, 413, "{large:?}");
        let words = "the file has 1048577 bytes, `sessions.max_upload` allows 1048576; send a smaller file";
        assert!(large.text.contains(words), "{large:?}");
        let busy = [probe.declared(QUOTA).await, probe.chunked(QUOTA / 2).await];
        for answer in busy {
            assert_eq!(answer.status, 429, "{answer:?}");
            let words =
                "`uploads.max_bytes_per_key` allows 524288 at a time; wait until another upload has ended";
            assert!(answer.text.contains(words), "{answer:?}");
            assert!(answer.spooled <= QUOTA / 2, "{answer:?}");
        }
        assert_eq!(probe.spooled(), 0);
        server.api.end(&session).await;
    });
}

/// Files in the folder that have a name, apart from its lock.
fn left(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count() - 1
}
