//! Finds files that have the same rows as others, such as a month that was exported twice, in whatever format or order.

use std::collections::BTreeMap;
use std::time::Instant;

use super::confirm;
use super::join::{FileSample, Sampled, file_name};
use super::proposal::Proposal;

/// Files with fewer rows may be equal by chance.
const ROWS_MIN: u64 = 2;

/// A warning for each file with the same rows as one before it. `read`: the files that were read, each with the proposal that
/// reads it; `counts`: of the same files. Only files that were read whole are compared, until the deadline.
pub(super) fn find(read: &[(&Sampled, &Proposal)], counts: &[FileSample], deadline: Instant) -> Vec<String> {
    let rows_of = |key: &str| {
        let count = counts.iter().find(|file| file.key == key)?;
        (count.sample.whole && count.sample.rows_confirmed >= ROWS_MIN).then_some(count.sample.rows_confirmed)
    };
    let mut by_rows: BTreeMap<u64, Vec<(&Sampled, &Proposal)>> = BTreeMap::new();
    for &(file, proposal) in read {
        if let Some(rows) = rows_of(&file.proposal.key) {
            by_rows.entry(rows).or_default().push((file, proposal));
        }
    }
    let mut warnings = Vec::new();
    for (rows, files) in by_rows.into_iter().filter(|(_, files)| files.len() > 1) {
        let mut known: BTreeMap<u64, &str> = BTreeMap::new();
        for (file, proposal) in files {
            let Some(digest) = confirm::rows_digest(proposal, &file.head, &|| Instant::now() < deadline) else {
                continue;
            };
            let name = file_name(&file.proposal.key);
            match known.get(&digest) {
                Some(first) => warnings.push(format!(
                    "`{name}` has the same {rows} rows as `{first}`, which would count twice; leave one of the files out"
                )),
                None => drop(known.insert(digest, name)),
            }
        }
    }
    warnings
}
