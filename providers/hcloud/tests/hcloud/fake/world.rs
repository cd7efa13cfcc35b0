//! What the fake keeps and how it changes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, Method};
use serde_json::{Value, json};

use super::json::{self, LOCATIONS, TYPES};
use super::{Fault, Rule, TOKEN, matches, split, text_of};

type Labels = BTreeMap<String, String>;

pub(crate) struct World {
    pub(crate) rules: Vec<Rule>,
    pub(crate) journal: Vec<String>,
    pub(crate) breaches: Vec<String>,
    pub(crate) servers: BTreeMap<u64, ServerRow>,
    pub(crate) ips: Vec<Ip>,
    pub(crate) snapshots: Vec<Snapshot>,
    pub(crate) named: Vec<(&'static str, u64, &'static str)>,
    pub(crate) sold_out: BTreeSet<(&'static str, &'static str)>,
    pub(crate) limit: Option<usize>,
    pub(crate) token: String,
    pub(crate) readonly: bool,
    pub(crate) delete_takes: Duration,
    /// Addresses stay when their server goes, though they should not.
    pub(crate) addresses_stay: bool,
    /// Of a hundred creates and of a hundred calls, these are lost and throttled.
    pub(crate) lost_of_100: u64,
    pub(crate) throttled_of_100: u64,
    /// Most servers that there ever were at once.
    pub(crate) peak: usize,
    pub(crate) last_user_data: Vec<u8>,
    pub(crate) last_body: Value,
    dice: u64,
    next_id: u64,
}

pub(crate) struct ServerRow {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) created: jiff::Timestamp,
    pub(crate) made: Instant,
    pub(crate) going: Option<Instant>,
    pub(crate) off: bool,
    pub(crate) protected: bool,
    pub(crate) server_type: String,
    pub(crate) location: String,
    pub(crate) labels: Labels,
    pub(crate) networks: Vec<u64>,
}

#[derive(Clone)]
pub(crate) struct Ip {
    pub(crate) id: u64,
    pub(crate) kind: &'static str,
    pub(crate) ip: String,
    pub(crate) labels: Labels,
    pub(crate) auto_delete: bool,
    pub(crate) assignee: Option<u64>,
}

pub(crate) struct Snapshot {
    pub(crate) id: u64,
    pub(crate) arch: &'static str,
    pub(crate) created: &'static str,
    pub(crate) labels: Labels,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl Answer {
    fn fine(status: u16, body: Value) -> Self {
        Self { status, body, headers: Vec::new() }
    }

    pub(crate) fn refusal(status: u16, code: &str, message: &str) -> Self {
        Self::fine(status, json!({"error": {"code": code, "message": message, "details": null}}))
    }

    fn invalid(field: &str, message: &str) -> Self {
        let details = json!({"fields": [{"name": field, "messages": [message]}]});
        Self::fine(422, json!({"error": {"code": "invalid_input", "message": message, "details": details}}))
    }

    fn not_found() -> Self {
        Self::refusal(404, "not_found", "entity not found")
    }
}

impl World {
    pub(super) fn new() -> Self {
        let flatcar = |id, arch, created| Snapshot {
            id,
            arch,
            created,
            labels: [("os", "flatcar"), ("flatcar-channel", "stable")]
                .map(|(k, v)| (k.into(), v.into()))
                .into(),
        };
        Self {
            rules: Vec::new(),
            journal: Vec::new(),
            breaches: Vec::new(),
            servers: BTreeMap::new(),
            ips: Vec::new(),
            snapshots: vec![
                flatcar(501, "x86", "2026-01-01T00:00:00Z"),
                flatcar(502, "x86", "2026-06-01T00:00:00Z"),
                flatcar(503, "arm", "2026-06-01T00:00:00Z"),
            ],
            named: vec![
                ("/networks", 71, "inner"),
                ("/firewalls", 72, "wall"),
                ("/ssh_keys", 73, "ops"),
                ("/placement_groups", 74, "apart"),
            ],
            sold_out: BTreeSet::new(),
            limit: None,
            token: TOKEN.to_owned(),
            readonly: false,
            delete_takes: Duration::from_millis(60),
            addresses_stay: false,
            lost_of_100: 0,
            throttled_of_100: 0,
            peak: 0,
            last_user_data: Vec::new(),
            last_body: Value::Null,
            dice: 0x2545_F491_4F6C_DD1D,
            next_id: 1000,
        }
    }

