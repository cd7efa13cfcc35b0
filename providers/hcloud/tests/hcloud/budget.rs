//! The vendor's limit on calls.

use std::time::Duration;

use scarpenter_provider::error::Error;

use crate::fake::Fault;
use crate::stage::{create, stage};

fn throttled(headers: &[(&'static str, &str)]) -> Fault {
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Fault::Refuse(429, "rate_limit_exceeded", headers)
}

#[tokio::test]
async fn a_429_is_told_on_and_keeps_every_call_from_the_vendor() {
    let stage = stage().await;
    stage.fake.goes_wrong("POST", "/servers", 1, throttled(&[("retry-after", "30")]));
    let error = stage.client.create_machine(create("c1")).await.unwrap_err();
    assert!(error.had_no_effect(), "{error}");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(30)));
    let calls = stage.fake.calls("");
    let error = stage.client.list_machines(&"cluster".into()).await.unwrap_err();
    assert!(matches!(error, Error::RateLimited { .. }), "{error}");
    assert!(error.retry_after().is_some_and(|wait| wait > Duration::from_secs(25)), "{error:?}");
    let error = stage.client.create_machine(create("c1")).await.unwrap_err();
    assert!(matches!(error, Error::RateLimited { .. }), "{error}");
    assert_eq!(stage.fake.calls(""), calls, "nothing more was asked");
}

#[tokio::test]
async fn a_429_without_a_time_is_waited_out_by_the_limit() {
    let stage = stage().await;
    stage.fake.goes_wrong(
        "GET",
        "/servers",
        1,
        throttled(&[("ratelimit-limit", "3600"), ("ratelimit-remaining", "0")]),
    );
    let error = stage.client.list_machines(&"cluster".into()).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(10)), "{error:?}");
}

#[tokio::test]
async fn what_remains_is_kept_for_making_and_deleting() {
    let stage = stage().await;
    let low = [("ratelimit-limit", "3600"), ("ratelimit-remaining", "200"), ("retry-after", "0")];
    stage.fake.goes_wrong("GET", "/images", 1, throttled(&low));
    stage.client.create_machine(create("c1")).await.unwrap_err();
    let error = stage.client.list_machines(&"cluster".into()).await.unwrap_err();
    assert!(matches!(error, Error::RateLimited { .. }), "{error}");
}
