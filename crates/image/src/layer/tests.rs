//! Tests of requirements without a package index.

use super::*;

#[test]
fn the_key_depends_on_the_image_but_not_on_the_order_of_requirements() {
    let parse = |all: &[&str]| {
        let mut all: Vec<Requirement> = all.iter().map(|it| it.parse().unwrap()).collect();
        all.sort();
        all
    };
    let one = key("a", &parse(&["rich>=13", "Six"]));
    assert_eq!(one, key("a", &parse(&["six", "rich >= 13"])));
    assert_ne!(one, key("b", &parse(&["six", "rich >= 13"])));
    assert_ne!(one, key("a", &parse(&["six"])));
}

#[test]
fn forgetting_an_image_removes_its_layers_and_keeps_those_of_others() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path()).unwrap();
    fs::create_dir_all(home.layer_index()).unwrap();
    let record = |key: &str, image: &str, id: char| {
        let id = String::from(id).repeat(64);
        fs::create_dir_all(home.layers().join(&id)).unwrap();
        let record = Record {
            id,
            image: image.to_owned(),
            packages: Vec::new(),
        };
        fs::write(
            home.layer_index().join(key),
            serde_json::json!(record).to_string(),
        )
        .unwrap();
    };
    record("one", "gone", 'a');
    record("two", "gone", 'b');
    record("three", "kept", 'b');
    forget_image(&home, "gone").unwrap();
    assert_eq!(names(&home.layer_index()).unwrap(), ["three"]);
    assert_eq!(names(&home.layers()).unwrap(), ["b".repeat(64)]);
}
