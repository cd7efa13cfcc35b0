//! A class as core thinks of it, and what is wrong with one.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use scarpenter_core::kubelet;
use scarpenter_core::name::Vendor;
use scarpenter_core::offering::Price;
use scarpenter_core::pool::{self, Class};
use scarpenter_core::resources::Resources;
use serde_json::Value;

use super::{JoinMethod, Kubelet, ScarpenterNodeClass, Tenancy};
use crate::condition::Condition;
use crate::quantity;

/// Vendors of the catalog, and machines of one's own.
pub const VENDORS: [&str; 9] =
    ["alicloud", "aws", "azure", "gcp", "hcloud", "local", "ovh", "upcloud", "vultr"];

impl ScarpenterNodeClass {
    /// The known vendors: those of the catalog, and `local`.
    pub const VENDORS: [&str; 9] = VENDORS;

    /// As the planner sees it; vendors are all that it names, usable or not.
    #[must_use]
    pub fn to_class(&self) -> Class {
        let spec = &self.spec;
        Class {
            name: self.metadata.name.clone().unwrap_or_default(),
            vendors: spec
                .vendors
                .iter()
                .map(|(vendor, part)| {
                    (Vendor::new(vendor), part.regions.iter().cloned().collect::<BTreeSet<_>>())
                })
                .collect(),
            tenancy: match spec.tenancy {
                Tenancy::Shared => pool::Tenancy::Shared,
                Tenancy::SinglePod => pool::Tenancy::SinglePod,
            },
            boot_disk_gib: u64::try_from(spec.boot_disk.size_gib).unwrap_or_default(),
            kubelet: spec.join.kubelet.to_core(&mut Vec::new()),
            extras: self.extras(),
        }
    }

    fn extras(&self) -> BTreeMap<Vendor, pool::Extras> {
        let price = |micro_usd: i64| Price::from_micro_usd(u64::try_from(micro_usd).unwrap_or_default());
        let extras = self.spec.vendors.iter().map(|(vendor, part)| {
            let public_ipv4 = price(part.extras.public_ipv4);
            let boot_disk_gib_month = price(part.extras.boot_disk_gib_month);
            (Vendor::new(vendor), pool::Extras { public_ipv4, boot_disk_gib_month })
        });
        extras.filter(|(_, extras)| *extras != pool::Extras::default()).collect()
    }

    /// How long the vendor may take to accept a machine.
    #[must_use]
    pub fn launch_deadline(&self) -> Duration {
        self.spec.join.launch_deadline.get().unwrap_or(Duration::from_secs(5 * 60))
    }

    /// How long a machine of `vendor` may take to become a node.
    #[must_use]
    pub fn registration_deadline(&self, vendor: &Vendor) -> Duration {
        let own = self.spec.vendors.get(vendor.as_str()).and_then(|part| part.registration_deadline.as_ref());
        let deadline = own.unwrap_or(&self.spec.join.registration_deadline);
        deadline.get().unwrap_or(Duration::from_secs(15 * 60))
    }

    /// Its conditions; empty while it has no status.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |status| &status.conditions)
    }

    /// What keeps the whole class from being used, in words; empty when nothing does.
    ///
    /// What concerns one vendor is in [`Self::vendor_problems`] and stops only that vendor.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let (spec, join) = (&self.spec, &self.spec.join);
        let mut out = Vec::new();
        let mut say = |field: &str, problem: Option<String>| {
            out.extend(problem.map(|words| format!("{field}: {words}")))
        };
        say("spec.vendors", spec.vendors.is_empty().then(|| "names no vendor".to_owned()));
        say("spec.join.kubernetesVersion", version_problem(join.method, join.kubernetes_version.as_deref()));
        for server in &join.servers {
            say("spec.join.servers", server_problem(server));
        }
        for (file, hash) in &join.sysext_hashes {
            say("spec.join.sysextHashes", hash_problem(file, hash));
        }
        for range in join.firewall.iter().flat_map(|firewall| &firewall.allow_from) {
            say("spec.join.firewall.allowFrom", range_problem(range));
        }
        for address in &join.cluster_dns {
            let bad = address.parse::<IpAddr>().is_err();
            say("spec.join.clusterDNS", bad.then(|| format!("{address:?} is not an IP address")));
        }
        say("spec.join.launchDeadline", join.launch_deadline.problem());
        say("spec.join.registrationDeadline", join.registration_deadline.problem());
        say(
            "spec.join.deadMan.apiUnreachable",
            join.dead_man.api_unreachable.as_ref().and_then(|text| text.problem()),
        );
        let mut unreadable = Vec::new();
        join.kubelet.to_core(&mut unreadable);
        for problem in unreadable {
            say("spec.join.kubelet", Some(problem));
        }
        out
    }

    /// What keeps a vendor from being used, in words; vendors without problems are absent.
    #[must_use]
    pub fn vendor_problems(&self) -> BTreeMap<String, Vec<String>> {
        let mut out = BTreeMap::new();
        for (vendor, part) in &self.spec.vendors {
            let mut words = Vec::new();
            if !VENDORS.contains(&vendor.as_str()) {
                words.push(format!("{vendor:?} is not a vendor; known are {}", VENDORS.join(", ")));
            }
            words.extend(part.registration_deadline.as_ref().and_then(|text| text.problem()));
            words.extend(part.settings.iter().filter_map(|(key, value)| setting_problem(key, value)));
            if !words.is_empty() {
                out.insert(vendor.clone(), words);
            }
        }
        out
    }
}

