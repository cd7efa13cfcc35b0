//! Answers of the fake, in the shapes of both versions.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::state::{FakeKey, FakeNode, Fault, State, Version};

/// A request.
pub(super) struct Asked<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    pub(super) authorization: Option<&'a str>,
    pub(super) body: &'a [u8],
}

/// An answer.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    pub(super) body: String,
}

/// What a call comes to: a body, or a refusal with the status of 0.30, the one of 0.29, and words.
type Outcome = Result<Value, (u16, u16, String)>;

pub(super) fn answer(state: &mut State, asked: &Asked<'_>) -> Answer {
    let question = if asked.query.is_empty() { String::new() } else { format!("?{}", asked.query) };
    state.requests.push(format!("{} {}{question}", asked.method, asked.path));
    if let Some(Fault::Status(status)) = state.fault {
        return refuse(state.version, status, "told to fail");
    }
    if asked.authorization != Some(&format!("Bearer {}", state.api_key)) {
        return refuse(state.version, 401, "Unauthorized");
    }
    let lost =
        state.fault == Some(Fault::LostKeys) && asked.method == "POST" && asked.path == "/api/v1/preauthkey";
    match call(state, asked) {
        _ if lost => refuse(state.version, 504, "told to lose the answer"),
        Ok(value) => Answer { status: 200, content_type: "application/json", body: value.to_string() },
        Err((new, _, words)) if state.version == Version::V030 => refuse(state.version, new, &words),
        Err((_, old, words)) => refuse(state.version, old, &words),
    }
}

fn refuse(version: Version, status: u16, words: &str) -> Answer {
    let (content_type, body) = match version {
        Version::V029 if status == 401 => ("text/plain; charset=utf-8", format!("{words}\n")),
        Version::V029 => {
            ("application/json", json!({"code": 2, "message": words, "details": []}).to_string())
        }
        Version::V030 => {
            let title = format!("Status {status}");
            let body = json!({"title": title, "status": status, "detail": words});
            ("application/problem+json", body.to_string())
        }
    };
    Answer { status, content_type, body }
}

fn call(state: &mut State, asked: &Asked<'_>) -> Outcome {
    let path = asked.path.strip_prefix("/api/v1/").unwrap_or_default();
    match (asked.method, path) {
        ("GET", "health") => Ok(json!({"databaseConnectivity": true})),
        ("GET", "user") => {
            let name = value(asked.query, "name");
            let users = state.users.iter().filter(|(_, own)| name.as_ref().is_none_or(|name| name == *own));
            Ok(json!({"users": users.map(|(id, name)| user(*id, name)).collect::<Vec<_>>()}))
        }
        ("GET", "preauthkey") => {
            let keys: Vec<Value> = state.keys.iter().map(|(id, own)| key(state, *id, own, false)).collect();
            Ok(json!({"preAuthKeys": keys}))
        }
        ("POST", "preauthkey") => create_key(state, asked.body),
        ("POST", "preauthkey/expire") => expire_key(state, asked.body),
        ("DELETE", "preauthkey") => {
            let id = value(asked.query, "id").and_then(|id| id.parse::<u64>().ok()).unwrap_or_default();
            state.nodes.values_mut().filter(|node| node.key == Some(id)).for_each(|node| node.key = None);
            let found = state.keys.remove(&id).is_some() || state.version == Version::V029;
            found.then(|| json!({})).ok_or((404, 500, "auth-key not found: record not found".to_owned()))
        }
        ("GET", "node") => {
            let nodes: Vec<Value> = state.nodes.iter().map(|(id, own)| node(state, *id, own)).collect();
            Ok(json!({"nodes": nodes}))
        }
        ("DELETE", path) if path.starts_with("node/") => {
            if state.fault == Some(Fault::KeepsNodes) {
                return Err((500, 500, "told to keep its nodes".to_owned()));
            }
            let id = path.trim_start_matches("node/").parse::<u64>().unwrap_or_default();
            let found = state.nodes.remove(&id).is_some();
            found.then(|| json!({})).ok_or((404, 404, "node not found".to_owned()))
        }
        ("GET", "policy") => {
            let policy =
                state.policy.clone().ok_or((500, 500, "loading ACL: acl policy not found".to_owned()));
            policy.map(|policy| json!({"policy": policy, "updatedAt": Timestamp::now().to_string()}))
        }
        ("POST", "policy/check") => {
            let body = read(state, asked.body, &["policy"])?;
            let policy = body["policy"].as_str().unwrap_or_default();
            crate::Policy::parse(policy).map(|_| json!({})).map_err(|words| (400, 500, words))
        }
        _ => Err((404, 404, "Not Found".to_owned())),
    }
}

