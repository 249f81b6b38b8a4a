//! Certificates for servers of tests.

use std::path::Path;
use std::process::{Command, Stdio};

use super::children::Reaped as _;

/// Makes a CA (`ca.pem`), and keys and certificates signed by it: a server's for 127.0.0.1 (`server.key`, `server.pem`),
/// and a client's (`client.key`, `client.pem`).
pub fn make(folder: &Path) {
    let openssl = |arguments: &str| {
        let mut command = Command::new("openssl");
        command.args(arguments.split(' ')).current_dir(folder).stdin(Stdio::null());
        let output = command.output_reaped().unwrap();
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    };
    std::fs::write(folder.join("server.ext"), "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\n").unwrap();
    std::fs::write(folder.join("client.ext"), "extendedKeyUsage=clientAuth\n").unwrap();
    openssl(
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=test-ca",
    );
    for name in ["server", "client"] {
        openssl(&format!(
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {name}.key -out {name}.csr -subj /CN={name}",
        ));
        openssl(&format!(
            "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out {name}.pem -days 2 -extfile {name}.ext",
        ));
    }
}
