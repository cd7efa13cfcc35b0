use reqwest::header::HeaderValue;

/// An API key of the Keeper's. It cannot be printed: it has neither `Debug` nor `Display`.
#[derive(Clone)]
pub struct Key(HeaderValue);

/// A key that cannot be one. Does not show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// Nothing but blanks.
    #[error("the Keeper's API key is empty: give the key, or none at all to ask without one")]
    Empty,
    /// Line breaks inside, or letters that a header cannot hold.
    #[error("the Keeper's API key holds letters that no key has: give the key alone, on one line")]
    Letters,
}

impl Key {
    /// Takes the key's text; blanks around it, such as the line's end of a file, are left out.
    ///
    /// # Errors
    /// [`BadKey`] for what no key looks like.
    pub fn new(text: &str) -> Result<Self, BadKey> {
        let text = text.trim();
        if text.is_empty() {
            return Err(BadKey::Empty);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(BadKey::Letters);
        }
        let mut value = HeaderValue::try_from(format!("Bearer {text}")).map_err(|_| BadKey::Letters)?;
        value.set_sensitive(true);
        Ok(Self(value))
    }

    pub(crate) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_taken_without_the_end_of_its_line_and_is_never_shown() {
        let key = Key::new("  s3cret\n").unwrap();
        assert_eq!(key.header().to_str().unwrap(), "Bearer s3cret");
        assert!(!format!("{:?}", key.header()).contains("s3cret"));
    }

    #[test]
    fn what_is_no_key_is_refused_and_not_shown() {
        for (text, why) in [
            ("", BadKey::Empty),
            (" \n", BadKey::Empty),
            ("a b", BadKey::Letters),
            ("kl\u{fc}", BadKey::Letters),
        ] {
            assert_eq!(Key::new(text).err(), Some(why), "{text:?}");
        }
    }
}
