use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Vec<String> {
    parse(text).unwrap().iter().map(ToString::to_string).collect()
}

fn error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn every_operator_is_read() {
    let cpu = "scarpenter.sparecores.com/instance-cpu";
    for (text, line) in [
        ("arch=arm64", "kubernetes.io/arch In [arm64]".to_owned()),
        ("arch == arm64", "kubernetes.io/arch In [arm64]".to_owned()),
        ("arch!=arm64", "kubernetes.io/arch NotIn [arm64]".to_owned()),
        ("type in (ccx33, c8a.large)", "node.kubernetes.io/instance-type In [ccx33, c8a.large]".to_owned()),
        ("zone notin(a,b)", "topology.kubernetes.io/zone NotIn [a, b]".to_owned()),
        ("instance-cpu>8", format!("{cpu} Gt [8]")),
        ("instance-cpu >= 8", format!("{cpu} Gte [8]")),
        ("instance-cpu<008", format!("{cpu} Lt [8]")),
        ("instance-cpu<=8", format!("{cpu} Lte [8]")),
        ("instance-cpu", format!("{cpu} Exists")),
        ("! instance-cpu", format!("{cpu} DoesNotExist")),
        ("kubernetes.io/arch=amd64", "kubernetes.io/arch In [amd64]".to_owned()),
        ("beta.kubernetes.io/arch=amd64", "kubernetes.io/arch In [amd64]".to_owned()),
        ("example.com/disk", "example.com/disk Exists".to_owned()),
        (
            "passmark-single-thread>=3000",
            "benchmark.scarpenter.sparecores.com/passmark-single-thread Gte [3000]".to_owned(),
        ),
    ] {
        assert_eq!(read(text), [line], "{text}");
    }
}

#[test]
fn commas_part_requirements_but_not_the_values_of_a_list() {
    let lines = read("instance-cpu>=8,arch=arm64, vendor in (aws,gcp) ,!instance-gpu-count");
    assert_eq!(
        lines,
        [
            "scarpenter.sparecores.com/instance-cpu Gte [8]",
            "kubernetes.io/arch In [arm64]",
            "scarpenter.sparecores.com/vendor In [aws, gcp]",
            "scarpenter.sparecores.com/instance-gpu-count DoesNotExist",
        ]
    );
    assert!(parse("  ").unwrap().is_empty());
}

#[test]
fn a_bad_line_is_one_sentence_with_the_place_and_what_may_stand_there() {
    for (text, words) in [
        ("instance-cpu>=x", "character 15 of `instance-cpu>=x`: expected an integer of at least 0, not `x`"),
        (
            "instance-cpu>=-1",
            "character 15 of `instance-cpu>=-1`: expected an integer of at least 0, not `-1`",
        ),
        ("instance-cpu>", "character 14 of `instance-cpu>`: expected an integer of at least 0, not the end"),
        (
            "arch=",
            "character 6 of `arch=`: expected a label value of letters, digits, `-`, `_` and `.`, not the end",
        ),
        (
            "type in c8a",
            "character 9 of `type in c8a`: expected a list in brackets, such as (a,b), not `c8a`",
        ),
        ("type in (a", "character 11 of `type in (a`: expected a comma or `)`, not the end"),
        (
            "arch amd64",
            "character 6 of `arch amd64`: expected `=`, `!=`, `>`, `>=`, `<`, `<=`, `in (…)`, `notin (…)`, a comma or \
             the end, not `amd64`",
        ),
        (
            "arch=amd64,",
            "character 12 of `arch=amd64,`: expected a label key, such as arch, instance-cpu or kubernetes.io/arch, not \
             the end",
        ),
        ("cpu>=8", "character 1 of `cpu>=8`: there is no label key cpu, the nearest is instance-cpu"),
    ] {
        assert_eq!(error(text), words);
    }
    assert!(error("é=1,ü").starts_with("character 1 of"));
    assert!(error("arch=é").starts_with("character 6 of"));
    assert!(error(&format!("arch={}", "x".repeat(64))).contains("expected a label value"));
}

#[test]
fn an_integer_that_no_machine_can_hold_is_refused() {
    assert_eq!(read("instance-cpu>9223372036854775807").len(), 1);
    assert!(error("instance-cpu>9223372036854775808").contains("expected an integer"));
}

fn lines() -> impl Strategy<Value = Vec<Requirement>> {
    let key = prop_oneof![
        proptest::sample::select(label::short_keys().map(|(_, key)| key).collect::<Vec<_>>()),
        "[a-z0-9]{1,5}(\\.[a-z0-9]([a-z0-9-]{0,4}[a-z0-9])?){0,2}/[A-Za-z0-9]([A-Za-z0-9._-]{0,9}[A-Za-z0-9])?"
            .prop_map(|key| label::normalize_key(&key).to_owned()),
    ];
    let value = "[A-Za-z0-9]([A-Za-z0-9._-]{0,20}[A-Za-z0-9])?";
    let values = proptest::collection::vec(value, 1..4);
    let line = (key, 0..8usize, values, 0..i64::MAX).prop_map(|(key, operator, values, number)| {
        let operator = Operator::ALL[operator];
        let values: Vec<String> = match operator {
            Operator::In | Operator::NotIn => values,
            Operator::Exists | Operator::DoesNotExist => Vec::new(),
            _ => vec![number.to_string()],
        };
        Requirement { key, operator, values, min_values: None }
    });
    proptest::collection::vec(line, 0..5)
}

proptest! {
    #[test]
    fn what_is_written_is_read_as_the_same(lines in lines()) {
        let text = write(&lines);
        prop_assert_eq!(parse(&text), Ok(lines), "{}", text);
    }

    #[test]
    fn any_text_is_read_or_refused_at_a_place_in_it(text in "\\PC{0,40}") {
        if let Err(error) = parse(&text) {
            prop_assert!((1..=text.chars().count() + 1).contains(&error.at()), "{}", error);
        }
    }

    #[test]
    fn nearly_right_text_is_read_or_refused_at_a_place_in_it(
        text in "(arch|vendor|instance-cpu|a/b|!|=|==|!=|>|<|>=|<=|in|notin|\\(|\\)|,| |é|x|8){0,12}"
    ) {
        match parse(&text) {
            Ok(lines) => prop_assert_eq!(parse(&write(&lines)), Ok(lines)),
            Err(error) => prop_assert!((1..=text.chars().count() + 1).contains(&error.at()), "{}", error),
        }
    }
}
