//! Sessions, throttling and cross-site protection.

use serde_json::json;

use super::on_both;
use crate::support::browser::Browser;
use crate::support::site::{Kind, PASSWORD, Site, await_that};

#[test]
fn login_opens_a_session_and_logout_ends_it() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let anonymous = Browser::anonymous(&web);
        anonymous.get("/api/auth/me").refused(401, "unauthorized");
        assert_eq!(anonymous.get("/session").ok().json(), json!({ "authenticated": false }), "asking is no error");
        anonymous.post("/api/auth/login", &json!({ "password": "wrong horse" })).refused(401, "unauthorized");
        let reply = anonymous.post("/api/auth/login", &json!({ "password": PASSWORD })).ok();
        assert_eq!(reply.json(), json!({ "authenticated": true }));
        let cookie = reply.header("set-cookie").unwrap();
        for part in ["svc_session=", "; HttpOnly", "; SameSite=Strict", "; Path=/"] {
            assert!(cookie.contains(part), "{cookie}");
        }
        assert!(!cookie.contains("Secure"));
        let browser = Browser { cookie: Some(cookie.split(';').next().unwrap().to_owned()), ..anonymous };
        assert_eq!(browser.get("/api/auth/me").ok().json(), json!({ "authenticated": true }));
        assert_eq!(browser.get("/session").ok().json(), json!({ "authenticated": true }));
        let cleared = browser.send("POST", "/api/auth/logout", &[], b"").ok();
        assert!(cleared.header("set-cookie").unwrap().contains("Max-Age=0"));
        browser.get("/api/auth/me").refused(401, "unauthorized");
        assert_eq!(browser.get("/session").ok().json(), json!({ "authenticated": false }));
    });
}

#[test]
fn sessions_are_shared_between_processes() {
    on_both(|kind| {
        let site = Site::new(kind);
        let (one, other) = (site.web(), site.web());
        let browser = Browser::log_in(&one);
        let elsewhere = Browser { address: other.address(), ..browser.clone() };
        elsewhere.get("/api/auth/me").ok();
        elsewhere.send("POST", "/api/auth/logout", &[], b"").ok();
        browser.get("/api/auth/me").refused(401, "unauthorized");
    });
}

#[test]
fn failed_logins_are_throttled() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let anonymous = Browser::anonymous(&web);
        for _ in 0..5 {
            anonymous.post("/api/auth/login", &json!({ "password": "wrong horse" })).refused(401, "unauthorized");
        }
        let reply = anonymous.post("/api/auth/login", &json!({ "password": PASSWORD }));
        reply.refused(429, "too_many_requests");
        let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=900).contains(&wait), "{wait}");
    });
}

#[test]
fn logins_behind_a_trusted_proxy_are_throttled_by_forwarded_address() {
    let site = Site::new(Kind::Embedded);
    let web = site.web_with(&[("SVC_TRUSTED_PROXIES", "127.0.0.0/8")]);
    let anonymous = Browser::anonymous(&web);
    let login = |address: &str, password: &str| {
        let body = json!({ "password": password }).to_string();
        anonymous.send("POST", "/api/auth/login", &[("X-Forwarded-For", address)], body.as_bytes())
    };
    for _ in 0..5 {
        login("203.0.113.1", "wrong horse").refused(401, "unauthorized");
    }
    login("203.0.113.1", PASSWORD).refused(429, "too_many_requests");
    login("203.0.113.2", PASSWORD).ok();
}

#[test]
fn logins_from_one_network_are_throttled_together() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web_with(&[("SVC_TRUSTED_PROXIES", "127.0.0.0/8")]);
        let anonymous = Browser::anonymous(&web);
        let login = |address: &str, password: &str| {
            let body = json!({ "password": password }).to_string();
            anonymous.send("POST", "/api/auth/login", &[("X-Forwarded-For", address)], body.as_bytes())
        };
        let admin = "2001:db8:0:aa::1";
        login(admin, PASSWORD).ok();
        // Each from another /64 of the same /56.
        for nth in 0..10 {
            login(&format!("2001:db8:0:{nth:x}::1"), "wrong horse").refused(401, "unauthorized");
        }
        login("2001:db8:0:b::1", "wrong horse").refused(429, "too_many_requests");
        login("2001:db8:0:b::1", PASSWORD).refused(429, "too_many_requests");
        login(admin, PASSWORD).ok();
        login("2001:db8:0:100::1", PASSWORD).ok();
    });
}

#[test]
fn cookie_is_secure_for_an_https_public_url() {
    let site = Site::new(Kind::Embedded);
    let web = site.web_with(&[("SVC_PUBLIC_URL", "https://lake.example")]);
    let reply = Browser::anonymous(&web).post("/api/auth/login", &json!({ "password": PASSWORD })).ok();
    assert!(reply.header("set-cookie").unwrap().contains("; Secure"));
}

