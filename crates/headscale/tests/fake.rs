//! Our client against the fake, in the shapes of both versions, and whatever goes wrong.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use scarpenter_core::name::Secret;
use scarpenter_headscale::testing::{API_KEY, Fake, Fault, TAG, USER, Version};
use scarpenter_headscale::{Client, Error, KeyId, Kind, Limits, NewKey, NodeId};

const BOTH: [Version; 2] = [Version::V029, Version::V030];

fn client_with(fake: &Fake, key: &str, request: Duration) -> Client {
    let limits = Limits { connect: Duration::from_secs(2), request, ..Limits::default() };
    Client::new(&fake.url(), &Secret::new(key), limits).unwrap()
}

fn client(fake: &Fake) -> Client {
    client_with(fake, API_KEY, Duration::from_secs(5))
}

fn wanted() -> NewKey {
    let expiration = Timestamp::now() + SignedDuration::from_secs(600);
    NewKey { user: "1".to_owned(), tags: vec![TAG.to_owned()], expiration }
}

#[tokio::test]
async fn a_machine_joins_with_its_key_once_and_leaves_nothing_behind() {
    for version in BOTH {
        let fake = Fake::start(version);
        let client = client(&fake);
        client.health().await.unwrap();
        let user = client.user(USER).await.unwrap().unwrap();
        assert!(client.policy().await.unwrap().unwrap().knows(TAG));
        let wanted = NewKey { user: user.id, ..wanted() };
        let made = client.create_key(&wanted).await.unwrap();
        let known = &fake.state().keys[&1].clone();
        assert!(
            !known.reusable
                && !known.ephemeral
                && known.tags == [TAG]
                && known.expiration == wanted.expiration
        );
        fake.state().join(made.secret.reveal(), "a").unwrap();
        assert_eq!(fake.state().join(made.secret.reveal(), "b"), Err("authkey already used"));
        let nodes = client.nodes().await.unwrap();
        let [node] = nodes.as_slice() else { panic!("{nodes:?}") };
        let joined_with = node.key.as_ref().unwrap();
        assert_eq!((&joined_with.id, joined_with.created), (&made.key.id, made.key.created));
        assert_eq!(
            (node.name.as_str(), node.addresses.len(), node.tags.as_slice()),
            ("a", 1, &wanted.tags[..])
        );
        for _ in 0..2 {
            client.expire_key(&made.key.id).await.unwrap();
            client.delete_node(&node.id).await.unwrap();
        }
        assert!(client.keys().await.unwrap()[0].is_expired(Timestamp::now()));
        for _ in 0..2 {
            client.delete_key(&made.key.id).await.unwrap();
        }
        let state = fake.state();
        assert!(
            state.keys.is_empty() && state.nodes.is_empty() && state.unknown_fields.is_empty(),
            "{state:?}"
        );
    }
}

#[tokio::test]
async fn what_goes_wrong_is_said_by_kind_and_never_with_a_key() {
    for version in BOTH {
        let mut fake = Fake::start(version);
        let kind = |outcome: Result<(), Error>| {
            outcome.map_err(|error| {
                assert!(!format!("{error} {error:?}").contains("0000"), "{error:?}");
                error.kind()
            })
        };
        let wrong = client_with(&fake, "hskey-api-other-0000", Duration::from_secs(5));
        assert_eq!(kind(wrong.health().await), Err(Kind::Unauthorized));
        let own = client(&fake);
        for (status, expected) in [(401, Kind::Unauthorized), (500, Kind::Refused), (503, Kind::Unreachable)]
        {
            fake.state().fault = Some(Fault::Status(status));
            assert_eq!(kind(own.nodes().await.map(drop)), Err(expected), "{status}");
        }
        fake.state().fault = Some(Fault::Slow(Duration::from_secs(2)));
        let hasty = client_with(&fake, API_KEY, Duration::from_millis(100));
        let late = hasty.keys().await.unwrap_err();
        assert!(matches!(late, Error::Late { .. }) && late.kind() == Kind::Unreachable, "{late}");
        fake.state().fault = None;
        fake.go_down();
        assert_eq!(kind(own.delete_node(&NodeId::parse("1").unwrap()).await), Err(Kind::Unreachable));
        assert_eq!(kind(own.expire_key(&KeyId::parse("1").unwrap()).await), Err(Kind::Unreachable));
        fake.come_up();
        assert_eq!(kind(own.health().await), Ok(()));
    }
}

#[tokio::test]
async fn a_user_and_a_tag_that_it_does_not_take_are_refused_in_its_words() {
    for version in BOTH {
        let fake = Fake::start(version);
        let client = client(&fake);
        assert_eq!(client.user("nobody").await.unwrap(), None);
        let error = client.create_key(&NewKey { user: "7".to_owned(), ..wanted() }).await.unwrap_err();
        assert!(error.kind() == Kind::Refused && error.to_string().contains("user not found"), "{error}");
        let error = client.create_key(&NewKey { tags: vec!["x".to_owned()], ..wanted() }).await.unwrap_err();
        assert!(error.kind() == Kind::Refused && error.to_string().contains("\"x\""), "{error}");
        fake.state().policy = None;
        assert_eq!(client.policy().await.unwrap(), None);
        fake.state().policy = Some("{".to_owned());
        assert_eq!(client.policy().await.unwrap_err().kind(), Kind::Malformed);
    }
}

#[tokio::test]
async fn a_web_page_is_not_taken_for_a_headscale() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let page = axum::Router::new().fallback(|| async { "<html>hskey-auth-s3cret</html>" });
    let server = tokio::spawn(async move { axum::serve(listener, page).await });
    let client = Client::new(&url, &Secret::new("k"), Limits::default()).unwrap();
    let error = client.keys().await.unwrap_err();
    assert!(error.kind() == Kind::Malformed && !error.to_string().contains("s3cret"), "{error}");
    server.abort();
}
