//! The `lakemill` program.

fn main() -> std::process::ExitCode {
    #[cfg(feature = "failpoints")]
    let _scenario = fail::FailScenario::setup();
    lakemill::cli::main()
}