#[test]
fn cross_site_requests_are_rejected() {
    let site = Site::new(Kind::Embedded);
    let web = site.web();
    let browser = Browser::log_in(&web);
    for field in [("Sec-Fetch-Site", "cross-site"), ("Origin", "https://evil.example"), ("Origin", "null")] {
        browser.send("POST", "/api/auth/logout", &[field], b"").refused(403, "forbidden_origin");
        browser.get("/api/auth/me").ok();
    }
    let own = format!("http://{}", browser.address);
    browser.send("POST", "/api/auth/logout", &[("Origin", &own), ("Sec-Fetch-Site", "same-origin")], b"").ok();
}

#[test]
fn weak_or_malformed_password_hash_prevents_start() {
    let site = Site::new(Kind::Embedded);
    let weak = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNo";
    for hash in [weak, "hunter2hunter2"] {
        let mut web = site.start("web", &[("SVC_ADMIN_PASSWORD_HASH", hash)]);
        assert_eq!(web.await_exit(), Some(78), "{}", web.log());
        assert!(web.has_logged("SVC_ADMIN_PASSWORD_HASH") && !web.has_logged(hash), "{}", web.log());
    }
}

#[test]
fn metrics_are_local_and_not_for_proxied_clients() {
    let site = Site::new(Kind::Embedded);
    let web = site.web();
    let anonymous = Browser::anonymous(&web);
    anonymous.get("/metrics").ok();
    for name in ["X-Forwarded-For", "Forwarded", "X-Real-IP"] {
        anonymous.send("GET", "/metrics", &[(name, "203.0.113.9")], b"").refused(401, "unauthorized");
    }
}

#[test]
fn cookie_is_secure_behind_a_trusted_tls_proxy() {
    let site = Site::new(Kind::Embedded);
    let (trusting, other) = (site.web_with(&[("SVC_TRUSTED_PROXIES", "127.0.0.1")]), site.web());
    let secure = |web| {
        let body = json!({ "password": PASSWORD }).to_string();
        let fields = [("X-Forwarded-For", "203.0.113.9"), ("X-Forwarded-Proto", "https")];
        let reply = Browser::anonymous(web).send("POST", "/api/auth/login", &fields, body.as_bytes()).ok();
        reply.header("set-cookie").unwrap().contains("; Secure")
    };
    assert!(secure(&trusting) && !secure(&other));
}

#[test]
fn concurrent_logins_do_not_block_other_requests() {
    let site = Site::new(Kind::Embedded);
    let web = site.web_with(&[("SVC_TRUSTED_PROXIES", "127.0.0.1")]);
    let browser = Browser::log_in(&web);
    let anonymous = Browser::anonymous(&web);
    std::thread::scope(|scope| {
        let logins: Vec<_> = (0..40)
            .map(|n| {
                let anonymous = &anonymous;
                scope.spawn(move || {
                    let body = json!({ "password": "wrong horse" }).to_string();
                    let from = format!("198.51.100.{n}");
                    anonymous.send("POST", "/api/auth/login", &[("X-Forwarded-For", &from)], body.as_bytes()).status
                })
            })
            .collect();
        browser.get("/api/auth/me").ok();
        for login in logins {
            let status = login.join().unwrap();
            assert!(status == 401 || status == 503, "{status}");
        }
    });
    browser.get("/api/auth/me").ok();
}

#[test]
fn slow_downloads_do_not_occupy_all_handlers() {
    use std::io::Write as _;
    let site = Site::new(Kind::Embedded);
    site.put("shop", "large.bin", vec![7; 8 << 20]);
    let web = site.web();
    let browser = Browser::log_in(&web);
    let cookie = browser.cookie.clone().unwrap();
    let address = &browser.address;
    let request = format!(
        "GET /api/lake/object?key=pipelines/shop/large.bin HTTP/1.1\r\nHost: {address}\r\nCookie: {cookie}\r\n\r\n"
    );
    let open = || {
        let mut stream = std::net::TcpStream::connect(&browser.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    };
    // They don't read their responses.
    let mut streams: Vec<_> = (0..80).map(|_| open()).collect();
    await_that("the places to be taken", || {
        // Some may have been rejected because earlier ones had just ended.
        streams.push(open());
        browser.get("/api/lake/object?key=pipelines/shop/large.bin").status == 503
    });
    browser.get("/api/auth/me").ok();
    browser.get("/api/lake?prefix=pipelines/").ok();
    drop(streams);
    await_that("places to be free", || browser.get("/api/lake/object?key=pipelines/shop/large.bin").status == 200);
}
