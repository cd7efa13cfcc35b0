//! `data:` URLs, the only sources that a document holds itself.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Text as percent-encoded `data:` URL: longer than base64, but gzip sees the text and packs it better.
pub(crate) fn text(contents: &str) -> String {
    let mut out = String::from("data:,");
    for byte in contents.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => out.push(char::from(byte)),
            b'-' | b'_' | b'.' | b'~' | b'/' | b':' | b'=' | b'+' | b',' | b'@' => out.push(char::from(byte)),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

/// Bytes as base64 `data:` URL.
pub(crate) fn base64(contents: &[u8]) -> String {
    format!("data:;base64,{}", STANDARD.encode(contents))
}

/// The bytes of a `data:` URL; `None` when it is none.
pub(crate) fn decode(url: &str) -> Option<Vec<u8>> {
    let (kind, data) = url.strip_prefix("data:")?.split_once(',')?;
    if kind.ends_with(";base64") { STANDARD.decode(data).ok() } else { percent(data.as_bytes()) }
}

fn percent(data: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(data.len());
    let mut rest = data;
    while let Some((first, tail)) = rest.split_first() {
        if *first == b'%' {
            let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
            out.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &tail[2..];
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        let contents = "a b\n%41 ü \"+/=\0";
        assert_eq!(decode(&text(contents)).as_deref(), Some(contents.as_bytes()));
        assert_eq!(decode(&base64(contents.as_bytes())).as_deref(), Some(contents.as_bytes()));
    }

    #[test]
    fn garbage_is_not_decoded() {
        for url in ["", "data:", "https://example.com/,", "data:,%4", "data:,%zz", "data:;base64,!"] {
            assert_eq!(decode(url), None, "{url}");
        }
    }
}
