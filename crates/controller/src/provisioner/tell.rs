//! Tells pods what was decided of them, after what was decided is done: claims never wait for words.
//!
//! One pod is told one thing at a time, the newest; good news comes first, and bad news is told in peace, so that
//! thousands of pods that get nothing do not fill the API server with it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use scarpenter_api::condition::Status;
use scarpenter_core::pod::PodKey;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::write::set_condition;
use crate::context::Context;
use crate::event::Severity;

/// So many pods are told at a time.
const PARALLEL: usize = 10;
/// After so many that were told bad news there is a pause: with it, at most 50 pods a second.
const PAUSE: Duration = Duration::from_millis(200);
/// News that differ in words alone, such as another time of the next try, wait for this long, each time twice as long,
const WORDS_AGAIN: Duration = Duration::from_secs(5);
/// and at most for so long (SCH-44).
const WORDS_AGAIN_MOST: Duration = Duration::from_secs(300);

/// Something to tell a pod.
#[derive(Clone, Debug)]
pub(super) struct News {
    pub(super) pod: PodKey,
    pub(super) uid: String,
    /// One word for what it is about; under the same word only the text differs.
    pub(super) about: String,
    /// Reason and message of condition `MachineReady`, which is not true then; absent leaves it as it is.
    pub(super) condition: Option<(&'static str, String)>,
    pub(super) severity: Severity,
    /// Reason and note of the event.
    pub(super) event: (&'static str, String),
    /// Told before all others.
    pub(super) good: bool,
}

/// What is to be told, and what was told last.
#[derive(Debug, Default)]
pub(crate) struct Teller {
    board: Mutex<Board>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct Board {
    told: HashMap<String, Told>,
    waiting: BTreeMap<String, (News, Instant)>,
}

#[derive(Debug)]
struct Told {
    about: String,
    words: String,
    at: Instant,
    /// How often the words alone have changed.
    times: u32,
}

impl Told {
    fn again(&self) -> Instant {
        self.at + WORDS_AGAIN.saturating_mul(1 << self.times.min(16)).min(WORDS_AGAIN_MOST)
    }
}

impl Teller {
    /// Has a pod told, in place of what it was to be told before.
    pub(super) fn say(&self, news: News) {
        self.with(|board| board.say(news, Instant::now()));
        self.wake.notify_one();
    }

    /// Forgets pods that no longer wait.
    pub(super) fn keep(&self, is_waiting: impl Fn(&str) -> bool) {
        self.with(|board| {
            board.told.retain(|uid, _| is_waiting(uid));
            board.waiting.retain(|uid, _| is_waiting(uid));
        });
    }

    fn with<T>(&self, act: impl FnOnce(&mut Board) -> T) -> T {
        act(&mut self.board.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Board {
    fn say(&mut self, news: News, now: Instant) {
        let told = self.told.get(&news.uid).filter(|told| told.about == news.about);
        if told.is_some_and(|told| told.words == words(&news)) {
            self.waiting.remove(&news.uid);
            return;
        }
        let due = told.filter(|_| !news.good).map_or(now, Told::again);
        // Who waits already keeps its place.
        let due = self.waiting.get(&news.uid).map_or(due, |(_, known)| due.min(*known));
        self.waiting.insert(news.uid.clone(), (news, due));
    }

    /// What is due, good news first, then what waits longest.
    fn take(&mut self, most: usize, now: Instant) -> Vec<News> {
        let mut due: Vec<(bool, Instant, String)> = self
            .waiting
            .iter()
            .filter(|(_, (_, due))| *due <= now)
            .map(|(uid, (news, due))| (!news.good, *due, uid.clone()))
            .collect();
        due.sort();
        let taken = due.into_iter().take(most).filter_map(|(.., uid)| self.waiting.remove(&uid));
        let taken: Vec<News> = taken.map(|(news, _)| news).collect();
        taken.iter().for_each(|news| self.note(news, now));
        taken
    }

    fn note(&mut self, news: &News, now: Instant) {
        let known = self.told.get(&news.uid).filter(|told| told.about == news.about);
        let times = known.map_or(0, |told| told.times + 1);
        let told = Told { about: news.about.clone(), words: words(news).to_owned(), at: now, times };
        self.told.insert(news.uid.clone(), told);
    }

    fn next(&self) -> Option<Instant> {
        self.waiting.values().map(|(_, due)| *due).min()
    }
}

fn words(news: &News) -> &str {
    news.condition.as_ref().map_or(&news.event.1, |(_, message)| message)
}

/// Tells for ever.
pub(crate) async fn run(context: Arc<Context>) {
    let teller = &context.teller;
    loop {
        let (due, next, left) = teller.with(|board| {
            let due = board.take(PARALLEL, Instant::now());
            (due, board.next(), board.waiting.len())
        });
        context.metrics.untold(left);
        if due.is_empty() {
            let next = next.unwrap_or_else(|| Instant::now() + WORDS_AGAIN_MOST);
            let _ = tokio::time::timeout_at(next, teller.wake.notified()).await;
            continue;
        }
        let good = due.iter().any(|news| news.good);
        futures::future::join_all(due.iter().map(|news| tell(&context, news))).await;
        if !good {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

async fn tell(context: &Context, news: &News) {
    let News { pod, uid, condition, severity, event: (reason, note), .. } = news;
    let waits = context
        .view()
        .pod(pod)
        .is_some_and(|record| record.pod.uid == *uid && record.node.is_none() && !record.terminating);
    if !waits {
        return;
    }
    if let Some((reason, message)) = condition {
        set_condition(context, pod, uid, Status::False, reason, message).await;
    }
    let about = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: Some(pod.name.clone()),
        namespace: Some(pod.namespace.clone()),
        uid: Some(uid.clone()),
        ..ObjectReference::default()
    };
    context.events.publish_about(&context.client, about, *severity, reason, note).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(uid: &str, about: &str, words: &str) -> News {
        News {
            pod: PodKey::new("n", uid),
            uid: uid.to_owned(),
            about: about.to_owned(),
            condition: Some(("NoOffering", words.to_owned())),
            severity: Severity::Warning,
            event: ("FailedScheduling", words.to_owned()),
            good: false,
        }
    }

    fn good(uid: &str, words: &str) -> News {
        News { good: true, ..news(uid, "claim", words) }
    }

    fn told(due: &[News]) -> Vec<(&str, &str)> {
        due.iter().map(|news| (news.uid.as_str(), words(news))).collect()
    }

    #[test]
    fn a_pod_is_told_once_and_again_when_it_is_about_something_else() {
        let (mut board, now) = (Board::default(), Instant::now());
        board.say(news("u", "capacity", "a"), now);
        assert_eq!(told(&board.take(9, now)), [("u", "a")]);
        board.say(news("u", "capacity", "a"), now);
        assert!(board.take(9, now).is_empty());
        board.say(news("u", "limits", "b"), now);
        assert_eq!(told(&board.take(9, now)), [("u", "b")]);
    }

    #[test]
    fn other_words_for_the_same_come_ever_later() {
        let (mut board, mut now) = (Board::default(), Instant::now());
        board.say(news("u", "stock-out", "0"), now);
        board.take(9, now);
        for (number, seconds) in [5, 10, 20, 40, 80, 160, 300, 300].into_iter().enumerate() {
            let text = format!("{}", number + 1);
            board.say(news("u", "stock-out", &text), now);
            let due = now + Duration::from_secs(seconds);
            assert_eq!(board.next(), Some(due), "{text}");
            assert!(board.take(9, now).is_empty());
            assert_eq!(told(&board.take(9, due)), [("u", text.as_str())]);
            now = due;
        }
    }

    #[test]
    fn the_newest_word_wins_and_one_that_was_told_already_ends_what_waits() {
        let (mut board, now) = (Board::default(), Instant::now());
        board.say(news("u", "capacity", "a"), now);
        board.say(good("u", "x"), now);
        assert_eq!(told(&board.take(9, now)), [("u", "x")]);
        board.say(news("u", "capacity", "a"), now);
        board.say(good("u", "x"), now);
        assert!(board.take(9, now).is_empty());
    }

    #[test]
    fn good_news_comes_before_any_number_of_bad() {
        let (mut board, now) = (Board::default(), Instant::now());
        for number in 0..100 {
            board.say(news(&format!("a{number}"), "capacity", "no"), now);
        }
        board.say(good("z", "x"), now + Duration::from_millis(1));
        let due = board.take(3, now + Duration::from_millis(1));
        assert_eq!(told(&due).first(), Some(&("z", "x")));
        assert_eq!(due.len(), 3);
        assert_eq!(board.waiting.len(), 98);
    }
}
