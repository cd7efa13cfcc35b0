//! JSON of requests and answers. Answers may hold more than is read; requests hold nothing that a version refuses.

use std::net::IpAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::{Key, KeyId, Node, NodeId, User};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Health {
    pub(crate) database_connectivity: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Users {
    pub(crate) users: Vec<UserBody>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct UserBody {
    id: String,
    name: String,
    #[serde(default)]
    provider: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CreateKey<'a> {
    pub(crate) user: &'a str,
    pub(crate) reusable: bool,
    pub(crate) ephemeral: bool,
    pub(crate) expiration: String,
    pub(crate) acl_tags: &'a [String],
}

#[derive(Debug, Serialize)]
pub(crate) struct ExpireKey<'a> {
    pub(crate) id: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OneKey {
    pub(crate) pre_auth_key: KeyBody,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Keys {
    pub(crate) pre_auth_keys: Vec<KeyBody>,
}

// No Debug: `key` is the whole secret in the answer to a create, and of keys that are older than version 0.28.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KeyBody {
    id: String,
    #[serde(default)]
    user: Option<UserBody>,
    #[serde(default)]
    pub(crate) key: String,
    #[serde(default)]
    reusable: bool,
    #[serde(default)]
    ephemeral: bool,
    #[serde(default)]
    used: bool,
    #[serde(default)]
    expiration: Option<Timestamp>,
    #[serde(default)]
    created_at: Option<Timestamp>,
    #[serde(default)]
    acl_tags: Option<Vec<String>>,
}

#[derive(Deserialize)]
pub(crate) struct Nodes {
    pub(crate) nodes: Vec<NodeBody>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeBody {
    id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    given_name: String,
    #[serde(default)]
    ip_addresses: Vec<IpAddr>,
    #[serde(default)]
    pre_auth_key: Option<KeyBody>,
    #[serde(default)]
    tags: Option<Vec<String>>,
    #[serde(default)]
    online: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PolicyBody {
    pub(crate) policy: String,
}

/// The empty object that answers a change.
#[derive(Debug, Deserialize)]
pub(crate) struct Nothing {}

impl From<UserBody> for User {
    fn from(body: UserBody) -> Self {
        let UserBody { id, name, provider } = body;
        Self { id, name, provider }
    }
}

impl KeyBody {
    /// Without what it opens with.
    pub(crate) fn parse(self) -> Result<Key, String> {
        let id = KeyId::parse(&self.id).ok_or_else(|| format!("{:?} is no id of a key", self.id))?;
        Ok(Key {
            id,
            user: self.user.map(User::from),
            tags: self.acl_tags.unwrap_or_default(),
            reusable: self.reusable,
            ephemeral: self.ephemeral,
            used: self.used,
            expiration: self.expiration,
            created: self.created_at,
        })
    }
}

impl NodeBody {
    pub(crate) fn parse(self) -> Result<Node, String> {
        let id = NodeId::parse(&self.id).ok_or_else(|| format!("{:?} is no id of a node", self.id))?;
        Ok(Node {
            id,
            name: self.name,
            given_name: self.given_name,
            addresses: self.ip_addresses,
            key: self.pre_auth_key.map(KeyBody::parse).transpose()?,
            tags: self.tags.unwrap_or_default(),
            online: self.online,
        })
    }
}
