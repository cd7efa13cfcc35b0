use std::collections::BTreeSet;

use super::{BadRequirement, Operator, Requirement};

/// What one label may be: a set of values or its complement, integer bounds, and whether the label may be missing.
///
/// It is kept in one canonical form, so equal sets compare equal:
/// a finite set has no bounds, excluded values lie within the bounds, bounds never cross.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ValueSet {
    /// Whether `values` are the ones left out.
    complement: bool,
    values: BTreeSet<String>,
    at_least: Option<i64>,
    at_most: Option<i64>,
    absent: bool,
    min_values: Option<u32>,
}

impl ValueSet {
    /// Every value, and none at all.
    #[must_use]
    pub fn any() -> Self {
        Self {
            complement: true,
            values: BTreeSet::new(),
            at_least: None,
            at_most: None,
            absent: true,
            min_values: None,
        }
    }

    /// Exactly these values.
    #[must_use]
    pub fn one_of<S: Into<String>>(values: impl IntoIterator<Item = S>) -> Self {
        Self {
            complement: false,
            values: values.into_iter().map(Into::into).collect(),
            absent: false,
            ..Self::any()
        }
    }

    /// Every value but these, and none at all.
    #[must_use]
    pub fn none_of<S: Into<String>>(values: impl IntoIterator<Item = S>) -> Self {
        Self { values: values.into_iter().map(Into::into).collect(), ..Self::any() }
    }

    /// Every value.
    #[must_use]
    pub fn present() -> Self {
        Self { absent: false, ..Self::any() }
    }

    /// No value.
    #[must_use]
    pub fn absent() -> Self {
        Self { absent: true, ..Self::nothing() }
    }

    /// What one line of a selector allows.
    ///
    /// # Errors
    /// [`BadRequirement`] when the line itself is malformed.
    pub fn of(requirement: &Requirement) -> Result<Self, BadRequirement> {
        requirement.validate()?;
        let values = || requirement.values.iter().cloned();
        let exists = Self { absent: false, ..Self::any() };
        let number = || requirement.bound().unwrap_or_default();
        let set = match requirement.operator {
            Operator::In => Self::one_of(values()),
            Operator::NotIn => Self { values: values().collect(), ..Self::any() },
            Operator::Exists => exists,
            Operator::DoesNotExist => Self { absent: true, ..Self::nothing() },
            Operator::Gt => match number().checked_add(1) {
                Some(least) => Self { at_least: Some(least), ..exists },
                None => Self::nothing(),
            },
            Operator::Gte => Self { at_least: Some(number()), ..exists },
            Operator::Lt => Self { at_most: Some(number() - 1), ..exists },
            Operator::Lte => Self { at_most: Some(number()), ..exists },
        };
        Ok(Self { min_values: requirement.min_values, ..set }.canonical())
    }

    fn nothing() -> Self {
        Self { complement: false, absent: false, ..Self::any() }
    }

    /// Whether a label of this value, or a missing one, is allowed. Text that is no integer fails every bound.
    #[must_use]
    pub fn allows(&self, value: Option<&str>) -> bool {
        let Some(value) = value else { return self.absent };
        if !self.is_bounded() {
            return self.values.contains(value) != self.complement;
        }
        value.parse().is_ok_and(|number| self.within(number))
            && self.values.contains(value) != self.complement
    }

    /// The same as [`Self::allows`] for an integer whose text is `number` in plain decimal.
    #[must_use]
    pub fn allows_integer(&self, number: i64) -> bool {
        let listed = !self.values.is_empty() && self.values.contains(&number.to_string());
        self.within(number) && listed != self.complement
    }

    /// Whether `number` lies within the bounds.
    fn within(&self, number: i64) -> bool {
        self.at_least.is_none_or(|least| number >= least) && self.at_most.is_none_or(|most| number <= most)
    }

