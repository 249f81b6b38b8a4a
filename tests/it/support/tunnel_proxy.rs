//! A proxy for tunnels (`CONNECT`), as companies have between their networks and others. It leads every tunnel to one
//! address, whatever the host that is asked for.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use lakemill::domain::digest::base64;
use parking_lot::Mutex;

/// What its clients must send.
pub const USER: &str = "ann";
pub const PASSWORD: &str = "hu%sh";

#[derive(Default)]
struct State {
    targets: Vec<String>,
    requires_password: bool,
}

/// Its threads end with the test's process.
pub struct TunnelProxy {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl TunnelProxy {
    pub fn to(destination: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::<Mutex<State>>::default();
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || drop(serve(client, destination, &shared)));
            }
        });
        Self { address, state }
    }

    pub fn require_password(&self) {
        self.state.lock().requires_password = true;
    }

    /// The hosts and ports of the tunnels so far.
    pub fn targets(&self) -> Vec<String> {
        self.state.lock().targets.clone()
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn url_with_password(&self) -> String {
        format!("http://{USER}:{}@{}", PASSWORD.replace('%', "%25"), self.address)
    }
}

fn serve(mut client: TcpStream, destination: SocketAddr, state: &Mutex<State>) -> std::io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let mut words = head[0].split(' ');
    if words.next() != Some("CONNECT") {
        return client.write_all(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n");
    }
    let wanted = format!("Proxy-Authorization: Basic {}", base64(format!("{USER}:{PASSWORD}").as_bytes()));
    let is_known = head.iter().any(|line| line.eq_ignore_ascii_case(&wanted));
    if state.lock().requires_password && !is_known {
        return client.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n");
    }
    state.lock().targets.push(words.next().unwrap_or_default().to_owned());
    let mut server = TcpStream::connect(destination)?;
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
    let (mut back, mut to_client) = (server.try_clone()?, client.try_clone()?);
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut back, &mut to_client);
        let _ = to_client.shutdown(Shutdown::Both);
    });
    let _ = std::io::copy(&mut reader, &mut server);
    server.shutdown(Shutdown::Write)
}
