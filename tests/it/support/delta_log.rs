//! A table's Delta log as its readers replay it, without checkpoints. Shares no code with the product.

use std::collections::BTreeSet;

use serde_json::Value;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct DeltaLog {
    /// Paths of the present files, as the log has them.
    pub files: BTreeSet<String>,
    /// The sequences of the table's commits, one a version.
    pub sequences: Vec<u64>,
    /// The table's description in each version that has one, oldest first.
    pub metadata: Vec<Value>,
}

impl DeltaLog {
    /// `objects`: name in the folder `_delta_log` and content, in order. `None` if there are none.
    ///
    /// # Errors
    /// If a strict reader would refuse it.
    pub fn replay<'a>(objects: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Result<Option<Self>, String> {
        let (mut log, mut is_there) = (Self::default(), false);
        for (name, bytes) in objects {
            is_there = true;
            if !name.ends_with(".json") {
                continue;
            }
            let version = log.sequences.len();
            if name != format!("{version:020}.json") {
                return Err(format!("version {version} is missing, found `{name}`"));
            }
            log.add(&String::from_utf8_lossy(bytes)).map_err(|found| format!("`{name}`: {found}"))?;
        }
        Ok(is_there.then_some(log))
    }

    fn add(&mut self, version: &str) -> Result<(), String> {
        let (mut added, mut removed, mut sequences) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
        for line in version.lines() {
            let mut action: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
            let path = |name: &str| action[name]["path"].as_str().map(str::to_owned);
            if !path("add").is_none_or(|path| added.insert(path))
                || !path("remove").is_none_or(|path| removed.insert(path))
            {
                return Err("a file is added or removed twice".into());
            }
            sequences.extend(action["txn"]["version"].as_u64());
            if action["metaData"].is_object() {
                self.metadata.push(action["metaData"].take());
            }
        }
        let [sequence] = sequences[..] else { return Err(format!("it belongs to the commits {sequences:?}")) };
        if !added.is_disjoint(&removed) || !removed.is_subset(&self.files) || self.metadata.is_empty() {
            return Err(format!("it adds {added:?} to {:?} and removes {removed:?}", self.files));
        }
        self.sequences.push(sequence);
        self.files = &(&self.files - &removed) | &added;
        Ok(())
    }
}
