//! Patterns of names: `*`, `?`, `[a-z]`, `[!x]`, over the whole name, letter case counts.

/// A pattern that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Glob(Vec<Token>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Any,
    Many,
    One(char),
    Class { not: bool, ranges: Vec<(char, char)> },
}

impl Glob {
    /// Reads a pattern; the error says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut tokens = Vec::new();
        let mut rest = text.chars();
        while let Some(letter) = rest.next() {
            tokens.push(match letter {
                '*' => Token::Many,
                '?' => Token::Any,
                '[' => {
                    let (inside, behind) = rest
                        .as_str()
                        .split_once(']')
                        .ok_or_else(|| format!("{text:?} has a [ without a ]"))?;
                    rest = behind.chars();
                    class(inside).ok_or_else(|| format!("{text:?} has a class [{inside}] of nothing"))?
                }
                one => Token::One(one),
            });
        }
        Ok(Self(tokens))
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        // Whether the tokens so far match the first `n` letters.
        let mut reached = vec![false; name.len() + 1];
        reached[0] = true;
        for token in &self.0 {
            if *token == Token::Many {
                let first = reached.iter().position(|yes| *yes).unwrap_or(reached.len());
                reached.iter_mut().skip(first).for_each(|yes| *yes = true);
                continue;
            }
            for n in (0..name.len()).rev() {
                reached[n + 1] = reached[n] && token.takes(name[n]);
            }
            reached[0] = false;
        }
        reached[name.len()]
    }
}

impl Token {
    fn takes(&self, letter: char) -> bool {
        match self {
            Self::Any | Self::Many => true,
            Self::One(own) => *own == letter,
            Self::Class { not, ranges } => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&letter)) != *not
            }
        }
    }
}

fn class(inside: &str) -> Option<Token> {
    let (not, inside) = inside.strip_prefix('!').map_or((false, inside), |rest| (true, rest));
    let letters: Vec<char> = inside.chars().collect();
    let (mut ranges, mut at) = (Vec::new(), 0);
    while at < letters.len() {
        let is_range = letters.get(at + 1) == Some(&'-') && at + 2 < letters.len();
        let to = if is_range { letters[at + 2] } else { letters[at] };
        ranges.push((letters[at], to));
        at += if is_range { 3 } else { 1 };
    }
    let sound = !ranges.is_empty() && ranges.iter().all(|(from, to)| from <= to);
    sound.then_some(Token::Class { not, ranges })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_held_against_the_whole_name() {
        for (pattern, name, matches) in [
            ("m8a", "m8a", true),
            ("m8a", "m8a.large", false),
            ("m8a.*", "m8a.metal-48xl", true),
            ("*.metal*", "m8a.metal-48xl", true),
            ("*.metal*", "m8a.large", false),
            ("*", "", true),
            ("m?a.large", "m8a.large", true),
            ("m?a.large", "ma.large", false),
            ("[cm]8a.*", "c8a.large", true),
            ("[a-c]8a.*", "m8a.large", false),
            ("[!m]8a.*", "m8a.large", false),
            ("[!m]8a.*", "r8a.large", true),
            ("M8A", "m8a", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "xxaxxbx", false),
            ("[a-]x", "-x", true),
        ] {
            assert_eq!(Glob::parse(pattern).unwrap().matches(name), matches, "{pattern} {name}");
        }
    }

    #[test]
    fn a_broken_pattern_is_named() {
        for pattern in ["[a", "[]", "[!]", "[z-a]"] {
            assert!(Glob::parse(pattern).unwrap_err().contains(pattern), "{pattern}");
        }
    }
}
