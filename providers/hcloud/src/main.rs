//! The provider of Hetzner Cloud as a process of its own.

fn main() -> std::process::ExitCode {
    scarpenter_provider_hcloud::main()
}
