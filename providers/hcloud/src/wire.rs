//! The part of the vendor's JSON that is read and written; names and meaning are those of its OpenAPI document.
//!
//! Answers may have more fields, and words of an enumeration that are not known here: no answer is refused for those.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub(crate) type Labels = BTreeMap<String, String>;

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Server {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) status: String,
    pub(crate) created: Timestamp,
    pub(crate) public_net: PublicNet,
    #[serde(default)]
    pub(crate) private_net: Vec<PrivateNet>,
    pub(crate) server_type: Named,
    pub(crate) location: Named,
    #[serde(default)]
    pub(crate) labels: Labels,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PublicNet {
    pub(crate) ipv4: Option<Address>,
    pub(crate) ipv6: Option<Address>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Address {
    /// Of the primary IP.
    pub(crate) id: Option<u64>,
    /// An address, of IPv6 a network.
    pub(crate) ip: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PrivateNet {
    #[serde(default)]
    pub(crate) ip: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Named {
    pub(crate) name: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Identified {
    pub(crate) id: u64,
    #[serde(default)]
    pub(crate) name: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PrimaryIp {
    pub(crate) id: u64,
    pub(crate) auto_delete: bool,
    pub(crate) assignee_id: Option<u64>,
    #[serde(default)]
    pub(crate) labels: Labels,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ServerType {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) locations: Vec<SoldAt>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct SoldAt {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) deprecation: Option<Deprecation>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Deprecation {
    pub(crate) unavailable_after: Timestamp,
}

#[derive(Debug, Deserialize)]
pub(crate) struct OneServer {
    pub(crate) server: Server,
}

#[derive(Debug, Deserialize)]
pub(crate) struct OnePrimaryIp {
    pub(crate) primary_ip: PrimaryIp,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Meta {
    #[serde(default)]
    pub(crate) pagination: Pagination,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Pagination {
    pub(crate) next_page: Option<u32>,
    pub(crate) total_entries: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ErrorBody {
    pub(crate) error: ErrorSaid,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ErrorSaid {
    pub(crate) code: String,
    #[serde(default)]
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) details: serde_json::Value,
}

/// Body of the creating request. It holds the user data: no `Debug`.
#[derive(Clone, Serialize)]
pub(crate) struct NewServer {
    pub(crate) name: String,
    pub(crate) location: String,
    pub(crate) server_type: String,
    pub(crate) image: String,
    pub(crate) start_after_create: bool,
    pub(crate) labels: Labels,
    pub(crate) user_data: String,
    pub(crate) public_net: NewPublicNet,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ssh_keys: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) networks: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) firewalls: Vec<NewFirewall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) placement_group: Option<u64>,
}

#[derive(Clone, Serialize)]
pub(crate) struct NewPublicNet {
    pub(crate) enable_ipv4: bool,
    pub(crate) enable_ipv6: bool,
}

#[derive(Clone, Serialize)]
pub(crate) struct NewFirewall {
    pub(crate) firewall: u64,
}

#[derive(Clone, Serialize)]
pub(crate) struct NewLabels {
    pub(crate) labels: Labels,
}
