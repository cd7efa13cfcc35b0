//! What a class may set for this vendor: `vendors.hcloud.settings`.

use std::collections::BTreeMap;

use scarpenter_provider::request::Settings as Raw;
use serde_json::Value;

use crate::machine::{TAG_PREFIX, is_label_value};

/// Keys that are known, each with the README's words for it.
const KEYS: [&str; 8] = [
    "firewalls",
    "imageSelector",
    "labels",
    "networks",
    "placementGroup",
    "publicIPv4",
    "publicIPv6",
    "sshKeys",
];

/// What a class may set for this vendor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether machines get a public IPv4 address, which costs extra.
    pub public_ipv4: bool,
    /// Whether machines get a public IPv6 network.
    pub public_ipv6: bool,
    /// Private networks, by id or name.
    pub networks: Vec<String>,
    /// Firewalls, by id or name.
    pub firewalls: Vec<String>,
    /// SSH keys, by id or name.
    pub ssh_keys: Vec<String>,
    /// Placement group, by id or name.
    pub placement_group: Option<String>,
    /// Label selector of the snapshot that is booted for a Flatcar channel.
    pub image_selector: Option<String>,
    /// Labels on every machine beside ours.
    pub labels: BTreeMap<String, String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            public_ipv4: true,
            public_ipv6: true,
            networks: Vec::new(),
            firewalls: Vec::new(),
            ssh_keys: Vec::new(),
            placement_group: None,
            image_selector: None,
            labels: BTreeMap::new(),
        }
    }
}

/// A setting that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Its key.
    pub key: String,
    /// What is wrong and what to do.
    pub words: String,
}

impl Settings {
    /// Reads the settings of a class.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub fn read(raw: &Raw) -> Result<Self, Vec<Wrong>> {
        let mut reader = Reader { raw, wrong: Vec::new() };
        let settings = Self {
            public_ipv4: reader.flag("publicIPv4"),
            public_ipv6: reader.flag("publicIPv6"),
            networks: reader.texts("networks"),
            firewalls: reader.texts("firewalls"),
            ssh_keys: reader.texts("sshKeys"),
            placement_group: reader.text("placementGroup"),
            image_selector: reader.text("imageSelector"),
            labels: reader.labels(),
        };
        reader.unknown();
        if !settings.public_ipv4 && !settings.public_ipv6 && settings.networks.is_empty() {
            reader.refuse(
                "networks",
                "a machine without public addresses needs a private network: name one".to_owned(),
            );
        }
        if !settings.public_ipv4 && !settings.public_ipv6 && !settings.firewalls.is_empty() {
            reader.refuse("firewalls", "firewalls guard public addresses, and none is wanted".to_owned());
        }
        if reader.wrong.is_empty() { Ok(settings) } else { Err(reader.wrong) }
    }
}

struct Reader<'a> {
    raw: &'a Raw,
    wrong: Vec<Wrong>,
}

impl Reader<'_> {
    fn refuse(&mut self, key: &str, words: String) {
        self.wrong.push(Wrong { key: key.to_owned(), words });
    }

    fn flag(&mut self, key: &str) -> bool {
        match self.raw.get(key) {
            None | Some(Value::Bool(true)) => true,
            Some(Value::Bool(false)) => false,
            Some(Value::String(text)) if text == "true" => true,
            Some(Value::String(text)) if text == "false" => false,
            Some(_) => {
                self.refuse(key, "expected true or false".to_owned());
                true
            }
        }
    }

    fn texts(&mut self, key: &str) -> Vec<String> {
        let items: &[Value] = match self.raw.get(key) {
            None => &[],
            Some(Value::Array(items)) => items,
            Some(one) => std::slice::from_ref(one),
        };
        let read: Option<Vec<_>> = items.iter().map(word).collect();
        read.unwrap_or_else(|| {
            self.refuse(key, "expected a name or id, or a list of them".to_owned());
            Vec::new()
        })
    }

    fn text(&mut self, key: &str) -> Option<String> {
        let value = self.raw.get(key)?;
        let text = word(value);
        if text.is_none() {
            self.refuse(key, "expected one text".to_owned());
        }
        text
    }

    fn labels(&mut self) -> BTreeMap<String, String> {
        let mut out = BTreeMap::new();
        for item in self.texts("labels") {
            match item.split_once('=') {
                Some((key, value)) if may_label(key) && is_label_value(value) => {
                    out.insert(key.to_owned(), value.to_owned());
                }
                _ => self.refuse(
                    "labels",
                    format!(
                        "{item:?} is no key=value of up to 63 letters, digits, '-', '_' and '.', or its key is \
                         reserved: {TAG_PREFIX}… is scarpenter's and hetzner.cloud/ the vendor's"
                    ),
                ),
            }
        }
        out
    }

    fn unknown(&mut self) {
        let unknown: Vec<_> = self.raw.keys().filter(|key| !KEYS.contains(&key.as_str())).cloned().collect();
        for key in unknown {
            self.refuse(&key, format!("is no setting of this vendor; those are {}", KEYS.join(", ")));
        }
    }
}

/// A text that is not empty; ids may be written as numbers.
fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Number(number) => number.as_u64().map(|id| id.to_string()),
        _ => None,
    }
}

fn may_label(key: &str) -> bool {
    let (prefix, name) = key.rsplit_once('/').unwrap_or(("", key));
    let plain =
        prefix.len() <= 253 && prefix.split('.').all(|part| prefix.is_empty() || is_label_value(part));
    !name.is_empty()
        && is_label_value(name)
        && plain
        && prefix != "hetzner.cloud"
        && !key.starts_with(TAG_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: serde_json::Value) -> Result<Settings, Vec<Wrong>> {
        Settings::read(json.as_object().unwrap())
    }

    #[test]
    fn texts_as_the_class_has_them_and_json_as_others_send_it_mean_the_same() {
        let texts = read(serde_json::json!({"publicIPv4": "false", "networks": ["42"], "sshKeys": "ops"}));
        let json = read(serde_json::json!({"publicIPv4": false, "networks": 42, "sshKeys": ["ops"]}));
        assert_eq!(texts, json);
        assert!(!texts.unwrap().public_ipv4);
        assert_eq!(read(serde_json::json!({})), Ok(Settings::default()));
    }

    #[test]
    fn a_mistyped_setting_is_refused_rather_than_paid_for() {
        let wrong = read(serde_json::json!({"publicIpv4": "false"})).unwrap_err();
        assert_eq!(wrong[0].key, "publicIpv4");
        assert!(wrong[0].words.contains("publicIPv4"), "{wrong:?}");
        assert!(read(serde_json::json!({"publicIPv4": "no"})).is_err());
    }

    #[test]
    fn a_machine_that_nobody_could_reach_is_refused() {
        let off = serde_json::json!({"publicIPv4": "false", "publicIPv6": "false"});
        assert_eq!(read(off).unwrap_err()[0].key, "networks");
    }

    #[test]
    fn labels_that_are_ours_or_the_vendors_are_refused() {
        for bad in ["scarpenter-claim=x", "hetzner.cloud/x=y", "noequals", "a b=c", "k=-v"] {
            assert!(read(serde_json::json!({"labels": [bad]})).is_err(), "{bad}");
        }
        let fine = read(serde_json::json!({"labels": ["team=ops", "example.com/env=prod"]})).unwrap();
        assert_eq!(fine.labels.len(), 2);
    }
}
