//! The `scarpenter` command as a program of this package, so that its tests can start and kill it.

fn main() -> std::process::ExitCode {
    scarpenter_cli::main()
}
