//! The simulated provider as a process of its own.

fn main() -> std::process::ExitCode {
    scarpenter_provider_sim::main()
}
