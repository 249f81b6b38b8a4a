//! Tells the linker where the binary finds `libduckdb.so` when it runs.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // In order: beside the binary, an installed package, the build folder (binary, test binary).
    for place in ["$ORIGIN", "$ORIGIN/../lib/lakemill", "$ORIGIN/../duckdb", "$ORIGIN/../../duckdb"] {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{place}");
    }
}
