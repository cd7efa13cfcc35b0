//! What the NodePool's template itself says of types: read once, before any data.

use std::collections::BTreeSet;

use scarpenter_core::requirements::Operator;
use serde::Deserialize;
use serde_json::Value;

use crate::adapter::{Adapter, When, Zones};
use crate::facts::Row;
use crate::refusal::{Reason, Refusal};
use crate::spec::{Intent, PriceBasis};

pub(crate) const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
pub(crate) const ARCH: &str = "kubernetes.io/arch";
pub(crate) const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";
const OS: &str = "kubernetes.io/os";

/// One requirement of the template.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Line {
    pub(crate) key: String,
    pub(crate) operator: Operator,
    #[serde(default)]
    pub(crate) values: Vec<String>,
    pub(crate) min_values: Option<u64>,
}

/// What the template says.
#[derive(Debug)]
pub(crate) struct Constraints {
    pub(crate) adapter: &'static Adapter,
    /// Each requirement as it is read, and as it was written.
    pub(crate) lines: Vec<(Line, Value)>,
    pub(crate) architectures: BTreeSet<&'static str>,
    /// Which price counts.
    pub(crate) basis: PriceBasis,
    /// Types that it lists, if it lists any.
    listed: Option<BTreeSet<String>>,
    barred: BTreeSet<String>,
    pub(crate) min_values: Option<u64>,
    pub(crate) cautions: Vec<&'static str>,
}

impl Constraints {
    /// Reads the template of `intent`.
    pub(crate) fn read(intent: &Intent) -> Result<Self, Refusal> {
        let spec = &intent.spec;
        let template = Value::Object(spec.node_pool_template.spec.clone());
        let (adapter, class) = adapter(&template)?;
        let lines = lines(&template)?;
        check_keys(adapter, &lines)?;
        check_zones(adapter, intent, &lines)?;
        let architectures = architectures(adapter, intent, &lines)?;
        let capacity = capacity(adapter, &lines)?;
        let only_spot = capacity.len() == 1 && capacity.contains("spot");
        let default = if only_spot { PriceBasis::Spot } else { PriceBasis::OnDemand };
        let mut out = Self {
            adapter,
            lines: Vec::new(),
            architectures,
            basis: spec.selector.price.basis.unwrap_or(default),
            listed: None,
            barred: BTreeSet::new(),
            min_values: None,
            cautions: Vec::new(),
        };
        for (line, raw) in lines {
            match line.key.as_str() {
                INSTANCE_TYPE => out.take_types(line)?,
                _ => out.lines.push((line, raw)),
            }
        }
        let due = |when: When| match when {
            When::Zones => !spec.location.zones.is_empty(),
            When::ClassNamed(name) => class == name,
        };
        let cautions = adapter.cautions.iter().filter(|caution| due(caution.when));
        out.cautions = cautions.map(|caution| caution.words).collect();
        Ok(out)
    }

    /// Why the template forbids a type.
    pub(crate) fn refuses(&self, row: &Row<'_>) -> Option<&'static str> {
        if !self.architectures.contains(row.of.arch.as_str()) {
            return Some("the template allows no machines of its architecture");
        }
        self.refuses_name(row.name())
    }

    /// The same, for a type of which no more is known than its name.
    pub(crate) fn refuses_name(&self, name: &str) -> Option<&'static str> {
        if self.barred.contains(name) {
            return Some("the template's requirements name it under NotIn");
        }
        let unlisted = self.listed.as_ref().is_some_and(|listed| !listed.contains(name));
        unlisted.then_some("the template's requirements list other types")
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.lines.iter().any(|(line, _)| line.key == key)
    }

    fn take_types(&mut self, line: Line) -> Result<(), Refusal> {
        let values: BTreeSet<String> = line.values.into_iter().collect();
        match line.operator {
            Operator::In => {
                self.listed = Some(match self.listed.take() {
                    Some(listed) => listed.intersection(&values).cloned().collect(),
                    None => values,
                });
            }
            Operator::NotIn => self.barred.extend(values),
            Operator::Exists => {}
            other => {
                let message = format!(
                    "requirement {INSTANCE_TYPE} {} of the template: use In, NotIn or Exists",
                    other.as_str()
                );
                return Err(Reason::InvalidTemplate.because(message));
            }
        }
        self.min_values = self.min_values.max(line.min_values);
        Ok(())
    }
}

fn adapter(template: &Value) -> Result<(&'static Adapter, String), Refusal> {
    let text = |field: &str| {
        let found = template.pointer(&format!("/template/spec/nodeClassRef/{field}")).and_then(Value::as_str);
        found.filter(|text| !text.is_empty()).ok_or_else(|| {
            Reason::InvalidTemplate
                .because(format!("spec.nodePoolTemplate.spec.template.spec.nodeClassRef.{field} is missing"))
        })
    };
    let (group, kind, name) = (text("group")?, text("kind")?, text("name")?);
    let adapter = Adapter::of(group, kind).ok_or_else(|| {
        let known = crate::adapter::ADAPTERS.iter().map(|adapter| {
            let (group, kind) = adapter.node_class;
            format!("{kind} of {group}")
        });
        let known = known.collect::<Vec<_>>().join(", ");
        Reason::UnsupportedProvider
            .because(format!("node class {kind} of group {group} is of no known provider; known are {known}"))
    })?;
    Ok((adapter, name.to_owned()))
}