    /// A server of nobody's claim.
    pub(crate) fn add_foreign(&mut self, name: &str) -> u64 {
        self.add(name, "cx22", "fsn1", Labels::new(), Vec::new(), true)
    }

    fn roll(&mut self) -> u64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        self.dice % 100
    }

    pub(super) fn strike(&mut self, method: &Method, path: &str) -> Option<Fault> {
        self.journal.push(format!("{method} {path}"));
        let rule = self
            .rules
            .iter_mut()
            .find(|rule| rule.times > 0 && rule.method == method.as_str() && path.starts_with(rule.path));
        if let Some(rule) = rule {
            rule.times -= 1;
            return Some(rule.fault.clone());
        }
        let (throttled, lost) = (self.roll(), self.roll());
        if throttled < self.throttled_of_100 {
            let headers = [("ratelimit-limit", "360000"), ("ratelimit-remaining", "300000")];
            let headers = headers.map(|(name, value)| (name, value.to_owned())).to_vec();
            return Some(Fault::Refuse(429, "rate_limit_exceeded", headers));
        }
        (method == Method::POST && lost < self.lost_of_100).then_some(Fault::Lose)
    }

    pub(super) fn answer(
        &mut self,
        method: &Method,
        path: &str,
        query: &[(String, String)],
        headers: &HeaderMap,
        body: &[u8],
    ) -> Answer {
        self.settle();
        let given = headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
        if given != format!("Bearer {}", self.token) {
            return Answer::refusal(401, "unauthorized", "unable to authenticate");
        }
        if self.readonly && method != Method::GET {
            return Answer::refusal(
                401,
                "token_readonly",
                "the token is only allowed to perform GET requests",
            );
        }
        let mut answer = self.route(method, path, query, body);
        answer.headers.push(("ratelimit-limit", "360000".to_owned()));
        answer.headers.push(("ratelimit-remaining", "300000".to_owned()));
        answer
    }

    fn route(&mut self, method: &Method, path: &str, query: &[(String, String)], body: &[u8]) -> Answer {
        let (template, id) = split(path);
        let id = id.unwrap_or_default();
        match (method.as_str(), template.as_str()) {
            ("GET", "/servers") => Answer::fine(200, self.servers_page(query)),
            ("POST", "/servers") => self.create(body),
            ("GET", "/servers/{id}") => self.servers.get(&id).map_or_else(Answer::not_found, |row| {
                Answer::fine(200, json!({"server": json::server(row, self.status(row), &self.ips)}))
            }),
            ("DELETE", "/servers/{id}") => self.delete(id),
            ("GET", "/locations") => {
                let mut all: Vec<_> = LOCATIONS.iter().map(|name| json::location(name)).collect();
                all.reverse();
                Answer::fine(200, json::paged("locations", all, query))
            }
            ("GET", "/server_types") => {
                let all = TYPES.iter().map(|kind| json::server_type(kind.0)).collect();
                Answer::fine(200, json::paged("server_types", all, query))
            }
            ("GET", "/images") => Answer::fine(200, self.images_page(query)),
            ("GET", "/primary_ips") => {
                let all =
                    self.ips.iter().filter(|ip| selected(&ip.labels, query)).map(json::primary_ip).collect();
                Answer::fine(200, json::paged("primary_ips", all, query))
            }
            ("GET" | "PUT" | "DELETE", "/primary_ips/{id}") => self.address(method, id, body),
            ("GET", _) => self.kept(&template, id, query),
            _ => Answer::refusal(405, "method_not_allowed", "the fake does not know this"),
        }
    }

    fn servers_page(&self, query: &[(String, String)]) -> Value {
        let name = value(query, "name");
        let rows = self.servers.values().filter(|row| name.is_none_or(|name| row.name == name));
        let rows = rows.filter(|row| selected(&row.labels, query));
        let mut all: Vec<_> = rows.map(|row| json::server(row, self.status(row), &self.ips)).collect();
        if value(query, "sort") == Some("id:desc") {
            all.reverse();
        }
        json::paged("servers", all, query)
    }

