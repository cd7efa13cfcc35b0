//! The name that was probably meant.

/// The candidate that is the fewest edits away from `word`; of equals the first in text order.
///
/// Of two names with a domain, the part behind the `/` decides when the whole is further off,
/// so a name without its domain is found too.
#[must_use]
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    candidates.into_iter().min_by_key(|candidate| (distance(word, candidate), *candidate))
}

fn distance(word: &str, candidate: &str) -> usize {
    let whole = edits(word, candidate);
    match (word.rsplit('/').next(), candidate.rsplit('/').next()) {
        (Some(a), Some(b)) if a.len() < word.len() || b.len() < candidate.len() => whole.min(edits(a, b) + 1),
        _ => whole,
    }
}

/// Insertions, deletions and replacements that make `a` into `b`, letter case aside.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(left != *right);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_hand_is_found() {
        let keys = crate::label::WELL_KNOWN;
        for (word, expected) in [
            ("node.kubernetes.io/instancetype", "node.kubernetes.io/instance-type"),
            ("instance-type", "node.kubernetes.io/instance-type"),
            ("vendor", "scarpenter.sparecores.com/vendor"),
            ("scarpenter.sparecores.com/vender", "scarpenter.sparecores.com/vendor"),
            ("kubernetes.io/archs", "kubernetes.io/arch"),
        ] {
            assert_eq!(nearest(word, keys), Some(expected), "{word}");
        }
        assert_eq!(nearest("CCX33", ["ccx23", "ccx33"]), Some("ccx33"));
        assert_eq!(nearest("x", []), None);
    }
}
