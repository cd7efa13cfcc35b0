//! The `scarpenter` binary.

fn main() -> std::process::ExitCode {
    scarpenter_cli::main()
}
