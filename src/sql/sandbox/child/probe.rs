//! What a child could do if its SQL layer were broken; for tests of how it is confined.

use super::OpFn;

#[cfg(not(feature = "failpoints"))]
pub fn op(_: &str) -> Option<OpFn> {
    None
}

#[cfg(feature = "failpoints")]
pub fn op(name: &str) -> Option<OpFn> {
    fn said<T>(outcome: std::io::Result<T>) -> Result<serde_json::Value, String> {
        Ok(match outcome {
            Ok(_) => "done".into(),
            Err(error) => format!("{:?}", error.kind()).into(),
        })
    }
    fn text(payload: &serde_json::Value) -> &str {
        payload.as_str().unwrap_or_default()
    }
    fn memory(payload: &serde_json::Value) -> Result<serde_json::Value, String> {
        let bytes = payload.as_u64().unwrap_or_default();
        let held = vec![1_u8; usize::try_from(bytes).map_err(|error| error.to_string())?];
        Ok(held.len().into())
    }
    let op: OpFn = match name {
        "probe_read" => |path| said(std::fs::read(text(path))),
        "probe_list" => |path| said(std::fs::read_dir(text(path))),
        "probe_write" => |path| said(std::fs::write(text(path), "x")),
        "probe_connect" => |address| said(std::net::TcpStream::connect(text(address))),
        "probe_listen" => |address| said(std::net::TcpListener::bind(text(address))),
        "probe_socket" => |path| said(std::os::unix::net::UnixListener::bind(text(path))),
        "probe_namespace" => {
            |_| said(super::confine::leave_namespaces().then_some(()).ok_or(std::io::ErrorKind::Other.into()))
        }
        "probe_execute" => |path| said(std::process::Command::new(text(path)).status()),
        "probe_memory" => memory,
        "probe_abort" => |_| std::process::abort(),
        "probe_panic" => |_| panic!("as asked"),
        "probe_exit" => |_| std::process::exit(7),
        "probe_sleep" => |_| {
            std::thread::sleep(std::time::Duration::from_secs(3_600));
            Ok(serde_json::Value::Null)
        },
        "probe_nonsense" => |_| {
            let _ = std::io::Write::write_all(&mut super::Out, b"nonsense, and more of it");
            Ok(serde_json::Value::Null)
        },
        _ => return None,
    };
    Some(op)
}
