//! What each recorded answer must become, in 0.29 and in the development of 0.30.

use scarpenter_headscale::Kind;

/// The call of ours that a record answers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ask {
    Health,
    User(&'static str),
    Create,
    Keys,
    Expire(&'static str),
    DeleteKey(&'static str),
    Nodes,
    DeleteNode(&'static str),
    Policy,
    Check,
}

/// What it comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Become {
    Is(&'static str),
    Fails(Kind, &'static str),
    NotRecorded,
}

pub(crate) struct Case {
    pub(crate) record: &'static str,
    pub(crate) ask: Ask,
    pub(crate) becomes: [Become; 2],
}

use Become::{Fails, Is, NotRecorded};

const fn case(record: &'static str, ask: Ask, becomes: [Become; 2]) -> Case {
    Case { record, ask, becomes }
}

/// The same in both versions.
macro_rules! same {
    ($record:literal, $ask:expr, $becomes:expr) => {
        case($record, $ask, [$becomes, $becomes])
    };
}

const REFUSED_KEY: Become = Fails(Kind::Unauthorized, "refuses the API key: it is wrong, expired or revoked");
const EPHEMERAL: Become = Fails(Kind::Malformed, "was made reusable or ephemeral");

pub(crate) const CASES: &[Case] = &[
    same!("002-apiv1-health-noauth", Ask::Health, REFUSED_KEY),
    same!("003-apiv1-health", Ask::Health, Is("done")),
    same!("010-no-auth", Ask::User("x"), REFUSED_KEY),
    same!("011-wrong-key", Ask::User("x"), REFUSED_KEY),
    same!("012-malformed-key", Ask::User("x"), REFUSED_KEY),
    same!("013-basic-auth", Ask::User("x"), REFUSED_KEY),
    same!("014-key-last-char-wrong", Ask::User("x"), REFUSED_KEY),
    same!("074-apikey-short-after-expiry", Ask::User("x"), REFUSED_KEY),
    same!("076-apikey-expired-use", Ask::User("x"), REFUSED_KEY),
    same!("07a-apikey-no-expiration-use", Ask::User("x"), REFUSED_KEY),
    same!("020-user-list-empty", Ask::User("x"), Is("nobody")),
    same!("025-user-list", Ask::User("ops"), Is("2 ops")),
    same!("026-user-list-by-name", Ask::User("scarpenter"), Is("1 scarpenter")),
    same!("027-user-list-by-name-none", Ask::User("nosuch"), Is("nobody")),
    same!("073-apikey-short-before", Ask::User("scarpenter"), Is("1 scarpenter")),
    same!("030-pak-list-empty", Ask::Keys, Is("")),
    same!("031-pak-create-user-string-id", Ask::Create, EPHEMERAL),
    case(
        "032-pak-create-user-number-id",
        Ask::Create,
        [EPHEMERAL, Fails(Kind::Refused, "validation failed: expected string")],
    ),
    case(
        "033-pak-create-user-name",
        Ask::Create,
        [
            Fails(Kind::Refused, "invalid value for uint64 field user"),
            Fails(Kind::Refused, "invalid user id"),
        ],
    ),
    case(
        "034-pak-create-user-unknown-id",
        Ask::Create,
        [
            Fails(Kind::Refused, "refuses to make a pre-auth key: user not found"),
            Fails(Kind::Refused, "user not found"),
        ],
    ),
    same!("035-pak-create-tags-only-unowned-tag", Ask::Create, EPHEMERAL),
    same!("036-pak-create-tags-and-user", Ask::Create, EPHEMERAL),
    same!(
        "037-pak-create-bad-tag",
        Ask::Create,
        Fails(Kind::Refused, "tag must start with the string 'tag:'")
    ),
    same!(
        "038-pak-create-neither",
        Ask::Create,
        Fails(Kind::Refused, "must be either tagged or owned by user")
    ),
    same!("039-pak-create-no-expiration", Ask::Create, Fails(Kind::Malformed, "was made with another end")),
    case("03a-pak-create-past-expiration", Ask::Create, [Is("6@1!"), Is("5@1!")]),
    case(
        "03b-pak-create-snake-case",
        Ask::Create,
        [Is("7@1/tag:snake"), Fails(Kind::Refused, "validation failed: unexpected property")],
    ),
    same!("03c-pak-create-uppercase-tag", Ask::Create, Fails(Kind::Refused, "tag should be lowercase")),
    same!("066-pak-create-tags-only", Ask::Create, EPHEMERAL),
    same!("067-pak-create-tags-only-tag-not-in-policy", Ask::Create, EPHEMERAL),
    case(
        "040-pak-list",
        Ask::Keys,
        [
            Is("1@1~ 2@1~ 3/tag:k8s-node~ 4@1/tag:k8s-node~ 5@1! 6@1! 7@1/tag:snake"),
            Is("1@1~ 2/tag:k8s-node~ 3@1/tag:k8s-node~ 4@1! 5@1!"),
        ],
    ),
    case(
        "048-pak-list-after",
        Ask::Keys,
        [
            Is("1@1!~ 3/tag:k8s-node~ 4@1/tag:k8s-node~ 5@1! 6@1! 7@1/tag:snake"),
            Is("1@1!~ 3@1/tag:k8s-node~ 4@1! 5@1!"),
        ],
    ),
    case(
        "101-pak-list-used",
        Ask::Keys,
        [
            Is(
                "1@1!~ 3/tag:k8s-node~ 4@1/tag:k8s-node~ 5@1! 6@1! 7@1/tag:snake 8/tag:k8s-node~ 9/tag:other~ 10/tag:k8s-node+~ 11/tag:k8s-cp+~ 12/tag:k8s-node+~ 13/tag:k8s-cp+~",
            ),
            NotRecorded,
        ],
    ),
    same!("042-pak-expire", Ask::Expire("1"), Is("done")),
    same!("043-pak-expire-again", Ask::Expire("1"), Is("done")),
    same!("044-pak-expire-unknown", Ask::Expire("999"), Is("done")),
    case(
        "045-pak-expire-old-form",
        Ask::Expire("1"),
        [Is("done"), Fails(Kind::Refused, "unexpected property")],
    ),
    case("110-pak-expire-before-use", Ask::Expire("17"), [Is("done"), NotRecorded]),
    same!("046-pak-delete", Ask::DeleteKey("2"), Is("done")),
    same!("047-pak-delete-unknown", Ask::DeleteKey("999"), Is("done")),
    case("140-pak-delete-used", Ask::DeleteKey("5"), [Is("done"), NotRecorded]),
    case("160-pak-delete-used-2", Ask::DeleteKey("12"), [Is("done"), NotRecorded]),
    same!("050-node-list-empty", Ask::Nodes, Is("")),
    case(
        "100-node-list-two",
        Ask::Nodes,
        [
            Is(
                "1=cp-a(100.64.0.1,fd7a:115c:a1e0::1)[13/tag:k8s-cp+~] 2=node-a(100.64.0.2,fd7a:115c:a1e0::2)[12/tag:k8s-node+~]",
            ),
            NotRecorded,
        ],
    ),
    case(
        "100-node-list",
        Ask::Nodes,
        [NotRecorded, Is("1=main-a(100.64.0.1,fd7a:115c:a1e0::1)[8/tag:k8s-node+~]")],
    ),
    case(
        "150-node-list-with-routes",
        Ask::Nodes,
        [
            Is(
                "1=cp(100.64.0.1,fd7a:115c:a1e0::1)[1/tag:k8s-cp+~] 2=worker-1(100.64.0.2,fd7a:115c:a1e0::2)[2/tag:k8s-node+~] 4=reboot-1(100.64.0.4,fd7a:115c:a1e0::4)[4/tag:k8s-node+~]off 5=twin(100.64.0.5,fd7a:115c:a1e0::5)[5/tag:k8s-node+~] 6=twin(100.64.0.6,fd7a:115c:a1e0::6)[6/tag:k8s-node+~]",
            ),
            NotRecorded,
        ],
    ),
    same!("052-node-delete-unknown", Ask::DeleteNode("99"), Is("done")),
    case("130-node-delete", Ask::DeleteNode("5"), [Is("done"), NotRecorded]),
    case("130-node-delete", Ask::DeleteNode("1"), [NotRecorded, Is("done")]),
    case("131-node-delete-again", Ask::DeleteNode("5"), [Is("done"), NotRecorded]),
    same!("060-policy-get-unset", Ask::Policy, Is("none")),
    same!("065-policy-get", Ask::Policy, Is("tag:k8s-node tag:k8s-cp -")),
    same!("063-policy-check", Ask::Check, Is("done")),
];

/// Records of calls that we never make.
pub(crate) const OTHERS: &[&str] = &[
    "000-health",
    "001-version",
    "015-unknown-path",
    "016-wrong-method",
    "021-user-create",
    "022-user-create-duplicate",
    "023-user-create-full",
    "024-user-create-bad-name",
    "028-user-list-by-id",
    "029-user-bad-json",
    "02a-user-unknown-field",
    "051-node-get-unknown",
    "053-node-get-bad-id",
    "041-pak-list-with-old-user-query",
    "061-policy-set-bad",
    "062-policy-set-unknown-owner",
    "064-policy-set",
    "070-apikey-list",
    "071-apikey-create",
    "072-apikey-create-short",
    "075-apikey-expire",
    "077-apikey-expire-unknown",
    "078-apikey-list",
    "079-apikey-create-no-expiration",
    "080-user-delete-with-nothing",
    "081-user-delete-unknown",
    "082-register-bad-key",
    "083-auth-register-bad",
    "084-swagger-json-probe",
    "102-node-get",
    "103-node-list-by-user",
    "120-node-rename",
    "121-node-rename-bad",
    "122-node-tags-set",
    "123-node-tags-empty",
    "124-node-tags-not-in-policy",
    "125-node-tags-back",
    "126-approve-routes-not-advertised",
    "127-approve-routes-clear",
    "132-node-expire",
    "151-approve-routes-partial",
    "152-approve-routes-set",
];
