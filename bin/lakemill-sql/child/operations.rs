//! Operations that the program adds to its children, and probes that tests of the confinement add.

use lakemill::sql::sandbox::OpFn;
use lakemill::sql::sandbox::task::Reply;

use super::failure::TaskError;

/// Runs the operation `name`.
///
/// # Errors
/// It is unknown, or fails.
pub fn call(name: &str, payload: &serde_json::Value, ops: &[(&'static str, OpFn)]) -> Result<Reply, TaskError> {
    let found = ops.iter().find(|(known, _)| *known == name).map(|(_, op)| *op).or_else(|| probe(name));
    let op = found.ok_or_else(|| TaskError::Internal(format!("unknown operation `{name}`")))?;
    op(payload).map(|value| Reply::Called { value }).map_err(TaskError::Internal)
}

#[cfg(not(feature = "failpoints"))]
fn probe(_: &str) -> Option<OpFn> {
    None
}

/// Actions that a child could take if its SQL layer were compromised.
#[cfg(feature = "failpoints")]
fn probe(name: &str) -> Option<OpFn> {
    fn outcome<T>(result: std::io::Result<T>) -> Result<serde_json::Value, String> {
        Ok(match result {
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
        "probe_read" => |path| outcome(std::fs::read(text(path))),
        "probe_list" => |path| outcome(std::fs::read_dir(text(path))),
        "probe_write" => |path| outcome(std::fs::write(text(path), "x")),
        "probe_connect" => |address| outcome(std::net::TcpStream::connect(text(address))),
        "probe_listen" => |address| outcome(std::net::TcpListener::bind(text(address))),
        "probe_socket" => |path| outcome(std::os::unix::net::UnixListener::bind(text(path))),
        "probe_namespace" => {
            |_| outcome(super::confine::leave_namespaces().then_some(()).ok_or(std::io::ErrorKind::Other.into()))
        }
        "probe_execute" => |path| outcome(std::process::Command::new(text(path)).status()),
        "probe_memory" => memory,
        "probe_abort" => |_| std::process::abort(),
        "probe_panic" => |_| panic!("as asked"),
        "probe_exit" => |_| std::process::exit(7),
        "probe_sleep" => |_| {
            std::thread::sleep(std::time::Duration::from_secs(3_600));
            Ok(serde_json::Value::Null)
        },
        "probe_nonsense" => |_| {
            let _ = std::io::Write::write_all(&mut super::output::Output, b"nonsense, and more of it");
            Ok(serde_json::Value::Null)
        },
        _ => return None,
    };
    Some(op)
}
