//! Counts progress and reports it to the observer.

use parking_lot::Mutex;

use crate::domain::job::{Progress, Stage};
use crate::engine::convert::ConvertProgress;
use crate::ports::RunObserver;
use crate::ports::observer::Stop;

/// The counters of a run. A source read twice counts twice, in the totals too.
pub(super) struct RunCounters<'a> {
    observer: &'a dyn RunObserver,
    progress: Mutex<Progress>,
}

impl<'a> RunCounters<'a> {
    pub fn new(observer: &'a dyn RunObserver) -> Self {
        Self { observer, progress: Mutex::default() }
    }

    fn update(&self, change: impl FnOnce(&mut Progress)) {
        let now = {
            let mut progress = self.progress.lock();
            change(&mut progress);
            progress.clone()
        };
        self.observer.progress(&now);
    }

    pub fn stage(&self, stage: Stage) {
        self.update(|p| p.stage = stage);
    }

    pub fn mappings(&self, total: u64) {
        self.update(|p| p.mappings_total = total);
    }

    pub fn mapping_done(&self) {
        self.update(|p| p.mappings_done += 1);
    }

    pub fn expect_sources(&self, files: u64, bytes: u64) {
        self.update(|p| {
            p.stage = Stage::Converting;
            p.files_total += files;
            p.bytes_total += bytes;
        });
    }

    pub fn expect_partitions(&self, partitions: u64) {
        self.update(|p| {
            p.stage = Stage::Publishing;
            p.partitions_total = partitions;
        });
    }

    pub fn partitions_written(&self, partitions: u64) {
        self.update(|p| p.partitions_written += partitions);
    }
}

impl ConvertProgress for RunCounters<'_> {
    fn bytes_read(&self, bytes: u64) {
        self.update(|p| p.bytes_done += bytes);
    }

    fn source_done(&self) {
        self.update(|p| p.files_done += 1);
    }

    fn rows(&self, read: u64, written: u64, rejected: u64) {
        self.update(|p| {
            p.rows_read += read;
            p.rows_written += written;
            p.rows_rejected += rejected;
        });
    }

    fn check(&self) -> Result<(), Stop> {
        self.observer.check()
    }
}
