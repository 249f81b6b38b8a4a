//! Shared helpers: in-memory stores, stores with injected faults, the program itself.

pub mod aws;
pub mod browser;
pub mod certificates;
pub mod children;
pub mod concurrent;
pub mod conformance;
pub mod cutting_proxy;
pub mod delta_log;
pub mod disk;
pub mod faulty_store;
pub mod folders;
pub mod http_client;
pub mod http_proxy;
pub mod iceberg_catalog;
pub mod key_locks;
pub mod lake;
pub mod manifests;
pub mod memory_store;
pub mod moved_clock;
pub mod notification_sinks;
pub mod parquet_bombs;
pub mod program;
pub mod redis_server;
pub mod s3_server;
pub mod sigv4;
pub mod site;
pub mod sns;
pub mod sqs;
pub mod tunnel_proxy;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lakemill::domain::name::Slug;
use lakemill::ports::store::{Lease, LeaseLost};

/// A lease that lasts as long as the test.
pub struct TestLease {
    slug: Slug,
    fence: u64,
    lost: AtomicBool,
}

impl TestLease {
    pub fn new(slug: &str, fence: u64) -> Self {
        Self { slug: Slug::parse(slug).unwrap(), fence, lost: AtomicBool::new(false) }
    }

    pub fn lose(&self) {
        self.lost.store(true, Ordering::SeqCst);
    }
}

impl Lease for TestLease {
    fn slug(&self) -> &Slug {
        &self.slug
    }

    fn fence(&self) -> u64 {
        self.fence
    }

    fn remaining(&self) -> Result<Duration, LeaseLost> {
        if self.lost.load(Ordering::SeqCst) { Err(LeaseLost) } else { Ok(Duration::from_secs(60)) }
    }
}
