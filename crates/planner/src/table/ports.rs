use std::collections::{BTreeMap, BTreeSet};

use scarpenter_core::pod::HostPort;

/// Ports of a host as things of which there is one each.
///
/// A port on one address clashes with the same port on that address and on every address. So each address that anybody
/// names has its own, and who listens on every address takes all of them, and one more that only such pods take.
#[derive(Debug, Default)]
pub(super) struct Ports {
    names: Vec<String>,
    /// By port and protocol: the one for every address, and those by address.
    by_port: BTreeMap<(u16, String), (usize, BTreeMap<String, usize>)>,
}

impl Ports {
    pub(super) fn of<'p>(ports: impl Iterator<Item = &'p HostPort>) -> Self {
        let mut asked: BTreeMap<(u16, String), BTreeSet<&str>> = BTreeMap::new();
        for port in ports {
            let addresses = asked.entry((port.port, port.protocol.clone())).or_default();
            addresses.extend((!port.ip.is_empty()).then_some(port.ip.as_str()));
        }
        let mut out = Self::default();
        for ((port, protocol), addresses) in asked {
            let name = format!("hostPort {port}/{protocol}");
            let everywhere = out.push(name.clone());
            let by_address =
                addresses.into_iter().map(|ip| (ip.to_owned(), out.push(format!("{name} on {ip}"))));
            let by_address = by_address.collect();
            out.by_port.insert((port, protocol), (everywhere, by_address));
        }
        out
    }

    fn push(&mut self, name: String) -> usize {
        self.names.push(name);
        self.names.len() - 1
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn name(&self, at: usize) -> Option<&str> {
        self.names.get(at).map(String::as_str)
    }

    /// Which of them these take; a port that no pod asks for is not counted.
    pub(super) fn taken(&self, ports: &[HostPort]) -> BTreeSet<usize> {
        let mut out = BTreeSet::new();
        for port in ports {
            let Some((everywhere, by_address)) = self.by_port.get(&(port.port, port.protocol.clone())) else {
                continue;
            };
            if port.ip.is_empty() {
                out.insert(*everywhere);
                out.extend(by_address.values());
            } else {
                // An address that no pod that waits names clashes with those that listen on every address.
                out.insert(*by_address.get(&port.ip).unwrap_or(everywhere));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(number: u16, ip: &str) -> HostPort {
        HostPort { port: number, protocol: "TCP".to_owned(), ip: ip.to_owned() }
    }

    fn clash(a: &HostPort, b: &HostPort) -> bool {
        let ports = Ports::of([a, b].into_iter());
        !ports.taken(std::slice::from_ref(a)).is_disjoint(&ports.taken(std::slice::from_ref(b)))
    }

    #[test]
    fn equal_ports_clash_on_equal_addresses_and_on_every_address() {
        assert!(clash(&port(80, ""), &port(80, "")));
        assert!(clash(&port(80, ""), &port(80, "10.0.0.1")));
        assert!(clash(&port(80, "10.0.0.1"), &port(80, "10.0.0.1")));
        assert!(!clash(&port(80, "10.0.0.1"), &port(80, "10.0.0.2")));
        assert!(!clash(&port(80, ""), &port(81, "")));
        let udp = HostPort { protocol: "UDP".to_owned(), ..port(80, "") };
        assert!(!clash(&port(80, ""), &udp));
    }

    #[test]
    fn a_port_of_a_placed_pod_on_an_address_that_nobody_names_still_clashes() {
        let (everywhere, elsewhere) = (port(80, ""), port(80, "10.9.9.9"));
        let ports = Ports::of(std::iter::once(&everywhere));
        assert!(!ports.taken(&[everywhere]).is_disjoint(&ports.taken(&[elsewhere])));
    }
}
