//! The vendor's published document, as far as the fake's requests and answers are held against it.

use serde_json::Value;

/// The published document; absent where nobody says where it is.
pub(crate) struct Document {
    root: Option<Value>,
}

impl Document {
    pub(crate) fn find() -> Self {
        let shared = std::env::var_os("SCARPENTER_SHARED");
        let path =
            shared.map(|shared| std::path::Path::new(&shared).join("stand-ins/hetzner-cloud-openapi.json"));
        if path.is_none() {
            eprintln!("not compared with the published document: SCARPENTER_SHARED does not say where it is");
        }
        Self { root: path.map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()) }
    }

    /// What is wrong with a request; `template` is its path with `{id}` for the id.
    pub(crate) fn request(
        &self,
        method: &str,
        template: &str,
        query: &[(String, String)],
        body: &[u8],
    ) -> Vec<String> {
        let Some(root) = &self.root else { return Vec::new() };
        let operation = &root["paths"][template][method.to_lowercase()];
        let at = format!("{method} {template}");
        if operation.is_null() {
            return vec![format!("{at}: not published")];
        }
        let mut wrong = Vec::new();
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        for (key, value) in query {
            match parameters.iter().find(|one| one["in"] == "query" && one["name"] == key.as_str()) {
                None => wrong.push(format!("{at}: query {key} is not published")),
                Some(one) => {
                    let schema = &one["schema"];
                    let schema = if schema["type"] == "array" { &schema["items"] } else { schema };
                    let value = match schema["type"].as_str() {
                        Some("integer") => value.parse::<u64>().map_or(Value::Null, Value::from),
                        _ => Value::from(value.as_str()),
                    };
                    check(schema, &value, &format!("{at}: query {key}"), true, &mut wrong);
                }
            }
        }
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        match (schema.is_null(), body.is_empty()) {
            (true, true) => {}
            (true, false) => wrong.push(format!("{at}: a body is not published")),
            (false, _) => {
                let body = serde_json::from_slice(body).unwrap_or(Value::Null);
                check(schema, &body, &format!("{at}: body"), true, &mut wrong);
            }
        }
        wrong
    }

    /// What is wrong with an answer of the fake.
    pub(crate) fn answer(&self, method: &str, template: &str, status: u16, body: &Value) -> Vec<String> {
        let Some(root) = &self.root else { return Vec::new() };
        let answers = &root["paths"][template][method.to_lowercase()]["responses"];
        let exact = &answers[status.to_string()];
        let answer = if exact.is_null() { &answers[format!("{}xx", status / 100)] } else { exact };
        let at = format!("answer {status} to {method} {template}");
        if answer.is_null() {
            return vec![format!("{at}: not published")];
        }
        let mut wrong = Vec::new();
        let schema = &answer["content"]["application/json"]["schema"];
        if !schema.is_null() {
            check(schema, body, &at, false, &mut wrong);
        } else if !body.is_null() {
            wrong.push(format!("{at}: a body is not published"));
        }
        wrong
    }
}

/// `closed`: a field that is not published is wrong.
fn check(schema: &Value, value: &Value, at: &str, closed: bool, wrong: &mut Vec<String>) {
    if value.is_null() && schema["nullable"] == true {
        return;
    }
    let fits = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        _ => true,
    };
    if !fits {
        wrong.push(format!("{at}: {value} is no {}", schema["type"]));
        return;
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        wrong.push(format!("{at}: {value} is none of {words:?}"));
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        check(&schema["items"], item, &format!("{at}[{index}]"), closed, wrong);
    }
    let Some(fields) = value.as_object() else { return };
    for required in schema["required"].as_array().into_iter().flatten() {
        let required = required.as_str().unwrap_or_default();
        if !fields.contains_key(required) {
            wrong.push(format!("{at}: {required} is missing"));
        }
    }
    for (key, field) in fields {
        let inner = &schema["properties"][key];
        if !inner.is_null() {
            check(inner, field, &format!("{at}.{key}"), closed, wrong);
        } else if !schema["additionalProperties"].is_null() {
            check(&schema["additionalProperties"], field, &format!("{at}.{key}"), closed, wrong);
        } else if closed {
            wrong.push(format!("{at}: {key} is not published"));
        }
    }
}

#[test]
fn what_breaks_the_published_document_is_found_out() {
    let document = Document::find();
    if document.root.is_none() {
        return;
    }
    let query = |key: &str, value: &str| vec![(key.to_owned(), value.to_owned())];
    assert!(document.request("GET", "/servers", &query("label_selector", "a"), b"").is_empty());
    assert_eq!(document.request("GET", "/servers", &query("labels", "a"), b"").len(), 1);
    assert_eq!(document.request("GET", "/servers", &query("sort", "age"), b"").len(), 1);
    assert_eq!(document.request("GET", "/nowhere", &[], b"").len(), 1);
    assert!(
        document
            .request("POST", "/servers", &[], br#"{"name":"a","server_type":"b","image":"c"}"#)
            .is_empty()
    );
    assert_eq!(
        document
            .request("POST", "/servers", &[], br#"{"name":"a","server_type":"b","datacentre":"c"}"#)
            .len(),
        2
    );
    assert!(
        !document.answer("GET", "/servers/{id}", 200, &serde_json::json!({"server": {"id": "1"}})).is_empty()
    );
}
