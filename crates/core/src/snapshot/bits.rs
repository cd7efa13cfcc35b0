/// A set of small numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    /// None of the numbers below `len`.
    #[must_use]
    pub fn none(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(64)], len }
    }

    /// All numbers below `len`.
    #[must_use]
    pub fn all(len: usize) -> Self {
        let mut out = Self { words: vec![u64::MAX; len.div_ceil(64)], len };
        if let (Some(last), rest) = (out.words.last_mut(), len % 64)
            && rest > 0
        {
            *last = (1 << rest) - 1;
        }
        out
    }

    /// What its numbers are below.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.len
    }

    /// Adds `number`, which is below the length.
    pub fn insert(&mut self, number: usize) {
        debug_assert!(number < self.len, "numbers of a set are below its length");
        self.words[number / 64] |= 1 << (number % 64);
    }

    /// Takes `number` out.
    pub fn remove(&mut self, number: usize) {
        self.words[number / 64] &= !(1 << (number % 64));
    }

    /// Whether `number` is in it.
    #[must_use]
    pub fn contains(&self, number: usize) -> bool {
        self.words[number / 64] >> (number % 64) & 1 == 1
    }

    /// Keeps what is in `other` too.
    pub fn and(&mut self, other: &Self) {
        for (word, theirs) in self.words.iter_mut().zip(&other.words) {
            *word &= theirs;
        }
    }

    /// Keeps what is not in `other`.
    pub fn and_not(&mut self, other: &Self) {
        for (word, theirs) in self.words.iter_mut().zip(&other.words) {
            *word &= !theirs;
        }
    }

    /// Adds what is in `other`.
    pub fn or(&mut self, other: &Self) {
        for (word, theirs) in self.words.iter_mut().zip(&other.words) {
            *word |= theirs;
        }
    }

    /// Whether the two have a number in common.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// Whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Whether all numbers below its length are in it.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.count() == self.len
    }

    /// How many are in it.
    #[must_use]
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Those in it, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(at, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
                rest &= rest - 1;
                Some(at * 64 + bit)
            })
        })
    }

    /// The least and the greatest in it.
    #[must_use]
    pub fn span(&self) -> Option<(usize, usize)> {
        let first = self.words.iter().position(|word| *word != 0)?;
        let last = self.words.iter().rposition(|word| *word != 0)?;
        let least = first * 64 + self.words[first].trailing_zeros() as usize;
        let greatest = last * 64 + 63 - self.words[last].leading_zeros() as usize;
        Some((least, greatest))
    }

    /// Keeps those for which `keep` holds.
    pub fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        for at in 0..self.words.len() {
            let mut rest = self.words[at];
            while rest != 0 {
                let bit = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                if !keep(at * 64 + bit) {
                    self.words[at] &= !(1 << bit);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_full_only_up_to_its_length() {
        for len in [0, 1, 63, 64, 65, 130] {
            let all = Bits::all(len);
            assert_eq!((all.count(), all.is_full()), (len, true));
            assert_eq!(all.iter().collect::<Vec<_>>(), (0..len).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_span_is_the_first_and_the_last() {
        let mut some = Bits::none(300);
        assert_eq!(some.span(), None);
        for number in [70, 71, 255] {
            some.insert(number);
        }
        assert_eq!(some.span(), Some((70, 255)));
    }

    #[test]
    fn retain_and_iterate_agree() {
        let mut even = Bits::all(200);
        even.retain(|n| n % 2 == 0);
        assert!(even.iter().eq((0..200).step_by(2)));
        let mut odd = Bits::all(200);
        odd.retain(|n| n % 2 == 1);
        assert!(!even.meets(&odd));
        let mut rest = Bits::all(200);
        rest.and_not(&even);
        assert_eq!(rest, odd);
        odd.or(&even);
        assert!(odd.is_full());
    }
}
