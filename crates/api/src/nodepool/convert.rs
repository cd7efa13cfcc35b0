//! A pool as core thinks of it, and what is wrong with one (API-23, API-24).

use std::collections::BTreeSet;
use std::time::Duration;

use scarpenter_core::label;
use scarpenter_core::pool::Pool;
use scarpenter_core::requirements::{Operator, Requirement};

use super::{NodePool, NodePoolSpec};
use crate::condition::Condition;
use crate::{node, quantity, requirement};

impl NodePool {
    /// Whether its class is a `ScarpenterNodeClass`; everything else is not ours.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.spec.template.spec.node_class_ref.is_ours()
    }

    /// Its conditions; empty while it has no status.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |status| &status.conditions)
    }

    /// How long a machine must have been empty; `None` is never.
    #[must_use]
    pub fn consolidate_after(&self) -> Option<Duration> {
        self.spec.disruption.consolidate_after.get()
    }

    /// Age at which a machine goes; `None` is never.
    #[must_use]
    pub fn expire_after(&self) -> Option<Duration> {
        self.spec.template.spec.expire_after.get()
    }

    /// Time after which draining is forced; `None` waits without end.
    #[must_use]
    pub fn termination_grace_period(&self) -> Option<Duration> {
        self.spec.template.spec.termination_grace_period.as_ref()?.get()
    }

    /// As the planner sees it.
    ///
    /// # Errors
    /// All that is wrong with it, in words, for its condition `ValidationSucceeded`.
    pub fn to_pool(&self) -> Result<Pool, Vec<String>> {
        let mut problems = Vec::new();
        let spec = &self.spec;
        let template = &spec.template;
        let pool = Pool {
            name: self.metadata.name.clone().unwrap_or_default(),
            weight: spec.weight.unwrap_or(0),
            labels: template
                .metadata
                .labels
                .iter()
                .map(|(key, value)| (label::normalize_key(key).to_owned(), value.clone()))
                .collect(),
            requirements: template
                .spec
                .requirements
                .iter()
                .map(|requirement| requirement.to_core())
                .collect(),
            taints: node::parse_taints(&template.spec.taints),
            startup_taints: node::parse_taints(&template.spec.startup_taints),
            limits: quantity::parse(&spec.limits, &mut problems),
            class: template.spec.node_class_ref.name.clone(),
        };
        problems.extend(self.spec.problems());
        problems.extend(pool.labels.iter().flat_map(|(key, value)| label_problems(key, value)));
        problems.extend(pool.requirements.iter().flat_map(requirement_problems));
        if problems.is_empty() { Ok(pool) } else { Err(problems) }
    }
}

impl NodePoolSpec {
    fn problems(&self) -> Vec<String> {
        let template = &self.template.spec;
        let mut out = Vec::new();
        let mut seen = BTreeSet::new();
        for taint in template.taints.iter().chain(&template.startup_taints) {
            out.extend(requirement::key_problem(&taint.key).map(|words| format!("taint: {words}")));
            if scarpenter_core::pod::TaintEffect::parse(&taint.effect).is_none() {
                out.push(format!("taint {}: {:?} is not an effect", taint.key, taint.effect));
            }
            if !seen.insert((&taint.key, &taint.effect)) {
                out.push(format!("taint {}:{} appears twice", taint.key, taint.effect));
            }
        }
        let durations = [
            ("consolidateAfter", self.disruption.consolidate_after.problem()),
            ("expireAfter", template.expire_after.problem()),
            (
                "terminationGracePeriod",
                template.termination_grace_period.as_ref().and_then(|text| text.problem()),
            ),
        ];
        out.extend(
            durations.into_iter().filter_map(|(field, problem)| Some(format!("{field}: {}", problem?))),
        );
        out
    }
}

fn label_problems(key: &str, value: &str) -> Vec<String> {
    let pool_label = (key == label::NODEPOOL).then(|| format!("label {key} is restricted"));
    let words = [
        requirement::key_problem(key),
        requirement::value_problem(key, value),
        requirement::restriction(key),
        pool_label,
    ];
    words.into_iter().flatten().collect()
}

