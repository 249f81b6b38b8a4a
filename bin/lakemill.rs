//! The `lakemill` program.

fn main() -> std::process::ExitCode {
    lakemill::cli::main()
}