impl Kubelet {
    /// As core thinks of it; what cannot be read is left out and named in `problems`.
    fn to_core(&self, problems: &mut Vec<String>) -> kubelet::Kubelet {
        let mut out = kubelet::Kubelet {
            max_pods: u32::try_from(self.max_pods).unwrap_or_default(),
            kube_reserved: quantity::parse_amounts(&self.kube_reserved, problems),
            system_reserved: quantity::parse_amounts(&self.system_reserved, problems),
            eviction_hard: BTreeMap::new(),
        };
        for (signal, threshold) in &self.eviction_hard {
            if let Some(problem) = threshold_problem(signal, threshold) {
                problems.push(format!("evictionHard.{signal}: {problem}"));
                continue;
            }
            let alone = BTreeMap::from([(signal.clone(), threshold.clone())]);
            let probe = kubelet::Kubelet { eviction_hard: alone, ..kubelet::Kubelet::default() };
            match probe.allocatable(&Resources::new()) {
                Ok(_) => out.eviction_hard.extend(probe.eviction_hard),
                Err(error) => problems.push(format!("evictionHard.{signal}: {error}")),
            }
        }
        out
    }
}

/// Signals that kubelet knows (Kubernetes documentation, "Node-pressure Eviction").
const SIGNALS: [&str; 8] = [
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "containerfs.available",
    "containerfs.inodesFree",
    "pid.available",
];

/// What kubelet would not start with, or what would leave more than there is.
fn threshold_problem(signal: &str, threshold: &str) -> Option<String> {
    if !SIGNALS.contains(&signal) {
        return Some(format!("no such signal: kubelet knows {}", SIGNALS.join(", ")));
    }
    let percent = threshold.strip_suffix('%').and_then(|percent| percent.parse::<f64>().ok());
    let outside = threshold.trim_start().starts_with('-') || percent.is_some_and(|percent| percent > 100.0);
    outside.then(|| format!("{threshold} is not between nothing and all"))
}

fn server_problem(server: &str) -> Option<String> {
    let host = server.strip_prefix("https://").unwrap_or_default();
    let bare = host.split(['/', '?', '#']).next().unwrap_or_default();
    (bare.is_empty()
        || bare != host.trim_end_matches('/')
        || bare.contains('@')
        || bare.contains(char::is_whitespace))
    .then(|| format!("{server:?} is not https://HOST:PORT"))
}

/// A kubelet's image is one of Kubernetes, an agent's one of k3s.
fn version_problem(method: JoinMethod, version: Option<&str>) -> Option<String> {
    let version = version?;
    match (method, version.contains("+k3s")) {
        (JoinMethod::K3sAgent, false) => Some(format!(
            "{version} is no version of k3s, such as {version}+k3s1, and join.method is K3sAgent"
        )),
        (JoinMethod::Kubelet, true) => {
            let kubelet = version.split('+').next().unwrap_or(version);
            Some(format!("{version} is a version of k3s, and join.method is Kubelet: say {kubelet}"))
        }
        _ => None,
    }
}

/// As Ignition writes hashes.
fn hash_problem(file: &str, hash: &str) -> Option<String> {
    let (kind, digits) = hash.split_once('-').unwrap_or_default();
    let length = [("sha256", 64), ("sha512", 128)].into_iter().find(|(name, _)| *name == kind);
    let fine = length.is_some_and(|(_, length)| digits.len() == length)
        && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if !fine {
        return Some(format!("{hash:?} of {file} is neither sha256- and 64 hex digits nor sha512- and 128"));
    }
    let is_name = !file.is_empty() && !file.contains('/');
    (!is_name).then(|| format!("{file:?} is not the name of a file, such as kubernetes-v1.37.2-x86-64.raw"))
}

