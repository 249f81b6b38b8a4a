//! A TCP proxy that cuts a connection at a chosen moment of one request.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Where a connection fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The request never reaches the server.
    BeforeRequest,
    /// Half of the request reaches the server.
    MidRequest,
    /// The server executes the request; its response is lost.
    BeforeReply,
    /// Half of the response reaches the client.
    MidReply,
    /// The whole response arrives, but only after this delay; the connection stays open.
    LateReply(Duration),
}

#[derive(Default)]
struct State {
    /// The fault for the next request that contains the text.
    armed: Mutex<Option<(Moment, &'static str)>>,
    failed_requests: AtomicUsize,
    ended: AtomicBool,
    connections: Mutex<Vec<TcpStream>>,
}

/// Forwards to a loopback port until dropped.
pub struct CuttingProxy {
    address: SocketAddr,
    state: Arc<State>,
}

impl CuttingProxy {
    pub fn new(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if shared.ended.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                relay(client, server, &shared);
            }
        });
        Self { address, state }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Makes the next request that contains `text` fail.
    pub fn fail_next(&self, moment: Moment, text: &'static str) {
        *self.state.armed.lock().unwrap() = Some((moment, text));
    }

    /// Requests that failed so far.
    pub fn failed_requests(&self) -> usize {
        self.state.failed_requests.load(Ordering::SeqCst)
    }

    /// Cuts every open connection.
    pub fn cut_all(&self) {
        for connection in self.state.connections.lock().unwrap().drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for CuttingProxy {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::SeqCst);
        self.cut_all();
        // Wakes the listener, so that its thread ends.
        let _ = TcpStream::connect(self.address);
    }
}

/// One thread per connection: the protocol is one request, one response.
fn relay(mut client: TcpStream, mut server: TcpStream, state: &Arc<State>) {
    for socket in [&client, &server] {
        socket.set_nodelay(true).unwrap();
        state.connections.lock().unwrap().push(socket.try_clone().unwrap());
    }
    let state = Arc::clone(state);
    std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 20];
        while let Ok(sent @ 1..) = client.read(&mut buffer) {
            let request = &buffer[..sent];
            let moment = fail_if_chosen(&state, request);
            let forwarded = match moment {
                Some(Moment::BeforeRequest) => break,
                Some(Moment::MidRequest) => &request[..sent / 2],
                Some(Moment::BeforeReply | Moment::MidReply | Moment::LateReply(_)) | None => request,
            };
            if server.write_all(forwarded).is_err() || moment == Some(Moment::MidRequest) {
                break;
            }
            let Ok(replied @ 1..) = server.read(&mut buffer) else { break };
            let reply = &buffer[..replied];
            match moment {
                Some(Moment::BeforeReply) => break,
                Some(Moment::MidReply) => {
                    let _ = client.write_all(&reply[..replied / 2]);
                    break;
                }
                Some(Moment::LateReply(after)) => std::thread::sleep(after),
                Some(Moment::BeforeRequest | Moment::MidRequest) | None => {}
            }
            if client.write_all(reply).is_err() {
                break;
            }
        }
        let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
    });
}

fn fail_if_chosen(state: &State, request: &[u8]) -> Option<Moment> {
    let mut armed = state.armed.lock().unwrap();
    let (moment, text) = (*armed)?;
    request.windows(text.len()).any(|window| window == text.as_bytes()).then(|| {
        *armed = None;
        state.failed_requests.fetch_add(1, Ordering::SeqCst);
        moment
    })
}
