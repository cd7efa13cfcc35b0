//! A Keeper that is down, slow, limited, wrong or broken: each gives one clear error, and never a part of a catalog.

use super::*;

async fn refused(played: &Played) -> String {
    let error = load(played).await.map(|catalog| catalog.report).unwrap_err();
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(next) = cause {
        words = format!("{words}: {next}");
        cause = next.source();
    }
    assert!(words.contains(&played.address) || words.contains("gave up"), "names what was asked: {words}");
    words
}

/// A Keeper that goes wrong for ever wherever `part` is in the address.
async fn wrong(part: &str, fault: Fault) -> (Played, String) {
    let played = Played::small().await;
    played.fault(part, usize::MAX, fault);
    let words = refused(&played).await;
    (played, words)
}

fn tries(played: &Played, part: &str) -> usize {
    played.asked().iter().filter(|target| target.contains(part)).count()
}

#[tokio::test]
async fn a_keeper_that_is_down_is_said_to_be_so_at_once() {
    let address = Played::small().await.address.clone();
    let keeper = Keeper::with_limits(&address, None, hasty()).unwrap();
    let words = keeper.changed(None).await.unwrap_err().to_string();
    assert_eq!(
        words,
        format!("cannot reach the Keeper at {address}/healthcheck: check its address and that it runs")
    );
}

#[tokio::test]
async fn a_silent_keeper_is_given_up_after_six_tries() {
    let played = Played::small().await;
    played.fault("/healthcheck", usize::MAX, Fault::Silence);
    let limits = Limits { request: Duration::from_millis(50), ..hasty() };
    let keeper = Keeper::with_limits(&played.address, None, limits).unwrap();
    let error = keeper.changed(None).await.unwrap_err();
    assert!(
        matches!(&error, Error::GaveUp { tries: 6, last } if matches!(**last, Error::Timeout { .. })),
        "{error:?}"
    );
    assert_eq!(tries(&played, "/healthcheck"), 6);
}

#[tokio::test]
async fn a_busy_keeper_is_asked_again_until_it_answers() {
    for (status, said) in
        [(429, "Rate limit exceeded."), (503, "{\"detail\":\"Temporarily unavailable\"}"), (502, "")]
    {
        let played = Played::small().await;
        played.fault("/server_prices", 3, Fault::Status(status, said));
        played.fault("/table/zone", 5, Fault::Status(status, said));
        assert!(load(&played).await.is_ok(), "{status}");
        assert_eq!(tries(&played, "/table/zone"), 6);
    }
}

#[tokio::test]
async fn a_keeper_that_is_busy_for_ever_is_given_up() {
    for (status, said) in [(429, "Rate limit exceeded."), (503, "too many heavy jobs running")] {
        let (played, words) = wrong("/table/region", Fault::Status(status, said)).await;
        assert!(words.starts_with("gave up after 6 tries: http") && words.contains(said), "{words}");
        assert_eq!(tries(&played, "/table/region"), 6);
    }
}

#[tokio::test]
async fn any_other_refusal_is_final() {
    for status in [400, 404, 422, 418] {
        let (played, words) =
            wrong("/table/server", Fault::Status(status, "{\"detail\":\"Not Found\"}")).await;
        assert!(words.contains(&format!("answers {status}")) && words.contains("Not Found"), "{words}");
        assert_eq!(tries(&played, "/table/server"), 1);
    }
}

#[tokio::test]
async fn a_refused_key_is_never_left_out_instead_and_never_shown() {
    let played = Played::start(Data::small(), Some("another"), None).await;
    let key = Some(Key::new("s3cret").unwrap());
    let keeper = Keeper::with_limits(&played.address, key, hasty()).unwrap();
    let error = keeper.catalog(&Rates::default(), &()).await.map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("answers 401: check the API key"), "{error}");
    assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
    assert_eq!(played.asked(), ["/healthcheck"]);

    let (played, words) =
        wrong("/table/server", Fault::Status(401, "{\"detail\":\"Authentication required\"}")).await;
    assert!(words.contains("this Keeper wants an API key"), "{words}");
    assert_eq!(tries(&played, "/table/server"), 1);
}

#[tokio::test]
async fn a_web_page_is_no_answer() {
    for part in ["/healthcheck", "/table/zone", "/server_prices?vendor=gcp", "/servers"] {
        let (_, words) = wrong(part, Fault::Page).await;
        assert!(words.contains("answers with a web page"), "{words}");
    }
    let played = Played::small().await;
    played.fault("/stats", 1, Fault::Page);
    refused(&played).await;
    assert_eq!(tries(&played, "/stats"), 1);
}

