//! What the URL of a Headscale may look like.

use reqwest::Url;

use crate::Error;

/// The address without what an address of a Headscale has not.
pub(crate) fn base(address: &str) -> Result<Url, Error> {
    let wrong = |shown: &str, why| Error::Address { address: shown.to_owned(), why };
    let parsed = Url::parse(address.trim()).ok();
    let Some(mut url) = parsed.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
    else {
        // It may hold a password where we cannot see it.
        let shown = address.rsplit('@').next().unwrap_or_default();
        return Err(wrong(shown, "write it in full, such as https://mesh.example.com"));
    };
    let named = !url.username().is_empty() || url.password().is_some();
    url.set_username("").ok();
    url.set_password(None).ok();
    let queried = url.query().is_some() || url.fragment().is_some();
    url.set_query(None);
    url.set_fragment(None);
    if named {
        Err(wrong(url.as_str(), "a name and password do not belong into it"))
    } else if queried {
        Err(wrong(url.as_str(), "leave out what follows ? or #"))
    } else if url.scheme() != "https" && !is_loopback(&url) {
        Err(wrong(url.as_str(), "use https, since anyone on the way could read the API key"))
    } else {
        Ok(url)
    }
}

pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn https_and_this_machine_are_taken_and_nothing_else() {
        for fine in
            ["https://mesh.example.com", " http://127.0.0.1:1/ ", "http://[::1]:1", "http://localhost"]
        {
            assert!(base(fine).is_ok(), "{fine}");
        }
        for bad in [
            "",
            "mesh.example.com",
            "http://mesh.example.com",
            "http://10.0.0.1",
            "http://localhost.example.com",
            "ftp://127.0.0.1",
            "https://me:s3cret@mesh.example.com",
            "me:s3cret@mesh.example.com",
            "https://mesh.example.com/?key=s3cret",
            "https://mesh.example.com/#s3cret",
        ] {
            let error = base(bad).unwrap_err().to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
