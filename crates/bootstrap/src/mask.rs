//! A document to be shown to people.

use ignition_config::v3_3;
use scarpenter_core::name::Secret;
use serde_json::Value;

use crate::data_url;
use crate::document::Document;
use crate::join::{Join, Method};

/// What stands for a secret.
const MASK: &str = "********";

/// The inner document as indented JSON, still valid Ignition, without any secret: token, mesh key and node password are
/// masked wherever they stand, and of the class's own Ignition the password hashes, header values, key files and the
/// contents of files that others may not read.
#[must_use]
pub fn masked(join: &Join, document: &Document) -> String {
    let secrets = secrets(join);
    let mut config: v3_3::Config = serde_json::from_str(document.inner()).expect("a document is Ignition");
    mask_files(&mut config, &secrets);
    mask_fields(&mut config);
    let mut value = serde_json::to_value(&config).expect("a document is plain data");
    crate::document::strip_nulls(&mut value);
    mask_texts(&mut value, &secrets);
    serde_json::to_string_pretty(&value).expect("a document is plain data") + "\n"
}

fn secrets(join: &Join) -> Vec<&str> {
    let mut out = vec![&join.token_secret];
    if let Method::K3sAgent { node_password } = &join.method {
        out.push(node_password);
    }
    out.extend(join.mesh.iter().map(|mesh| &mesh.auth_key));
    out.into_iter().map(Secret::reveal).filter(|secret| !secret.is_empty()).collect()
}

fn mask_files(config: &mut v3_3::Config, secrets: &[&str]) {
    let files = config.storage.iter_mut().flat_map(|storage| storage.files.iter_mut().flatten());
    for file in files {
        // Ours, where the secret is known, keep the rest of their text.
        let private = file.mode.is_some_and(|mode| mode & 0o077 == 0);
        for resource in file.contents.iter_mut().chain(file.append.iter_mut().flatten()) {
            mask_source(resource, secrets, private);
        }
    }
    let volumes = config.storage.iter_mut().flat_map(|storage| storage.luks.iter_mut().flatten());
    for key in volumes.filter_map(|volume| volume.key_file.as_mut()) {
        mask_source(key, &[], true);
    }
}

fn mask_source(resource: &mut v3_3::Resource, secrets: &[&str], private: bool) {
    for header in resource.http_headers.iter_mut().flatten() {
        header.value = header.value.is_some().then(|| MASK.to_owned());
    }
    let Some(bytes) = resource.source.as_deref().and_then(data_url::decode) else { return };
    let text = String::from_utf8_lossy(&bytes);
    let known = secrets.iter().any(|secret| text.contains(secret));
    if known {
        let clear = secrets.iter().fold(text.into_owned(), |text, secret| text.replace(secret, MASK));
        resource.source = Some(data_url::text(&clear));
    } else if private {
        resource.source = Some(data_url::text(MASK));
        resource.compression = None;
    }
}

fn mask_fields(config: &mut v3_3::Config) {
    let Some(passwd) = &mut config.passwd else { return };
    let users = passwd.users.iter_mut().flatten().map(|user| &mut user.password_hash);
    let groups = passwd.groups.iter_mut().flatten().map(|group| &mut group.password_hash);
    for hash in users.chain(groups).filter(|hash| hash.is_some()) {
        *hash = Some(MASK.to_owned());
    }
}

fn mask_texts(value: &mut Value, secrets: &[&str]) {
    match value {
        Value::String(text) => {
            for secret in secrets {
                if text.contains(secret) {
                    *text = text.replace(secret, MASK);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask_texts(item, secrets)),
        Value::Object(fields) => fields.values_mut().for_each(|field| mask_texts(field, secrets)),
        _ => {}
    }
}
