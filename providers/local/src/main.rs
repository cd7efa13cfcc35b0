//! The provider of local machines as a process of its own.

fn main() -> std::process::ExitCode {
    scarpenter_provider_local::main()
}