fn range_problem(range: &str) -> Option<String> {
    let (address, bits) =
        range.split_once('/').map_or((range, None), |(address, bits)| (address, Some(bits)));
    let most = address.parse::<IpAddr>().ok().map(|address| if address.is_ipv4() { 32 } else { 128 });
    let fits = |most: u8| {
        bits.is_none_or(|bits| {
            bits.bytes().all(|digit| digit.is_ascii_digit())
                && bits.parse().is_ok_and(|bits: u8| bits <= most)
        })
    };
    (!most.is_some_and(fits))
        .then(|| format!("{range:?} is neither an address nor a range such as 10.0.0.0/8"))
}

fn setting_problem(key: &str, value: &Value) -> Option<String> {
    let fine = match value {
        Value::String(_) => true,
        Value::Array(items) => items.iter().all(Value::is_string),
        _ => false,
    };
    (!fine).then(|| format!("settings.{key} is neither a text nor a list of texts"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use scarpenter_core::resources::{CPU, EPHEMERAL_STORAGE, MEMORY};

    use super::*;

    fn class(spec: &str) -> ScarpenterNodeClass {
        let text = format!(
            "apiVersion: scarpenter.sparecores.com/v1alpha1\nkind: ScarpenterNodeClass\nmetadata: {{name: c}}\nspec: {spec}"
        );
        serde_saphyr::from_str(&text).unwrap()
    }

    #[test]
    fn a_class_of_nothing_but_vendors_is_usable() {
        let class = class("{vendors: {hcloud: {}, aws: {regions: [us-west-2]}}}");
        assert_eq!(class.problems(), Vec::<String>::new());
        assert!(class.vendor_problems().is_empty());
        let core = class.to_class();
        assert_eq!(
            (core.kubelet.max_pods, core.boot_disk_gib, core.tenancy),
            (110, 40, pool::Tenancy::Shared)
        );
        assert_eq!(core.vendors[&Vendor::new("aws")], BTreeSet::from(["us-west-2".to_owned()]));
        assert!(core.vendors[&Vendor::new("hcloud")].is_empty());
        assert!(core.kubelet.eviction_hard.is_empty());
    }

    #[test]
    fn what_is_charged_beside_the_machine_is_read_by_vendor() {
        let class = class(
            "{vendors: {hcloud: {extras: {publicIPv4MicroUSDPerHour: 800}}, \
             aws: {extras: {publicIPv4MicroUSDPerHour: 5000, bootDiskMicroUSDPerGiBMonth: 80000}}, gcp: {}}}",
        );
        let extras = class.to_class().extras;
        assert_eq!(extras.keys().map(Vendor::as_str).collect::<Vec<_>>(), ["aws", "hcloud"]);
        assert_eq!(extras[&Vendor::new("aws")].boot_disk_gib_month.micro_usd(), 80_000);
        assert_eq!(extras[&Vendor::new("hcloud")].public_ipv4.micro_usd(), 800);
    }

    #[test]
    fn what_is_kept_back_is_taken_off_the_machine() {
        let class = class(
            "{join: {kubelet: {kubeReserved: {cpu: 100m, memory: 50Mi}, systemReserved: {cpu: 1}, \
             evictionHard: {memory.available: 200Mi, nodefs.available: 10%, imagefs.available: 1Gi}}}}",
        );
        let machine = Resources::new().with(CPU, 4000).with(MEMORY, 1 << 30).with(EPHEMERAL_STORAGE, 1000);
        let left = class.to_class().kubelet.allocatable(&machine).unwrap();
        assert_eq!(
            (left.get(CPU), left.get(MEMORY), left.get(EPHEMERAL_STORAGE)),
            (2900, (1024 - 250) << 20, 900)
        );
    }

    #[test]
    fn deadlines_come_from_the_vendor_then_the_class() {
        let class = class("{vendors: {local: {registrationDeadline: 1h}}, join: {launchDeadline: 2m}}");
        assert_eq!(class.launch_deadline(), Duration::from_secs(120));
        assert_eq!(class.registration_deadline(&"local".into()), Duration::from_secs(3600));
        assert_eq!(class.registration_deadline(&"aws".into()), Duration::from_secs(900));
    }

    #[test]
    fn what_does_not_work_is_said() {
        let class = class(
            "{vendors: {hcloud: {}}, mesh: {headscale: {url: u, user: w, apiKeySecretRef: {name: n, key: k}}}, \
             ignition: {configMapRef: {name: x}}, join: {method: K3sAgent, kubernetesVersion: v1.37.2, \
             servers: ['http://10.0.0.1:6443'], sysextHashes: {a.raw: sha256-0}, firewall: {allowFrom: [home]}, \
             clusterDNS: [dns], launchDeadline: soon, kubelet: {evictionHard: {memory.available: lots}}}}",
        );
        let problems = class.problems().join("\n");
        for field in [
            "kubernetesVersion",
            "join.servers",
            "sysextHashes",
            "allowFrom",
            "clusterDNS",
            "launchDeadline",
            "evictionHard",
        ] {
            assert!(problems.contains(field), "{field} is not in\n{problems}");
        }
    }

    #[test]
    fn a_reservation_that_would_leave_more_than_there_is_is_refused() {
        for kubelet in [
            "{kubeReserved: {cpu: '-100'}}",
            "{systemReserved: {memory: '-1Gi'}}",
            "{evictionHard: {memory.available: '-1Gi'}}",
            "{evictionHard: {memory.available: 200%}}",
            "{evictionHard: {KK: 1Gi}}",
        ] {
            let class = class(&format!("{{vendors: {{hcloud: {{}}}}, join: {{kubelet: {kubelet}}}}}"));
            assert_eq!(class.problems().len(), 1, "{kubelet}: {:?}", class.problems());
            assert!(class.to_class().kubelet.kube_reserved.iter().all(|(_, amount)| amount >= 0));
        }
    }

    #[test]
    fn a_version_is_one_of_what_the_method_runs() {
        let words = |method: &str, version: &str| {
            let join = format!("{{method: {method}, kubernetesVersion: {version}}}");
            class(&format!("{{vendors: {{hcloud: {{}}}}, join: {join}}}")).problems().join("; ")
        };
        assert_eq!(words("K3sAgent", "v1.37.2+k3s1"), "");
        assert_eq!(words("Kubelet", "v1.37.2"), "");
        assert!(words("K3sAgent", "v1.37.2").contains("v1.37.2+k3s1"));
        assert!(words("Kubelet", "v1.37.2+k3s1").contains("say v1.37.2"));
    }

    #[test]
    fn a_hash_is_whole_and_of_a_file() {
        let (short, long) = ("0".repeat(64), "f".repeat(128));
        assert_eq!(hash_problem("a.raw", &format!("sha256-{short}")), None);
        assert_eq!(hash_problem("a.raw", &format!("sha512-{long}")), None);
        for (file, hash) in [
            ("a.raw", short.clone()),
            ("a.raw", format!("md5-{short}")),
            ("a.raw", format!("sha512-{short}")),
            ("a.raw", format!("sha256-{}g", &short[1..])),
            ("x/a.raw", format!("sha256-{short}")),
            ("", format!("sha256-{short}")),
        ] {
            assert!(hash_problem(file, &hash).is_some(), "{file} {hash}");
        }
    }

    #[test]
    fn what_may_come_in_is_an_address_or_a_range() {
        for fine in ["10.0.0.0/8", "192.0.2.7", "0.0.0.0/0", "2001:db8::/32", "::1"] {
            assert_eq!(range_problem(fine), None, "{fine}");
        }
        for bad in ["", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/+8", "10.0.0/8", "::/129", "home"] {
            assert!(range_problem(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn a_bad_vendor_is_only_that_vendors_problem() {
        let class = class(
            "{vendors: {hcloud: {}, nimbus: {}, aws: {settings: {subnetId: s, groups: [a, b], size: {x: 1}}}}}",
        );
        assert!(class.problems().is_empty());
        let problems = class.vendor_problems();
        assert_eq!(problems.keys().collect::<Vec<_>>(), ["aws", "nimbus"]);
        assert_eq!(problems["aws"], ["settings.size is neither a text nor a list of texts"]);
    }

    #[test]
    fn a_server_is_https_with_nothing_behind_the_port() {
        for fine in ["https://10.0.0.1:6443", "https://api.example.com", "https://[2001:db8::1]:6443/"] {
            assert_eq!(server_problem(fine), None, "{fine}");
        }
        for bad in ["", "https://", "http://a", "https://a/b", "https://u@a", "https://a?x=1", "a:6443"] {
            assert!(server_problem(bad).is_some(), "{bad}");
        }
    }
}
