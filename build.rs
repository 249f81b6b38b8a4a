//! Tells the linker where the binary finds `libduckdb.so` when it runs, and cargo that the UI's files are part of it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The folder is there even before the UI is built: cargo takes a missing one for changed at every build.
    let built = std::path::Path::new("static/dist");
    if std::fs::create_dir_all(built).is_ok() {
        println!("cargo:rerun-if-changed=static/dist");
    }
    // In order: beside the binary, an installed package, the build folder (binary, test binary).
    for place in ["$ORIGIN", "$ORIGIN/../lib/lakemill", "$ORIGIN/../duckdb", "$ORIGIN/../../duckdb"] {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{place}");
    }
}
