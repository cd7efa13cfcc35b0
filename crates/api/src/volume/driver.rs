//! CSI drivers of the vendors: their own topology keys in words of the labels that machines have here.
//!
//! A volume of such a driver can be attached to machines of that vendor only, which no topology key says; so the vendor is
//! added wherever the driver is known.

use scarpenter_core::label;
use scarpenter_core::requirements::{Operator, Requirement};

/// What is known of one vendor's driver.
struct Driver {
    name: &'static str,
    /// In-tree plugin whose volumes the driver has taken over.
    in_tree: &'static str,
    vendor: &'static str,
    /// Its topology keys, and the label with the same values.
    keys: &'static [(&'static str, &'static str)],
    /// Prefixes of keys that every machine of the vendor satisfies, or that nothing here knows of a machine.
    implied: &'static [&'static str],
    /// Values that name no place: OpenStack's availability zone when there is only one.
    nowhere: &'static [&'static str],
}

const NONE: Driver = Driver { name: "", in_tree: "", vendor: "", keys: &[], implied: &[], nowhere: &[] };

/// Names and keys as the drivers' sources have them: those of AWS, Azure, Google and Cinder (OVH is OpenStack) as in
/// `k8s.io/csi-translation-lib` 0.37, `hetznercloud/csi-driver` 2.19 (`internal/driver/driver.go`),
/// `UpCloudLtd/upcloud-csi` (`internal/driver/block/node/node.go`), `vultr/vultr-csi` (`driver/controller.go`) and
/// `kubernetes-sigs/alibaba-cloud-csi-driver`, whose volumes also ask for the disk types that a machine takes.
static DRIVERS: [Driver; 8] = [
    Driver {
        name: "ebs.csi.aws.com",
        in_tree: "kubernetes.io/aws-ebs",
        vendor: "aws",
        keys: &[("topology.ebs.csi.aws.com/zone", label::ZONE)],
        ..NONE
    },
    Driver {
        name: "disk.csi.azure.com",
        in_tree: "kubernetes.io/azure-disk",
        vendor: "azure",
        keys: &[("topology.disk.csi.azure.com/zone", label::ZONE)],
        ..NONE
    },
    Driver {
        name: "pd.csi.storage.gke.io",
        in_tree: "kubernetes.io/gce-pd",
        vendor: "gcp",
        keys: &[("topology.gke.io/zone", label::ZONE)],
        ..NONE
    },
    Driver {
        name: "cinder.csi.openstack.org",
        in_tree: "kubernetes.io/cinder",
        vendor: "ovh",
        keys: &[("topology.cinder.csi.openstack.org/zone", label::ZONE)],
        nowhere: &["nova"],
        ..NONE
    },
    Driver {
        name: "csi.hetzner.cloud",
        vendor: "hcloud",
        keys: &[("csi.hetzner.cloud/location", label::REGION)],
        implied: &["instance.hetzner.cloud/provided-by"],
        ..NONE
    },
    Driver {
        name: "diskplugin.csi.alibabacloud.com",
        vendor: "alicloud",
        keys: &[
            ("topology.diskplugin.csi.alibabacloud.com/zone", label::ZONE),
            ("diskplugin.csi.alibabacloud.com/zone", label::ZONE),
        ],
        implied: &["node.csi.alibabacloud.com/disktype."],
        ..NONE
    },
    Driver { name: "storage.csi.upcloud.com", vendor: "upcloud", keys: &[("region", label::REGION)], ..NONE },
    Driver { name: "block.csi.vultr.com", vendor: "vultr", keys: &[("region", label::REGION)], ..NONE },
];

/// The CSI driver that serves volumes of `name`, which may be an in-tree plugin's.
pub(crate) fn csi_name(name: &str) -> &str {
    let taken_over = DRIVERS.iter().find(|driver| !driver.in_tree.is_empty() && driver.in_tree == name);
    taken_over.map_or(name, |driver| driver.name)
}

/// That the machine is of the driver's vendor, if the driver is known.
pub(crate) fn vendor_line(driver: &str) -> Option<Requirement> {
    let known = DRIVERS.iter().find(|known| known.name == driver)?;
    Some(Requirement::new(label::VENDOR, Operator::In, &[known.vendor]))
}

