//! An HTTP proxy in the test's process between a client and a server: it delays, cuts, drops, answers or changes
//! requests. It reads one whole request, then sends one whole response.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

/// A request as it passes.
#[derive(Debug, Clone)]
pub struct ProxiedRequest {
    pub method: String,
    /// Path and query.
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The number of earlier requests on its connection.
    pub earlier: usize,
}

impl ProxiedRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn drop_header(&mut self, name: &str) {
        self.headers.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
    }
}

/// The server's response.
pub struct Answered {
    status_line: String,
    pub headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// The action for a request.
pub enum ProxyAction {
    Forward,
    /// Waits before the server sees the request.
    Delay(Duration),
    /// The server executes the request, but the connection is closed without a response.
    LoseAnswer,
    /// The server never sees the request.
    Close,
    /// The server never sees the request; these bytes are the response, then the connection is closed.
    Answer(Vec<u8>),
    /// So many bytes of the response's body are sent, then the connection is reset.
    CutAfter(usize),
    /// So many bytes of the response's body are sent, then nothing until the client times out.
    StallAfter(usize),
    /// Changes the response.
    Change(fn(&mut Answered)),
}

type Rule = dyn Fn(&mut ProxiedRequest) -> ProxyAction + Send + Sync;
type ResponseObserver = dyn Fn(&ProxiedRequest, &str) + Send + Sync;

/// A proxy on a free port. Its threads end when it is dropped and its clients have disconnected.
pub struct HttpProxy {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
}

struct Shared {
    upstream: SocketAddr,
    rule: Box<Rule>,
    seen: Box<ResponseObserver>,
    /// Held during an exchange with the server: exclusively by writes, shared by reads.
    turn: RwLock<()>,
    stop: Arc<AtomicBool>,
}

impl HttpProxy {
    /// Applies `rule`. One write at a time reaches the server: in test servers, unlike real stores, checking a
    /// precondition and writing are not atomic.
    pub fn start(
        upstream: SocketAddr,
        rule: impl Fn(&mut ProxiedRequest) -> ProxyAction + Send + Sync + 'static,
    ) -> Self {
        Self::start_seen(upstream, rule, |_, _| {})
    }

    /// Like [`HttpProxy::start`]; `seen` is called with every request that the server has answered and the response's
    /// status, for writes in the order in which they took effect, whether or not the response arrives.
    pub fn start_seen(
        upstream: SocketAddr,
        rule: impl Fn(&mut ProxiedRequest) -> ProxyAction + Send + Sync + 'static,
        seen: impl Fn(&ProxiedRequest, &str) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (rule, seen) = (Box::new(rule), Box::new(seen));
        let shared = Arc::new(Shared { upstream, rule, seen, turn: RwLock::default(), stop: Arc::clone(&stop) });
        std::thread::spawn(move || {
            for client in listener.incoming() {
                if shared.stop.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(client) = client else { continue };
                let shared = Arc::clone(&shared);
                // Its thread ends when the client disconnects.
                std::thread::spawn(move || drop(serve(&shared, client)));
            }
        });
        Self { address, stop }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for HttpProxy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(shared: &Shared, client: TcpStream) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    let mut reader = BufReader::new(client.try_clone()?);
    let mut client = client;
    let mut upstream = None;
    for earlier in 0.. {
        let Some((line, headers)) = read_head(&mut reader)? else { return Ok(()) };
        let mut words = line.split(' ').map(str::to_owned);
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut body = vec![0; length_of(&headers).unwrap_or(0)];
        reader.read_exact(&mut body)?;
        let mut passing = ProxiedRequest { method, target, headers, body, earlier };
        match (shared.rule)(&mut passing) {
            ProxyAction::Forward => send(&mut client, &exchange(shared, &mut upstream, &passing)?)?,
            ProxyAction::Delay(time) => {
                std::thread::sleep(time);
                send(&mut client, &exchange(shared, &mut upstream, &passing)?)?;
            }
            ProxyAction::LoseAnswer => return exchange(shared, &mut upstream, &passing).map(drop),
            ProxyAction::Close => return Ok(()),
            ProxyAction::Answer(bytes) => return client.write_all(&bytes),
            ProxyAction::CutAfter(bytes) => {
                let answered = exchange(shared, &mut upstream, &passing)?;
                send_part(&mut client, &answered, bytes)?;
                return reset(&client);
            }
            ProxyAction::StallAfter(bytes) => {
                let answered = exchange(shared, &mut upstream, &passing)?;
                send_part(&mut client, &answered, bytes)?;
                let _ = reader.read(&mut [0]);
                return Ok(());
            }
            ProxyAction::Change(change) => {
                let mut answered = exchange(shared, &mut upstream, &passing)?;
                change(&mut answered);
                send(&mut client, &answered)?;
            }
        }
    }
    Ok(())
}

/// Closes with a reset.
fn reset(stream: &TcpStream) -> std::io::Result<()> {
    socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO))
}

