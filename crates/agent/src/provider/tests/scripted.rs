//! The scripted provider: answers as they were written, in order.

use super::{events, request};
use crate::provider::scripted::{ScriptedAnswer, ScriptedProvider};
use crate::provider::{Finish, ModelEvent, ProviderError};
use crate::wire::TokenUsage;

#[tokio::test]
async fn each_request_takes_the_next_answer_and_is_kept() {
    let provider = ScriptedProvider::new([
        ScriptedAnswer::new()
            .reasoning("hm")
            .call("c1", "code_interpreter", r#"{"code":"1"}"#),
        ScriptedAnswer::new().text("It is one, I am sure"),
        ScriptedAnswer::new().text("half").fails(ProviderError::Cut),
    ]);
    let usage = |tokens| {
        ModelEvent::Usage(TokenUsage {
            output_tokens: tokens,
            total_tokens: tokens,
            ..TokenUsage::default()
        })
    };
    let (id, name) = ("c1".to_owned(), "code_interpreter".to_owned());
    assert_eq!(
        events(&provider).await.0,
        [
            ModelEvent::Reasoning("hm".to_owned()),
            ModelEvent::CallBegin { call: 0, id, name },
            ModelEvent::Arguments {
                call: 0,
                delta: r#"{"code":"1"}"#.to_owned()
            },
            ModelEvent::CallEnd { call: 0 },
            usage(3),
            ModelEvent::Finish(Finish::Calls),
        ]
    );
    let pieces = ["It is one, I", " am sure"].map(|text| ModelEvent::Text(text.to_owned()));
    assert_eq!(events(&provider).await.0[..2], pieces);
    let (half, error) = events(&provider).await;
    assert_eq!(half, [ModelEvent::Text("half".to_owned())]);
    assert!(matches!(error, Some(ProviderError::Cut)));
    let (_, error) = events(&provider).await;
    assert_eq!(
        error.unwrap().to_string(),
        "read the provider's answer: the script has no answer left"
    );
    assert_eq!(provider.asked(), vec![request(); 4]);
}
