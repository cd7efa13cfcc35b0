//! What may go from a Headscale, decided on its lists; nothing here asks anybody.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use scarpenter_core::name::{ClaimUid, ClusterId};
use scarpenter_headscale::{Key, KeyId, Node, NodeId};

use super::key::is_marked;
use super::{Mark, Note};

/// A key that is on no claim after this long never will be. More than any two clocks differ that certificates work with.
pub(super) const LOST_AFTER: Duration = Duration::from_secs(600);
/// More than this many claims that vanished at once, and more than one in ten, are somebody's mistake.
const MOST_VANISHED: usize = 5;

/// What a Headscale lists, whoever's it is.
#[derive(Clone, Debug, Default)]
pub(super) struct Lists {
    pub(super) keys: Vec<Key>,
    pub(super) nodes: Vec<Node>,
}

/// What is left of one claim, and goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Remains {
    pub(super) claim: ClaimUid,
    /// First: a key is deleted only when no node has it.
    pub(super) nodes: Vec<NodeId>,
    pub(super) key: Option<KeyId>,
}

/// Remains of claims whose machine is gone.
pub(super) fn remains<'a>(
    over: impl Iterator<Item = (&'a ClaimUid, &'a Note)>,
    lists: &Lists,
) -> Vec<Remains> {
    let mut nodes: BTreeMap<&KeyId, Vec<&Node>> = BTreeMap::new();
    for node in &lists.nodes {
        if let Some(key) = &node.key {
            nodes.entry(&key.id).or_default().push(node);
        }
    }
    let keys: BTreeMap<&KeyId, &Key> = lists.keys.iter().map(|key| (&key.id, key)).collect();
    over.map(|(claim, note)| {
        let own = nodes.get(&note.mark.id).into_iter().flatten();
        let own = own.filter(|node| node.key.as_ref().is_some_and(|key| note.mark.is_of(key)));
        Remains {
            claim: claim.clone(),
            nodes: own.map(|node| node.id.clone()).collect(),
            key: keys.get(&note.mark.id).filter(|key| note.mark.is_of(key)).map(|key| key.id.clone()),
        }
    })
    .collect()
}

/// Keys whose machines have joined, and which would still open: they are expired, since their nodes live.
pub(super) fn spent(joined: &[Mark], keys: &[Key], now: Timestamp) -> Vec<KeyId> {
    let marks: BTreeMap<&KeyId, &Mark> = joined.iter().map(|mark| (&mark.id, mark)).collect();
    let open = keys.iter().filter(|key| !key.is_expired(now));
    open.filter(|key| marks.get(&key.id).is_some_and(|mark| mark.is_of(key)))
        .map(|key| key.id.clone())
        .collect()
}

/// Keys of this cluster that nobody wrote down: whoever made them died right after. No machine has them.
pub(super) fn lost(known: &BTreeSet<KeyId>, keys: &[Key], cluster: &ClusterId, now: Timestamp) -> Vec<KeyId> {
    let grace = SignedDuration::try_from(LOST_AFTER).unwrap_or(SignedDuration::MAX);
    let is_lost = |key: &&Key| {
        !key.used
            && !key.reusable
            && !key.is_expired(now)
            && key.expiration.is_some_and(|end| is_marked(end, cluster))
            && key.created.is_some_and(|created| now.duration_since(created) > grace)
            && !known.contains(&key.id)
    };
    keys.iter().filter(is_lost).map(|key| key.id.clone()).collect()
}

