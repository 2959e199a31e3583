//! Results that take seconds to find out and do not change while this process runs.

use cellblock_sandbox::Result;
use tokio::sync::Mutex;

/// Remembered answers to questions. Failures are not remembered: people repair them.
#[derive(Debug)]
pub(crate) struct AnswerCache<Q, A>(Mutex<Vec<(Q, A)>>);

impl<Q: Clone + Eq + Send, A: Clone + Send> AnswerCache<Q, A> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::const_new(Vec::new()))
    }

    /// Returns what is known, or finds it out; callers with the same question wait for each other.
    pub(crate) async fn find(
        &self,
        question: &Q,
        finding: impl Future<Output = Result<A>> + Send,
    ) -> Result<A> {
        let mut known = self.0.lock().await;
        if let Some((_, answer)) = known.iter().find(|(asked, _)| asked == question) {
            return Ok(answer.clone());
        }
        let answer = finding.await?;
        known.push((question.clone(), answer.clone()));
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cellblock_sandbox::Error;

    #[tokio::test]
    async fn an_answer_is_found_once_and_a_failure_is_not_remembered() {
        let known = AnswerCache::new();
        let failed = known
            .find(&1, async { Err(Error::missing_protection("none".to_owned())) })
            .await;
        assert!(failed.is_err());
        assert_eq!(known.find(&1, async { Ok("one") }).await.unwrap(), "one");
        let again = known.find(&1, async { unreachable!("it is known") }).await;
        assert_eq!(again.unwrap(), "one");
        assert_eq!(known.find(&2, async { Ok("two") }).await.unwrap(), "two");
    }
}