fn lines(template: &Value) -> Result<Vec<(Line, Value)>, Refusal> {
    let Some(list) = template.pointer("/template/spec/requirements") else { return Ok(Vec::new()) };
    let bad = |what: String| Reason::InvalidTemplate.because(format!("requirements of the template: {what}"));
    let list = list.as_array().ok_or_else(|| bad("they are no list".to_owned()))?;
    let read = |(at, raw): (usize, &Value)| {
        let line = Line::deserialize(raw).map_err(|error| bad(format!("number {}: {error}", at + 1)))?;
        Ok((line, raw.clone()))
    };
    list.iter().enumerate().map(read).collect()
}

fn check_keys(adapter: &Adapter, lines: &[(Line, Value)]) -> Result<(), Refusal> {
    let universal = [INSTANCE_TYPE, ZONE, CAPACITY_TYPE, ARCH, OS];
    let is_unsafe = |key: &str| {
        adapter.unsafe_keys.contains(&key)
            || adapter.universal_keys_only && is_reserved(key) && !universal.contains(&key)
    };
    match lines.iter().find(|(line, _)| is_unsafe(&line.key)) {
        Some((line, _)) => Err(Reason::InvalidTemplate.because(format!(
            "requirement {} of the template: {} does not label its nodes so, and every node would drift at once; take it out",
            line.key, adapter.id
        ))),
        None => Ok(()),
    }
}

/// Whether a key belongs to Kubernetes, to Karpenter or to a provider of it, rather than to the user.
fn is_reserved(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    ["kubernetes.io", "k8s.io", "karpenter.sh"]
        .iter()
        .any(|own| domain == *own || domain.strip_suffix(own).is_some_and(|rest| rest.ends_with('.')))
        || domain.starts_with("karpenter.")
}

fn check_zones(adapter: &Adapter, intent: &Intent, lines: &[(Line, Value)]) -> Result<(), Refusal> {
    if intent.spec.location.zones.is_empty() {
        return Ok(());
    }
    if adapter.zones == Zones::Never {
        let message = format!("spec.location.zones: a region of {} has no zones, leave it out", adapter.id);
        return Err(Reason::InvalidTemplate.because(message));
    }
    if lines.iter().any(|(line, _)| line.key == ZONE) {
        let message = format!(
            "zones are given both in spec.location.zones and as requirement {ZONE} of the template; keep one"
        );
        return Err(Reason::InvalidTemplate.because(message));
    }
    Ok(())
}

/// What of `universe` the lines of `key` leave.
fn left<'u>(key: &str, universe: &[&'u str], lines: &[(Line, Value)]) -> Result<BTreeSet<&'u str>, Refusal> {
    let mut left: BTreeSet<&str> = universe.iter().copied().collect();
    for (line, _) in lines.iter().filter(|(line, _)| line.key == key) {
        let named = |value: &&str| line.values.iter().any(|own| own == value);
        match line.operator {
            Operator::In => left.retain(named),
            Operator::NotIn => left.retain(|value| !named(value)),
            Operator::Exists => {}
            Operator::DoesNotExist => left.clear(),
            other => {
                let message =
                    format!("requirement {key} {} of the template: its values are words", other.as_str());
                return Err(Reason::InvalidTemplate.because(message));
            }
        }
    }
    if left.is_empty() {
        let message =
            format!("the requirements of the template leave nothing of {key} {}", universe.join(", "));
        return Err(Reason::InvalidTemplate.because(message));
    }
    Ok(left)
}

fn architectures(
    adapter: &'static Adapter,
    intent: &Intent,
    lines: &[(Line, Value)],
) -> Result<BTreeSet<&'static str>, Refusal> {
    let left = left(ARCH, adapter.architectures, lines)?;
    let wanted = &intent.spec.selector.architectures;
    let both = left.iter().filter(|arch| wanted.is_empty() || wanted.iter().any(|own| own == *arch));
    if adapter.one_architecture && both.count() != 1 {
        return Err(Reason::ArchitectureUnsupported.because(format!(
            "{} takes its image from the first type, so a pool must be of one architecture: set spec.selector.architectures to [amd64] or [arm64]",
            adapter.id
        )));
    }
    Ok(left)
}

fn capacity(adapter: &'static Adapter, lines: &[(Line, Value)]) -> Result<BTreeSet<&'static str>, Refusal> {
    let unsupported = |what: String| Err(Reason::CapacityTypeUnsupported.because(what));
    let own = || lines.iter().map(|(line, _)| line).filter(|line| line.key == CAPACITY_TYPE);
    let foreign =
        own().flat_map(|line| &line.values).find(|value| !adapter.capacity.contains(&value.as_str()));
    if let Some(value) = foreign.filter(|_| own().any(|line| line.operator == Operator::In)) {
        let known = adapter.capacity.join(", ");
        return unsupported(format!("{} does not buy {value:?}, only {known}", adapter.id));
    }
    if adapter.pinned_capacity && own().any(|line| line.operator != Operator::In) {
        let only = adapter.capacity.join(", ");
        return unsupported(format!(
            "{} buys {only} only: write {CAPACITY_TYPE} In [{only}], or nothing",
            adapter.id
        ));
    }
    let left = left(CAPACITY_TYPE, adapter.capacity, lines)?;
    if adapter.one_capacity && own().next().is_some() && left.len() != 1 {
        return unsupported(format!("{} takes exactly one of {}", adapter.id, adapter.capacity.join(", ")));
    }
    if own().next().is_none() {
        return Ok(adapter.capacity.iter().take(1).copied().collect());
    }
    Ok(left)
}
