//! Lists of models, from providers that answer, are down, or are slow.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cellblock_agent::provider::scripted::{ScriptedAnswer, ScriptedProvider};
use cellblock_agent::provider::{ModelRequest, ModelStream, OwnModel, Provider, ProviderError};
use cellblock_agent::wire::{FunctionCallOutput, FunctionOutput, Item, ItemStatus, Message, Part, Role};
use futures_util::future::BoxFuture;

use super::{ModelListOptions, Models, Offer};

/// Lists models, or fails, or never answers; and counts how often it was asked.
#[derive(Debug)]
struct Lister {
    has: Result<Vec<&'static str>, bool>,
    asked: AtomicUsize,
}

impl Lister {
    fn with(has: &[&'static str]) -> Arc<Self> {
        let has = Ok(has.to_vec());
        let asked = AtomicUsize::new(0);
        Arc::new(Self { has, asked })
    }

    fn broken(slow: bool) -> Arc<Self> {
        let asked = AtomicUsize::new(0);
        Arc::new(Self {
            has: Err(slow),
            asked,
        })
    }
}

impl Provider for Lister {
    fn stream(&self, _: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ProviderError>> {
        Box::pin(std::future::ready(Err(ProviderError::Cut)))
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<OwnModel>, ProviderError>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        match &self.has {
            Ok(ids) => {
                let own = |id: &&str| OwnModel {
                    id: (*id).to_owned(),
                    created: Some(7),
                };
                Box::pin(std::future::ready(Ok(ids.iter().map(own).collect())))
            }
            Err(true) => Box::pin(std::future::pending()),
            Err(false) => Box::pin(std::future::ready(Err(ProviderError::Cut))),
        }
    }
}

fn offer(name: &str, patterns: &[&str], provider: Arc<dyn Provider>) -> Offer {
    Offer {
        name: name.to_owned(),
        patterns: patterns.iter().map(|pattern| (*pattern).to_owned()).collect(),
        rename: [].into(),
        vision: true,
        provider,
    }
}

fn quick() -> ModelListOptions {
    ModelListOptions {
        list_timeout: Duration::from_millis(50),
        ..ModelListOptions::default()
    }
}

async fn listed(models: &Models) -> Vec<(String, String)> {
    let listed = models.list().await.into_iter();
    listed.map(|model| (model.id, model.owned_by)).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(one, other)| ((*one).to_owned(), (*other).to_owned()))
        .collect()
}

#[tokio::test]
async fn a_list_has_names_and_what_providers_have_for_patterns() {
    let ours = Lister::with(&["gpt-5", "gpt-5-mini", "o9"]);
    let mut renamed = offer(
        "local",
        &["qwen3", "*"],
        Lister::with(&["gpt-5", "qwen3", "llama"]),
    );
    renamed.rename = [("fast".to_owned(), "llama".to_owned())].into();
    let models = Models::default()
        .offer(offer(
            "openai",
            &["gpt-*"],
            Arc::clone(&ours) as Arc<dyn Provider>,
        ))
        .offer(renamed);
    let expected = [
        ("fast", "local"),
        ("qwen3", "local"),
        ("gpt-5", "openai"),
        ("gpt-5-mini", "openai"),
        ("llama", "local"),
    ];
    assert_eq!(listed(&models).await, pairs(&expected));
    assert_eq!(models.find("gpt-5").await.unwrap().created, 7);
    assert!(models.find("fast").await.unwrap().created > 7);
    assert_eq!(models.find("gpt-4").await, None);
    // One question answered all of these.
    assert_eq!(ours.asked.load(Ordering::Relaxed), 1);
}

#[test]
fn the_closest_pattern_counts_and_the_first_of_equals() {
    let any = || Lister::with(&[]) as Arc<dyn Provider>;
    let models = Models::default()
        .offer(offer("rest", &["*"], any()))
        .offer(offer("short", &["gpt-*"], any()))
        .offer(offer("long", &["gpt-5*"], any()))
        .offer(offer("name", &["gpt-5-mini"], any()))
        .offer(offer("late", &["gpt-5*", "gpt-5-mini"], any()));
    for (model, place) in [("llama", 0), ("gpt-4", 1), ("gpt-5", 2), ("gpt-5-mini", 3)] {
        assert_eq!(models.place(model), Some(place), "{model}");
    }
    assert_eq!(Models::default().place("llama"), None);
}

#[tokio::test]
async fn a_provider_that_is_down_or_slow_does_not_break_the_list() {
    let slow = Lister::broken(true);
    let models = Models::default()
        .offer(offer(
            "slow",
            &["a", "slow-*"],
            Arc::clone(&slow) as Arc<dyn Provider>,
        ))
        .offer(offer("down", &["b", "down-*"], Lister::broken(false)))
        .offer(offer("up", &["*"], Lister::with(&["c"])))
        .options(quick());
    let expected = [("a", "slow"), ("b", "down"), ("c", "up")];
    assert_eq!(listed(&models).await, pairs(&expected));
    assert_eq!(listed(&models).await, pairs(&expected));
    assert_eq!(slow.asked.load(Ordering::Relaxed), 1);
    // Nobody knows better than to try.
    assert_eq!(models.find("slow-1").await.unwrap().owned_by, "slow");
    assert_eq!(models.find("none").await, None);
}

#[tokio::test]
async fn a_list_that_is_not_remembered_is_asked_for_each_time() {
    let lister = Lister::with(&["m"]);
    let options = ModelListOptions {
        list_cache: Duration::ZERO,
        ..quick()
    };
    let offered = offer("one", &["*"], Arc::clone(&lister) as Arc<dyn Provider>);
    let models = Models::default().offer(offered).options(options);
    for count in 1..=2 {
        assert_eq!(listed(&models).await.len(), 1);
        assert_eq!(lister.asked.load(Ordering::Relaxed), count);
    }
}

fn picture() -> Part {
    Part::InputImage {
        image_url: Some("data:".to_owned()),
        file_id: None,
        detail: "auto".to_owned(),
    }
}

#[tokio::test]
async fn a_model_is_asked_under_its_own_name_and_without_pictures_that_it_cannot_see() {
    let scripted = Arc::new(ScriptedProvider::new([
        ScriptedAnswer::new(),
        ScriptedAnswer::new(),
    ]));
    let mut offered = offer("local", &["qwen3"], Arc::clone(&scripted) as Arc<dyn Provider>);
    offered.rename = [("fast".to_owned(), "qwen3".to_owned())].into();
    offered.vision = false;
    let models = Models::default().offer(offered);
    let parts = |text: &str| {
        let text = text.to_owned();
        vec![Part::InputText { text }]
    };
    let output = |parts| {
        Item::FunctionCallOutput(FunctionCallOutput {
            caller: None,
            id: "fco".to_owned(),
            status: ItemStatus::Completed,
            call_id: "a".to_owned(),
            output: FunctionOutput::Parts(parts),
        })
    };
    let shown = Item::Message(Message {
        id: "msg_1".to_owned(),
        status: ItemStatus::Completed,
        role: Role::User,
        content: vec![picture()],
        phase: None,
    });
    for model in ["fast", "qwen3"] {
        let request = ModelRequest::new(model, vec![shown.clone(), output(vec![picture()])]);
        let provider = models.provider(model).unwrap();
        drop(provider.stream(request).await.unwrap());
    }
    for asked in scripted.asked() {
        assert_eq!(asked.model, "qwen3");
        assert_eq!(
            asked.items,
            [shown.clone(), output(parts("(a picture, which the user sees)"))]
        );
    }
    assert_eq!(
        models.provider("slow").err().unwrap().code.as_deref(),
        Some("model_not_found")
    );
}
