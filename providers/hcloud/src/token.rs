//! Where the API token comes from: the environment or a file, never the command line.

use std::fmt;
use std::path::PathBuf;

use scarpenter_core::name::Secret;

/// Environment variable that holds the token, as the vendor's own tools have it.
pub const VARIABLE: &str = "HCLOUD_TOKEN";

/// Where the API token comes from.
#[derive(Clone)]
pub enum Token {
    /// It was given when the process started.
    Given(Secret),
    /// A file that is read before every call, so that a replaced token needs no restart.
    File(PathBuf),
    /// There is none.
    None,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(_) => f.write_str("given"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::None => f.write_str("none"),
        }
    }
}

impl Token {
    /// A file wins over the text of the environment variable; an empty text is none.
    #[must_use]
    pub fn from(file: Option<PathBuf>, variable: Option<String>) -> Self {
        let given = variable.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        match (file, given) {
            (Some(path), _) => Self::File(path),
            (None, Some(text)) => Self::Given(Secret::new(text)),
            (None, None) => Self::None,
        }
    }

    /// The token as it is now.
    ///
    /// # Errors
    /// What is missing and what to do, for people.
    pub async fn read(&self) -> Result<Secret, String> {
        match self {
            Self::Given(token) => Ok(token.clone()),
            Self::None => Err(format!(
                "there is no API token: set {VARIABLE} or --token-file of the plugin to one with the permission \
                 \"Read & Write\", made in the project's Security page, API tokens"
            )),
            Self::File(path) => {
                let text = tokio::fs::read_to_string(path).await;
                let text =
                    text.map_err(|error| format!("read the API token from {}: {error}", path.display()))?;
                match text.trim() {
                    "" => Err(format!("the file of the API token, {}, is empty", path.display())),
                    token => Ok(Secret::new(token)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_is_read_again_and_wins_over_the_variable() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let token = Token::from(Some(path.clone()), Some("other".to_owned()));
        assert!(token.read().await.unwrap_err().contains("token"));
        for text in ["first", "second"] {
            std::fs::write(&path, format!("{text}\n")).unwrap();
            assert_eq!(token.read().await.unwrap().reveal(), text);
        }
    }

    #[tokio::test]
    async fn without_a_token_the_words_say_what_to_do_and_none_is_ever_shown() {
        let words = Token::from(None, Some("  ".to_owned())).read().await.unwrap_err();
        assert!(words.contains(VARIABLE), "{words}");
        assert_eq!(format!("{:?}", Token::from(None, Some("hush".to_owned()))), "given");
    }
}
