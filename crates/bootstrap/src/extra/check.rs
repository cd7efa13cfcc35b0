//! What Ignition's own validation refuses or warns of (its `config/v3_3/types`), so that a class learns it before a
//! machine is bought.

use std::io::Read;

use flate2::read::GzDecoder;
use ignition_config::v3_3;

use super::{Error, devices, invalid, nodes, unique};
use crate::data_url;

pub(super) fn check(config: &v3_3::Config) -> Result<(), Error> {
    ignition(&config.ignition)?;
    if let Some(storage) = &config.storage {
        nodes::check(storage)?;
        devices::check(storage)?;
    }
    for (at, unit) in config.systemd.iter().flat_map(|systemd| systemd.units.iter().flatten()).enumerate() {
        check_unit(&format!("systemd.units.{at}"), unit)?;
    }
    let units = config.systemd.iter().flat_map(|systemd| systemd.units.iter().flatten());
    unique("systemd.units", units.map(|unit| unit.name.as_str()))?;
    if let Some(passwd) = &config.passwd {
        unique("passwd.users", passwd.users.iter().flatten().map(|user| user.name.as_str()))?;
        unique("passwd.groups", passwd.groups.iter().flatten().map(|group| group.name.as_str()))?;
        for user in passwd.users.iter().flatten() {
            let place = format!("passwd.users {}", user.name);
            unique(&place, user.ssh_authorized_keys.iter().flatten().map(String::as_str))?;
            unique(&place, user.groups.iter().flatten().map(String::as_str))?;
        }
    }
    if let Some(arguments) = &config.kernel_arguments {
        let all = arguments.should_exist.iter().chain(&arguments.should_not_exist).flatten();
        unique("kernelArguments", all.map(String::as_str))?;
    }
    Ok(())
}

fn ignition(ignition: &v3_3::Ignition) -> Result<(), Error> {
    let tls = ignition.security.as_ref().and_then(|security| security.tls.as_ref());
    let authorities = tls.iter().flat_map(|tls| tls.certificate_authorities.iter().flatten());
    for (at, authority) in authorities.enumerate() {
        let place = format!("ignition.security.tls.certificateAuthorities.{at}");
        if authority.source.is_none() {
            return Err(invalid(place, "has no source"));
        }
        resource(&place, authority)?;
    }
    let proxy = ignition.proxy.as_ref();
    let http = |url: &Option<String>| {
        url.as_deref().is_none_or(|url| url.starts_with("https://") || url.starts_with("http://"))
    };
    if proxy.is_some_and(|proxy| !http(&proxy.http_proxy)) {
        return Err(invalid("ignition.proxy.httpProxy", "is not an http or https URL"));
    }
    // Ignition only warns of http here.
    if proxy.and_then(|proxy| proxy.https_proxy.as_deref()).is_some_and(|url| !url.starts_with("https://")) {
        return Err(invalid("ignition.proxy.httpsProxy", "is not an https URL"));
    }
    Ok(())
}

fn check_unit(place: &str, unit: &v3_3::Unit) -> Result<(), Error> {
    const KINDS: [&str; 12] = [
        "service",
        "socket",
        "device",
        "mount",
        "automount",
        "swap",
        "target",
        "path",
        "timer",
        "snapshot",
        "slice",
        "scope",
    ];
    let plain = !unit.name.contains('/');
    if !plain || !unit.name.rsplit_once('.').is_some_and(|(_, kind)| KINDS.contains(&kind)) {
        return Err(invalid(format!("{place}.name"), "is not a unit's name such as x.service"));
    }
    let contents = unit.contents.as_deref().unwrap_or_default();
    unit_text(&format!("{place}.contents"), contents)?;
    let installs = contents.lines().any(|line| line.trim() == "[Install]");
    if unit.enabled == Some(true) && !contents.is_empty() && !installs {
        return Err(invalid(place, "is enabled, but has no [Install] section, so it would not start"));
    }
    let dropins = || unit.dropins.iter().flatten();
    unique(&format!("{place}.dropins"), dropins().map(|dropin| dropin.name.as_str()))?;
    for dropin in dropins() {
        let place = format!("{place}.dropins {}", dropin.name);
        if !dropin.name.ends_with(".conf") || dropin.name.contains('/') {
            return Err(invalid(place, "does not end with .conf"));
        }
        unit_text(&place, dropin.contents.as_deref().unwrap_or_default())?;
    }
    Ok(())
}

/// Lines are comments, sections, or settings in a section; a setting may go on after a backslash.
fn unit_text(place: &str, text: &str) -> Result<(), Error> {
    let (mut in_section, mut goes_on) = (false, false);
    for line in text.lines().map(str::trim) {
        let continued = std::mem::replace(&mut goes_on, line.ends_with('\\'));
        if continued || line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if line.starts_with('[') {
            if !line.ends_with(']') {
                return Err(invalid(place, "has a section without a closing bracket"));
            }
            in_section = true;
        } else if !in_section {
            return Err(invalid(place, "has a setting before any section"));
        } else if !line.contains('=') {
            return Err(invalid(place, "has a line that is neither a section nor a setting"));
        }
    }
    Ok(())
}

/// A source with its hash, headers and compression.
pub(super) fn resource(place: &str, resource: &v3_3::Resource) -> Result<(), Error> {
    let gzip = match resource.compression.as_deref() {
        None | Some("") => false,
        Some("gzip") => true,
        Some(_) => return Err(invalid(place, "has a compression that is not gzip")),
    };
    if let Some(hash) = resource.verification.as_ref().and_then(|verification| verification.hash.as_deref()) {
        check_hash(place, hash)?;
        if resource.source.is_none() {
            return Err(invalid(place, "has a hash but no source"));
        }
    }
    let source = resource.source.as_deref().unwrap_or_default();
    let headers = || resource.http_headers.iter().flatten();
    if headers().next().is_some() && !source.starts_with("http://") && !source.starts_with("https://") {
        return Err(invalid(place, "has httpHeaders, but its source is not http or https"));
    }
    if headers().any(|header| header.name.is_empty() || header.value.as_deref() == Some("")) {
        return Err(invalid(place, "has an empty httpHeaders entry"));
    }
    unique(place, headers().map(|header| header.name.as_str()))?;
    check_source(place, source, gzip)
}

fn check_source(place: &str, source: &str, gzip: bool) -> Result<(), Error> {
    match source.split_once(':').map(|(scheme, _)| scheme) {
        None if source.is_empty() => Ok(()),
        Some("http" | "https" | "tftp" | "s3" | "gs") if !source.contains(char::is_whitespace) => Ok(()),
        Some("data") => {
            let bytes = data_url::decode(source)
                .ok_or_else(|| invalid(place, "has a data URL that cannot be read"))?;
            // Ignition would find out on the machine only.
            let packed = !gzip || GzDecoder::new(&bytes[..]).read_to_end(&mut Vec::new()).is_ok();
            if packed { Ok(()) } else { Err(invalid(place, "says gzip, but its data is not")) }
        }
        _ => Err(invalid(place, "has a source that is not data, http, https, tftp, s3 or gs")),
    }
}

fn check_hash(place: &str, hash: &str) -> Result<(), Error> {
    let fine = match hash.split_once('-') {
        Some(("sha256", digits)) => digits.len() == 64,
        Some(("sha512", digits)) => digits.len() == 128,
        _ => false,
    };
    if fine {
        Ok(())
    } else {
        Err(invalid(place, "has a hash that is neither sha256- nor sha512- and its digits"))
    }
}