fn requirement_problems(line: &Requirement) -> Vec<String> {
    let mut out = requirement::problems(line);
    out.extend(requirement::restriction(&line.key));
    if line.key == label::NODEPOOL {
        out.push(format!("label {} is restricted", line.key));
    }
    let known = ["on-demand", "spot", "reserved"];
    if line.key == label::CAPACITY_TYPE
        && line.operator == Operator::In
        && !line.values.iter().any(|value| known.contains(&value.as_str()))
    {
        out.push(format!(
            "{}: none of [{}] is one of {}",
            line.key,
            line.values.join(", "),
            known.join(", ")
        ));
    }
    if let (Operator::In, Some(count)) = (line.operator, line.min_values)
        && line.values.iter().collect::<BTreeSet<_>>().len() < usize::try_from(count).unwrap_or(usize::MAX)
    {
        out.push(format!("{}: minValues {count} is more than its values", line.key));
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use scarpenter_core::resources::{CPU, MICRO_USD_PER_HOUR, NODES};

    use super::*;

    fn pool(spec: &str) -> NodePool {
        serde_saphyr::from_str(&format!("metadata: {{name: p}}\nspec: {spec}")).unwrap()
    }

    fn with_template(template: &str) -> NodePool {
        pool(&format!(
            "{{template: {{spec: {{nodeClassRef: {{group: scarpenter.sparecores.com, kind: ScarpenterNodeClass, name: c}}, {template}}}}}}}"
        ))
    }

    #[test]
    fn a_sound_pool_becomes_cores() {
        let pool = pool(
            "{weight: 7, limits: {cpu: 10, nodes: 3, scarpenter.sparecores.com/micro-usd-per-hour: 500000}, template: \
             {metadata: {labels: {team: a}}, spec: {nodeClassRef: {group: scarpenter.sparecores.com, kind: \
             ScarpenterNodeClass, name: c}, taints: [{key: t, effect: NoSchedule}], requirements: \
             [{key: beta.kubernetes.io/arch, operator: In, values: [amd64]}]}}}",
        );
        assert!(pool.is_ours());
        let core = pool.to_pool().unwrap();
        assert_eq!((core.name.as_str(), core.weight, core.class.as_str()), ("p", 7, "c"));
        assert_eq!(core.limits.get(CPU), 10_000);
        assert_eq!((core.limits.get(NODES), core.limits.get(MICRO_USD_PER_HOUR)), (3, 500_000));
        assert_eq!(core.requirements[0].key, label::ARCH);
        assert_eq!(core.taints[0].to_string(), "t:NoSchedule");
    }

    #[test]
    fn what_is_wrong_is_said_in_words() {
        for (template, words) in [
            ("requirements: [{key: karpenter.sh/registered, operator: Exists}]", "restricted domain"),
            ("requirements: [{key: kubernetes.io/hostname, operator: In, values: [x]}]", "restricted"),
            ("requirements: [{key: a, operator: In, values: ['x y']}]", "not a label value"),
            ("requirements: [{key: a, operator: In}]", "needs a value"),
            ("requirements: [{key: a, operator: Gt, values: [much]}]", "one integer"),
            (
                "requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [cheap]}]",
                "on-demand, spot, reserved",
            ),
            ("requirements: [{key: a, operator: In, values: [x, x], minValues: 2}]", "minValues 2"),
            (
                "requirements: [], taints: [{key: a, effect: NoSchedule}], startupTaints: [{key: a, effect: NoSchedule, value: v}]",
                "twice",
            ),
            ("requirements: [], expireAfter: 99999999999999h", "expireAfter"),
        ] {
            let problems = with_template(template).to_pool().unwrap_err().join("; ");
            assert!(problems.contains(words), "{template}: {problems}");
        }
    }

    #[test]
    fn an_unknown_capacity_type_beside_a_known_one_is_let_pass() {
        let pool = with_template(
            "requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot, cheap]}]",
        );
        assert!(pool.to_pool().is_ok());
    }

    #[test]
    fn durations_have_the_published_defaults() {
        let pool = with_template("requirements: []");
        assert_eq!(pool.consolidate_after(), Some(Duration::ZERO));
        assert_eq!(pool.expire_after(), Some(Duration::from_secs(720 * 3600)));
        assert_eq!(pool.termination_grace_period(), None);
        let never = with_template("requirements: [], expireAfter: Never");
        assert_eq!(never.expire_after(), None);
    }
}
