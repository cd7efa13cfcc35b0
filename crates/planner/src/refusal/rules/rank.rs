use super::super::asked;
use super::{Case, Table, narrow};
use crate::tolerate;

impl<'p, 'a> Table<'p, 'a> {
    /// What decides among the offerings that are left, besides the price.
    pub(super) fn rank(&mut self) {
        self.avoid();
        self.prefer();
        self.weigh();
    }

    /// Of what is left, pools that would rather not take the pod come last.
    fn avoid(&mut self) {
        let tolerations = self.asked.tolerations;
        let willing = |case: &&Case<'p, 'a>| {
            case.ground
                .is_none_or(|ground| tolerate::missing(ground.taints(), tolerations, case.term).is_ok())
        };
        let cases: Vec<Case<'p, 'a>> = self.cases.iter().filter(willing).cloned().collect();
        if cases.is_empty() || cases.len() == self.cases.len() || self.asked.skips("prefer-no-schedule") {
            return;
        }
        let _ = self.replace("prefer-no-schedule", cases, asked::avoided, |_, _| (String::new(), None));
    }

    /// Of what is left, what meets the heaviest preferences is taken, however dear.
    fn prefer(&mut self) {
        if self.asked.preferences.is_empty() || self.asked.skips("preferences") {
            return;
        }
        let snapshot = self.pass.market.snapshot;
        let mut groups: Vec<(i64, Vec<Case<'p, 'a>>)> = Vec::new();
        for term in &self.asked.terms {
            let of_term = self.cases.iter().filter(|case| std::ptr::eq(case.term, term));
            let mut group: (i64, Vec<Case<'p, 'a>>) = (0, of_term.cloned().collect());
            for (weight, preference) in &self.asked.preferences {
                let mut narrowed = group.1.clone();
                narrowed.iter_mut().for_each(|case| narrow(snapshot, case, preference));
                if narrowed.iter().any(|case| !case.left.is_empty(snapshot)) {
                    group = (group.0 + weight, narrowed);
                }
            }
            groups.push(group);
        }
        let held =
            |group: &(i64, Vec<Case<'_, '_>>)| group.1.iter().any(|case| !case.left.is_empty(snapshot));
        let most = groups.iter().filter(|group| held(group)).map(|(weight, _)| *weight).max();
        let best = groups.into_iter().filter(|(weight, _)| Some(*weight) == most);
        let cases = best.flat_map(|(_, cases)| cases).collect();
        let _ = self.replace("preferences", cases, asked::preferences, |_, _| (String::new(), None));
    }

    /// Of what is left then, the heaviest pools' is taken, however dear.
    fn weigh(&mut self) {
        let weight = |case: &Case<'_, '_>| case.ground.map(|ground| ground.pool.weight);
        let Some(most) = self.cases.iter().map(weight).max().flatten() else { return };
        if self.asked.skips("nodepool-weight") || self.cases.iter().all(|case| weight(case) == Some(most)) {
            return;
        }
        let cases = self.cases.iter().filter(|case| weight(case) == Some(most)).cloned().collect();
        let asked = |_: &Self| format!("the heaviest NodePools that have any, of weight {most}");
        let _ = self.replace("nodepool-weight", cases, asked, |_, _| (String::new(), None));
    }
}