    fn images_page(&self, query: &[(String, String)]) -> Value {
        let arch = value(query, "architecture");
        let found = self.snapshots.iter().filter(|snapshot| arch.is_none_or(|arch| arch == snapshot.arch));
        let mut found: Vec<_> = found.filter(|snapshot| selected(&snapshot.labels, query)).collect();
        found.sort_by_key(|snapshot| snapshot.created);
        if value(query, "sort") == Some("created:desc") {
            found.reverse();
        }
        json::paged("images", found.into_iter().map(json::image).collect(), query)
    }

    /// Networks and the like: only ids and names matter, so their answers are not held against the document's fields.
    fn kept(&self, template: &str, id: u64, query: &[(String, String)]) -> Answer {
        let collection = template.trim_end_matches("/{id}");
        let shape = |id: u64, name: &str| match collection {
            "/ssh_keys" => {
                json!({"id": id, "name": name, "fingerprint": "", "public_key": "", "labels": {}, "created": "2026-01-01T00:00:00Z"})
            }
            "/networks" => {
                json!({"id": id, "name": name, "ip_range": "10.0.0.0/16", "subnets": [], "routes": [],
                "servers": [], "load_balancers": [], "protection": {"delete": false}, "labels": {},
                "created": "2026-01-01T00:00:00Z", "expose_routes_to_vswitch": false})
            }
            "/firewalls" => {
                json!({"id": id, "name": name, "labels": {}, "created": "2026-01-01T00:00:00Z", "rules": [], "applied_to": []})
            }
            _ => {
                json!({"id": id, "name": name, "labels": {}, "type": "spread", "created": "2026-01-01T00:00:00Z", "servers": []})
            }
        };
        let of = self.named.iter().filter(|(path, ..)| *path == collection);
        let key = collection.trim_start_matches('/');
        if template.ends_with("{id}") {
            let found = of.into_iter().find(|(_, is, _)| *is == id);
            return found.map_or_else(Answer::not_found, |(_, id, name)| {
                Answer::fine(200, json!({key.trim_end_matches('s'): shape(*id, name)}))
            });
        }
        let name = value(query, "name");
        let found = of.filter(|(_, _, is)| name.is_none_or(|name| name == *is));
        Answer::fine(200, json::paged(key, found.map(|(_, id, name)| shape(*id, name)).collect(), query))
    }