/// Claims that are gone without having let go; an error when they are too many to be believed.
pub(super) fn vanished(
    notes: &BTreeMap<ClaimUid, Note>,
    live: &BTreeSet<ClaimUid>,
) -> Result<BTreeSet<ClaimUid>, String> {
    let gone: BTreeSet<ClaimUid> = notes
        .iter()
        .filter(|(uid, note)| !note.left && !live.contains(uid))
        .map(|(uid, _)| uid.clone())
        .collect();
    if gone.len() > MOST_VANISHED && gone.len() * 10 > notes.len() {
        return Err(format!(
            "{} of {} claims with a mesh node have vanished at once: their nodes are left alone; delete them from \
             Headscale by hand, or bring the claims back",
            gone.len(),
            notes.len()
        ));
    }
    Ok(gone)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::Server;
    use super::super::key::marked_end;
    use super::*;

    const MADE: &str = "2026-11-30T13:00:00.123456789Z";

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn cluster() -> ClusterId {
        ClusterId::new("ours")
    }

    fn key(id: u64) -> Key {
        Key {
            id: KeyId::parse(&id.to_string()).unwrap(),
            user: None,
            tags: Vec::new(),
            reusable: false,
            ephemeral: false,
            used: false,
            expiration: Some(marked_end(at("2026-11-30T14:00:00Z"), &cluster())),
            created: Some(at(MADE)),
        }
    }

    fn node(id: u64, key: Option<Key>) -> Node {
        Node {
            id: NodeId::parse(&id.to_string()).unwrap(),
            name: "a".to_owned(),
            given_name: "a".to_owned(),
            addresses: Vec::new(),
            key,
            tags: Vec::new(),
            online: true,
        }
    }

    fn note(id: u64, left: bool) -> Note {
        let server = Server { url: String::new(), secret: String::new(), key: String::new() };
        Note { server, mark: Mark::parse(&format!("{id} {MADE}")).unwrap(), node: "a".to_owned(), left }
    }

    fn ids<T: ToString>(list: &[T]) -> Vec<String> {
        list.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn nodes_go_by_their_key_and_others_of_the_same_name_stay() {
        let keys = vec![Key { used: true, ..key(1) }, key(2), key(3)];
        let nodes = vec![node(7, Some(key(1))), node(8, Some(key(2))), node(9, None), node(10, Some(key(1)))];
        let lists = Lists { keys, nodes };
        let (a, b, c) = (ClaimUid::new("a"), ClaimUid::new("b"), ClaimUid::new("c"));
        let (one, three, nine) = (note(1, true), note(3, true), note(9, true));
        let found = remains([(&a, &one), (&b, &three), (&c, &nine)].into_iter(), &lists);
        assert_eq!(ids(&found[0].nodes), ["7", "10"]);
        assert_eq!(found[0].key, Some(key(1).id));
        assert_eq!((found[1].nodes.len(), &found[1].key), (0, &Some(key(3).id)));
        // Nothing is left of it, which is how the second pass finds what the first has removed.
        assert_eq!(found[2], Remains { claim: c, nodes: Vec::new(), key: None });
    }

    #[test]
    fn a_key_of_another_database_under_the_same_id_is_not_touched() {
        let other = Key { created: Some(at("2026-12-01T00:00:00Z")), ..key(1) };
        let lists = Lists { keys: vec![other.clone()], nodes: vec![node(7, Some(other.clone()))] };
        let (a, one) = (ClaimUid::new("a"), note(1, true));
        let found = remains([(&a, &one)].into_iter(), &lists);
        assert_eq!(found, [Remains { claim: a, nodes: Vec::new(), key: None }]);
        assert!(spent(&[one.mark], &[other], at("2026-12-01T00:00:01Z")).is_empty());
    }

    #[test]
    fn the_key_of_a_machine_that_has_joined_is_expired_once() {
        let now = at("2026-11-30T13:30:00Z");
        let expired = Key { expiration: Some(now), ..key(2) };
        let joined = [note(1, false).mark, note(2, false).mark];
        assert_eq!(ids(&spent(&joined, &[key(1), expired, key(3)], now)), ["1"]);
    }

    #[test]
    fn a_key_that_nobody_wrote_down_is_lost_after_a_while_and_nobody_elses_ever_is() {
        let plain = Key { expiration: Some(at("2026-11-30T14:00:00Z")), ..key(2) };
        let other = marked_end(at("2026-11-30T14:00:00Z"), &ClusterId::new("theirs"));
        let theirs = Key { expiration: Some(other), ..key(3) };
        let used = Key { used: true, ..key(4) };
        let keys = [key(1), plain, theirs, used, key(5)];
        let known = BTreeSet::from([key(5).id]);
        assert_eq!(ids(&lost(&known, &keys, &cluster(), at("2026-11-30T13:30:00Z"))), ["1"]);
        assert!(lost(&known, &keys, &cluster(), at("2026-11-30T13:05:00Z")).is_empty());
    }

    #[test]
    fn one_claim_that_vanished_is_believed_and_all_of_them_are_not() {
        let notes: BTreeMap<ClaimUid, Note> =
            (0..60).map(|id| (ClaimUid::new(format!("{id:02}")), note(id, id >= 50))).collect();
        let live = |from: usize| notes.keys().skip(from).cloned().collect::<BTreeSet<_>>();
        assert_eq!(vanished(&notes, &live(3)).unwrap().len(), 3);
        assert!(vanished(&notes, &BTreeSet::new()).unwrap_err().starts_with("50 of 60"));
        // Those that have let go are none that vanished.
        assert_eq!(vanished(&notes, &live(0)).unwrap().len(), 0);
    }

    #[test]
    fn five_thousand_claims_that_failed_leave_no_key_and_no_node() {
        let notes: BTreeMap<ClaimUid, Note> =
            (0..5000).map(|id| (ClaimUid::new(id.to_string()), note(id, true))).collect();
        // Every third was used, every fifth was lost before its claim knew of it, and some are of somebody else.
        let used = |id: u64| id.is_multiple_of(3);
        let keys: Vec<Key> = (0..6000)
            .map(|id| match id {
                0..5000 => Key { used: used(id), ..key(id) },
                5000..5500 => key(id),
                _ => Key { expiration: Some(at("2026-11-30T14:00:00Z")), ..key(id) },
            })
            .collect();
        let nodes = (0..5000).filter(|id| used(*id)).map(|id| node(id, Some(key(id)))).collect();
        let mut lists = Lists { keys, nodes };
        let began = std::time::Instant::now();
        for remains in remains(notes.iter(), &lists) {
            lists.nodes.retain(|node| !remains.nodes.contains(&node.id));
            lists.keys.retain(|key| Some(&key.id) != remains.key.as_ref());
        }
        for id in lost(&BTreeSet::new(), &lists.keys, &cluster(), at("2026-11-30T13:30:00Z")) {
            lists.keys.retain(|key| key.id != id);
        }
        assert_eq!((lists.nodes.len(), lists.keys.len()), (0, 500));
        assert!(lists.keys.iter().all(|key| key.id.as_str() >= "5500"));
        assert!(began.elapsed() < Duration::from_secs(20));
    }
}
