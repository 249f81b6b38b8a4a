//! A fleet: two web processes and two workers share state on one Redis and S3.

use serde_json::{Value, json};

use crate::support::browser::Browser;
use crate::support::site::{Kind, Service, Site, await_some, await_that};

const JOBS: &str = "/api/p/trips/jobs";
/// Rows of a CSV.
const ROWS: usize = 1_000;
/// Runs last long enough to be seen and cancelled.
const SLOW: [(&str, &str); 1] = [("FAILPOINTS", "convert::piece=sleep(500)")];

fn at(web: &Service, browser: &Browser) -> Browser {
    Browser { address: web.address(), ..browser.clone() }
}

fn csv(start: usize, rows: usize) -> Vec<u8> {
    let mut text = String::from("a,b\n");
    for row in start..start + rows {
        text.push_str(&format!("name of the row {row},{row}\n"));
    }
    text.into_bytes()
}

fn upload(browser: &Browser, name: &str, body: &[u8]) {
    let reply = browser.send("PUT", &format!("/api/lake?key=pipelines/trips/in/{name}"), &[], body);
    assert_eq!(reply.status, 201, "{}", reply.text());
}

fn job_summary(browser: &Browser, job: &Value) -> Value {
    browser.get(&format!("{JOBS}/{}", job["job_id"].as_str().unwrap())).ok().json()
}

fn await_end(browser: &Browser, job: &Value) -> Value {
    await_some("the job's end", || {
        Some(job_summary(browser, job)).filter(|job| job["status"] == "completed" || job["status"] == "failed")
    })
}

fn ids(browser: &Browser) -> Vec<Value> {
    let listed = browser.get(JOBS).ok().json();
    listed["jobs"].as_array().unwrap().iter().map(|job| job["job_id"].clone()).collect()
}

#[test]
fn processes_share_all_state() {
    let site = Site::new(Kind::Fleet);
    site.pipeline("trips", &json!({}));
    let _workers = [site.worker_with(&SLOW), site.worker_with(&SLOW)];
    let (mut one, other) = (site.web(), site.web());
    let here = Browser::log_in(&one);
    let there = at(&other, &here);

    for part in 0..3 {
        upload(&here, &format!("{part}.csv"), &csv(part * ROWS, ROWS));
    }
    let job = there.send("POST", JOBS, &[], b"").ok().json();
    // Both report the running job.
    let at_work = |browser: &Browser| {
        let listed = browser.get(JOBS).ok().json();
        let listed = &listed["jobs"][0];
        assert_eq!(listed["job_id"], job["job_id"]);
        let seen = job_summary(browser, &job);
        assert_ne!(seen["status"], "completed", "it ended before anybody saw it at work: {seen}");
        [listed, &seen].iter().all(|job| job["status"] == "running" && job["progress"]["files_total"] == 3)
    };
    await_that("progress", || at_work(&here) && at_work(&there));
    for browser in [&here, &there] {
        let end = await_end(browser, &job);
        assert_eq!(end["status"], "completed", "{end}");
        assert_eq!(end["result"]["tables"]["t"]["rows_written"], json!(3 * ROWS));
    }

    // A run on one worker is cancelled through the other process.
    let job = here.send("POST", &format!("{JOBS}?clean=true"), &[], b"").ok().json();
    await_that("the start", || job_summary(&there, &job)["status"] == "running");
    let path = format!("{JOBS}/{}/cancel", job["job_id"].as_str().unwrap());
    assert_eq!(there.send("POST", &path, &[], b"").status, 202);
    let end = await_end(&here, &job);
    assert_eq!(end["error"]["code"], "cancelled", "{end}");

    // One process dies: the other has the session, the queue and the history as well.
    assert_eq!(ids(&here), ids(&there));
    one.kill();
    upload(&there, "3.csv", &csv(3 * ROWS, 10));
    let job = there.send("POST", JOBS, &[], b"").ok().json();
    let end = await_end(&there, &job);
    assert_eq!(end["result"]["tables"]["t"]["rows_written"], json!(3 * ROWS + 10), "{end}");
    let third = site.web();
    assert_eq!(ids(&at(&third, &there)), ids(&there));
}
