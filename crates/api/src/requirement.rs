//! Requirements as pools and claims write them, and what can be wrong with one.

use scarpenter_core::label;
use scarpenter_core::requirements::{Operator, Requirement};
use serde::{Deserialize, Serialize};

/// One line of `spec.requirements`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequirementSpec {
    /// Label key.
    pub key: String,
    /// How the key relates to the values.
    pub operator: Operator,
    /// Values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// So many distinct values must stay possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_values: Option<i32>,
}

impl RequirementSpec {
    /// As core thinks of it, with old keys renamed (API-26).
    #[must_use]
    pub fn to_core(&self) -> Requirement {
        Requirement {
            key: label::normalize_key(&self.key).to_owned(),
            operator: self.operator,
            values: self.values.clone(),
            min_values: self.min_values.and_then(|count| u32::try_from(count).ok()),
        }
    }
}

impl From<&Requirement> for RequirementSpec {
    fn from(requirement: &Requirement) -> Self {
        Self {
            key: requirement.key.clone(),
            operator: requirement.operator,
            values: requirement.values.clone(),
            min_values: requirement.min_values.and_then(|count| i32::try_from(count).ok()),
        }
    }
}

/// Why nobody may ask for this key: it is the pool machinery's, or a machine's own name (API-24).
#[must_use]
pub fn restriction(key: &str) -> Option<String> {
    if label::is_well_known(key) {
        return None;
    }
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    if domain.ends_with("karpenter.sh") {
        Some(format!("label {key} belongs to the restricted domain karpenter.sh"))
    } else if key == label::HOSTNAME {
        Some(format!("label {key} is restricted"))
    } else {
        None
    }
}

/// What makes a requirement unusable, in words; empty when it is fine.
#[must_use]
pub fn problems(requirement: &Requirement) -> Vec<String> {
    let mut out: Vec<String> = key_problem(&requirement.key).into_iter().collect();
    let (operator, count) = (requirement.operator.as_str(), requirement.values.len());
    match requirement.operator {
        Operator::In | Operator::NotIn if count == 0 => {
            out.push(format!("{}: operator {operator} needs a value", requirement.key));
        }
        Operator::Exists | Operator::DoesNotExist if count > 0 => {
            out.push(format!("{}: operator {operator} takes no value", requirement.key));
        }
        Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte
            if count != 1 || requirement.values[0].parse::<i64>().is_err() =>
        {
            let values = requirement.values.join(", ");
            out.push(format!("{}: operator {operator} needs one integer, not [{values}]", requirement.key));
        }
        _ => {}
    }
    out.extend(requirement.values.iter().filter_map(|value| value_problem(&requirement.key, value)));
    out
}

/// What is wrong with a label key.
#[must_use]
pub fn key_problem(key: &str) -> Option<String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let prefix_is_fine =
        prefix.is_none_or(|prefix| prefix.len() <= 253 && prefix.split('.').all(is_dns_label));
    (!prefix_is_fine || name.is_empty() || !is_label_value(name))
        .then(|| format!("{key:?} is not a label key"))
}

/// What is wrong with a label value.
#[must_use]
pub fn value_problem(key: &str, value: &str) -> Option<String> {
    (!is_label_value(value)).then(|| format!("{key}: {value:?} is not a label value"))
}

fn is_label_value(text: &str) -> bool {
    let outer = |c: char| c.is_ascii_alphanumeric();
    text.is_empty()
        || text.len() <= 63
            && text.starts_with(outer)
            && text.ends_with(outer)
            && text.chars().all(|c| outer(c) || matches!(c, '-' | '_' | '.'))
}

fn is_dns_label(text: &str) -> bool {
    let outer = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.len() <= 63
        && text.starts_with(outer)
        && text.ends_with(outer)
        && text.chars().all(|c| outer(c) || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_every_machine_has_may_be_named_of_the_restricted_domain() {
        for key in ["karpenter.sh/registered", "a.karpenter.sh/x", "kubernetes.io/hostname"] {
            assert!(restriction(key).is_some(), "{key}");
        }
        for key in
            ["karpenter.sh/nodepool", "karpenter.sh/capacity-type", "example.com/x", "x", label::VENDOR]
        {
            assert_eq!(restriction(key), None, "{key}");
        }
    }

    #[test]
    fn a_bound_needs_one_integer() {
        for values in [&[][..], &["1", "2"], &["many"], &["1.5"]] {
            assert!(!problems(&Requirement::new("a", Operator::Gt, values)).is_empty(), "{values:?}");
        }
        assert!(problems(&Requirement::new("a", Operator::Lte, &["8"])).is_empty());
    }

    #[test]
    fn keys_and_values_follow_label_syntax() {
        for key in ["", "/a", "a/", "A.b/c", "a b", "-a", "a/b/c"] {
            assert!(key_problem(key).is_some(), "{key}");
        }
        for key in ["a", "a.b/C_d.e", "kubernetes.io/arch"] {
            assert_eq!(key_problem(key), None, "{key}");
        }
        assert!(value_problem("a", "x/y").is_some());
        assert!(value_problem("a", "").is_none());
    }
}
