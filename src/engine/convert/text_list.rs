//! Many texts in one allocation.

use std::cmp::Ordering;

/// Texts in one allocation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextList {
    text: String,
    /// The end of each text.
    ends: Vec<usize>,
}

impl TextList {
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The text at `at`; empty if there is none.
    pub fn get(&self, at: usize) -> &str {
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or_default();
        self.ends.get(at).map_or("", |end| &self.text[start..*end])
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &str> + ExactSizeIterator {
        (0..self.len()).map(|at| self.get(at))
    }

    /// The index of `text` in a sorted list.
    pub fn position(&self, text: &str) -> Option<usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.get(middle).cmp(text) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Some(middle),
            }
        }
        None
    }
}

impl<'a> FromIterator<&'a str> for TextList {
    fn from_iter<I: IntoIterator<Item = &'a str>>(texts: I) -> Self {
        let mut list = Self::default();
        texts.into_iter().for_each(|text| list.push(text));
        list
    }
}