/// What a volume asks of its node, in words of our labels and with the vendor.
///
/// Keys of a driver are known by themselves, too, but for `region`, which two drivers use.
pub(crate) fn translate(driver: &str, lines: Vec<Requirement>) -> Vec<Requirement> {
    let own = DRIVERS.iter().find(|known| known.name == driver);
    let mut out = Vec::new();
    let mut vendor = vendor_line(driver);
    for mut line in lines {
        line.key = label::normalize_key(&line.key).to_owned();
        let by_key = DRIVERS.iter().find(|known| line.key.contains('/') && known.knows(&line.key));
        let Some(known) = own.filter(|own| own.knows(&line.key)).or(by_key) else {
            out.push(line);
            continue;
        };
        vendor = vendor.or_else(|| vendor_line(known.name));
        out.extend(known.in_our_words(line));
    }
    out.extend(vendor);
    out
}

impl Driver {
    fn knows(&self, key: &str) -> bool {
        self.keys.iter().any(|(own, _)| *own == key)
            || self.implied.iter().any(|prefix| key.starts_with(prefix))
    }

    fn in_our_words(&self, mut line: Requirement) -> Option<Requirement> {
        let (_, ours) = self.keys.iter().find(|(own, _)| *own == line.key)?;
        let says_nothing = line.values.iter().any(|value| self.nowhere.contains(&value.as_str()));
        line.key = (*ours).to_owned();
        (!says_nothing).then_some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(driver: &str, key: &str, operator: Operator, values: &[&str]) -> String {
        let lines = translate(driver, vec![Requirement::new(key, operator, values)]);
        lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn a_drivers_own_key_becomes_ours_and_tells_the_vendor() {
        let (zone, region) = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region");
        for (driver, key, value, ours, vendor) in [
            ("ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone", "us-west-2a", zone, "aws"),
            ("pd.csi.storage.gke.io", "topology.gke.io/zone", "us-central1-a", zone, "gcp"),
            ("disk.csi.azure.com", "topology.disk.csi.azure.com/zone", "westeurope-1", zone, "azure"),
            ("csi.hetzner.cloud", "csi.hetzner.cloud/location", "fsn1", region, "hcloud"),
            (
                "diskplugin.csi.alibabacloud.com",
                "diskplugin.csi.alibabacloud.com/zone",
                "cn-beijing-h",
                zone,
                "alicloud",
            ),
            (
                "diskplugin.csi.alibabacloud.com",
                "topology.diskplugin.csi.alibabacloud.com/zone",
                "cn-beijing-h",
                zone,
                "alicloud",
            ),
            (
                "cinder.csi.openstack.org",
                "topology.cinder.csi.openstack.org/zone",
                "eu-west-par-a",
                zone,
                "ovh",
            ),
            ("storage.csi.upcloud.com", "region", "fi-hel2", region, "upcloud"),
            ("block.csi.vultr.com", "region", "ewr", region, "vultr"),
            ("", "topology.ebs.csi.aws.com/zone", "us-west-2a", zone, "aws"),
            ("ebs.csi.aws.com", "failure-domain.beta.kubernetes.io/zone", "us-west-2a", zone, "aws"),
        ] {
            let expected = format!("{ours} In [{value}]; scarpenter.sparecores.com/vendor In [{vendor}]");
            assert_eq!(translated(driver, key, Operator::In, &[value]), expected, "{driver} {key}");
        }
    }

    #[test]
    fn what_names_no_place_leaves_only_the_vendor() {
        for (driver, key, value, vendor) in [
            ("cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone", "nova", "ovh"),
            ("csi.hetzner.cloud", "instance.hetzner.cloud/provided-by", "cloud", "hcloud"),
            (
                "diskplugin.csi.alibabacloud.com",
                "node.csi.alibabacloud.com/disktype.cloud_essd",
                "available",
                "alicloud",
            ),
        ] {
            let expected = format!("scarpenter.sparecores.com/vendor In [{vendor}]");
            assert_eq!(translated(driver, key, Operator::In, &[value]), expected, "{key}");
        }
    }

    #[test]
    fn keys_of_nobody_stay_as_they_are() {
        assert_eq!(translated("nfs.csi.k8s.io", "rack", Operator::Exists, &[]), "rack Exists");
        assert_eq!(translated("nfs.csi.k8s.io", "region", Operator::In, &["a"]), "region In [a]");
    }

    #[test]
    fn volumes_of_an_in_tree_plugin_are_its_drivers() {
        assert_eq!(csi_name("kubernetes.io/aws-ebs"), "ebs.csi.aws.com");
        assert_eq!(csi_name("kubernetes.io/cinder"), "cinder.csi.openstack.org");
        assert_eq!(csi_name("ebs.csi.aws.com"), "ebs.csi.aws.com");
        assert_eq!(csi_name(""), "");
    }
}
