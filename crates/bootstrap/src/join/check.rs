//! Whether every text of a [`Join`] survives the way into a unit, an environment file, a rule or a URL.

use std::net::IpAddr;

use super::{Error, Join, Mesh, Method};

impl Join {
    pub(crate) fn check(&self) -> Result<(), Error> {
        plain("node name", &self.node_name, is_host_char, "a host name")?;
        plain("providerID", &self.provider_id, is_url_char, "scarpenter://<vendor>/<claim uid>")?;
        plain("join.kubernetesVersion", &self.kubernetes_version, is_url_char, "a version such as v1.37.2")?;
        plain("join.clusterDomain", &self.cluster_domain, is_host_char, "a domain name")?;
        plain("join.sysextBaseURL", &self.sysext_base_url, is_url_char, "a URL")?;
        for (key, value) in &self.kubelet_labels() {
            plain("label key", key, is_url_char, "a label key")?;
            if !value.is_empty() {
                plain("label value", value, is_url_char, "a label value")?;
            }
        }
        if self.servers.is_empty() {
            return Err(Error::NoServers);
        }
        self.servers.iter().try_for_each(|server| authority(server).map(|_| ()))?;
        let token =
            |text: &str, len| text.len() == len && text.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9'));
        if !token(&self.token_id, 6) || !token(self.token_secret.reveal(), 16) {
            return Err(Error::Token);
        }
        if !self.ca_pem.contains("-----BEGIN CERTIFICATE-----") {
            return Err(Error::Ca);
        }
        self.sysext_hashes.values().try_for_each(|hash| check_hash(hash))?;
        self.firewall.iter().flatten().try_for_each(|range| check_range(range))?;
        if let Method::K3sAgent { node_password } = &self.method {
            word("the node password", node_password.reveal())?;
        }
        self.mesh.iter().try_for_each(check_mesh)
    }
}

fn check_mesh(mesh: &Mesh) -> Result<(), Error> {
    let server = &mesh.login_server;
    let field = "mesh.headscale.url";
    plain(field, server, is_url_char, "a URL")?;
    if !server.starts_with("https://") && !server.starts_with("http://") {
        return Err(Error::Malformed { field, text: server.clone(), expected: "https://HOST" });
    }
    plain("mesh.tailscale.version", &mesh.tailscale_version, is_url_char, "a version such as v1.102.5")?;
    word("the mesh key", mesh.auth_key.reveal())
}

/// A secret that is written to a file of its own: one word.
fn word(what: &'static str, secret: &str) -> Result<(), Error> {
    let fine = !secret.is_empty() && secret.chars().all(|c| c.is_ascii_graphic());
    if fine { Ok(()) } else { Err(Error::Secret(what)) }
}

fn check_hash(hash: &str) -> Result<(), Error> {
    let digits = match hash.split_once('-') {
        Some(("sha256", digits)) if digits.len() == 64 => digits,
        Some(("sha512", digits)) if digits.len() == 128 => digits,
        _ => "no hash",
    };
    if digits.chars().all(|c| c.is_ascii_hexdigit()) {
        return Ok(());
    }
    let (field, expected) =
        ("join.sysextHashes entry", "sha256- or sha512- and as many hex digits as it has");
    Err(Error::Malformed { field, text: hash.to_owned(), expected })
}

fn check_range(range: &str) -> Result<(), Error> {
    let (address, bits) = match range.split_once('/') {
        None => (range, None),
        Some((address, bits)) => (address, Some(bits)),
    };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => Some(32),
        Ok(IpAddr::V6(_)) => Some(128),
        Err(_) => None,
    };
    let digits = |bits: &str| !bits.is_empty() && bits.len() <= 3 && bits.bytes().all(|b| b.is_ascii_digit());
    let fits =
        |most: u8| bits.is_none_or(|bits| digits(bits) && bits.parse().is_ok_and(|bits: u8| bits <= most));
    if most.is_some_and(fits) {
        return Ok(());
    }
    let (field, expected) = ("join.firewall.allowFrom entry", "an address or a range such as 10.0.0.0/8");
    Err(Error::Malformed { field, text: range.to_owned(), expected })
}

/// `host:port` of a server URL.
pub(crate) fn authority(server: &str) -> Result<String, Error> {
    let bad = || Error::Malformed {
        field: "join.servers entry",
        text: server.to_owned(),
        expected: "https://host or https://host:port",
    };
    let rest = server.strip_prefix("https://").ok_or_else(bad)?.trim_end_matches('/');
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
    if rest.is_empty() || !rest.chars().all(plain) {
        return Err(bad());
    }
    let after_host = rest.rsplit(']').next().unwrap_or(rest);
    match after_host.rsplit_once(':') {
        None => Ok(format!("{rest}:443")),
        Some((_, port)) if port.parse::<u16>().is_ok() => Ok(rest.to_owned()),
        Some(_) => Err(bad()),
    }
}

fn plain(field: &'static str, text: &str, ok: fn(char) -> bool, expected: &'static str) -> Result<(), Error> {
    if !text.is_empty() && text.chars().all(ok) {
        return Ok(());
    }
    Err(Error::Malformed { field, text: text.to_owned(), expected })
}

fn is_host_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '-')
}

// Nothing that a unit file, an environment file or a URL would read as more than itself.
fn is_url_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '/' | ':' | '+' | '~')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_reduced_to_host_and_port() {
        for (server, expected) in [
            ("https://10.0.0.1:6443", "10.0.0.1:6443"),
            ("https://api.example.com/", "api.example.com:443"),
            ("https://[fd00::1]:6443", "[fd00::1]:6443"),
            ("https://[fd00::1]", "[fd00::1]:443"),
        ] {
            assert_eq!(authority(server).as_deref(), Ok(expected));
        }
        for bad in [
            "http://10.0.0.1",
            "https://",
            "https://a b",
            "https://a:port",
            "https://a/path?x",
            "10.0.0.1:6443",
        ] {
            assert!(authority(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_range_is_an_address_with_or_without_a_length() {
        for fine in ["10.0.0.0/8", "192.0.2.7", "0.0.0.0/0", "2001:db8::/32", "::1"] {
            assert_eq!(check_range(fine), Ok(()), "{fine}");
        }
        for bad in [
            "",
            "10.0.0.0/",
            "10.0.0.0/33",
            "10.0.0.0/+8",
            "10.0.0/8",
            "::/129",
            "example.com",
            "1.1.1.1/8/8",
        ] {
            assert!(check_range(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_secret_that_is_no_word_is_refused_unseen() {
        assert_eq!(word("the mesh key", "hskey-auth-a_b-c"), Ok(()));
        for bad in ["", "se cret", "se\ncret"] {
            let error = word("the mesh key", bad).expect_err("no word");
            assert!(!error.to_string().contains("se"), "{error}");
        }
    }
}