    /// What both allow; `minValues` becomes the larger.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        let complement = self.complement && other.complement;
        let values = match (self.complement, other.complement) {
            (true, true) => self.values.union(&other.values).cloned().collect(),
            (false, false) => self.values.intersection(&other.values).cloned().collect(),
            (false, true) => self.values.difference(&other.values).cloned().collect(),
            (true, false) => other.values.difference(&self.values).cloned().collect(),
        };
        Self {
            complement,
            values,
            at_least: self.at_least.max(other.at_least),
            at_most: match (self.at_most, other.at_most) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
            absent: self.absent && other.absent,
            min_values: self.min_values.max(other.min_values),
        }
        .canonical()
    }

    fn canonical(mut self) -> Self {
        if !self.is_bounded() {
            return self;
        }
        let (least, most) = (self.at_least, self.at_most);
        // No label value is negative: a sign cannot begin one.
        if most.is_some_and(|most| most < least.unwrap_or(0).max(0)) {
            return Self { absent: self.absent, min_values: self.min_values, ..Self::nothing() };
        }
        let within = |n: i64| least.is_none_or(|least| n >= least) && most.is_none_or(|most| n <= most);
        self.values.retain(|value| value.parse().is_ok_and(within));
        if !self.complement {
            (self.at_least, self.at_most) = (None, None);
        }
        self
    }

    /// Whether nothing is allowed, not even that the label is missing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.complement && self.values.is_empty() && !self.absent
    }

    /// Whether everything is allowed.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.complement && self.values.is_empty() && !self.is_bounded() && self.absent
    }

    /// Whether it has an integer bound.
    #[must_use]
    pub fn is_bounded(&self) -> bool {
        self.at_least.is_some() || self.at_most.is_some()
    }

    /// Least and greatest integer allowed.
    #[must_use]
    pub fn bounds(&self) -> (Option<i64>, Option<i64>) {
        (self.at_least, self.at_most)
    }

    /// The allowed values when they can be listed.
    #[must_use]
    pub fn listed(&self) -> Option<&BTreeSet<String>> {
        (!self.complement).then_some(&self.values)
    }

    /// Values left out of an unlisted set.
    #[must_use]
    pub fn excluded(&self) -> Option<&BTreeSet<String>> {
        self.complement.then_some(&self.values)
    }

    /// `minValues`.
    #[must_use]
    pub fn min_values(&self) -> Option<u32> {
        self.min_values
    }

    /// A value that is allowed: the first of a list, the smallest integer of an unlisted set.
    #[must_use]
    pub fn example(&self) -> Option<String> {
        if !self.complement {
            return self.values.first().cloned();
        }
        let least = self.at_least.unwrap_or_else(|| self.at_most.unwrap_or(0).min(0));
        (0..)
            .map_while(|step| least.checked_add(step).filter(|n| self.at_most.is_none_or(|most| *n <= most)))
            .map(|number| number.to_string())
            .find(|text| !self.values.contains(text))
    }

    /// The lines that say the same; bounds are written as `Gte` and `Lte`.
    #[must_use]
    pub fn to_requirements(&self, key: &str) -> Vec<Requirement> {
        let values: Vec<&str> = self.values.iter().map(String::as_str).collect();
        let line = |operator, values: &[&str]| Requirement::new(key, operator, values);
        let mut out = Vec::new();
        match (self.complement, self.absent) {
            (false, true) => out.push(line(Operator::DoesNotExist, &[])),
            (false, false) if values.is_empty() => {
                out.push(line(Operator::Exists, &[]));
                out.push(line(Operator::DoesNotExist, &[]));
            }
            (false, false) => out.push(line(Operator::In, &values)),
            (true, absent) => {
                for (operator, bound) in [(Operator::Gte, self.at_least), (Operator::Lte, self.at_most)] {
                    out.extend(bound.map(|bound| line(operator, &[&bound.to_string()])));
                }
                if !absent && out.is_empty() {
                    out.push(line(Operator::Exists, &[]));
                }
                if !values.is_empty() {
                    out.push(line(Operator::NotIn, &values));
                }
            }
        }
        if let Some(first) = out.first_mut() {
            first.min_values = self.min_values;
        }
        out
    }
}
