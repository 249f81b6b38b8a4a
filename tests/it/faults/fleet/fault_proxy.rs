//! A proxy in front of S3 that injects faults at random, and records writes.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lakemill::ports::store::Bucket;

use crate::faults::checker::{History, Written};
use crate::support::http_proxy::{HttpProxy, ProxiedRequest, ProxyAction};
use crate::support::lake::Rng;
use crate::support::s3_server::s3s_fs;

/// Fault rates of S3 requests: chances in 1,000 of each.
#[derive(Debug, Clone, Copy, Default)]
pub struct FaultRates {
    pub status_500: u64,
    pub status_503: u64,
    pub slow: u64,
    pub reset: u64,
    pub lost_answer: u64,
    pub away: bool,
}

const ANSWER_500: &[u8] = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const ANSWER_503: &[u8] = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

fn act(rates: &FaultRates, rng: &mut Rng, passing: &ProxiedRequest) -> ProxyAction {
    if rates.away {
        return ProxyAction::Close;
    }
    let roll = rng.below(1_000);
    let chances = [rates.status_500, rates.status_503, rates.slow, rates.reset, rates.lost_answer];
    let mut upto = 0;
    let chosen = chances.iter().position(|chance| {
        upto += chance;
        roll < upto
    });
    let writes = passing.method == "PUT" || passing.method == "POST" || passing.method == "DELETE";
    match chosen {
        Some(0) => ProxyAction::Answer(ANSWER_500.to_vec()),
        Some(1) => ProxyAction::Answer(ANSWER_503.to_vec()),
        Some(2) => ProxyAction::Delay(Duration::from_millis(100 + rng.below(1_500))),
        Some(3) => ProxyAction::CutAfter(rng.below(40) as usize),
        Some(_) if writes => ProxyAction::LoseAnswer,
        Some(_) => ProxyAction::Close,
        None => ProxyAction::Forward,
    }
}

/// The proxy in front of S3, and its faults so far.
#[derive(Debug, Clone, Default)]
pub struct FaultProxy {
    pub rates: Arc<Mutex<FaultRates>>,
    pub history: Arc<Mutex<History>>,
    pub struck: Arc<AtomicU64>,
}

impl FaultProxy {
    /// Starts a proxy with random faults from `seed`; the pipelines bucket is called `pipelines`.
    pub fn start(&self, pipelines: &str, seed: u64) -> HttpProxy {
        let rng = Mutex::new(Rng::new(seed ^ 0x5333));
        let prefix = format!("/{pipelines}/");
        let (rates, struck) = (Arc::clone(&self.rates), Arc::clone(&self.struck));
        let rule = move |passing: &mut ProxiedRequest| {
            let act = act(&rates.lock().unwrap(), &mut rng.lock().unwrap(), passing);
            struck.fetch_add(u64::from(!matches!(act, ProxyAction::Forward)), Ordering::SeqCst);
            act
        };
        let history = Arc::clone(&self.history);
        let seen = move |passing: &ProxiedRequest, status: &str| {
            let key = passing.target.strip_prefix(&prefix).filter(|_| passing.method == "PUT" && status == "200");
            let key = key.and_then(|rest| rest.split('?').next());
            let written = key.and_then(|key| Written::of(Bucket::Pipelines, key, &passing.body));
            history.lock().unwrap().written.extend(written);
        };
        HttpProxy::start_seen(s3s_fs().address, rule, seen)
    }
}

/// A proxy for one worker, in front of the other proxy: it reports an upload to the warehouse in progress, and delays
/// it for `time`.
pub fn holding(upstream: SocketAddr, warehouse: &str, time: Duration) -> (HttpProxy, Arc<ProxyControl>) {
    let holding = Arc::new(ProxyControl::default());
    let (shared, prefix) = (Arc::clone(&holding), format!("/{warehouse}/"));
    let rule = move |passing: &mut ProxiedRequest| {
        let is_file = passing.method == "PUT" && passing.target.starts_with(&prefix);
        match is_file && shared.armed.swap(false, Ordering::SeqCst) {
            true => {
                shared.held.store(true, Ordering::SeqCst);
                ProxyAction::Delay(time)
            }
            false => ProxyAction::Forward,
        }
    };
    (HttpProxy::start(upstream, rule), holding)
}

/// Commands and reports of such a proxy.
#[derive(Debug, Default)]
pub struct ProxyControl {
    /// Delay the next file.
    pub armed: AtomicBool,
    /// A file has just been delayed.
    pub held: AtomicBool,
}
