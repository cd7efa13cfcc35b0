//! System extensions: images that Ignition fetches and systemd lays over `/usr`.

use scarpenter_core::label;

use crate::join::{self, Join};
use crate::parts::Parts;

/// Where images lie, each in a folder of its extension's name.
pub(crate) const FOLDER: &str = "/opt/extensions/";

/// Adds extension `name` in `version`; the file name is the one of Flatcar's sysext bakery.
pub(super) fn add(parts: &mut Parts, join: &Join, name: &str, version: &str) -> Result<(), join::Error> {
    let arch = match join.labels.get(label::ARCH).map(String::as_str) {
        Some("arm64") => "arm64",
        _ => "x86-64",
    };
    let file = format!("{name}-{version}-{arch}.raw");
    let base = join.sysext_base_url.trim_end_matches('/');
    let hash = join.sysext_hashes.get(&file).map(|hash| hash.to_ascii_lowercase());
    if hash.is_none() && !base.starts_with("https://") {
        return Err(join::Error::Unverified { url: base.to_owned(), file });
    }
    let path = format!("{FOLDER}{name}/{file}");
    parts.fetched(&path, format!("{base}/{file}"), hash);
    parts.link(&format!("/etc/extensions/{name}.raw"), &path);
    Ok(())
}
