//! Datasets that sessions of a caller's project share.

use reqwest::StatusCode;
use serde_json::json;

use crate::support::{Api, block_on};

const PUBLISH: &str =
    "_ = publish_dataset(pd.DataFrame({'x': [1, 2], 'y': ['a', None]}), 'gdp', title='GDP', tags='macro')";

#[test]
fn a_session_loads_a_dataset_of_its_project_once_it_has_looked() {
    block_on(async {
        let api = Api::of("projects").await;
        let in_project = json!({"toolset": "notebook", "project": "macro"});
        let (one, other) = (api.session(&in_project).await, api.session(&in_project).await);
        let published = api.run(&one, PUBLISH).await;
        assert_eq!(published["outcome"], "completed", "{published}");
        let load = "load_dataset('gdp')['x'].sum()";
        let refused = api.run(&other, load).await;
        assert_eq!(refused["error"]["type"], "LoadDatasetError", "{refused}");

        let id = other.rsplit('/').next().unwrap();
        let path = format!("/v1/projects/macro/datasets/gdp?session={id}");
        let (status, dataset) = api.get(&path).await;
        assert_eq!(
            (status, &dataset["title"]),
            (StatusCode::OK, &json!("GDP")),
            "{dataset}"
        );
        assert_eq!(
            dataset["current"]["columns"][1],
            json!({"name": "y", "dtype": "str"})
        );
        let loaded = api.run(&other, load).await;
        assert_eq!(loaded["outputs"][0]["value"], 3, "{loaded}");

        // A creator can name what a session may load.
        let seen = json!({"toolset": "notebook", "project": "macro", "seen": ["gdp"]});
        let third = api.session(&seen).await;
        assert_eq!(api.run(&third, load).await["outputs"][0]["value"], 3);
        let (_, session) = api.get(&third).await;
        assert_eq!(session["project"], "macro");

        let (_, list) = api.get("/v1/projects/macro/datasets").await;
        assert_eq!(list["data"][0]["slug"], "gdp");
        let (_, versions) = api.get("/v1/projects/macro/datasets/gdp/versions").await;
        assert_eq!(versions["data"].as_array().unwrap().len(), 1, "{versions}");
        let csv = api
            .raw("/v1/projects/macro/datasets/gdp/content?format=csv")
            .await;
        assert_eq!(csv.headers()["content-type"], "text/csv; charset=utf-8");
        assert_eq!(csv.text().await.unwrap(), "x,y\n1,a\n2,\n");
        let parquet = api.raw("/v1/projects/macro/datasets/gdp/content").await;
        assert!(parquet.bytes().await.unwrap().starts_with(b"PAR1"));
        let (status, _) = api.delete("/v1/projects/macro/datasets/gdp").await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(api.get(&path).await.0, StatusCode::NOT_FOUND);
        for session in [&one, &other, &third] {
            api.end(session).await;
        }
    });
}

#[test]
fn a_project_belongs_to_one_caller() {
    block_on(async {
        let (api, thief) = (Api::of("owner").await, Api::of("thief of datasets").await);
        let in_project = json!({"project": "macro"});
        let session = api.session(&in_project).await;
        api.run(&session, PUBLISH).await;
        let id = session.rsplit('/').next().unwrap();
        for path in ["gdp", "gdp/versions", "gdp/content", &format!("gdp?session={id}")] {
            let (status, answer) = thief.get(&format!("/v1/projects/macro/datasets/{path}")).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{answer}");
        }
        let (_, list) = thief.get("/v1/projects/macro/datasets").await;
        assert_eq!(list["data"], json!([]));
        let theirs = thief.session(&in_project).await;
        let cell = thief.run(&theirs, "list_datasets()").await;
        assert_eq!(cell["outputs"][0]["value"], "[]", "{cell}");
        thief.end(&theirs).await;
        api.end(&session).await;
    });
}

#[test]
fn requests_that_cannot_have_a_project_are_rejected_with_the_reason() {
    block_on(async {
        let api = Api::of("no projects").await;
        for (body, cause) in [
            (json!({"project": "A B"}), "is not a valid name"),
            (
                json!({"toolset": "derivation", "project": "macro"}),
                "leave the project out",
            ),
            (json!({"seen": ["gdp"]}), "give `project`, too"),
        ] {
            let (status, refused) = api.post("/v1/sessions", &body).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
            assert!(refused.to_string().contains(cause), "{cause}: {refused}");
        }
        let (status, refused) = api.get("/v1/projects/..%2Fx/datasets").await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
        let session = api.session(&json!({"project": "other"})).await;
        api.run(&session, PUBLISH).await;
        let outside = api.session(&json!({})).await;
        let id = outside.rsplit('/').next().unwrap();
        let (status, refused) = api
            .get(&format!("/v1/projects/other/datasets/gdp?session={id}"))
            .await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
        assert!(refused.to_string().contains("is not in the project"), "{refused}");
        for session in [&session, &outside] {
            api.end(session).await;
        }
    });
}
