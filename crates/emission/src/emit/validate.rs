//! What no definition of a provider's checks, checked before anything is written.

use scarpenter_core::requirements::Operator;
use serde::Deserialize;
use serde_json::Value;

use crate::adapter::Adapter;
use crate::refusal::{Reason, Refusal};
use crate::template::{ARCH, CAPACITY_TYPE, INSTANCE_TYPE, Line, ZONE};

/// Most requirements of a pool.
const MOST_REQUIREMENTS: usize = 100;
/// Most that `minValues` may be.
const MOST_MIN_VALUES: u64 = 50;
/// Keys of Kubernetes' own domains that the core knows.
const WELL_KNOWN: [&str; 6] = [
    ARCH,
    ZONE,
    INSTANCE_TYPE,
    "kubernetes.io/os",
    "topology.kubernetes.io/region",
    "node.kubernetes.io/windows-build",
];

pub(super) fn validate(spec: &Value, adapter: &Adapter) -> Result<(), Refusal> {
    let mut wrong = Vec::new();
    let requirements = spec.pointer("/template/spec/requirements").and_then(Value::as_array);
    let requirements = requirements.map(Vec::as_slice).unwrap_or_default();
    if requirements.len() > MOST_REQUIREMENTS {
        wrong.push(format!("{} requirements, at most {MOST_REQUIREMENTS} are allowed", requirements.len()));
    }
    for raw in requirements {
        match Line::deserialize(raw) {
            Ok(line) => check_line(&line, adapter, &mut wrong),
            Err(error) => wrong.push(format!("requirement {raw}: {error}")),
        }
    }
    if let Some(weight) = spec.get("weight")
        && !weight.as_i64().is_some_and(|weight| (1..=100).contains(&weight))
    {
        wrong.push(format!("weight {weight} is no integer from 1 to 100"));
    }
    if wrong.is_empty() { Ok(()) } else { Err(Reason::ValidationFailed.because(wrong.join("; "))) }
}

fn check_line(line: &Line, adapter: &Adapter, wrong: &mut Vec<String>) {
    let Line { key, operator, values, min_values } = line;
    if let Some(why) = forbidden(key, adapter.old_core) {
        wrong.push(format!("key {key}: {why}"));
    }
    match operator {
        Operator::In if values.is_empty() => wrong.push(format!("{key} In without values")),
        Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte if !matches!(values.as_slice(), [one] if one.parse::<u64>().is_ok()) =>
        {
            wrong.push(format!("{key} {} takes one integer", operator.as_str()));
        }
        _ => {}
    }
    for value in values.iter().filter(|value| !is_label_value(value)) {
        wrong.push(format!("{key} value {value:?} is no label value of at most 63 characters"));
    }
    if let Some(least) = min_values {
        let most = match operator {
            Operator::In => MOST_MIN_VALUES.min(values.len() as u64),
            _ => MOST_MIN_VALUES,
        };
        if !(1..=most).contains(least) {
            wrong.push(format!("{key} minValues {least} is not from 1 to {most}"));
        }
    }
}

fn forbidden(key: &str, old_core: bool) -> Option<&'static str> {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let within =
        |own: &str| domain == own || domain.strip_suffix(own).is_some_and(|rest| rest.ends_with('.'));
    if key == CAPACITY_TYPE {
        return None;
    }
    if key == "kubernetes.io/hostname" {
        return Some("a pool cannot ask for one host");
    }
    if within("karpenter.sh") {
        return Some("Karpenter keeps its own keys to itself");
    }
    let free = ["node.kubernetes.io", "node-restriction.kubernetes.io"].into_iter().any(within);
    let reserved = within("kubernetes.io") || within("k8s.io");
    (old_core && reserved && !free && !WELL_KNOWN.contains(&key))
        .then_some("the provider's version of Karpenter refuses other keys of Kubernetes")
}

fn is_label_value(value: &str) -> bool {
    let end = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = value.as_bytes();
    value.len() <= 63
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
        && end(bytes.first())
        && end(bytes.last())
}