    fn create(&mut self, body: &[u8]) -> Answer {
        let body: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
        let (name, kind, at) =
            (text_of(&body["name"]), text_of(&body["server_type"]), text_of(&body["location"]));
        if let Some(refusal) = self.refuse(&body, &name, &kind, &at) {
            return refusal;
        }
        let labels = body["labels"].as_object().into_iter().flatten();
        let labels = labels.map(|(key, value)| (key.clone(), text_of(value))).collect();
        let networks = body["networks"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
        self.last_user_data = text_of(&body["user_data"]).into_bytes();
        let ipv4 = body["public_net"]["enable_ipv4"] != false;
        self.last_body = body;
        let id = self.add(&name, &kind, &at, labels, networks, ipv4);
        let row = &self.servers[&id];
        let server = json::server(row, "initializing", &self.ips);
        let body = json!({"server": server, "action": json::action("create_server", id),
            "next_actions": [json::action("start_server", id)], "root_password": "a-password-that-must-not-be-seen"});
        Answer::fine(201, body)
    }

    fn refuse(&self, body: &Value, name: &str, kind: &str, at: &str) -> Option<Answer> {
        let sold = TYPES.iter().find(|known| known.0 == kind);
        let Some((_, arch, sold)) = sold else {
            return Some(Answer::invalid("server_type", "server type not found"));
        };
        if !LOCATIONS.contains(&at) {
            return Some(Answer::invalid("location", "location not found"));
        }
        if !sold.contains(&at) {
            return Some(Answer::refusal(422, "invalid_input", "unsupported location for server type"));
        }
        let image = text_of(&body["image"]);
        let known = self.snapshots.iter().any(|one| one.id.to_string() == image && one.arch == *arch);
        if !known {
            return Some(Answer::invalid("image", "image not found"));
        }
        if text_of(&body["user_data"]).len() > 32 << 10 {
            return Some(Answer::invalid("user_data", &text_of(&body["user_data"])));
        }
        if self.servers.values().any(|row| row.name == name) {
            let details = json!({"fields": [{"name": "name"}]});
            let error = json!({"code": "uniqueness_error", "message": "server name is already used", "details": details});
            return Some(Answer::fine(409, json!({"error": error})));
        }
        if self.sold_out.iter().any(|(out, place)| *out == kind && *place == at) {
            return Some(Answer::refusal(
                412,
                "resource_unavailable",
                "this type is not available there at present",
            ));
        }
        if self.limit.is_some_and(|limit| self.servers.len() >= limit) {
            let details = json!({"limits": [{"name": "server_limit"}]});
            let error = json!({"code": "resource_limit_exceeded", "message": "server limit exceeded", "details": details});
            return Some(Answer::fine(403, json!({"error": error})));
        }
        None
    }

    fn add(
        &mut self,
        name: &str,
        kind: &str,
        at: &str,
        labels: Labels,
        networks: Vec<u64>,
        ipv4: bool,
    ) -> u64 {
        let id = self.id();
        let kinds = if ipv4 { vec!["ipv4", "ipv6"] } else { vec!["ipv6"] };
        for kind in kinds {
            let ip = if kind == "ipv4" {
                format!("192.0.2.{}", id % 250)
            } else {
                format!("2001:db8:0:{id}::/64")
            };
            let new = self.id();
            self.ips.push(Ip {
                id: new,
                kind,
                ip,
                labels: Labels::new(),
                auto_delete: true,
                assignee: Some(id),
            });
        }
        let row = ServerRow {
            id,
            name: name.to_owned(),
            created: jiff::Timestamp::now(),
            made: Instant::now(),
            going: None,
            off: false,
            protected: false,
            server_type: kind.to_owned(),
            location: at.to_owned(),
            labels,
            networks,
        };
        self.servers.insert(id, row);
        self.peak = self.peak.max(self.servers.values().filter(|row| !row.labels.is_empty()).count());
        id
    }

    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn status(&self, row: &ServerRow) -> &'static str {
        match row {
            ServerRow { going: Some(_), .. } => "deleting",
            ServerRow { off: true, .. } => "off",
            _ if row.made.elapsed() < Duration::from_millis(30) => "initializing",
            _ => "running",
        }
    }

    fn delete(&mut self, id: u64) -> Answer {
        let Some(row) = self.servers.get_mut(&id) else { return Answer::not_found() };
        if row.protected {
            return Answer::refusal(423, "protected", "server deletion is protected");
        }
        row.going.get_or_insert_with(Instant::now);
        Answer::fine(200, json!({"action": json::action("delete_server", id)}))
    }

    /// Servers whose time has come go, and their addresses with them.
    fn settle(&mut self) {
        let takes = self.delete_takes;
        let over = |row: &ServerRow| row.going.is_some_and(|since| since.elapsed() >= takes);
        let gone: Vec<u64> = self.servers.values().filter(|row| over(row)).map(|row| row.id).collect();
        for id in gone {
            self.servers.remove(&id);
            let stay = self.addresses_stay;
            self.ips.retain(|ip| ip.assignee != Some(id) || !ip.auto_delete || stay);
            for ip in self.ips.iter_mut().filter(|ip| ip.assignee == Some(id)) {
                ip.assignee = None;
            }
        }
    }

    fn address(&mut self, method: &Method, id: u64, body: &[u8]) -> Answer {
        let Some(index) = self.ips.iter().position(|ip| ip.id == id) else { return Answer::not_found() };
        if method == Method::DELETE {
            if self.ips[index].assignee.is_some() {
                return Answer::refusal(422, "must_be_unassigned", "it is assigned");
            }
            self.ips.remove(index);
            return Answer::fine(204, Value::Null);
        }
        if method == Method::PUT {
            let body: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
            let labels = body["labels"].as_object().into_iter().flatten();
            self.ips[index].labels = labels.map(|(key, value)| (key.clone(), text_of(value))).collect();
        }
        Answer::fine(200, json!({"primary_ip": json::primary_ip(&self.ips[index])}))
    }
}

fn value<'a>(query: &'a [(String, String)], name: &str) -> Option<&'a str> {
    query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

fn selected(labels: &Labels, query: &[(String, String)]) -> bool {
    value(query, "label_selector").is_none_or(|selector| matches(labels, selector))
}