#[tokio::test]
async fn half_an_answer_is_none() {
    for part in ["/healthcheck", "/table/region", "/benchmark_configs", "/server_prices", "/servers"] {
        let (_, words) = wrong(part, Fault::CutOff).await;
        assert!(words.contains("is cut off after"), "{words}");
        let (_, words) = wrong(part, Fault::BrokeOff).await;
        assert!(words.contains("gave up after 6 tries") && words.contains("broke off"), "{words}");
    }
}

#[tokio::test]
async fn half_the_rows_are_a_part_and_not_a_catalog() {
    for part in ["/table/region", "/table/zone", "/table/server", "/server_prices?vendor=gcp", "/servers?"] {
        let (_, words) = wrong(part, Fault::HalfRows).await;
        assert!(words.contains("this is a part only"), "{part}: {words}");
    }
    let played = Played::start(Data::small(), Some("s3cret"), None).await;
    played.fault("/table/server_prices?vendor=gcp", 1, Fault::HalfRows);
    let key = Some(Key::new("s3cret").unwrap());
    let keyed = Keeper::with_limits(&played.address, key, hasty()).unwrap();
    let error = keyed.catalog(&Rates::default(), &()).await.map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::Partial { rows: 3, expected: 7, .. }), "{error:?}");
}

#[tokio::test]
async fn an_empty_list_is_no_catalog() {
    for part in ["/table/region", "/table/zone", "/table/server", "/server_prices?vendor=aws"] {
        let (_, words) = wrong(part, Fault::Empty).await;
        assert!(words.contains("this is a part only"), "{part}: {words}");
    }
    let played = Played::of(Data::default()).await;
    assert!(refused(&played).await.contains("/table/region gives an empty list"));
    let played = Played::of(Data { prices: Vec::new(), ..Data::small() }).await;
    assert!(refused(&played).await.contains("offers nothing that can be bought: of 0 prices"));
}

#[tokio::test]
async fn a_keeper_that_does_not_say_how_many_rows_there_are_is_believed() {
    let played = Played::small().await;
    played.fault("/server_prices", usize::MAX, Fault::Untold);
    assert_eq!(lines(&load(&played).await.unwrap()), lines(&load(&Played::small().await).await.unwrap()));
}

#[tokio::test]
async fn rows_of_another_shape_are_said_to_be_so() {
    let numbers = ["price", "memory_amount", "selected_benchmark_score"];
    for (part, field) in [
        ("/table/region", "aliases"),
        ("/table/zone", "zone_id"),
        ("/table/server", "memory_amount"),
        ("/server_prices", "price"),
        ("/server_prices", "currency"),
        ("/servers", "selected_benchmark_score"),
        ("/benchmark_configs", "config"),
    ] {
        let (_, words) = wrong(part, Fault::Renamed(field)).await;
        assert!(words.contains(&format!("there is no field {field}")), "{words}");
        let (_, words) = wrong(part, Fault::Typed(field, true)).await;
        let kind = if numbers.contains(&field) { "a number" } else { "text" };
        assert!(words.contains(&format!("{field} is not {kind}")), "{words}");
    }
    let (_, words) = wrong("/healthcheck", Fault::Renamed("database_hash")).await;
    assert!(words.contains("missing field `database_hash`"), "{words}");
    let (_, words) = wrong("/stats", Fault::Renamed("total_zones")).await;
    assert!(words.contains("missing field `total_zones`"), "{words}");
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_left_out_and_counted_up_to_one_in_twenty() {
    let mut data = Data::small();
    let one = data.prices[0].clone();
    data.prices = vec![one; 20];
    let played = Played::of(data.clone()).await;
    played.fault("/server_prices?vendor=aws", 1, Fault::Typed("zone_id", false));
    let catalog = load(&played).await.unwrap();
    assert_eq!(catalog.report.dropped.get(&crate::Reason::Unreadable), Some(&1));
    data.prices.truncate(19);
    let played = Played::of(data).await;
    played.fault("/server_prices?vendor=aws", 1, Fault::Typed("zone_id", false));
    assert!(refused(&played).await.contains("1 of 19 rows"));
}

#[tokio::test]
async fn a_redirect_loop_is_one_clear_error() {
    for part in ["/healthcheck", "/table/zone"] {
        let (played, words) = wrong(part, Fault::Redirect).await;
        assert!(words.contains("redirects in a loop"), "{words}");
        assert_eq!(tries(&played, part), 6, "the first and five more");
    }
}

#[tokio::test]
async fn an_answer_longer_than_any_should_be_is_not_read() {
    let played = Played::small().await;
    let limits = Limits { body: 1000, ..hasty() };
    let keeper = Keeper::with_limits(&played.address, None, limits).unwrap();
    let error = keeper.catalog(&Rates::default(), &()).await.map(|_| ()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("the answer of {}/table/region is longer than 1000 bytes", played.address)
    );
}