fn create_key(state: &mut State, body: &[u8]) -> Outcome {
    let body = read(state, body, &["user", "reusable", "ephemeral", "expiration", "aclTags"])?;
    let user = match body["user"].as_str() {
        None => None,
        Some(text) => Some(text.parse::<u64>().map_err(|_| (400, 400, format!("invalid user id {text:?}")))?),
    };
    if user.is_some_and(|id| !state.users.contains_key(&id)) {
        return Err((404, 500, "user not found".to_owned()));
    }
    let tags = body["aclTags"].as_array().cloned().unwrap_or_default();
    let tags: Vec<String> = tags.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    if let Some(problem) = tags.iter().find_map(|tag| crate::tag_problem(tag)) {
        return Err((400, 400, problem));
    }
    if tags.is_empty() && user.is_none() {
        return Err((400, 500, "auth-key must be either tagged or owned by user".to_owned()));
    }
    // As the real one does: nothing there is the year 1.
    let expiration = body["expiration"].as_str().unwrap_or("0001-01-01T00:00:00Z");
    let expiration = expiration.parse().map_err(|_| (422, 400, format!("{expiration:?} is no time")))?;
    let made = FakeKey {
        secret: String::new(),
        user,
        tags,
        reusable: body["reusable"] == true,
        ephemeral: body["ephemeral"] == true,
        used: false,
        expiration,
        created: Timestamp::now(),
    };
    let id = state.keep(made);
    Ok(json!({"preAuthKey": key(state, id, &state.keys[&id], true)}))
}

fn expire_key(state: &mut State, body: &[u8]) -> Outcome {
    let body = read(state, body, &["id"])?;
    let id = body["id"].as_str().and_then(|id| id.parse::<u64>().ok()).unwrap_or_default();
    let old = state.version == Version::V029;
    match state.keys.get_mut(&id) {
        Some(key) => key.expiration = Timestamp::now(),
        None if old => {}
        None => return Err((404, 200, "auth-key not found: record not found".to_owned())),
    }
    Ok(json!({}))
}

fn read(state: &mut State, body: &[u8], known: &[&str]) -> Outcome {
    let body: Value = serde_json::from_slice(body).map_err(|error| (400, 400, error.to_string()))?;
    let fields =
        body.as_object().map(|object| object.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
    let unknown: Vec<String> = fields.into_iter().filter(|field| !known.contains(&field.as_str())).collect();
    state.unknown_fields.extend(unknown.iter().cloned());
    match unknown.first() {
        Some(field) if state.version == Version::V030 => {
            Err((422, 422, format!("unexpected property body.{field}")))
        }
        _ => Ok(body),
    }
}

fn user(id: u64, name: &str) -> Value {
    json!({
        "id": id.to_string(), "name": name, "createdAt": "2026-11-30T13:02:08.411848507Z", "displayName": "",
        "email": "", "providerId": "", "provider": "", "profilePicUrl": "",
    })
}

/// A key; all of it is shown only when it is made.
fn key(state: &State, id: u64, own: &FakeKey, whole: bool) -> Value {
    let owner = own.user.and_then(|id| Some(user(id, state.users.get(&id)?)));
    let shown =
        if whole { own.secret.clone() } else { format!("{}***", &own.secret[..own.secret.len() - 64]) };
    json!({
        "user": owner, "id": id.to_string(), "key": shown, "reusable": own.reusable, "ephemeral": own.ephemeral,
        "used": own.used, "expiration": own.expiration.to_string(), "createdAt": own.created.to_string(),
        "aclTags": own.tags,
    })
}

fn node(state: &State, id: u64, own: &FakeNode) -> Value {
    let joined_with = own.key.and_then(|id| Some((id, state.keys.get(&id)?)));
    let tags = joined_with.map(|(_, key)| key.tags.clone()).unwrap_or_default();
    json!({
        "id": id.to_string(), "machineKey": "mkey:0", "nodeKey": "nodekey:0", "discoKey": "discokey:0",
        "ipAddresses": [own.address.to_string()], "name": own.name, "user": user(2_147_455_555, "tagged-devices"),
        "lastSeen": Timestamp::now().to_string(), "expiry": null,
        "preAuthKey": joined_with.map(|(id, own)| key(state, id, own, false)),
        "createdAt": Timestamp::now().to_string(), "registerMethod": "REGISTER_METHOD_AUTH_KEY",
        "givenName": own.name, "online": true, "approvedRoutes": [], "availableRoutes": [], "subnetRoutes": [],
        "tags": tags,
    })
}

/// A value of a query; what is escaped in it is plain in tests but for spaces.
fn value(query: &str, name: &str) -> Option<String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value.replace('+', " "))
}
