//! Cuts a JSON list into its elements while it arrives, so that no more than one element is ever held.

/// The cutter. Gives each element as bytes and does not look at what it means.
#[derive(Default)]
pub(crate) struct Elements {
    at: At,
    /// Brackets open in the element; a bare value has none.
    depth: usize,
    bare: bool,
    in_string: bool,
    escaped: bool,
    /// The beginning of an element whose end has not arrived yet.
    begun: Vec<u8>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum At {
    #[default]
    Start,
    First,
    Next,
    Inside,
    After,
    End,
}

/// Why it is no list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// A web page.
    Html,
    /// Something else than a list.
    NotAList,
    /// A list with something between its elements that belongs nowhere.
    Malformed,
    /// It ends before it is complete.
    CutOff,
}

impl Elements {
    /// Takes the next bytes and calls `take` with each element that they complete.
    pub(crate) fn feed(&mut self, bytes: &[u8], mut take: impl FnMut(&[u8])) -> Result<(), Broken> {
        let mut from = 0;
        let mut index = 0;
        while index < bytes.len() {
            let byte = bytes[index];
            if self.at == At::Inside {
                if !self.ends(byte) {
                    index += 1;
                    continue;
                }
                // The bracket that closes an element belongs to it, the comma or bracket after a bare value does not.
                let end = if self.bare { index } else { index + 1 };
                self.give(&bytes[from..end], &mut take);
                self.at = At::After;
                index = end;
                continue;
            }
            if !byte.is_ascii_whitespace() {
                self.at = self.outside(byte)?;
                if self.at == At::Inside {
                    from = index;
                    self.open(byte);
                }
            }
            index += 1;
        }
        if self.at == At::Inside {
            self.begun.extend_from_slice(&bytes[from..]);
        }
        Ok(())
    }

    /// Says whether the list was complete.
    pub(crate) fn end(&self) -> Result<(), Broken> {
        if self.at == At::End { Ok(()) } else { Err(Broken::CutOff) }
    }

    fn give(&mut self, rest: &[u8], take: &mut impl FnMut(&[u8])) {
        if self.begun.is_empty() {
            take(rest);
        } else {
            self.begun.extend_from_slice(rest);
            take(&self.begun);
            self.begun.clear();
        }
    }

    fn outside(&self, byte: u8) -> Result<At, Broken> {
        match (self.at, byte) {
            (At::Start, b'[') => Ok(At::First),
            (At::Start, b'<') => Err(Broken::Html),
            (At::Start, _) => Err(Broken::NotAList),
            (At::First | At::After, b']') => Ok(At::End),
            (At::After, b',') => Ok(At::Next),
            (At::First | At::Next, byte) if !matches!(byte, b',' | b']' | b'}' | b':') => Ok(At::Inside),
            _ => Err(Broken::Malformed),
        }
    }

    fn open(&mut self, byte: u8) {
        self.depth = usize::from(matches!(byte, b'{' | b'['));
        self.bare = self.depth == 0;
        self.in_string = byte == b'"';
        self.escaped = false;
    }

    /// Whether the element is over with this byte, or, where it is a bare value, before it.
    fn ends(&mut self, byte: u8) -> bool {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return false;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' if self.depth > 0 => {
                self.depth -= 1;
                return self.depth == 0;
            }
            b'}' | b']' | b',' if self.depth == 0 => return true,
            _ => {}
        }
        false
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(text: &[u8], chunk: usize) -> Result<Vec<String>, Broken> {
        let (mut elements, mut out) = (Elements::default(), Vec::new());
        for bytes in text.chunks(chunk) {
            elements.feed(bytes, |element| out.push(String::from_utf8_lossy(element).trim().to_owned()))?;
        }
        elements.end().map(|()| out)
    }

    #[test]
    fn a_list_is_cut_into_its_elements_wherever_its_chunks_end() {
        let text = r#" [ {"a":"x]},\\"}, {"b":[1,{"c":"\"}"}]} ,[[],{}],"s,]\"", -1.5e3,null ] "#;
        let expected =
            [r#"{"a":"x]},\\"}"#, r#"{"b":[1,{"c":"\"}"}]}"#, "[[],{}]", r#""s,]\"""#, "-1.5e3", "null"];
        for chunk in 1..=text.len() {
            assert_eq!(cut(text.as_bytes(), chunk).unwrap(), expected, "chunks of {chunk}");
        }
        assert_eq!(cut(b"[]", 1), Ok(vec![]));
        assert_eq!(cut(b"\n[ ]\n", 2), Ok(vec![]));
    }

    #[test]
    fn what_is_no_whole_list_is_told_apart() {
        for (text, broken) in [
            ("<!DOCTYPE html>", Broken::Html),
            ("{\"detail\":\"no\"}", Broken::NotAList),
            ("null", Broken::NotAList),
            ("", Broken::CutOff),
            ("[", Broken::CutOff),
            ("[{\"a\":1}", Broken::CutOff),
            ("[{\"a\":1},", Broken::CutOff),
            ("[{\"a\":\"]", Broken::CutOff),
            ("[1", Broken::CutOff),
            ("[1,]", Broken::Malformed),
            ("[,1]", Broken::Malformed),
            ("[{} {}]", Broken::Malformed),
            ("[] []", Broken::Malformed),
        ] {
            for chunk in 1..=text.len().max(1) {
                assert_eq!(cut(text.as_bytes(), chunk), Err(broken), "{text} in chunks of {chunk}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_list_comes_out_as_serde_reads_it(
            values in prop::collection::vec(json(), 0..8), chunk in 1usize..40, pretty: bool
        ) {
            let list = serde_json::Value::Array(values.clone());
            let text = if pretty { serde_json::to_string_pretty(&list) } else { serde_json::to_string(&list) };
            let cut = cut(text.unwrap().as_bytes(), chunk).unwrap();
            let read: Vec<serde_json::Value> =
                cut.iter().map(|element| serde_json::from_str(element).unwrap()).collect();
            prop_assert_eq!(read, values);
        }

        #[test]
        fn no_bytes_make_it_panic_and_chunks_change_nothing(bytes in "[\\[\\]{}\",:\\\\ 1a<]{0,40}", chunk in 1usize..9) {
            prop_assert_eq!(cut(bytes.as_bytes(), chunk), cut(bytes.as_bytes(), 1));
        }
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i32>().prop_map(Into::into),
            "[a-z\\[\\]{}\",\\\\ ]{0,6}".prop_map(Into::into),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
                prop::collection::btree_map("[a-z\"]{0,3}", inner, 0..4)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }
}
