//! Sets the runtime search path of `libduckdb.so`, and rebuilds when the UI's files change.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Created even if the UI isn't built: cargo treats a missing folder as changed at every build.
    let built = std::path::Path::new("static/dist");
    if std::fs::create_dir_all(built).is_ok() {
        println!("cargo:rerun-if-changed=static/dist");
    }
    // Search order: beside the binary, an installed package, the build folder (binary, test binary).
    for place in ["$ORIGIN", "$ORIGIN/../lib/lakemill", "$ORIGIN/../duckdb", "$ORIGIN/../../duckdb"] {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{place}");
    }
}
