//! What an address of a Keeper may look like, and where a key may go.

use reqwest::Url;

use super::Error;

/// The address without what an address of a Keeper has not.
pub(crate) fn base(address: &str) -> Result<Url, Error> {
    let wrong = |shown: &str, why| Error::Address { address: shown.to_owned(), why };
    let parsed = Url::parse(address.trim()).ok();
    let Some(mut url) = parsed.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
    else {
        // It may hold a password where we cannot see it.
        let shown = address.rsplit('@').next().unwrap_or_default();
        return Err(wrong(shown, "write it in full, such as https://keeper.example.com"));
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
    } else {
        Ok(url)
    }
}

/// Whether nobody on the way can read what is sent.
pub(crate) fn is_private(url: &Url) -> bool {
    url.scheme() == "https" || is_loopback(url)
}

pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::Key;
    use super::super::client::{Client, Limits};

    fn client(address: &str, key: Option<&str>) -> Result<String, String> {
        let key = key.map(|key| Key::new(key).unwrap());
        let client = Client::new(address, key, Limits::default()).map_err(|error| error.to_string())?;
        Ok(client.address().to_owned())
    }

    #[test]
    fn an_address_is_taken_with_or_without_a_slash_and_with_a_path() {
        for (address, base) in [
            ("https://keeper.example.com", "https://keeper.example.com"),
            (" http://127.0.0.1:8000/ ", "http://127.0.0.1:8000"),
            ("https://example.com/keeper/", "https://example.com/keeper"),
        ] {
            assert_eq!(client(address, None).as_deref(), Ok(base));
        }
    }

    #[test]
    fn what_is_no_address_is_refused_without_showing_a_password() {
        for address in [
            "",
            "keeper.example.com",
            "localhost:8000",
            "ftp://x",
            "file:///etc/passwd",
            "https://me:s3cret@keeper.example.com",
            "https://s3cret@keeper.example.com",
            "me:s3cret@keeper.example.com",
            "https://keeper.example.com/?token=s3cret",
            "https://x/#s3cret",
        ] {
            let error = client(address, None).unwrap_err();
            assert!(error.contains("is not the address of a Keeper"), "{address}: {error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn a_key_goes_only_where_nobody_on_the_way_reads_it() {
        for address in
            ["https://keeper.example.com", "http://localhost:80", "http://127.0.0.1:1", "http://[::1]:1"]
        {
            assert!(client(address, Some("s3cret")).is_ok(), "{address}");
        }
        for address in ["http://keeper.example.com", "http://10.0.0.1", "http://localhost.example.com"] {
            let error = client(address, Some("s3cret")).unwrap_err();
            assert!(error.contains("API key is not sent") && !error.contains("s3cret"), "{error}");
            assert!(client(address, None).is_ok(), "{address}");
        }
    }
}