fn exchange(
    shared: &Shared,
    upstream: &mut Option<BufReader<TcpStream>>,
    passing: &ProxiedRequest,
) -> std::io::Result<Answered> {
    let reads = matches!(passing.method.as_str(), "GET" | "HEAD");
    let _reading = reads.then(|| shared.turn.read().unwrap());
    let _writing = (!reads).then(|| shared.turn.write().unwrap());
    if upstream.is_none() {
        let stream = TcpStream::connect(shared.upstream)?;
        stream.set_nodelay(true)?;
        *upstream = Some(BufReader::new(stream));
    }
    let reader = upstream.as_mut().unwrap();
    let mut head = format!("{} {} HTTP/1.1\r\n", passing.method, passing.target);
    for (name, value) in &passing.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let mut request = head.into_bytes();
    request.extend_from_slice(&passing.body);
    reader.get_mut().write_all(&request)?;
    let (status_line, headers) = read_head(reader)?.ok_or(std::io::ErrorKind::UnexpectedEof)?;
    (shared.seen)(passing, status_line.split(' ').nth(1).unwrap_or_default());
    let (body, whole) = read_body(reader, passing, &status_line, &headers)?;
    let is = |name: &str, wanted: &str| {
        headers.iter().any(|(n, v)| n.eq_ignore_ascii_case(name) && v.eq_ignore_ascii_case(wanted))
    };
    if !whole || is("connection", "close") || status_line.starts_with("HTTP/1.0") {
        *upstream = None;
    }
    Ok(Answered { status_line, headers, body })
}

/// The body, and whether the connection can be reused.
fn read_body(
    reader: &mut BufReader<TcpStream>,
    passing: &ProxiedRequest,
    status_line: &str,
    headers: &[(String, String)],
) -> std::io::Result<(Vec<u8>, bool)> {
    let status = status_line.split(' ').nth(1).unwrap_or_default();
    if passing.method == "HEAD" || matches!(status, "204" | "304") {
        return Ok((Vec::new(), true));
    }
    let mut body = Vec::new();
    if headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("transfer-encoding")) {
        loop {
            let size = usize::from_str_radix(read_line(reader)?.trim(), 16).map_err(std::io::Error::other)?;
            let start = body.len();
            body.resize(start + size, 0);
            reader.read_exact(&mut body[start..])?;
            read_line(reader)?;
            if size == 0 {
                return Ok((body, true));
            }
        }
    }
    if let Some(length) = length_of(headers) {
        body.resize(length, 0);
        reader.read_exact(&mut body)?;
        return Ok((body, true));
    }
    reader.read_to_end(&mut body)?;
    Ok((body, false))
}

fn read_line(reader: &mut impl BufRead) -> std::io::Result<String> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    Ok(line)
}

type Head = (String, Vec<(String, String)>);

fn read_head(reader: &mut impl BufRead) -> std::io::Result<Option<Head>> {
    let first = read_line(reader)?;
    if first.is_empty() {
        return Ok(None);
    }
    let mut headers = Vec::new();
    loop {
        let line = read_line(reader)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.push((name.to_owned(), value.trim().to_owned())),
            None => return Ok(Some((first.trim_end().to_owned(), headers))),
        }
    }
}

fn length_of(headers: &[(String, String)]) -> Option<usize> {
    headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length")).and_then(|(_, v)| v.parse().ok())
}

fn send(client: &mut TcpStream, answered: &Answered) -> std::io::Result<()> {
    send_part(client, answered, answered.body.len())
}

/// The whole head, and the first bytes of the body.
fn send_part(client: &mut TcpStream, answered: &Answered, bytes: usize) -> std::io::Result<()> {
    let mut head = format!("{}\r\n", answered.status_line.replace("HTTP/1.0", "HTTP/1.1"));
    // The response to HEAD has the length of a body that is not sent.
    let declared = length_of(&answered.headers).filter(|_| answered.body.is_empty());
    for (name, value) in &answered.headers {
        let own = ["content-length", "transfer-encoding", "connection"];
        if !own.iter().any(|own| name.eq_ignore_ascii_case(own)) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    if !answered.status_line.contains(" 204") {
        head.push_str(&format!("content-length: {}\r\n", declared.unwrap_or(answered.body.len())));
    }
    head.push_str("\r\n");
    let mut answer = head.into_bytes();
    answer.extend_from_slice(&answered.body[..bytes.min(answered.body.len())]);
    client.write_all(&answer)
}
