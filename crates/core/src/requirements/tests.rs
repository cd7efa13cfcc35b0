use proptest::prelude::*;

use super::*;

const UNIVERSE: [Option<&str>; 8] =
    [None, Some("0"), Some("1"), Some("2"), Some("3"), Some("7"), Some("a"), Some("b")];

/// What the kube-scheduler says about one line and one label, written without sets.
fn oracle(line: &Requirement, value: Option<&str>) -> bool {
    let number = value.and_then(|value| value.parse::<i64>().ok());
    let bound = || line.values[0].parse::<i64>().unwrap();
    let listed = value.is_some_and(|value| line.values.iter().any(|other| other == value));
    match line.operator {
        Operator::In => listed,
        Operator::NotIn => !listed,
        Operator::Exists => value.is_some(),
        Operator::DoesNotExist => value.is_none(),
        Operator::Gt => number.is_some_and(|number| number > bound()),
        Operator::Lt => number.is_some_and(|number| number < bound()),
        Operator::Gte => number.is_some_and(|number| number >= bound()),
        Operator::Lte => number.is_some_and(|number| number <= bound()),
    }
}

fn line() -> impl Strategy<Value = Requirement> {
    let values =
        proptest::collection::vec(proptest::sample::select(&["0", "1", "2", "3", "7", "a", "b"][..]), 1..4);
    let number = 0..5i64;
    let key = proptest::sample::select(&["k", "l"][..]);
    (0..8usize, values, number, key).prop_map(|(operator, values, number, key)| {
        let operator = Operator::ALL[operator];
        match operator {
            Operator::In | Operator::NotIn => Requirement::new(key, operator, &values),
            Operator::Exists | Operator::DoesNotExist => Requirement::new(key, operator, &[]),
            _ => Requirement::new(key, operator, &[&number.to_string()]),
        }
    })
}

fn lines() -> impl Strategy<Value = Vec<Requirement>> {
    proptest::collection::vec(line(), 0..5)
}

proptest! {
    #[test]
    fn a_conjunction_allows_what_every_line_allows(lines in lines()) {
        let all = Requirements::from_list(&lines).unwrap();
        for key in ["k", "l"] {
            for value in UNIVERSE {
                let expected = lines.iter().filter(|line| line.key == key).all(|line| oracle(line, value));
                prop_assert_eq!(all.allows(key, value), expected, "{} {:?} {:?}", key, value, lines);
            }
        }
    }

    #[test]
    fn the_integer_short_cut_agrees_with_the_text(lines in lines(), number in 0..9i64) {
        let all = Requirements::from_list(&lines).unwrap();
        for (_, set) in all.iter() {
            prop_assert_eq!(set.allows_integer(number), set.allows(Some(&number.to_string())));
        }
    }

    #[test]
    fn intersection_is_commutative_and_associative(a in lines(), b in lines(), c in lines()) {
        let [a, b, c] = [a, b, c].map(|lines| Requirements::from_list(&lines).unwrap());
        prop_assert_eq!(a.intersect(&b), b.intersect(&a));
        prop_assert_eq!(a.intersect(&b).intersect(&c), a.intersect(&b.intersect(&c)));
        prop_assert_eq!(a.intersect(&a), a.clone());
        prop_assert_eq!(a.conflict_with(&b).is_some() || a.conflict().is_some() || b.conflict().is_some(),
            a.intersect(&b).conflict().is_some());
    }

    #[test]
    fn what_is_written_back_says_the_same(lines in lines()) {
        let all = Requirements::from_list(&lines).unwrap();
        prop_assert_eq!(Requirements::from_list(&all.to_list()).unwrap(), all);
    }

    #[test]
    fn an_example_is_allowed(lines in lines()) {
        let all = Requirements::from_list(&lines).unwrap();
        for (_, set) in all.iter() {
            match set.example() {
                Some(example) => prop_assert!(set.allows(Some(&example)), "{} {:?}", example, set),
                None => prop_assert!(UNIVERSE.iter().flatten().all(|value| !set.allows(Some(value)))
                    || set.is_bounded(), "{:?}", set),
            }
        }
    }
}

fn set(operator: Operator, values: &[&str]) -> ValueSet {
    ValueSet::of(&Requirement::new("k", operator, values)).unwrap()
}

#[test]
fn a_missing_label_matches_only_not_in_and_does_not_exist() {
    let missing = BTreeMap::new();
    for (operator, values, expected) in [
        (Operator::In, &["a"][..], false),
        (Operator::Exists, &[], false),
        (Operator::Gt, &["1"], false),
        (Operator::Lt, &["1"], false),
        (Operator::NotIn, &["a"], true),
        (Operator::DoesNotExist, &[], true),
    ] {
        let all = Requirements::from_list(&[Requirement::new("k", operator, values)]).unwrap();
        assert_eq!(all.match_labels(&missing), expected, "{operator:?}");
    }
}

#[test]
fn bounds_that_cross_leave_nothing() {
    assert!(set(Operator::Gt, &["7"]).intersect(&set(Operator::Lt, &["8"])).is_empty());
    assert!(!set(Operator::Gt, &["7"]).intersect(&set(Operator::Lt, &["9"])).is_empty());
    assert!(set(Operator::Lt, &["0"]).is_empty());
    assert!(set(Operator::Gt, &["9223372036854775807"]).is_empty());
}

#[test]
fn bounds_are_written_as_at_least_and_at_most() {
    let both = set(Operator::Gt, &["3"]).intersect(&set(Operator::Lt, &["9"]));
    let expected =
        [Requirement::new("k", Operator::Gte, &["4"]), Requirement::new("k", Operator::Lte, &["8"])];
    assert_eq!(both.to_requirements("k"), expected);
}

#[test]
fn min_values_becomes_the_larger() {
    let mut few = Requirement::new("k", Operator::In, &["a", "b"]);
    few.min_values = Some(1);
    let mut more = Requirement::new("k", Operator::Exists, &[]);
    more.min_values = Some(2);
    let both = Requirements::from_list(&[few, more]).unwrap();
    assert_eq!(both.to_list()[0].min_values, Some(2));
}

#[test]
fn a_malformed_line_is_one_sentence() {
    for (operator, values, words) in [
        (Operator::In, &[][..], "requirement `k In`: In needs at least one value"),
        (Operator::Gt, &["abc"], "requirement `k Gt [abc]`: its value must be an integer of at least 0"),
        (Operator::Lte, &["-1"], "requirement `k Lte [-1]`: its value must be an integer of at least 0"),
        (
            Operator::Lt,
            &["1", "2"],
            "requirement `k Lt [1, 2]`: it needs exactly one value, an integer of at least 0",
        ),
    ] {
        let error = Requirement::new("k", operator, values).validate().unwrap_err();
        assert_eq!(error.to_string(), words);
    }
}
